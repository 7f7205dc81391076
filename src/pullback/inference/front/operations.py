"""The operations that families of structures share: their arguments, the shapes of their results, their derivatives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from pullback.inference.front.family import Family


class Kept(NamedTuple):
    """The record of a call that the gradient of its operation reads.

    Attributes:
        family: whose operation it was.
        tensors: what was kept, by `Operation.keep`.
        options: the family's static options, by position.
    """

    family: Family
    tensors: tuple[Tensor, ...]
    options: tuple[Any, ...]

    def call(self, operation: str, *tensors: Tensor) -> Any:
        """Another operation of the family, with the same options; values were checked."""
        return self.family.call(operation, *tensors, options=self.options, validate=False)


Keep = Callable[[tuple[Any, ...], Any], tuple[Tensor, ...]]
"""From the arguments (tensors first: scores, sizes) and the output to what derivatives need."""


@dataclass(frozen=True)
class Operation:
    """An operation `name(*before, *sizes, *after, *numbers, *options, validate)`.

    Attributes:
        name: of the operation, and of the function in `inference/<folder>/<backend>.py`.
        before: the tensors ahead of the sizes.
        after: the tensors behind them.
        numbers: static arguments of its own, with their types.
        outputs: in the notation of `torch.library`.
        shapes: from the arguments to empty results, for compilation.
        shapes_of: the same, from the family and the arguments.
        keep: what derivatives need, of the tensors among the arguments (by default all of them) and the output.
        gradient: for one number per example: its gradient in the scores, `[B, *parts]`.
        kept_gradient: whether that gradient is an output that was kept, which a backward pass may write over if it is the last.
        product: for results `[B, *parts]`, with a symmetric Jacobian J: the operation that takes what was kept and a
            direction v to J v.
        with_product: the name of a function that a backend may have: it returns the result and a function from v to J v.
        linear: whether `product` is for the last tensor, in which the operation is linear.
        refuses: what to say of its derivative, where there is none.
        sized: whether it takes the family's sizes and options.
        find: from the family, the name of a backend and the options to the implementation, where that is no function of
            this name in a folder of the family.
    """

    name: str
    before: tuple[str, ...] = ("scores",)
    after: tuple[str, ...] = ()
    numbers: Mapping[str, str] = field(default_factory=dict)
    outputs: str = "Tensor"
    shapes: Callable[..., Any] = lambda scores, *rest: scores.new_empty(scores.shape)
    shapes_of: Callable[..., Any] | None = None
    keep: Keep | None = None
    gradient: Callable[[Kept], Tensor] | None = None
    kept_gradient: bool = False
    product: str = ""
    with_product: str = ""
    linear: bool = False
    refuses: str = ""
    sized: bool = True
    find: Callable[[Family, str, tuple[Any, ...]], Callable[..., Any]] | None = None

    @property
    def is_differentiable(self) -> bool:
        """Whether it has a derivative, or says why there is none."""
        return bool(self.gradient or self.product or self.refuses)

    def schema(self, sizes: Sequence[str], options: Mapping[str, type]) -> str:
        """The operator's signature."""
        tensors = [f"Tensor {name}" for name in (*self.before, *sizes, *self.after)]
        numbers = [f"{kind} {name}" for name, kind in self.numbers.items()]
        static = [f"{kind.__name__} {name}" for name, kind in options.items()]
        return f"({', '.join([*tensors, *numbers, *static, 'bool validate'])}) -> {self.outputs}"


def _one_per_example(scores: Tensor, *rest: object) -> Tensor:
    return scores.new_empty(scores.shape[0], dtype=torch.float64)


def _log_partition_gradient(kept: Kept) -> Tensor:
    return kept.call("marginals", *kept.tensors)


def _entropy_gradient(kept: Kept) -> Tensor:
    return kept.call("entropy_gradient", *kept.tensors)


def _find_entropy_gradient(family: Family, backend: str, options: tuple[Any, ...]) -> Callable[..., Any]:
    """The backend's own, the reference's, or one that follows from the marginals."""
    found = family.function("entropy_gradient", backend, options) or family.function("entropy_gradient", "reference", options)
    if found is not None:
        return found

    def follows(scores: Tensor, *sizes: Tensor, validate: bool) -> Tensor:
        return entropy_gradient(family, scores, sizes, options, validate)

    return follows


def entropy_gradient(
    family: Family, scores: Tensor, sizes: tuple[Tensor, ...], options: tuple[Any, ...], validate: bool
) -> Tensor:
    """The gradient of H = log Z - <s, mu> is -J s: minus the derivative of the marginals along the scores.

    J does not see what is constant over the layout's `centre`: the largest score there is taken off, or large scores would
    be noise. Nor does it see parts without probability, whose scores (masks) may be of any size. What is left may still be
    large where the best parts make no structure, and cancels in float64 only.
    """
    dtype, centre = scores.dtype, family.layout.centre
    scores = scores.detach().double()
    used = family.call("marginals", scores, *sizes, options=options, validate=validate) > 0
    top = torch.zeros_like(scores)
    if centre is not None and scores.numel() > 0:
        top = torch.where(used, scores, -torch.inf).amax(centre, keepdim=True)
    along = torch.where(used, scores - top, 0.0)
    return -family.call("marginals_vjp", scores, *sizes, along, options=options, validate=False).to(dtype)


