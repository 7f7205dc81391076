"""Structures with exact inference of their own: a family of operators behind the contract of `Structure`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from pullback.inference._torch import derivatives
from pullback.inference.front.family import Family
from pullback.inference.front.layout import Flat, Layout, broadcasts
from pullback.inference.front.plan import call
from pullback.inference.sparsemap.families import search, solution
from pullback.inference.sparsemap.solution import ActiveSet, SparseMAPSolution
from pullback.structures import members
from pullback.structures.base import Structure
from pullback.structures.checks import check_limit, repeated
from pullback.structures.readers import as_lengths, as_mask, check_width, lengths_of, real_positions
from pullback.structures.top import TopK, check_count, from_parts

_INTERNALS = derivatives.internals_work()


class FamilyStructure(Structure, checked=False):
    """A structure whose operations are the operators of a family.

    The object has an attribute for each size and each option of the family, by its name.

    Args:
        validate: check the values of the scores (NaN, no feasible structure); costs a synchronisation on a GPU.
            The default is to check on a CPU only.
    """

    family: ClassVar[Family]
    missing: ClassVar[dict[str, str]] = {}
    """Operations that this structure cannot have: the name, and what to say."""
    _widths: dict[str, int] = {}  # noqa: RUF012 (replaced, never changed)
    """Of the masks that sizes were given as, by their names: what the scores must have."""
    _layout: ClassVar[Layout]
    """Of the scores: the family's, unless the structure adds something to them."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(checked=False, **kwargs)
        if isinstance(cls.__dict__.get("family"), Family):
            cls.event_dims = cls.family.layout.dims
            cls.centre_dims = cls.__dict__.get("centre_dims", cls.family.layout.centre)
            cls._layout = cls.__dict__.get("_layout", cls.family.layout)

    def __init__(self, *, validate: bool | None = None) -> None:
        self.validate = validate

    def _as_lengths(self, values: Any, name: str = "lengths") -> Tensor | None:
        """Lengths from integers or from a mask, whose width is kept."""
        mask = as_mask(values)
        widths = {other: width for other, width in self._widths.items() if other != name}
        self._widths = widths if mask is None else widths | {name: mask.shape[-1]}
        return as_lengths(values if mask is None else mask, name)

    def __repr__(self) -> str:
        given = zip(self._layout.sizes, self._sizes(), strict=True)
        sizes = [f"{size.name}={list(value.shape)}" for size, value in given if value is not None]
        options = [f"{name}={getattr(self, name)!r}" for name in self.family.options]
        return f"{type(self).__name__}({', '.join(sizes + options)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        same = self._options() == other._options() and self.validate == other.validate
        return same and all(map(_equal, self._sizes(), other._sizes()))

    def __hash__(self) -> int:
        return hash((type(self), self._options(), self.validate))

    def argmax(self, scores: Tensor) -> Tensor:
        return self._run("argmax", scores)

    def marginals(self, scores: Tensor) -> Tensor:
        return self._run("marginals", scores)

    def log_partition(self, scores: Tensor) -> Tensor:
        return self._run("log_partition", scores, recorded="log_partition_marginals")

    def entropy(self, scores: Tensor) -> Tensor:
        return self._run("entropy", scores)

    def contains(self, z: Tensor) -> Tensor:
        return members.are_members(self, z)

    def _log_prob(self, scores: Tensor, z: Tensor) -> Tensor:
        """In float64, where large scores do not cancel to noise."""
        self._refuse_missing("log_prob")
        self._check_same_shape(scores, z)
        scores = self._expanded(scores, z)
        flat = self._flat(scores)
        if "log_prob" in self.family.operations and z.shape == scores.shape and _is_constant(scores, z):
            z = z if len(flat.batch) == 1 else z.reshape(flat.scores.shape)
            return flat.restore(self._call("log_prob", flat, z)[0])
        log_z = flat.reshape(self._call("log_partition", flat))
        return (self._inner(self._counts(scores, z), scores.double(), z.double()) - log_z).to(flat.dtype)

    def _product(self, scores: Tensor, z: Tensor) -> Tensor:
        self._check_same_shape(scores, z)
        scores = self._expanded(scores, z)
        return self._inner(self._counts(scores, z), scores, z)

    def kl(self, scores: Tensor, other: Tensor) -> Tensor:
        """KL(p_s || p_o) in float64, of which the marginals' errors take the least."""
        self._refuse_missing("kl")
        scores, other = self._check_pair(scores, other)
        return super().kl(scores.double(), other.double()).to(self._flat(scores).dtype)

    def topk(self, scores: Tensor, k: int) -> TopK:
        """The k best structures of each example, best first, and their scores.

        Where scores are equal, the argmax comes first. The others follow in an order that depends on the backend, and
        not on the rest of the batch.
        """
        k = check_count(k)
        if k == 1:
            z = self.argmax(scores)
            return TopK(self.score(scores, z)[None], lambda: z[None])
        flat = self._flat(scores)
        return from_parts(flat, *self._call("topk", flat, k))

    def sample(self, scores: Tensor, generator: torch.Generator | None = None, *, samples: int | None = None) -> Tensor:
        flat = self._flat(repeated(scores, samples, generator))
        device, count = flat.scores.device, flat.scores.shape[:1]
        if generator is None:  # an explicit None would not compile for batches of any size
            seeds = torch.randint(-(2**63), 2**63 - 1, count, device=device)
        else:
            seeds = torch.randint(-(2**63), 2**63 - 1, count, generator=generator, device=generator.device).to(device)
        return flat.restore(self._call("sample", flat, seeds))

    def seeded_sample(self, scores: Tensor, seeds: Tensor) -> Tensor:
        """An exact sample, `[..., *parts]`, from one int64 seed per example, `[...]`, whatever else is in the batch."""
        flat = self._flat(scores)
        return flat.restore(self._call("sample", flat, seeds.reshape(flat.scores.shape[:1])))

    def allowed(self, scores: Tensor) -> Tensor:
        if self._has_padding():
            return (scores.detach() != -torch.inf) & self._mask(scores)
        self._layout.check(scores)
        return scores.detach() != -torch.inf

    def sparsemap(
        self,
        scores: Tensor,
        *,
        warm_start: Tensor | SparseMAPSolution | None = None,
        max_iterations: int | None = None,
        tolerance: float | None = None,
    ) -> Tensor:
        operations = self.family.operations
        if "project" in operations:
            check_limit(max_iterations, tolerance)
            return self._run("project", scores)
        if self.missing or "sparsemap" not in operations:
            return self.sparsemap_solution(scores, warm_start=warm_start, max_iterations=max_iterations, tolerance=tolerance).mu
        flat, found = self._searched(scores, warm_start, max_iterations, tolerance)
        return flat.restore(found[0])

    def sparsemap_solution(
        self,
        scores: Tensor,
        *,
        warm_start: Tensor | SparseMAPSolution | None = None,
        max_iterations: int | None = None,
        tolerance: float | None = None,
    ) -> SparseMAPSolution:
        """`sparsemap` with its certificate: the duality gap, the active set and the number of oracle calls.

        A projection in closed form takes one call of the oracle, for its gap; neither a start nor a limit changes it.
        """
        if self.missing:
            self._refuse_missing("sparsemap")
        if "project" in self.family.operations:
            check_limit(max_iterations, tolerance)
            return self._in_closed_form(self.sparsemap(scores), scores)
        if "sparsemap" not in self.family.operations:
            return super().sparsemap_solution(scores, warm_start=warm_start, max_iterations=max_iterations, tolerance=tolerance)
        flat, found = self._searched(scores, warm_start, max_iterations, tolerance)
        return solution(flat, found, self.family.most_parts(tuple(flat.scores.shape[1:]), *self._options()))

    def _searched(
        self, scores: Tensor, warm_start: Tensor | SparseMAPSolution | None, max_iterations: int | None, tolerance: float | None
    ) -> tuple[Flat, tuple[Tensor, ...]]:
        """The scores as one batch, and what the search for their projections finds."""
        if max_iterations is not None or tolerance is not None:
            check_limit(max_iterations, tolerance)
        flat = self._layout.flatten(scores, self)
        if self._widths:
            self._check_widths(scores.shape)
        validate = scores.is_cpu if self.validate is None else self.validate
        return flat, search(self.family, flat, self._options(), validate, warm_start, max_iterations, tolerance)

    def _in_closed_form(self, mu: Tensor, scores: Tensor) -> SparseMAPSolution:
        flat, point = self._flat(scores), mu.detach().double()
        apart = torch.where(flat.reshape(flat.mask), scores.detach().double() - point, 0.0)
        z = self.argmax(apart)
        gap = (self.score(apart, z) - self.score(apart, point)).clamp_min(0.0)
        calls = torch.ones(flat.batch, dtype=torch.int32, device=mu.device)  # for the gap
        return SparseMAPSolution(mu, gap, calls, torch.ones_like(calls, dtype=torch.bool), self._decompose(mu.detach()))

    def _decompose(self, mu: Tensor) -> ActiveSet:
        """Structures whose weighted mean a projection is, where that comes in closed form."""
        raise NotImplementedError(f"{type(self).__name__} does not decompose its projections")

    def _counts(self, scores: Tensor, z: Tensor) -> Tensor:
        counts = (scores.detach() != -torch.inf) | (z.detach() != 0)
        return counts & self._mask(scores) if self._has_padding() else counts

    def _has_padding(self) -> bool:
        """Whether scores may have entries that are no parts."""
        layout = self._layout
        for size in layout.sizes:
            if getattr(self, size.name) is not None:
                return True
        return layout.parts is not None

    def _mask(self, scores: Tensor) -> Tensor:
        """Which entries are parts, `[..., *parts]` of bool."""
        flat = self._flat(scores)
        return flat.reshape(flat.mask)

    def _expanded(self, scores: Tensor, z: Tensor) -> Tensor:
        """Scores for structures whose leading dimensions broadcast against theirs: one for each where the sizes need that."""
        if scores.shape == z.shape:
            return scores
        batch = scores.shape[: scores.dim() - self.event_dims]
        known = zip(self.family.layout.sizes, self._sizes(), strict=True)
        if all(size is None or broadcasts(each.batch_of(size), batch) for each, size in known):
            return scores
        return scores.expand(torch.broadcast_shapes(scores.shape, z.shape))

    def log_prob_within(self, scores: Tensor, allowed: Tensor) -> Tensor:
        self._refuse_missing("log_prob_within")
        return super().log_prob_within(scores, allowed)

    def _log_partition(self, scores: Tensor) -> Tensor:
        flat = self._flat(scores)
        return flat.reshape(self._call("log_partition", flat))

    def _unchecked_log_partition(self, scores: Tensor) -> Tensor | None:
        unchecked = copy.copy(self)
        unchecked.validate = False
        return unchecked._log_partition(scores)

    def _feasible(self, scores: Tensor) -> Tensor:
        return members.is_feasible(self, scores)

    def _why_not(self, z: Tensor, example: tuple[int, ...]) -> str:
        z = members.one_of(self, example)._cleaned(z)
        if not ((z == 0) | (z == 1)).all():
            return super()._why_not(z, example)
        return f"its {self.family.nouns.parts} do not make up a {self.family.nouns.structure}"

    def _cleaned(self, z: Tensor, name: str = "z") -> Tensor:
        """Structures of the right shape, without what padding and entries that are no parts hold."""
        self._layout.check(z, name)
        self._check_widths(z.shape)
        return self._layout.clean(z, self._sizes())

    def _listed(self, z: Tensor, part: Callable[..., tuple[int, ...]] = lambda *index: index) -> list[Any]:
        """The parts of each structure in order, as lists of a tuple for each index, nested like the batch."""

        def listed(one: Tensor) -> list[Any]:
            if one.dim() > self.event_dims:
                return [listed(each) for each in one]
            return [part(*index) for index in torch.nonzero(one).tolist()]

        return listed(self._cleaned(z) > 0.5)

    def _limit(self, parts: Tensor, n: int, name: str = "lengths") -> Tensor:
        """The size of each example, for lists of parts `[..., S, width]`: `[..., 1]`, or n itself."""
        lengths = getattr(self, name)
        check_width(self._widths.get(name), n, name)
        if lengths is None:
            return torch.tensor(n, device=parts.device)
        return lengths_of(lengths, parts.shape[:-2], n, parts.device, name)[..., None]

    def _real_positions(self, x: Tensor, name: str) -> tuple[Tensor, Tensor]:
        """Which of `[..., n]` count, and x of the same shape; see `real_positions`."""
        check_width(self._widths.get("lengths"), x.shape[-1], "lengths")
        return real_positions(x, self.lengths, name)  # type: ignore[attr-defined]

    def _check_widths(self, shape: torch.Size) -> None:
        """Raise if masks were not made for tensors of this shape."""
        for index, size in enumerate(self._layout.sizes):
            if (limit := self._layout.limit(index, shape)) is not None:
                check_width(self._widths.get(size.name), limit, size.name)

    def _refuse_missing(self, operation: str) -> None:
        """Raise in the name of an operation that follows from others, where the structure cannot have it."""
        if operation in self.missing:
            raise NotImplementedError(self.missing[operation])

    def _run(self, operation: str, scores: Tensor, recorded: str = "") -> Tensor:
        """An operation that takes scores only; see `_call`."""
        flat = self._layout.flatten(scores, self)
        if self._widths:
            self._check_widths(scores.shape)
        return flat.restore(self._call(operation, flat, recorded=recorded))

    def _call(self, operation: str, flat: Flat, *others: Any, recorded: str = "") -> Any:
        """An operation of flattened scores and what else it takes, or the first result of the one that is `recorded`."""
        family, scores = self.family, flat.scores
        if operation not in family.operations:
            raise NotImplementedError(self.missing.get(operation) or str(self._missing(operation)))
        if not _INTERNALS:
            derivatives.refuse_tangents(scores)
        validate = scores.is_cpu if self.validate is None else self.validate
        return call(family, operation, (scores, *flat.sizes, *others), self._options(), validate, recorded, flat.route)

    def _validates(self, flat: Flat) -> bool:
        return flat.scores.is_cpu if self.validate is None else self.validate

    def _flat(self, scores: Tensor) -> Flat:
        """Scores as one batch."""
        flat = self._layout.flatten(scores, self)
        if self._widths:
            self._check_widths(scores.shape)
        return flat

    def _sizes(self) -> tuple[Tensor | None, ...]:
        return tuple([getattr(self, size.name) for size in self._layout.sizes])

    def _options(self) -> tuple[Any, ...]:
        options: tuple[Any, ...] = ()
        for name in self.family.options:
            options += (getattr(self, name),)
        return options


def _is_constant(scores: Tensor, z: Tensor) -> bool:
    """Whether no derivative in z can be asked for, and in the scores only by an ordinary backward pass."""
    ordinary = derivatives.route(scores) != derivatives.DISPATCHED
    return ordinary and not (torch.is_grad_enabled() and z.requires_grad) and z.device == scores.device


def _equal(a: Tensor | None, b: Tensor | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and a.device == b.device and bool((a == b).all())
