"""The seam to Numba's private parts: a cache of compiled kernels on disk, on top of the classes behind `cache=True`, and
inner functions that are optimized with their kernels only.

`cache.works()` and `linked.options()` are the self-tests. Where they fail, with a Numba that has changed, kernels are compiled
anew in each process, or in more time, by public means alone. `usable.works()` is the self-test of the whole: where Numba cannot
be imported, or an untested release gives wrong results or errors (`trial`), PyTorch's operators take the place of
kernels. An upgrade costs time at worst.
"""