def _find_log_partition_marginals(family: Family, backend: str, options: tuple[Any, ...]) -> Callable[..., Any]:
    """Log-partitions in the precision of the scores, which is that of the results."""
    both = _both(family, backend, options)

    def rounded(scores: Tensor, *rest: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
        log_z, mu = both(scores, *rest, validate=validate)
        return log_z.to(scores.dtype), mu

    return rounded


def _both(family: Family, backend: str, options: tuple[Any, ...]) -> Callable[..., Any]:
    """Log-partitions in float64 and marginals: by the backend's own function, or one after the other."""
    found = family.function("log_partition_marginals", backend, options)
    if found is not None:
        return found
    first, second = (family.implementation(name, backend, options) for name in ("log_partition", "marginals"))

    def both(*tensors: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
        return first(*tensors, validate=validate), second(*tensors, validate=False)

    return both


def _find_log_prob(family: Family, backend: str, options: tuple[Any, ...]) -> Callable[..., Any]:
    """The backend's own, or one that follows from log-partition and marginals."""
    found = family.function("log_prob", backend, options)
    if found is not None:
        return found
    both = _both(family, backend, options)

    def follows(scores: Tensor, *rest: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
        *sizes, z = rest
        log_z, mu = both(scores, *sizes, validate=validate)
        z = _on_parts(family, scores, sizes, z)
        score = torch.where(z != 0, scores.detach() * z, 0.0).flatten(1).sum(1, dtype=torch.float64)
        return (score - log_z).to(scores.dtype), z - mu

    return follows


def _kept_marginals(kept: Kept) -> Tensor:
    *tensors, mu = kept.tensors
    return kept.call("marginals", *tensors) if torch.is_grad_enabled() else mu


def _kept_difference(kept: Kept) -> Tensor:
    scores, *sizes, z, difference = kept.tensors
    if not torch.is_grad_enabled():
        return difference
    return _on_parts(kept.family, scores, sizes, z) - kept.call("marginals", scores, *sizes)


def _on_parts(family: Family, scores: Tensor, sizes: Sequence[Tensor], z: Tensor) -> Tensor:
    """Structures, zero in the padding, which may hold anything."""
    return torch.where(family.layout.mask(scores, sizes), z.to(scores.dtype), 0.0)


def _value_and_parts(scores: Tensor, *rest: object) -> tuple[Tensor, Tensor]:
    return scores.new_empty(scores.shape[0]), scores.new_empty(scores.shape)


def _find_topk(family: Family, backend: str, options: tuple[Any, ...]) -> Callable[..., Any]:
    """The backend's own, the reference's, or the one of the hypergraph that the reference's recursion makes."""
    found = family.function("topk", backend, options) or family.function("topk", "reference", options)
    if found is not None:
        return found
    from pullback.inference.engine.hypergraph import ranked, recursions

    recursion = family.module(family.folder("topk", options), "reference").value
    graph = recursions.graph_of(recursion, family.layout)
    run = ranked.operation(family.layout, graph, backend, lambda shape, **_: family.most_parts(shape, *options))
    return functools.partial(run, **dict(zip(family.options, options, strict=True)))


def _several(family: Family, scores: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    sizes, shape = len(family.layout.sizes), tuple(scores.shape[1:])
    k, options = rest[sizes], rest[sizes + 1 : -1]
    parts = scores.new_empty((scores.shape[0], k, family.most_parts(shape, *options)), dtype=torch.long)
    return parts, scores.new_empty((scores.shape[0], k), dtype=torch.float64)


_NO_SECOND = (
    "the second derivative of marginals, entropy or sparsemap is not available: differentiate once "
    "(drop create_graph=True), or use log_partition, which can be differentiated twice"
)

ARGMAX = (
    Operation("argmax"),
    # the parts of the k best structures, [B, k, most_parts], K for none, and their scores, -inf where there are fewer
    Operation("topk", numbers={"k": "SymInt"}, outputs="(Tensor, Tensor)", shapes_of=_several, find=_find_topk),
)
GIBBS = (
    Operation("log_partition", shapes=_one_per_example, gradient=_log_partition_gradient),
    Operation("marginals", product="marginals_vjp", with_product="marginals_and_product"),
    Operation("marginals_vjp", after=("direction",), refuses=_NO_SECOND),
    Operation("entropy", shapes=_one_per_example, gradient=_entropy_gradient),
    Operation("entropy_gradient", refuses=_NO_SECOND, find=_find_entropy_gradient),
    Operation("sample", after=("seeds",)),
)
STANDARD = ARGMAX + GIBBS
FUSED = (  # a value and its gradient from one pass over the scores, for backward passes that are sure to come
    Operation(
        "log_partition_marginals", outputs="(Tensor, Tensor)", shapes=_value_and_parts,
        keep=lambda inputs, output: (*inputs, output[1]), gradient=_kept_marginals, kept_gradient=True,
        find=_find_log_partition_marginals,
    ),
    Operation(
        "log_prob", after=("z",), outputs="(Tensor, Tensor)", shapes=_value_and_parts,
        keep=lambda inputs, output: (*inputs, output[1]), gradient=_kept_difference, kept_gradient=True, find=_find_log_prob,
    ),
)  # fmt: skip
PROJECTION = (  # SparseMAP in closed form; J is constant where it is defined, so that J v is linear in v
    Operation("project", keep=lambda inputs, mu: (mu.detach(), *inputs[1:]), product="project_vjp"),
    Operation(
        "project_vjp", before=("mu",), after=("direction",),
        keep=lambda inputs, _: inputs[:-1], product="project_vjp", linear=True,
    ),
)  # fmt: skip
