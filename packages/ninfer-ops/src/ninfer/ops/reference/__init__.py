"""The torch implementation of every op, for any device.

Owns the same contract as the CUDA library, token for token. On the CPU it takes one column at a
time and looks at block maxima; on other devices it never waits for the device.
"""
