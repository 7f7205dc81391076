"""Triton's interpreter as the tests need it: faster, and with a GPU's results where it has others."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch

ran: set[str] = set()
"""The kernels, and the functions that they call, that have run since `record`, with their modules in `pullback.inference`."""


def poison(on: bool) -> None:
    """Fill memory that nobody has written with NaN, or the largest integer."""
    torch.use_deterministic_algorithms(on, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = True


def patch() -> None:
    """Without what makes it four times slower: checks of every integer operation for overflow, and patching all of
    `triton.language` anew at every call of one kernel by another (only Triton's own need it, once).

    Before Triton 3.7 it made numbers of arrays of one element by `int`, which NumPy 2.4 refuses. Before 3.9 the larger of NaN
    and a number was NaN, which on a GPU is the number. From 3.9 on it wants masks of bool, which it does not always make.
    """
    from triton.runtime import interpreter

    builder = interpreter.interpreter_builder
    builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)
    patch_tensor = interpreter._patch_lang_tensor
    patched: set[str] = set()

    def patch_tensor_for_numpy(tensor, scope):
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    def call(self, *args, **kwargs):
        module = self.fn.__module__
        if module.startswith("triton.") and module not in patched:
            interpreter._patch_lang(self.fn)
            patched.add(module)
        return self.rewrite()(*args, **kwargs)

    def with_mask_of_bool(access, place):
        def masked(self, *args):
            mask = interpreter.TensorHandle(args[place].data.astype(bool), args[place].dtype)
            return access(self, *args[:place], mask, *args[place + 1 :])

        return masked

    def without_nan(self, values, val_reduce_op, idx_reduce_op=None):
        return min_max(self, values, *(skipping.get(reduce, reduce) for reduce in (val_reduce_op, idx_reduce_op)))

    min_max, interpreter.ReduceOps.min_max = interpreter.ReduceOps.min_max, without_nan
    skipping = {np.max: np.nanmax, np.min: np.nanmin, np.argmax: np.nanargmax, np.argmin: np.nanargmin}
    kind = type(builder)
    kind.create_maxnumf = lambda self, a, b: self.binary_op(a, b, np.fmax)
    kind.create_minnumf = lambda self, a, b: self.binary_op(a, b, np.fmin)
    kind.create_masked_load = with_mask_of_bool(kind.create_masked_load, 1)
    kind.create_masked_store = with_mask_of_bool(kind.create_masked_store, 2)
    interpreter._patch_lang_tensor = patch_tensor_for_numpy
    interpreter.InterpretedFunction.__call__ = call


def record() -> None:
    """Note in `ran` what runs from now on, after `patch`."""
    from triton.runtime import interpreter

    from pullback.inference._triton import launcher

    start, call = launcher.start, interpreter.InterpretedFunction.__call__

    def started(kernel: Any, *args: Any) -> None:
        _note(kernel)
        start(kernel, *args)

    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        _note(self)
        return call(self, *args, **kwargs)

    launcher.start, interpreter.InterpretedFunction.__call__ = started, called


def _note(kernel: Any) -> None:
    module = kernel.fn.__module__
    if module.startswith("pullback.inference."):
        ran.add(f"{module.removeprefix('pullback.inference.')}.{kernel.fn.__name__}")


def early() -> None:
    """Let kernels for large inputs serve for small ones, in several tiles; before anything has run."""
    from pullback.inference.chain import cuda as chain
    from pullback.inference.engine.hypergraph import cuda as hypergraph
    from pullback.inference.sparsemap import cuda as sparsemap

    chain.ONE_TILE, chain._tiles = 2, lambda width: {"ROWS": 2, "num_warps": 1}
    hypergraph.ONE_TILE, hypergraph._chunk = 0, lambda edges, name: {"NODES": 4, name: 4}
    sparsemap._SHORT = sparsemap._MEDIUM = 0
