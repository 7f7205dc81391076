"""Which tags may follow each other in the encodings of spans as tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

# For each encoding: the prefixes that begin a span, continue it, end it, and are a span of their own.
_SCHEMES = {
    "BIO": {"begin": "B", "inside": "I", "end": "", "single": ""},
    "BIOES": {"begin": "B", "inside": "I", "end": "E", "single": "S"},
    "BIOUL": {"begin": "B", "inside": "I", "end": "L", "single": "U"},
    "BMES": {"begin": "B", "inside": "M", "end": "E", "single": "S"},
}


@dataclass(frozen=True, eq=False)
class Constraints:
    """Which tags may follow each other, stand first, and stand last.

    Attributes:
        scheme: the encoding, such as "BIO".
        labels: the tags by their index, such as "B-PER".
        transitions: `[C, C]` of bool, from tag a to tag b.
        start: `[C]` of bool.
        end: `[C]` of bool.
    """

    scheme: str
    labels: tuple[str, ...]
    transitions: Tensor
    start: Tensor
    end: Tensor

    def span(self, label: str, width: int) -> tuple[list[Tensor], Tensor]:
        """A span of this label and width: which tags its positions may have, and those that may follow it, `[C]` of bool.

        Where there is one kind of span, with tags such as "B" and "I", the label is "".
        """
        roles = _SCHEMES[self.scheme]
        named = [self._named(f"{prefix}-{label}" if label else prefix) for prefix in roles.values()]
        begin, inside, end, single = named
        if not (begin | single).any():
            known = sorted({tag.partition("-")[2] for tag in self.labels if tag != "O"})
            raise ValueError(f"there is no label {label!r}; the labels are {', '.join(map(repr, known))}")
        if roles["end"]:
            return ([single] if width == 1 else [begin, *[inside] * (width - 2), end]), torch.ones_like(begin)
        return [begin, *[inside] * (width - 1)], ~inside

    def _named(self, tag: str) -> Tensor:
        return torch.tensor([each == tag for each in self.labels])


def allowed_transitions(scheme: str, labels: Sequence[str] | Mapping[int, str]) -> Constraints:
    """The constraints of an encoding of spans as tags, for `CRF(constraints=...)`.

    Args:
        scheme: "BIO" (a span is B I ... I), "BIOES" (B I ... I E, or S), "BIOUL" (B I ... I L, or U) or "BMES" (B M ... M E, or
            S). Positions without a span are tagged O.
        labels: the tag of each index, as a list or a dict: "O", "B-PER", "I-PER", ... or, for one kind of span, "O", "B", "I".

    >>> allowed_transitions("BIO", ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]).transitions.int()
    tensor([[1, 1, 0, 1, 0],
            [1, 1, 1, 1, 0],
            [1, 1, 1, 1, 0],
            [1, 1, 0, 1, 1],
            [1, 1, 0, 1, 1]], dtype=torch.int32)
    """
    if scheme not in _SCHEMES:
        raise ValueError(f"scheme is {scheme!r}; it must be one of {', '.join(map(repr, _SCHEMES))}")
    tags = _in_order(labels)
    split = [_split(scheme, tag) for tag in tags]
    transitions = torch.tensor([[_follows(scheme, a, b) for b in split] for a in split])
    outside = ("O", "")
    start = torch.tensor([_follows(scheme, outside, tag) for tag in split])
    end = torch.tensor([_follows(scheme, tag, outside) for tag in split])
    return Constraints(scheme, tags, transitions, start, end)


def _in_order(labels: Sequence[str] | Mapping[int, str]) -> tuple[str, ...]:
    if not isinstance(labels, Mapping):
        return tuple(labels)
    if sorted(labels) != list(range(len(labels))):
        raise ValueError(f"labels has the keys {sorted(labels)}; they must be the indices from 0 to {len(labels) - 1}")
    return tuple(labels[index] for index in range(len(labels)))


def _split(scheme: str, tag: str) -> tuple[str, str]:
    """The role and the label of a tag."""
    if tag == "O":
        return "O", ""
    prefix, _, label = tag.partition("-")
    for role, letter in _SCHEMES[scheme].items():
        if prefix == letter != "":
            return role, label
    letters = [letter for letter in _SCHEMES[scheme].values() if letter]
    raise ValueError(f"the label {tag!r} is no tag of {scheme}: it must be 'O', or begin with one of {', '.join(letters)}")


def _follows(scheme: str, before: tuple[str, str], after: tuple[str, str]) -> bool:
    (role, label), (next_role, next_label) = before, after
    closes = bool(_SCHEMES[scheme]["end"])
    within = next_role in ("inside", "end")
    if role in ("begin", "inside"):
        return within and label == next_label if closes else not within or label == next_label
    return not within
