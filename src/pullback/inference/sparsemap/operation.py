"""SparseMAP by an oracle, as operations of a family."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference.front import checks
from pullback.inference.front.operations import Operation

if TYPE_CHECKING:
    from pullback.inference.front.family import Family
    from pullback.inference.front.layout import Layout
    from pullback.inference.sparsemap.oracle import Oracle


Room = Callable[[int], Any]


def active_set_capacity(n: int) -> Any:
    """For how many trees an active set has room on a GPU: for as many as SparseMAP can need, one more than the dimension of
    their affine hull, but 2048 at most, because more would take gigabytes for long sentences.
    """
    return torch.sym_min(n * (n - 1) + 2, 2048)


def _shapes(room: Room | None, paths: bool, scores: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    from pullback.inference.front.family import backend_of

    batch, width = scores.shape[0], next(x.shape[-1] for x in rest if isinstance(x, Tensor) and x.dim() == 3)
    on_edges = paths and backend_of(scores) == "cpu"
    if room is None or backend_of(scores) != "cuda":
        capacity = torch.library.get_ctx().new_dynamic_size()  # as large as the largest active set
    else:
        capacity = room(scores.shape[-1])
    return (
        scores.new_empty(scores.shape),
        scores.new_empty((batch, capacity, 3 if on_edges else width), dtype=torch.int64 if on_edges else torch.int32),
        scores.new_empty((batch, capacity), dtype=torch.float64),
        scores.new_empty(batch, dtype=torch.int32),
        scores.new_empty(batch, dtype=torch.float64),
        scores.new_empty(batch, dtype=torch.int32),
        scores.new_empty(batch, dtype=torch.bool),
    )


def _find_search(family: Family, backend: str, options: tuple[Any, ...]) -> Callable[..., Any]:
    """The backend's own search, or the one that calls the family's oracle."""
    return family.function("sparsemap", backend, options) or _find_oracle(family, backend, options)


def _find_oracle(family: Family, backend: str, options: tuple[Any, ...]) -> Callable[..., Any]:
    """The search with the family's compiled oracle, if it has one, or with its argmax; on edges, if that can be."""
    folder, count = family.folder("argmax", options), len(family.layout.sizes)
    module = family.module(folder, "oracle") if backend == "cpu" else None
    oracle: Oracle | None = None if module is None else module.ORACLE.of(options)
    encoded = () if oracle is None else oracle.encode(options)
    best = family.implementation("argmax", backend, options)
    if oracle is not None:
        from pullback.inference.sparsemap import compiled, flow

    def run(scores: Tensor, *rest: Any, validate: bool) -> tuple[Tensor, ...]:
        sizes, rest = rest[:count], rest[count:]
        s = scores.detach()
        if oracle is None:
            found, status = _by_argmax(best, family.layout, s, sizes, rest, backend)
        else:
            if oracle.places is None:
                s = torch.where(family.layout.mask(scores, sizes), s, -torch.inf)
            limits = family.layout.limits(s.shape)
            starts, (limit, complete, tolerance) = rest[:2], rest[2:]
            if oracle.paths is not None:
                found, status = flow.search(oracle, s, (sizes, limits), starts, limit, tolerance, encoded)
            else:
                found, status = compiled.search(oracle, s, (sizes, limits), starts, limit, tolerance, complete, encoded)
        return _checked(found, status, rest[2], validate)

    return run


def _by_argmax(
    best: Callable[..., Tensor], layout: Layout, scores: Tensor, sizes: tuple[Tensor, ...], rest: tuple[Any, ...], backend: str
) -> tuple[tuple[Tensor, ...], Tensor]:
    inside = layout.in_range(scores, sizes)
    s = torch.where(layout.mask(scores, inside), scores, -torch.inf)
    starts, (limit, complete, tolerance) = rest[:2], rest[2:]

    def argmax(scores: Tensor, examples: Tensor) -> Tensor:
        if len(examples) == len(scores):
            return best(scores, *inside, validate=False)
        return best(scores[examples], *(size[examples] for size in inside), validate=False)

    def alone(scores: Tensor, examples: Tensor) -> Tensor:
        return best(scores, *(size[examples] for size in inside), validate=False)

    search, _ = with_an_argmax(backend)
    if backend != "reference":
        from pullback.inference.sparsemap.batched import usable

        starts = usable(alone, s, starts)
    if backend == "cuda":
        search = functools.partial(search, most=starts[0].shape[-1])
    found, status = search(argmax, s, starts, limit, tolerance, complete)
    return found, layout.out_of_range(status, sizes, inside)


def _checked(found: tuple[Tensor, ...], status: Tensor, limit: int, validate: bool) -> tuple[Tensor, ...]:
    mu, *rest = found
    values, converged = (status.numpy(), rest[5].numpy()) if status.is_cpu else (status, rest[5])
    if not (status.is_cpu and np.count_nonzero(values) == 0):
        mu = checks.settled(mu, values, validate)
    if (validate or mu.is_cpu) and not converged.all():
        from pullback.inference.sparsemap.solution import warn

        warn(rest[5], rest[3], limit)
    return mu, *rest


def with_an_argmax(backend: str) -> tuple[Callable[..., Any], Callable[..., Tensor]]:
    """The search by calls of an argmax, and the Jacobian."""
    if backend == "cpu":
        from pullback.inference.sparsemap import batched, compiled

        return batched.search, compiled.sparsemap_vjp
    from pullback.inference._triton.support import triton

    if backend == "cuda" and triton is not None:
        from pullback.inference.sparsemap import cuda, cuda_batched

        return cuda_batched.search, cuda.sparsemap_vjp
    from pullback.inference.sparsemap import reference

    return reference.search, reference.sparsemap_vjp


def _find_product(family: Family, backend: str, options: tuple[Any, ...]) -> Callable[..., Any]:
    _, sparsemap_vjp = with_an_argmax(backend)

    def run(vertices: Tensor, counts: Tensor, direction: Tensor, validate: bool) -> Tensor:
        if vertices.dtype == torch.int64:  # edges
            from pullback.inference.sparsemap import flow

            return flow.sparsemap_vjp(vertices, counts, direction)
        return sparsemap_vjp(vertices, counts, direction)

    return run


def sparsemap_operations(room: Room | None = None, paths: bool = False) -> tuple[Operation, ...]:
    """SparseMAP and its Jacobian.

    Args:
        room: from the last dimension of the scores to the room in the active sets that a GPU returns, if that is fixed.
        paths: whether the oracle has a graph whose paths are the structures: a CPU then returns edges and their flows
            instead of structures and their weights (`flow.py`).
    """
    search = Operation(
        "sparsemap",
        after=("starts", "start_weights"),
        numbers={"max_iterations": "int", "complete": "bool", "tolerance": "float"},
        outputs="(Tensor mu, Tensor vertices, Tensor weights, Tensor counts, Tensor gap, Tensor calls, Tensor converged)",
        shapes=functools.partial(_shapes, room, paths),
        keep=lambda inputs, output: (output[1], output[3]),
        product="sparsemap_vjp",
        find=_find_search,
    )
    jacobian = Operation(
        "sparsemap_vjp",
        before=("vertices", "counts", "direction"),
        shapes=lambda vertices, counts, direction, *static: direction.new_empty(direction.shape),
        refuses="the second derivative of sparsemap is not available: differentiate once (drop create_graph=True)",
        sized=False,
        find=_find_product,
    )
    return search, jacobian


SPARSEMAP = sparsemap_operations()
SPARSEMAP_ON_PATHS = sparsemap_operations(paths=True)
