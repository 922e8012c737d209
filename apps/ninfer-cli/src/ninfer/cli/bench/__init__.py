"""``ninfer bench``: owns grids, workloads, repetitions and how their numbers are shown.

Does not own what is measured: every second and count comes from the engine's own results.
"""
