"""The seam to Numba's private parts: a cache of compiled kernels on disk, on top of the classes behind `cache=True`.

`works()` is the self-test. Where it fails, with a Numba that has changed, kernels are compiled anew in each process, by public
means alone: an upgrade costs time at worst.
"""
