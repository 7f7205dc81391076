"""The self-test of what kernels are made of, for untested releases of Numba and llvmlite: vectors, rows of them,
records, scratch memory and calls by address, in one small kernel.
"""

from __future__ import annotations

import numpy as np
import torch
from numba import types

from pullback.inference._numba.compile import callback, called, calling, no_alloc_kernel
from pullback.inference._numba.lanes import exp, load, store
from pullback.inference._numba.records import Record
from pullback.inference._numba.rows import load_first, store_first
from pullback.inference._numba.scratch import carve, take
from pullback.inference._numba.threads import scratch
from pullback.inference._numba.vectors import log, narrow, widen

_Inner = Record("TrialInner", out=(np.float32, 1))
_Given = Record("TrialGiven", limit=int, x=(np.float32, 1), inner=_Inner)
_given_of = _Given.reader
_signature = types.float64(types.float64)
_call = calling(_signature)


@called
def _twice(x):
    return 2.0 * x


def _address_of_twice():
    def twice(x):
        return _twice(x)

    return callback(_signature, twice)


@no_alloc_kernel
def _kernel(table, address, work, taken):
    given = _given_of(table, 0)
    room, _ = carve(work, np.int64(0), np.int64(32), np.float32)
    out = given.inner.out
    store(room, 0, exp(load(given.x, 0)))
    store(room, 16, load_first(given.x, 16, given.limit - 16, load(given.x, 0)))
    weights = load(room, 0)
    store(out, 0, narrow(log(widen(weights)), weights))
    store_first(out, 16, given.limit - 16, load(room, 16))
    out[31] = _call(address, (np.float64(take(taken)),))


def run() -> None:
    """Raise unless the kernel does what it should."""
    x, out, taken = torch.linspace(-2.0, 2.0, 32, device="cpu"), torch.zeros(32, device="cpu"), np.array([21])
    function = _address_of_twice()
    table = _Given.table({"limit": 20, "x": x, "inner": _Inner.table({"out": out}).tolist()})
    _kernel(table, function.address, scratch(1, 256)[0], taken)
    right = torch.cat([x[:20], x.new_zeros(11), x.new_tensor([42.0])])
    if not torch.allclose(out, right, atol=1e-5) or taken[0] != 22:
        raise ArithmeticError(f"a compiled self-test gives {out.tolist()}")
