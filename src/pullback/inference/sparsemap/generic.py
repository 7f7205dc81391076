"""SparseMAP of any structure that has an argmax: from scores and a warm start to a solution. See README.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pullback.inference._torch.derivatives import apply, keep, may_be_differentiated
from pullback.inference.front.checks import BROKEN, INFEASIBLE, INFINITE, NAN, WORSE, capturing
from pullback.inference.front.family import backend_of
from pullback.inference.front.layout import result_dtype, working
from pullback.inference.sparsemap.families import start_vertices, stops
from pullback.inference.sparsemap.operation import with_an_argmax
from pullback.inference.sparsemap.solution import SparseMAPSolution, VertexSet, warn

if TYPE_CHECKING:
    from pullback.structures.base import Structure

_PROBLEMS = {
    NAN: "contains NaN; check the encoder that made it",
    INFINITE: "contains +inf; scores must be finite, or -inf to forbid a part",
    INFEASIBLE: "has no feasible structure: the argmax uses a part whose score is -inf, or returns NaN",
    WORSE: "has an argmax that is not the best structure: it scores less than one that was found before; check the sign of "
    "the scores and the ties of the maximisation",
    BROKEN: "has an argmax that is not a structure: it must return zeros and ones",
}


@torch.compiler.disable
def project(
    structure: Structure,
    scores: Tensor,
    *,
    warm_start: Tensor | SparseMAPSolution | None = None,
    max_iterations: int | None = None,
    tolerance: float | None = None,
) -> SparseMAPSolution:
    """The projections of scores `[..., *parts]` onto the convex hull of the structures of a user's argmax.

        argmin over mu in conv(Z) of ||mu - s||^2

    The argmax is called on the whole batch until the last example is solved; that of a structure without attributes, which
    cannot depend on the example, on unsolved examples only. The structures of a warm start must be of Z; those that use a
    part that is forbidden now are ignored. For `max_iterations` and `tolerance` see `families.project`.
    """
    s = working(scores)
    split = s.dim() - structure.event_dims
    _batch, parts = s.shape[:split], s.shape[split:]
    limit, enough = stops(parts, scores.dtype, max_iterations, tolerance)
    starts = start_vertices(warm_start, s.shape, len(parts), parts.numel() if capturing(s) else None)
    found = apply(_Project, s, structure, starts, (limit, enough), may_be_differentiated(s))
    mu, vertices, weights, counts, gap, calls, converged = found
    mu = mu.to(result_dtype(scores))
    active = VertexSet(vertices, weights, counts, mu.shape[: mu.dim() - len(parts)], parts, mu.dtype)
    return SparseMAPSolution(mu, gap, calls, converged, active)


class _Project(torch.autograd.Function):
    """The search as a function of the scores; its Jacobian projects onto the directions between active structures."""

    @staticmethod
    def forward(
        s: Tensor, structure: Structure, starts: tuple[Tensor, Tensor] | None, ends: tuple[int, float], complete: bool
    ) -> tuple[Tensor, ...]:
        split = s.dim() - structure.event_dims
        batch, parts = s.shape[:split], s.shape[split:]
        flat = s.reshape(batch.numel(), *parts)
        oracle = _Oracle(structure, s.shape)
        if starts is None:
            nothing = flat.new_empty((len(flat), 0, 1), dtype=torch.int32)
            starts = nothing, flat.new_empty((len(flat), 0), dtype=torch.float64)
        search, _ = with_an_argmax(backend_of(s))
        (mu, *found), status = search(oracle, flat, starts, *ends, complete)
        if not capturing(s):
            _raise_for(status)
            oracle.check_single(flat, mu, found[2])
            if not found[5].all():
                warn(found[5], found[3], ends[0])
        return mu.reshape(s.shape), *(x.reshape(batch + x.shape[1:]) for x in found)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        mu, vertices, weights, counts, *rest = output
        ctx.mark_non_differentiable(vertices, weights, counts, *rest)
        ctx.set_materialize_grads(False)
        keep(ctx, vertices, counts)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *rest: Any) -> tuple[Any, ...]:
        return None if grad is None else apply(_Product, grad, *ctx.saved_tensors), None, None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *rest: Any) -> tuple[Any, ...]:
        return apply(_Product, tangent, *ctx.saved_tensors), *[None] * 6

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], s: Tensor, *rest: Any) -> Any:
        if rest[1] is not None:
            raise NotImplementedError("a warm start under torch.vmap is not available for a structure with only an argmax")
        return apply(_Project, s.movedim(in_dims[0], 0), *rest), 0


class _Product(torch.autograd.Function):
    """The Jacobian times directions."""

    @staticmethod
    def forward(direction: Tensor, vertices: Tensor, counts: Tensor) -> Tensor:
        batch = counts.numel()
        flat = direction.resolve_neg().reshape(batch, direction.shape[counts.dim() :].numel())
        lists = vertices.reshape(batch, *vertices.shape[-2:])
        _, sparsemap_vjp = with_an_argmax(backend_of(direction))
        return sparsemap_vjp(lists, counts.reshape(batch), flat).reshape(direction.shape)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError(
            "the second derivative of sparsemap is not available: differentiate once (drop create_graph=True)"
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Tensor) -> Any:
        def join(x: Tensor, dim: int | None) -> Tensor:
            return x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)

        return apply(_Product, *map(join, args, in_dims)), 0


class _Oracle:
    """A user's argmax, for the examples that are not solved yet."""

    def __init__(self, structure: Structure, shape: torch.Size) -> None:
        self._structure = structure
        self._shape = shape
        self._same_for_all = not getattr(structure, "__dict__", True)  # no lengths, no masks: examples may be left out

    def __call__(self, scores: Tensor, examples: Tensor | None) -> Tensor:
        if examples is None or len(examples) == len(scores):
            return self._best(scores.reshape(self._shape)).reshape(scores.shape)
        if self._same_for_all:
            return self._best(scores.index_select(0, examples))
        return self._best(scores.reshape(self._shape)).reshape(scores.shape)[examples]

    def _best(self, scores: Tensor) -> Tensor:
        z = self._structure.argmax(scores)
        if not isinstance(z, Tensor) or z.shape != scores.shape:
            got = list(z.shape) if isinstance(z, Tensor) else type(z).__name__
            raise ValueError(
                f"{type(self._structure).__name__}.argmax returned {got} for scores of shape {list(scores.shape)}; "
                f"it must return a structure for each example, in the shape of the scores"
            )
        return z.detach()

    def check_single(self, scores: Tensor, mu: Tensor, counts: Tensor) -> None:
        """Where one structure was found alone, nothing has been compared with it: what -s is best at must not be better."""
        if scores.device.type != "cpu" or not (counts == 1).any():
            return
        s = scores.double()
        forbidden = s == -torch.inf
        residual = torch.where(forbidden, 0.0, s - mu.double())
        z = self(torch.where(forbidden, -torch.inf, -residual), None).double()
        gain = (residual * (z - mu.double())).flatten(1)
        worse = (gain.sum(1) > 1e-5 * (1 + gain.abs().sum(1))) & ~(z * forbidden).flatten(1).any(1)
        _raise_for(torch.where(worse & (counts == 1), WORSE, 0))


def _raise_for(status: Tensor) -> None:
    """Raise for the first example with a problem."""
    for example in torch.nonzero(status)[:1].flatten().tolist():
        raise ValueError(f"example {example} of the batch {_PROBLEMS[int(status[example])]}")
