"""Tag sequences whose transitions belong to the structure."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from pullback.inference._torch.derivatives import in_forward_mode, transforming
from pullback.inference.engine.partition import Sets, ranked
from pullback.inference.factored.family import EMISSIONS, FACTORED
from pullback.inference.factored.joined import join
from pullback.inference.front.family import Family
from pullback.inference.front.layout import Flat, broadcasts
from pullback.inference.front.plan import serving
from pullback.structures.family import FamilyStructure, _is_constant
from pullback.structures.linear_chain import LinearChain
from pullback.structures.own_scores import OwnScores, bilinear, check_own, for_each, one_each
from pullback.structures.probabilities import log_probabilities
from pullback.structures.readers import check_range, check_width, integers, is_readable, lengths_of, ones_at
from pullback.structures.top import TopK, check_count


def _kernels() -> Any:
    """The kernels of 0/1 tensors; None where none can be compiled, and where PyTorch compiles its own."""
    if torch.compiler.is_compiling() or serving("cpu") != "cpu":
        return None
    from pullback.inference.factored import members

    return members


_MOST_PAIRS = 2**20  # of tags, of all positions, of which a graph is made
_PAIRS = (
    "FactoredChain has no `sparsemap`: the score of a sequence is not linear in its tags. Use LinearChain, whose parts are "
    "pairs of tags: LinearChain(lengths).sparsemap(chain.combine(emissions, transitions, start, end))"
)


class FactoredChain(OwnScores):
    """The sequences of n tags out of C, as 0/1 tensors `[..., n, C]`, with scores of neighbouring tags in the structure.

        p(z) proportional to
        exp(sum over i of <s[i], z[i]> + start[t_0] + sum over i of transitions[t_(i-1), t_i] + end[t_(n-1)])

    `z[i, c] = 1` for tag c at position i, and t_i is the tag at position i. Scores are emissions, of the same shape; memory
    is O(n C), where `LinearChain` has O(n C^2). All operations include transitions, start and end, and all differentiable ones
    have gradients for them. Operations take O(n C^2).

    Padding may hold anything, NaN included. `-inf` forbids a tag, a transition, a first or a last tag.
    Ties in the argmax: from the last position back, the first of the best tags. SparseMAP needs the parts of `LinearChain`.

    Args:
        transitions: from tag a to tag b, `[C, C]`, or `[..., C, C]` with one for each example.
        start: `[..., C]`, for the first tag. The default is zero.
        end: `[..., C]`, for the last tag. The default is zero.
        lengths: the number of positions of each example, `[...]`. The default is n for all.
        validate: check the values of the scores; costs a synchronisation on a GPU. The default is to check on a CPU only.

    >>> chain = FactoredChain(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    >>> chain.tags(chain.argmax(torch.tensor([[1.0, 0.0], [0.6, 0.5]])))
    tensor([0, 1])
    """

    family: ClassVar[Family] = FACTORED
    centre_dims: ClassVar[tuple[int, ...] | None] = EMISSIONS.centre
    missing: ClassVar[dict[str, str]] = {"sparsemap": _PAIRS}
    own: ClassVar[tuple[str, ...]] = ("transitions", "start", "end")
    _layout = EMISSIONS

    def __init__(
        self,
        transitions: Tensor,
        start: Tensor | None = None,
        end: Tensor | None = None,
        lengths: Any = None,
        *,
        validate: bool | None = None,
    ) -> None:
        super().__init__(validate=validate)
        check_own(transitions, "a FactoredChain", "transitions")
        tags = transitions.shape[-1] if transitions.dim() else 0
        if transitions.dim() < 2 or transitions.shape[-2] != tags or tags == 0:
            raise ValueError(f"transitions has shape {list(transitions.shape)}; a FactoredChain needs [..., C, C] with C > 0")
        for name, x in {"start": start, "end": end}.items():
            if x is not None:
                check_own(x, "a FactoredChain", name)
                if x.shape[-1:] != (tags,):
                    raise ValueError(f"{name} has shape {list(x.shape)}; for {tags} tags it needs [..., {tags}]")
        self.transitions, self.start, self.end = transitions, start, end
        self.lengths = self._as_lengths(lengths)

    @classmethod
    def hmm(
        cls,
        initial: Tensor,
        transition: Tensor,
        emission: Tensor,
        observations: Tensor,
        lengths: Any = None,
        *,
        logits: bool = False,
        validate: bool | None = None,
    ) -> tuple[FactoredChain, Tensor]:
        """A hidden Markov model that has seen observations: the structure, and its scores `[..., n, C]`.

            p(t, x) = initial[t_0] prod over i of transition[t_(i-1), t_i] prod over i of emission[t_i, x_i]

        So `log_partition` is the log-likelihood of the observations, and `marginals` are the posterior of the states.

        Args:
            initial: the probabilities of the first state, `[C]`. A probability of 0 forbids, and has a gradient of 0.
            transition: those of state b after state a, `[C, C]`; rows sum to 1.
            emission: those of each symbol in each state, `[C, V]`; rows sum to 1.
            observations: symbols from 0 to V - 1, `[..., n]`. Without lengths, -1 and -100 are padding.
            lengths: the number of observations of each example, `[...]`.
            logits: the first three are logits, of which the softmax is taken.
            validate: as of the structure; probabilities are checked on a CPU, unless it is False.

        >>> emission = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
        >>> chain, scores = FactoredChain.hmm(torch.tensor([0.5, 0.5]), torch.eye(2), emission, torch.tensor([0, 0]))
        >>> chain.log_partition(scores).exp()
        tensor(0.4250)
        """
        given = {"initial": initial, "transition": transition, "emission": emission}
        first, between, shown = (
            log_probabilities(x, name, "FactoredChain.hmm", logits=logits, validate=validate) for name, x in given.items()
        )
        if shown.dim() != 2 or shown.shape[0] != between.shape[-1]:
            raise ValueError(f"emission has shape {list(shown.shape)}; transition {list(between.shape)} needs [C, V]")
        chain = cls(between, first, lengths=lengths, validate=validate)
        real, x = chain._real_positions(integers(observations, "a FactoredChain", "observations"), "observations")
        check_range(x, real, shown.shape[-1] - 1, "observations", "symbols are from 0 to {last}", last=shown.shape[-1] - 1)
        chain.lengths = real.sum(-1) if chain.lengths is None else chain.lengths
        return chain, shown.mT[torch.where(real, x, 0)]

    def tags(self, z: Tensor) -> Tensor:
        """The tag of each position, `[..., n]`; -1 for padding."""
        found = self._read(z)
        if found is not None and found[1].all():
            return found[0].reshape(z.shape[:-1])
        used, tag = self._cleaned(z).max(-1)
        return torch.where(used > 0.5, tag, -1)

    def _best_tags(self, scores: Tensor) -> Tensor:
        """The tags of the argmax, `[..., n]`, for those who want no structure; beyond the length they may be anything."""
        if _kernels() is None or not _kernels().are_plain(scores, *self._given()):
            return self.tags(self.argmax(scores))
        flat = self._flat(scores)
        z = FamilyStructure._call(self, "argmax", self._join(flat))  # with rows beyond the positions, which are not read
        tags = _kernels().tags_of(z, flat.sizes[0])[0][:, : flat.scores.shape[1]]
        return tags if len(flat.batch) == 1 else tags.reshape(scores.shape[:-1])

    def from_tags(self, tags: Tensor, C: int | None = None) -> Tensor:
        """The structures of tag sequences `[..., n]`: the inverse of `tags`. C is that of the transitions.

        Entries beyond an example's length may hold anything; without lengths, -1 and -100 are padding.
        """
        count = self.transitions.shape[-1]
        if C not in (None, count):
            raise ValueError(f"C is {C}; the transitions are for {count} tags")
        real, x = self._real_positions(integers(tags, "a FactoredChain", "tags"), "tags")
        check_range(x, real, count - 1, "tags", "with C = {C} tags are from 0 to {last}", C=count, last=count - 1)
        return ones_at(x[..., None], real[..., None], count)

    def contains(self, z: Tensor) -> Tensor:
        """Whether z has one tag at each position, `[...]` of bool."""
        found = self._read(z)
        if found is not None:
            return torch.from_numpy(found[1]).reshape(z.shape[:-2])
        z = self._cleaned(z).detach()
        one = (z != 0).sum(-1) == ((z == 1) & (z != 0)).sum(-1)
        one &= (z == 1).sum(-1) == 1
        return (one | ~self._real(z)).all(-1)

    def log_prob(self, scores: Tensor, z: Tensor) -> Tensor:
        self._check_same_shape(scores, z)
        found = self._log_prob_of_members(scores, z)  # which are not looked at once more
        return super().log_prob(scores, z) if found is None else found

    def _log_prob_of_members(self, scores: Tensor, z: Tensor) -> Tensor | None:
        """`_log_prob` of constant structures of the shape of the scores, by kernels; None if they are something else."""
        kernels = _kernels()
        if z.shape != scores.shape or kernels is None or not kernels.are_plain(z, scores, *self._given()):
            return None
        if torch.is_grad_enabled() and z.requires_grad:
            return None
        flat = self._flat(scores)
        counts = kernels.counts_of_members(z.reshape(flat.scores.shape), flat.sizes[0], flat.scores.dtype)
        return None if counts is None else flat.restore(self._call("log_prob", flat, counts)[0])

    def _log_prob(self, scores: Tensor, z: Tensor) -> Tensor:
        self._check_same_shape(scores, z)
        found = self._log_prob_of_members(scores, z)
        if found is not None:
            return found
        scores = self._expanded(scores, z)
        flat = self._flat(scores)
        if z.shape == scores.shape and all(_is_constant(x, z) for x in (scores, *self._given())):
            return flat.restore(self._call("log_prob", flat, self._joined_structure(flat, z.detach()))[0])
        return (self._whole_score(scores, z) - self._log_partition(scores)).to(flat.dtype)

    def _log_prob_of_tags(self, scores: Tensor, tags: Tensor) -> Tensor:
        """`log_prob` of tags `[..., n]`, differentiable in the scores; the padding may hold anything."""
        if scores.dim() == 3 and _kernels() is not None and _kernels().are_plain(scores, tags, *self._given()):
            flat = self._flat(scores)
            z = _kernels().counts_of(tags, flat.sizes[0], flat.scores.shape[-1], flat.scores.dtype)
            return flat.restore(self._call("log_prob", flat, z)[0])
        z = ones_at(tags[..., None], self._real(scores)[..., None], scores.shape[-1])
        return self._log_prob(scores, z.to(scores.dtype))

    def _read(self, z: Tensor) -> Any:
        """The tags of structures, and which are right, by kernels; None where those cannot read them."""
        if not isinstance(z, Tensor) or _kernels() is None or not _kernels().are_plain(z):
            return None
        self._layout.check(z, "z")
        self._check_widths(z.shape)
        batch, lengths = z.shape[:-2], self.lengths
        z = z.detach().reshape(batch.numel(), *z.shape[-2:])
        if lengths is None or not broadcasts(lengths.shape, batch):
            return _kernels().tags_of(z, torch.full((len(z),), z.shape[1], device=z.device))
        lengths = lengths_of(lengths, batch, z.shape[1], z.device)
        return _kernels().tags_of(z, lengths.expand(batch).reshape(-1))

    def topk(self, scores: Tensor, k: int) -> TopK:
        """The k best structures of each example, best first, and their scores.

        Where scores are equal, the argmax comes first. The others follow in an order that depends on the backend, and not
        on the rest of the batch. It takes an argmax for each position and structure if n C^2 is more than a million.
        """
        k, flat = check_count(k), self._flat(scores)
        n, tags = flat.scores.shape[1:]
        if n * tags**2 > _MOST_PAIRS:
            dense, values = self._partitioned(flat, k)
        else:
            parts, values = self._call("topk", flat, k)
            dense = None

        def make() -> Tensor:
            bad = torch.where(values[:, :1].isnan(), torch.nan, 0.0).to(flat.dtype)[..., None, None]
            if dense is not None:
                return (dense + bad).to(flat.dtype).movedim(1, 0).reshape(k, *flat.batch, n, tags)
            z, count = bad.expand(-1, k, n, tags).movedim(1, 0).reshape(k, len(parts), n * tags).clone(), n * tags
            if count > 0:
                add = z.scatter_add_ if is_readable(z) else z.scatter_add  # in place is faster, but not under torch.vmap
                z = add(2, parts.movedim(1, 0).clamp_max(count - 1), (parts < count).movedim(1, 0).to(z.dtype))
            return z.reshape(k, *flat.batch, n, tags)

        totals = values.to(flat.dtype).movedim(1, 0).reshape(k, *flat.batch)
        if not (in_forward_mode() or transforming() or (torch.is_grad_enabled() and self._may_need_gradient(scores))):
            return TopK(totals, make)
        z, there = make(), totals > -torch.inf
        safe = torch.where(there[..., None, None], z, 0.0)
        return TopK(torch.where(there, self.score(scores.expand(k, *scores.shape), safe), totals), lambda: z)

    def _partitioned(self, flat: Flat, k: int) -> tuple[Tensor, Tensor]:
        """The k best structures, `[B, k, n, C]`, and their scores, -inf for none and NaN for bad examples: by partitioning."""
        n, tags = flat.scores.shape[1:]
        s = flat.scores.detach()
        position, tag = torch.arange(n, device=s.device), torch.arange(tags, device=s.device)

        def best(rows: Tensor, some: Tensor) -> tuple[Tensor, Tensor]:
            chain = self._rows(flat, rows)
            z = chain._call("argmax", chain._flat(some))
            value = chain.score(torch.where(z == 1, some, 0.0).double(), z)
            return chain.tags(z.nan_to_num(0.0)), torch.where(z[:, :1, 0].isnan().any(1), -torch.inf, value)

        def solve(rows: Tensor, sets: Sets) -> tuple[Tensor, Tensor]:
            start = sets.start[:, None]
            lost = (position < start)[:, :, None] & (tag != sets.choices[:, :, None])
            lost |= (position == start)[:, :, None] & sets.banned[:, None]
            return best(rows, s[rows].masked_fill_(lost, -torch.inf))

        bad = self._call("argmax", flat).flatten(1).isnan().any(1)  # which looks at the values
        choices, values = ranked(solve, *best(torch.arange(len(s), device=s.device), s), k, tags)
        there = (choices >= 0) & (values > -torch.inf)[..., None]
        return ones_at(choices[..., None], there[..., None], tags).to(s.dtype), torch.where(bad[:, None], torch.nan, values)

    def enumerate(self, n: int, C: int) -> Tensor:  # type: ignore[override]
        """All tag sequences, `[S, n, C]`; C^n up to some thousands."""
        pairs = LinearChain().enumerate(n, C)
        return torch.cat([pairs[:, :1, 0], pairs[:, 1:].sum(-2)], 1)

    def _may_need_gradient(self, scores: Tensor) -> bool:
        """Whether a gradient for the scores, or for what belongs to the structure, may be asked for."""
        return any(x.requires_grad for x in (scores, *self._given()))

    def _given(self) -> list[Tensor]:
        return [x for x in self._own() if x is not None]

    def _real(self, x: Tensor) -> Tensor:
        """Which positions of `[..., n, C]` are no padding."""
        n, batch = x.shape[-2], x.shape[:-2]
        position = torch.arange(n, device=x.device)
        check_width(self._widths.get("lengths"), n, "lengths")
        if self.lengths is None or not broadcasts(self.lengths.shape, batch):
            return position < n
        return position < lengths_of(self.lengths, batch, n, x.device)[..., None]

    def _own_score(self, scores: Tensor, z: Tensor) -> Tensor:
        """The score of sequences by transitions, start and end, in float64: bilinear in their tags."""
        z = self._cleaned(z.expand(torch.broadcast_shapes(scores.shape, z.shape))).double()
        if z.shape[-2] == 0:
            return z.new_zeros(z.shape[:-2])
        real = self._real(z)
        last = z * (real & ~torch.cat([real[..., 1:], torch.zeros_like(real[..., :1])], -1))[..., None]
        total = bilinear(z[..., :-1, :], self.transitions, z[..., 1:, :]).sum(-1)
        for x, tag in ((self.start, z[..., 0, :]), (self.end, last.sum(-2))):
            if x is not None:
                total = total + torch.where(tag != 0, x.double(), 0.0).mul(tag).sum(-1)
        return total

    def _are_targets(self, mu: Tensor) -> Tensor:
        """One tag for each position, or a distribution over tags."""
        point = self._cleaned(mu).detach().double()
        slack = 4 * torch.finfo(mu.dtype if mu.is_floating_point() else torch.float32).eps ** 0.5
        fine = (point >= -slack).all(-1) & ((point.sum(-1) - 1).abs() <= slack)
        return (fine | ~self._real(point)).all(-1)

    def _rows(self, flat: Flat, rows: Tensor) -> FactoredChain:
        """The structure of some examples of a flat batch."""
        start, end = (None if x is None else for_each(x, flat, 1)[rows] for x in (self.start, self.end))
        transitions = for_each(self.transitions, flat, 2)[rows]
        return FactoredChain(transitions, start, end, flat.sizes[0][rows], validate=False)

    def _joined(self, flat: Flat) -> Tensor:
        """Emissions, start, end and transitions of each example, `[B, n + 2 + C, C]`."""
        s, (transitions, *ends) = flat.scores, self._own()
        assert transitions is not None
        if transitions.shape[-1] != s.shape[-1]:
            raise ValueError(f"scores has shape {list(s.shape)}; transitions {list(transitions.shape)} need [..., n, C]")
        nothing = s.new_zeros(s.shape[2])
        start, end = (nothing if x is None else one_each(x, flat, 1) for x in ends)
        return join(s, start, end, one_each(transitions, flat, 2))

    def _joined_structure(self, flat: Flat, z: Tensor) -> Tensor:
        """How often a sequence has each entry of `_joined`, `[B, n + 2 + C, C]`."""
        n, tags = flat.scores.shape[1:]
        z = z.reshape(flat.scores.shape).to(flat.scores.dtype)
        if n == 0:
            return z.new_zeros(len(z), 2 + tags, tags)
        lengths = flat.sizes[0]
        if self.lengths is not None:
            z = torch.where((torch.arange(n, device=z.device) < lengths[:, None])[..., None], z, 0.0)
        last = (lengths - 1).clamp(0, n - 1)[:, None, None].expand(-1, 1, tags)
        return torch.cat([z, z[:, :1], z.gather(1, last), z[:, :-1].mT @ z[:, 1:]], 1)

    def _apart(self, joined: Tensor, flat: Flat) -> Tensor:
        return joined[:, : flat.scores.shape[1]]
