"""The ``ninfer`` command: one prompt, one answer; what a constraint allows; the server.

Owns flags, files, terminal output and exit statuses. Does not decode, compile or serve.
"""
