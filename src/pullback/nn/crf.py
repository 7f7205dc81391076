"""A linear-chain conditional random field as a module, with the interface of pytorch-crf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import torch
from torch import Tensor

from pullback.nn.constraints import Constraints
from pullback.nn.positions import Positions, positions_of
from pullback.structures import FactoredChain
from pullback.structures.readers import is_readable

Span = tuple[int, int, Any]
"""Start, end (excluded), and a label of the constraints, a tag, or the tag of each position."""
_REDUCTIONS = ("none", "sum", "mean", "token_mean")


class CRF(torch.nn.Module):
    """A linear-chain conditional random field over the tags of a sentence.

        p(tags) proportional to
        exp(start[t_1] + sum over i of emissions[i, t_i] + sum over i of transitions[t_(i-1), t_i] + end[t_n])

    It is a drop-in replacement of pytorch-crf's `CRF`: the same signature, defaults, initialisation and parameter names, so
    that a `state_dict` moves over. Beyond it, masks may have holes (sub-words, `[CLS]`): the tags at the positions that count
    are neighbours of each other, whatever is in between. Tags of -100 do not count either. A sentence may be empty.
    Computations are in float32 or float64, also under autocast.

    Args:
        num_tags: C, the number of tags.
        batch_first: whether emissions are `[B, n, C]`, and not `[n, B, C]`; tags and masks accordingly.
        constraints: which tags may follow each other, by `pullback.nn.allowed_transitions`. Others have no probability.

    >>> crf = CRF(3, batch_first=True)
    >>> emissions, mask = torch.randn(2, 4, 3), torch.tensor([[0, 1, 0, 1], [1, 1, 1, 1]]).bool()
    >>> loss = -crf(emissions, torch.tensor([[-100, 2, -100, 0], [0, 1, 2, 2]]), mask, reduction="mean")
    >>> [len(tags) for tags in crf.decode(emissions, mask)]
    [2, 4]
    """

    def __init__(self, num_tags: int, batch_first: bool = False, constraints: Constraints | None = None) -> None:
        super().__init__()
        if num_tags <= 0:
            raise ValueError(f"num_tags is {num_tags}; it must be positive")
        if constraints is not None and len(constraints.labels) != num_tags:
            raise ValueError(f"num_tags is {num_tags}, and the constraints have {len(constraints.labels)} labels")
        self.num_tags = num_tags
        self.batch_first = batch_first
        self.constraints = constraints
        self.start_transitions = torch.nn.Parameter(torch.empty(num_tags))
        self.end_transitions = torch.nn.Parameter(torch.empty(num_tags))
        self.transitions = torch.nn.Parameter(torch.empty(num_tags, num_tags))
        for name in ("start", "end", "transitions"):  # not in the state_dict, which is pytorch-crf's
            allowed = None if constraints is None else getattr(constraints, name)
            self.register_buffer(f"_{name}_allowed", allowed, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform numbers from -0.1 to 0.1."""
        for parameter in self.parameters():
            torch.nn.init.uniform_(parameter, -0.1, 0.1)

    def extra_repr(self) -> str:
        given = "" if self.constraints is None else f", constraints={self.constraints.scheme}"
        return f"num_tags={self.num_tags}, batch_first={self.batch_first}{given}"

    def forward(self, emissions: Tensor, tags: Tensor, mask: Tensor | None = None, reduction: str = "sum") -> Tensor:
        """The log-likelihood of tags, `[B]` or a single number; its negative is a loss.

        Args:
            emissions: `[n, B, C]`, or `[B, n, C]` with `batch_first`.
            tags: `[n, B]` or `[B, n]`; where the mask is off they may be anything, and -100 anywhere.
            mask: of the shape of tags, true where a position counts; all by default.
            reduction: "sum", "mean" (over sentences), "token_mean" (the sum over the number of positions that count) or "none".
        """
        if reduction not in _REDUCTIONS:
            raise ValueError(f"reduction is {reduction!r}; it must be one of {', '.join(map(repr, _REDUCTIONS))}")
        where = positions_of(self, emissions, mask, tags)
        with torch.autocast(emissions.device.type, enabled=False):
            x, gold = where.gathered(self._wide(where.emissions)), where.gathered_tags
            self._check_tags(gold, where)
            log_likelihood = self._chain(where, x.dtype)._log_prob_of_tags(x, gold)
        if reduction == "none":
            return log_likelihood
        total = log_likelihood.sum()
        if reduction == "mean":
            return total / log_likelihood.shape[0]
        return total / where.lengths.sum() if reduction == "token_mean" else total

    @overload
    def decode(self, emissions: Tensor, mask: Tensor | None = None, *, top: None = None) -> list[list[int]]: ...
    @overload
    def decode(self, emissions: Tensor, mask: Tensor | None = None, *, top: int) -> list[list[list[int]]]: ...
    def decode(self, emissions: Tensor, mask: Tensor | None = None, *, top: int | None = None) -> list[Any]:
        """The best tags of each sentence, a list for each, of the positions that count.

        Args:
            emissions: as in `forward`.
            mask: as in `forward`.
            top: return the k best instead, best first: a list of at most k lists for each sentence.
        """
        where = positions_of(self, emissions, mask)
        with torch.no_grad(), torch.autocast(emissions.device.type, enabled=False):
            x = where.gathered(self._wide(where.emissions))
            chain = self._chain(where, x.dtype)
            if top is None:
                tags: list[list[int]] = chain._best_tags(x).numpy(force=True).tolist()  # sooner than PyTorch's
                if mask is None:
                    return tags
                return [row if n == where.count else row[:n] for row, n in zip(tags, where.lengths.tolist(), strict=True)]
            best = chain.topk(x, top)
            ranked, there = chain.tags(best.structures).tolist(), (best.scores > -torch.inf).tolist()
        return [[ranked[k][b][:n] for k in range(len(ranked)) if there[k][b]] for b, n in enumerate(where.lengths.tolist())]

    def marginals(self, emissions: Tensor, mask: Tensor | None = None) -> Tensor:
        """The probability of each tag at each position, of the shape of the emissions; 0 where the mask is off.

        Differentiable.
        """
        where = positions_of(self, emissions, mask)
        with torch.autocast(emissions.device.type, enabled=False):
            x = where.gathered(self._wide(where.emissions))
            return where.scattered(self._chain(where, x.dtype).marginals(x))

    def confidence(self, emissions: Tensor, spans: Sequence[Sequence[Span]], mask: Tensor | None = None) -> list[Tensor]:
        """The probability that each span is there, with exactly these borders; a tensor for each sentence. Differentiable.

        It is the sum over all tag sequences that have the span, and no product of the probabilities of its positions.

        Args:
            emissions: as in `forward`.
            spans: for each sentence, tuples (start, end, label), the end excluded, positions counted as in the emissions. A
                label is one of the constraints' (such as "PER"), a tag that all positions have, or the list of their tags.
            mask: as in `forward`; positions that do not count are skipped inside of a span.
        """
        where = positions_of(self, emissions, mask)
        if len(spans) != len(where.lengths):
            raise ValueError(f"spans has {len(spans)} lists for {len(where.lengths)} sentences; it needs one for each")
        which = [b for b, own in enumerate(spans) for _ in own]
        with torch.autocast(emissions.device.type, enabled=False):
            x = where.gathered(self._wide(where.emissions))
            if not which:
                return [x.new_zeros(0) for _ in spans]
            allowed = torch.stack([self._allowed(span, where, b) for b, own in enumerate(spans) for span in own])
            few = where.rows(which)
            found = self._chain(few, x.dtype).log_prob_within(x[which], allowed).exp()
        return list(found.split([len(own) for own in spans]))

    def _wide(self, emissions: Tensor) -> Tensor:
        """Emissions in the precision of computation: at least float32, and that of the parameters."""
        dtype = torch.promote_types(torch.promote_types(emissions.dtype, self.transitions.dtype), torch.float32)
        return emissions.to(dtype)

    def _chain(self, where: Positions, dtype: torch.dtype) -> FactoredChain:
        """The tag sequences, with transitions, start and end in this precision: -inf where the constraints forbid them."""

        def masked(weight: Tensor, name: str) -> Tensor:
            allowed = getattr(self, f"_{name}_allowed")
            weight = weight.to(dtype)
            return weight if allowed is None else weight.masked_fill(~allowed, -torch.inf)

        start, end = masked(self.start_transitions, "start"), masked(self.end_transitions, "end")
        return FactoredChain(masked(self.transitions, "transitions"), start, end, where.lengths)

    def _check_tags(self, tags: Tensor, where: Positions) -> None:
        if self.constraints is None or not is_readable(tags) or tags.shape[1] == 0:
            return
        allowed: Any = (self._transitions_allowed, self._start_allowed, self._end_allowed)
        last = tags.gather(1, (where.lengths - 1).clamp_min(0)[:, None])
        joined = allowed[0][tags[:, :-1], tags[:, 1:]] | ~where.real[:, 1:]
        first, final = (
            one[tag] | (where.lengths == 0)[:, None] for one, tag in zip(allowed[1:], (tags[:, :1], last), strict=True)
        )
        wrong = [("have {1} after {0}", joined, tags), ("begin with {0}", first, tags), ("end with {0}", final, last)]
        for text, fine, named in wrong:
            if not fine.all():
                example, position = torch.nonzero(~fine)[0].tolist()
                names = [self.constraints.labels[int(tag)] for tag in named[example, position : position + 2]]
                raise ValueError(f"the tags of sentence {example} {text.format(*names)}, which the constraints forbid")

    def _allowed(self, span: Span, where: Positions, example: int) -> Tensor:
        """Which tags a sentence may have where it has a span, `[n, C]` of bool."""
        start, end, label = span
        inside = where.places(example, start, end)
        allowed = torch.ones(where.count, self.num_tags, dtype=torch.bool)
        if isinstance(label, str):
            if self.constraints is None:
                raise ValueError(f"the span {span!r} has a label; that needs a CRF with constraints=allowed_transitions(...)")
            tags, after = self.constraints.span(label, len(inside))
            if inside[-1] + 1 < where.count:
                allowed[inside[-1] + 1] = after
        else:
            given = [label] * len(inside) if isinstance(label, int) else list(label)
            if len(given) != len(inside) or not all(0 <= tag < self.num_tags for tag in given):
                raise ValueError(f"the span {span!r} needs {len(inside)} tags from 0 to {self.num_tags - 1}")
            tags = [torch.arange(self.num_tags) == tag for tag in given]
        allowed[inside] = torch.stack(tags)
        return allowed.to(where.emissions.device)
