"""The operators on dependency trees: one name for each operation, one implementation for each backend.

All take scores `[B, n, n]` (float32 or float64, packed: head x modifier, the root on the diagonal), lengths `[B]`
(int64), and three flags: projective, multiroot, and whether to check values. They are registered with
`torch.library`, so the dispatcher picks the backend by device and `torch.compile` sees opaque nodes with
known shapes. An implementation is a function of the operation's name in `inference/<algorithm>/<backend>.py`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from pullback.inference import autograd, vmap

_ALGORITHMS = {  # operation: (for projective trees, for all trees)
    "argmax": ("eisner", "chu_liu_edmonds"),
    "log_partition": ("eisner", "matrix_tree"),
    "marginals": ("eisner", "matrix_tree"),
    "marginals_vjp": ("eisner", "matrix_tree"),
    "entropy": ("eisner", "matrix_tree"),
    "entropy_gradient": ("eisner", "matrix_tree"),
    "sample": ("eisner", "matrix_tree"),
    "sparsemap": ("sparsemap", "sparsemap"),
    "sparsemap_vjp": ("sparsemap", "sparsemap"),
}
_SCORES = "Tensor scores, Tensor lengths"
_FLAGS = "bool projective, bool multiroot, bool validate"
_SCHEMAS = {
    "argmax": f"({_SCORES}, {_FLAGS}) -> Tensor",
    "log_partition": f"({_SCORES}, {_FLAGS}) -> Tensor",
    "marginals": f"({_SCORES}, {_FLAGS}) -> Tensor",
    "marginals_vjp": f"({_SCORES}, Tensor direction, {_FLAGS}) -> Tensor",
    "entropy": f"({_SCORES}, {_FLAGS}) -> Tensor",
    "entropy_gradient": f"({_SCORES}, {_FLAGS}) -> Tensor",
    "sample": f"({_SCORES}, Tensor seeds, {_FLAGS}) -> Tensor",
    "sparsemap": (
        f"({_SCORES}, Tensor start_heads, Tensor start_weights, int max_iterations, bool complete, {_FLAGS})"
        " -> (Tensor mu, Tensor heads, Tensor weights, Tensor sizes, Tensor gap, Tensor calls, Tensor converged)"
    ),
    "sparsemap_vjp": f"(Tensor heads, Tensor sizes, Tensor lengths, Tensor direction, {_FLAGS}) -> Tensor",
}
_forced: str | None = None


@contextlib.contextmanager
def backend(name: str) -> Iterator[None]:
    """Run the operators on `reference`, `cpu` or `cuda`, whatever the device of the tensors: for tests."""
    global _forced
    before, _forced = _forced, name
    try:
        yield
    finally:
        _forced = before


@functools.cache
def _implementation(operation: str, projective: bool, name: str) -> Callable[..., Any]:
    algorithm = _ALGORITHMS[operation][0 if projective else 1]
    return getattr(importlib.import_module(f"pullback.inference.{algorithm}.{name}"), operation)


def _kernel(operation: str, device: str) -> Callable[..., Any]:
    takes_projective = operation.startswith("sparsemap")

    def run(*args: Any) -> Any:
        projective = args[-3]
        implementation = _implementation(operation, projective, _forced or device)
        return implementation(*args) if takes_projective else implementation(*args[:-3], *args[-2:])

    return run


_library = torch.library.Library("pullback", "DEF")
for _operation, _schema in _SCHEMAS.items():
    _library.define(f"tree_{_operation}{_schema}")
    _library.impl(f"tree_{_operation}", _kernel(_operation, "cpu"), "CPU")
    _library.impl(f"tree_{_operation}", _kernel(_operation, "cuda"), "CUDA")

_ops = torch.ops.pullback
tree_argmax = _ops.tree_argmax.default
tree_log_partition = _ops.tree_log_partition.default
tree_marginals = _ops.tree_marginals.default
tree_marginals_vjp = _ops.tree_marginals_vjp.default
tree_entropy = _ops.tree_entropy.default
tree_entropy_gradient = _ops.tree_entropy_gradient.default
tree_sample = _ops.tree_sample.default
tree_sparsemap = _ops.tree_sparsemap.default
tree_sparsemap_vjp = _ops.tree_sparsemap_vjp.default


def active_set_capacity(n: int, backend: str = "cpu") -> int:
    """For how many trees a sentence's active set has room: one more than the dimension of their affine hull, which is
    what SparseMAP can need; on a GPU, where that would take gigabytes for long sentences, 2048 at most.
    """
    most = n * (n - 1) + 1
    return torch.sym_min(most, 2048) if backend == "cuda" else most


def _fake(operation: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return torch.library.register_fake(f"pullback::tree_{operation}", lib=_library)


for _operation in ("argmax", "marginals", "marginals_vjp", "entropy_gradient", "sample"):

    @_fake(_operation)
    def _like_scores(scores: Tensor, *rest: object) -> Tensor:
        return scores.new_empty(scores.shape)


for _operation in ("log_partition", "entropy"):

    @_fake(_operation)
    def _one_per_sentence(scores: Tensor, *rest: object) -> Tensor:
        return scores.new_empty(scores.shape[0], dtype=torch.float64)


@_fake("sparsemap")
def _sparsemap_shapes(scores: Tensor, *rest: object) -> tuple[Tensor, ...]:
    batch, n = scores.shape[0], scores.shape[-1]
    capacity = active_set_capacity(n, _forced or scores.device.type)
    return (
        scores.new_empty(scores.shape),
        scores.new_empty((batch, capacity, n), dtype=torch.int16),
        scores.new_empty((batch, capacity), dtype=torch.float64),
        scores.new_empty(batch, dtype=torch.int32),
        scores.new_empty(batch, dtype=torch.float64),
        scores.new_empty(batch, dtype=torch.int32),
        scores.new_empty(batch, dtype=torch.bool),
    )


@_fake("sparsemap_vjp")
def _sparsemap_vjp_shape(heads: Tensor, sizes: Tensor, lengths: Tensor, direction: Tensor, *flags: bool) -> Tensor:
    return direction.new_empty(direction.shape)


def _save_inputs(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    autograd.keep(ctx, inputs[0], inputs[1])
    ctx.flags = inputs[-3:]


def _log_partition_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    scores, lengths = ctx.saved_tensors
    mu = tree_marginals(scores, lengths, *ctx.flags)
    return grad.to(scores.dtype)[:, None, None] * mu, None, None, None, None


def _marginals_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    scores, lengths = ctx.saved_tensors
    return tree_marginals_vjp(scores, lengths, grad, *ctx.flags), None, None, None, None


def _entropy_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    scores, lengths = ctx.saved_tensors
    slope = tree_entropy_gradient(scores, lengths, *ctx.flags)
    return grad.to(scores.dtype)[:, None, None] * slope, None, None, None, None


def _sparsemap_setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    heads, sizes = output[1], output[3]
    autograd.keep(ctx, heads, sizes, inputs[1])
    ctx.flags = inputs[-3:]
    ctx.mark_non_differentiable(*output[1:])


def _sparsemap_backward(ctx: Any, grad: Tensor, *rest: Any) -> tuple[Any, ...]:
    heads, sizes, lengths = ctx.saved_tensors
    return tree_sparsemap_vjp(heads, sizes, lengths, grad, *ctx.flags), *[None] * 8


def _symmetric(backward: Callable[..., tuple[Any, ...]]) -> Callable[..., Any]:
    """Tangents of an operator whose Jacobian is symmetric: J v is v J."""

    def tangent(ctx: Any, direction: Tensor, *rest: Any) -> Any:
        return backward(ctx, direction)[0]

    return tangent


def _sparsemap_tangent(ctx: Any, direction: Tensor, *rest: Any) -> tuple[Any, ...]:
    return _sparsemap_backward(ctx, direction)[0], *[None] * 6


def _scalar(backward: Callable[..., tuple[Any, ...]]) -> Callable[..., Any]:
    """Tangents of an operator with one number for each sentence."""

    def tangent(ctx: Any, direction: Tensor, *rest: Any) -> Tensor:
        slope = backward(ctx, direction.new_ones(len(direction)))[0].double()
        return torch.where(slope != 0, slope * direction, 0.0).sum((1, 2))  # padding may be NaN

    return tangent


def _no_second_derivative(ctx: Any, *grads: Any) -> Any:
    raise NotImplementedError(
        "the second derivative of marginals, entropy or sparsemap is not available: differentiate once "
        "(drop create_graph=True), or use log_partition, which can be differentiated twice"
    )


def _nothing(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    pass


for _operation, _setup, _backward, _tangent in (
    ("log_partition", _save_inputs, _log_partition_backward, _scalar(_log_partition_backward)),
    ("marginals", _save_inputs, _marginals_backward, _symmetric(_marginals_backward)),
    ("marginals_vjp", _nothing, _no_second_derivative, _no_second_derivative),
    ("entropy_gradient", _nothing, _no_second_derivative, _no_second_derivative),
    ("entropy", _save_inputs, _entropy_backward, _scalar(_entropy_backward)),
    ("sparsemap", _sparsemap_setup, _sparsemap_backward, _sparsemap_tangent),
    ("sparsemap_vjp", _nothing, _no_second_derivative, _no_second_derivative),
):
    autograd.register(_library, f"tree_{_operation}", setup=_setup, backward=_backward, tangent=_tangent)

for _operation in _SCHEMAS:
    vmap.register(_library, f"tree_{_operation}")
