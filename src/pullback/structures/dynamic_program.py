"""Structures that a recursion of the user's own defines."""

from __future__ import annotations

import abc
import copy
import inspect
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from pullback.inference._torch.derivatives import is_compiling
from pullback.inference.engine.recursion import Combine
from pullback.inference.front.family import Family
from pullback.inference.front.layout import Flat, Layout
from pullback.structures.family import FamilyStructure

if TYPE_CHECKING:
    from pullback.inference.engine.hypergraph.program import Program

_programs: dict[tuple[Any, ...], Program] = {}
_OWN = "lengths", "validate", "_widths"


class _Prepared(abc.ABCMeta):
    """Makes the program of an instance as soon as its attributes are set: `torch.compile` cannot make it at the first call."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        made._program  # noqa: B018
        return made

    @property
    def __signature__(cls) -> inspect.Signature:
        own = inspect.signature(cls.__init__)  # type: ignore[misc]
        return own.replace(parameters=list(own.parameters.values())[1:], return_annotation=inspect.Signature.empty)


class DynamicProgram(FamilyStructure, metaclass=_Prepared):
    """The structures of a recursion, written once in plain PyTorch.

    A subclass sets `event_dims` and defines `value(scores, combine)`, the value of all structures for scores `[B, *parts]`:
    add scores and values, and call `combine(terms, dim)` on alternatives. With a maximum as `combine` it computes the best
    score, with log-sum-exp the log-partition; everything else follows. The result is `[B]`; or `[B, n + 1]`, with a value for
    each length from 0 to n, the first dimension of the parts, for a structure that takes `lengths`.

    `value` runs once per shape, on tensors without numbers. It may index, slice, stack, concatenate, gather by constant
    indices, reshape, transpose, expand and add, and use `scores.new_zeros` and `scores.new_full(..., -inf)`; other operations,
    and constants other than 0 and -inf, are errors. It may read attributes of the structure, which must not change afterwards.
    Every structure needs exactly one derivation, which uses each of its parts once: `check` says whether that is so.

    Ties in the argmax go to the first of equal terms, at every `combine`. An entry of the scores that `value` does not use, or
    uses for larger lengths only, is padding.

    Args:
        lengths: the length of each example, `[...]`, of a structure that takes lengths. The default is n for all.
        validate: check the values of the scores; costs a synchronisation on a GPU. The default is to check on a CPU only.

    >>> class Path(DynamicProgram):
    ...     '''Paths through the columns of a grid, which go up or down by one row, or stay.'''
    ...     event_dims = 2
    ...     def value(self, scores, combine):                      # [B, rows, columns]
    ...         best = scores[:, :, 0]
    ...         for column in scores.unbind(2)[1:]:
    ...             wall = scores.new_full((len(scores), 1), -torch.inf)
    ...             best = column + combine(torch.cat([wall, best, wall], 1).unfold(1, 3, 1), 2)
    ...         return combine(best, 1)
    >>> scores = torch.tensor([[1.0, 0, 0], [0, 0, 1], [0, 3, 0]])
    >>> Path().argmax(scores)
    tensor([[0., 0., 0.],
            [1., 0., 1.],
            [0., 1., 0.]])
    >>> Path().log_partition(scores)
    tensor(5.2228)
    """

    event_dims: ClassVar[int]
    lengths: Tensor | None = None
    validate: bool | None = None

    def __init__(self, lengths: Any = None, *, validate: bool | None = None) -> None:
        super().__init__(validate=validate)
        self.lengths = self._as_lengths(lengths)

    @abc.abstractmethod
    def value(self, scores: Tensor, combine: Combine) -> Tensor:
        """The combined value of all structures, `[B]` or `[B, n + 1]`, for scores `[B, *parts]`."""

    @property
    def family(self) -> Family:  # type: ignore[override]
        return self._program.family

    @property
    def _layout(self) -> Layout:  # type: ignore[override]
        return self._program.family.layout

    @property
    def _program(self) -> Program:
        """The recursion with these attributes; instances with equal attributes share it."""
        key = self._key()
        found = _programs.get(key)
        if found is None:
            from pullback.inference.engine.hypergraph.program import Program

            plain = copy.copy(self)
            plain.lengths = None
            found = _programs[key] = Program(type(self).__name__, plain.value, self.event_dims)
        return found

    def _key(self) -> tuple[Any, ...]:
        own = vars(self)
        return type(self), *((name, _frozen(own[name])) for name in sorted(own) if name not in _OWN)

    def __eq__(self, other: object) -> bool:
        same = super().__eq__(other)
        return same if same is not True else self._key() == other._key()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((self._key(), self.validate))

    def enumerate(self, *shape: int) -> Tensor:
        """All structures for scores of a small shape, `[S, *parts]`: of the derivations of the recursion."""
        parts = self._program.derivations(shape, shape[0])
        z = torch.zeros(len(parts), torch.Size(shape).numel())
        for row, chosen in enumerate(parts):
            z[row, list(chosen)] = 1.0
        return z.reshape(len(parts), *shape)

    def check(self, *shape: int) -> None:
        """Raise if the recursion has two derivations for one structure, or uses a part twice in one; for a small shape.

        >>> class Twice(DynamicProgram):
        ...     event_dims = 1
        ...     def value(self, scores, combine):
        ...         return scores[:, 0] + combine(scores, 1)
        >>> Twice().check(3)
        Traceback (most recent call last):
        ValueError: Twice.value uses the score at [0] twice in one structure (scores [3])
        """
        self._program.check(shape)

    def _call(self, operation: str, flat: Flat, *others: Any, recorded: str = "") -> Any:
        if self.lengths is not None and not is_compiling():
            self._check_lengths(flat)
        return super()._call(operation, flat, *others, recorded=recorded)

    def _check_lengths(self, flat: Flat) -> None:
        if not self._program.table(tuple(flat.scores.shape[1:])).by_length:
            raise ValueError(
                f"{type(self).__name__}.value returns [B], so it takes no lengths; return [B, n + 1], a value for each length"
            )


def _frozen(value: Any) -> Any:
    """A key for an attribute: its value, or the object itself where that cannot be compared."""
    if isinstance(value, list | tuple):
        return type(value), *map(_frozen, value)
    if value is None or isinstance(value, str | int | float | bool | torch.dtype):
        return type(value), value
    return _Same(value)


class _Same:
    """An object that equals itself only."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)
