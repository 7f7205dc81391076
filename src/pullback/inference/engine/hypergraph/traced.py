"""Recursions in plain PyTorch, run on numbers that only remember what was done with them.

A `Traced` tensor holds an integer for each element: 0 for the constant 0, 1 for -inf, 2 + p for the score of part p, and from
then on one for each sum of two elements and each combined value. Operations that only move elements run on these integers as
they would on scores. Sums and combinations are written down on a `Tape`, from which `building.py` makes a hypergraph.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

ZERO, NOTHING, FIRST_PART = 0, 1, 2
_own = threading.local()
_plain = torch._C.DisableTorchFunctionSubclass


class Tape:
    """A record of the additions and combinations, in order.

    Attributes:
        blocks: operands, `[elements, operands]`, of one operation on a whole tensor each.
        combined: of each block, whether its elements are alternatives, and not summands.
        count: the next free number.
        parts: the shape of the scores of one example.
    """

    def __init__(self, parts: tuple[int, ...], owner: str) -> None:
        self.owner, self.parts = owner, parts
        self.blocks: list[np.ndarray] = []
        self.combined: list[bool] = []
        self.count = FIRST_PART + math.prod(parts)

    def scores(self) -> Tensor:
        """The scores of one example, `[1, *parts]`."""
        return torch.arange(FIRST_PART, self.count).reshape(1, *self.parts).as_subclass(Traced)

    def write(self, operands: Tensor, combined: bool) -> Tensor:
        """Numbers for new elements `[...]`, from their operands `[..., operands]`, which this keeps."""
        shape = operands.shape[:-1]
        if operands.shape[-1] == 0:  # of no alternatives
            return torch.full(shape, NOTHING)
        start, self.count = self.count, self.count + math.prod(shape)
        self.blocks.append(operands.numpy().reshape(-1, operands.shape[-1]))
        self.combined.append(combined)
        return torch.arange(start, self.count).reshape(shape)

    def combine(self, terms: Tensor, dim: int) -> Tensor:
        """The recursion's `combine`."""
        if not isinstance(terms, Tensor):
            raise TypeError(f"{self.owner} calls combine with a {type(terms).__name__}; it needs a tensor of terms")
        if terms.dim() < 2 or dim % terms.dim() == 0:
            shape = list(terms.shape)
            raise ValueError(f"{self.owner} combines over dimension {dim} of {shape}; the first dimension is the batch")
        with _plain():
            found = self.write(self.numbers(terms).movedim(dim, -1).contiguous().clone(), True)
        return found.as_subclass(Traced)

    def numbers(self, x: Any) -> Tensor:
        """The integers of an operand, as a tensor on which PyTorch works as on any other; constants may be 0
        or -inf.
        """
        if isinstance(x, Traced):
            return x
        values = torch.as_tensor(x)
        with _plain():
            found = torch.where(values == -torch.inf, NOTHING, ZERO)
            if not ((values == 0) | (values == -torch.inf)).all():
                wrong = values[(values != 0) & (values != -torch.inf)].flatten()[0].item()
                raise ValueError(
                    f"{self.owner} uses the constant {wrong:g}; only scores, 0 and -inf can be added and combined: "
                    f"add the constant to the scores that the structure is called with"
                )
        return found

    def refuse(self, name: str) -> NotImplementedError:
        """The error for an operation that is not one of a recursion's."""
        instead = "only index, reshape, stack, add and combine scores, and do not look at their values"
        if name in ("logsumexp", "max", "amax", "maximum", "logaddexp"):
            instead = "combine alternatives with combine(terms, dim)"
        return NotImplementedError(f"{self.owner} uses `{name}`, which cannot be traced: {instead}")


@contextlib.contextmanager
def recording(tape: Tape) -> Iterator[None]:
    """Write what happens to traced tensors in this thread on a tape."""
    before = getattr(_own, "tape", None)
    _own.tape = tape
    try:
        yield
    finally:
        _own.tape = before


class Traced(Tensor):
    """A tensor of numbers of elements on the tape that records."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = func.__name__, kwargs or {}
        if name in _MOVES:
            return super().__torch_function__(func, types, args, kwargs)
        tape: Tape = _own.tape
        name = func.__self__.__name__ if name == "__get__" else name
        rule = _RULES.get(name)
        if rule is None:
            raise tape.refuse(name)
        with _plain():
            found = rule(tape, *args, **kwargs)
        return found.as_subclass(cls) if isinstance(found, Tensor) else found


def _add(tape: Tape, a: Any, b: Any, *, alpha: float = 1) -> Tensor:
    if alpha != 1:
        raise tape.refuse("add with alpha")
    pair = [tape.numbers(a), tape.numbers(b)]
    if pair[0].shape != pair[1].shape:
        pair = list(torch.broadcast_tensors(*pair))
    return tape.write(torch.stack(pair, -1), False)


def _add_in_place(tape: Tape, a: Tensor, b: Any) -> Tensor:
    return tape.numbers(a).copy_(_add(tape, a, b))


def _sum(tape: Tape, x: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Any = None) -> Tensor:
    ids, chosen = tape.numbers(x), axis if dim is None else dim
    dims = range(ids.dim()) if chosen is None else (chosen,) if isinstance(chosen, int) else tuple(chosen)
    for d in sorted((d % ids.dim() for d in dims), reverse=True):
        total = torch.full(ids.shape[:d] + ids.shape[d + 1 :], ZERO)
        for term in ids.unbind(d):
            total = _add(tape, total.as_subclass(Traced), term.as_subclass(Traced))
        ids = total.unsqueeze(d) if keepdim else total
    return ids


def _cumsum(tape: Tape, x: Tensor, dim: int) -> Tensor:
    sums: list[Tensor] = []
    for term in tape.numbers(x).unbind(dim):
        sums.append(_add(tape, sums[-1].as_subclass(Traced), term.as_subclass(Traced)) if sums else term)
    return torch.stack(sums, dim) if sums else tape.numbers(x)


def _joined(join: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def rule(tape: Tape, tensors: Any, *args: Any, **kwargs: Any) -> Tensor:
        return join([tape.numbers(x) for x in tensors], *args, **kwargs)

    return rule


def _gather(tape: Tape, x: Tensor, dim: int, index: Tensor, **_: Any) -> Tensor:
    if isinstance(index, Traced):
        raise tape.refuse("gather by scores")
    return torch.take_along_dim(tape.numbers(x), index, dim)  # of one example, for the sizes of several


def _take_along(tape: Tape, x: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    return torch.take_along_dim(tape.numbers(x), indices, dim)


def _where(tape: Tape, condition: Tensor, *values: Any) -> Tensor:
    if isinstance(condition, Traced) or len(values) != 2:
        raise tape.refuse("where with a condition on scores")
    first, second = map(tape.numbers, values)
    return torch.where(condition, first, second)


def _masked_fill(tape: Tape, x: Tensor, mask: Tensor, value: Any) -> Tensor:
    return _where(tape, mask, value, x)


def _constant(shape_of: Callable[..., Any]) -> Callable[..., Tensor]:
    """A rule for constants: from the arguments to their shape and value."""

    def rule(tape: Tape, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        shape, value = shape_of(x, *args, **kwargs)
        return torch.full(shape, int(tape.numbers(value)))

    return rule


def _new_shape(x: Tensor, *size: Any, **_: Any) -> tuple[Any, float]:
    return (size[0] if len(size) == 1 and not isinstance(size[0], int) else size), 0.0


def _pad(tape: Tape, x: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    if mode != "constant":
        raise tape.refuse(f"pad with mode={mode!r}")
    return torch.nn.functional.pad(tape.numbers(x), pad, value=int(tape.numbers(value or 0.0)))


def _set(tape: Tape, x: Tensor, index: Any, value: Any) -> None:
    tape.numbers(x)[index] = tape.numbers(value)


def _fill(tape: Tape, x: Tensor, value: float) -> Tensor:
    return tape.numbers(x).fill_(int(tape.numbers(value)))


def _property(name: str) -> Callable[[Tape, Tensor], Any]:
    return lambda tape, x: getattr(tape.numbers(x), name)


def _same(tape: Tape, x: Tensor, *_: Any, **__: Any) -> Tensor:
    return tape.numbers(x)


_MOVES = frozenset((
    "__getitem__", "select", "narrow", "unbind", "__iter__", "split", "chunk", "flip", "diagonal", "unfold", "index_select",
    "reshape", "view", "flatten", "unflatten", "squeeze", "unsqueeze", "transpose", "swapaxes", "swapdims", "permute",
    "movedim", "moveaxis", "t", "expand", "expand_as", "view_as", "reshape_as", "broadcast_to", "repeat", "tile",
    "repeat_interleave", "roll", "tril", "triu", "contiguous", "clone", "size", "dim", "numel", "__len__", "ndimension",
))  # fmt: skip
"""Operations that move elements and may run on their numbers (0 is the number of 0), or ask for a shape."""

_RULES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("add", "__add__", "__radd__"), _add),
    **dict.fromkeys(("add_", "__iadd__"), _add_in_place),
    **dict.fromkeys(("to", "float", "double", "type", "type_as", "detach", "cpu", "requires_grad_"), _same),
    **{name: _joined(getattr(torch, name)) for name in ("stack", "cat", "concat", "concatenate", "hstack", "vstack")},
    "sum": _sum, "cumsum": _cumsum, "gather": _gather, "take_along_dim": _take_along, "where": _where,
    "masked_fill": _masked_fill, "pad": _pad, "__setitem__": _set, "fill_": _fill,
    "zero_": lambda tape, x: _fill(tape, x, 0.0),
    "new_zeros": _constant(_new_shape),
    "new_full": _constant(lambda x, size, fill_value, **_: (size, fill_value)),
    "new_tensor": _constant(lambda x, data, **_: (torch.as_tensor(data).shape, data)),
    "zeros_like": _constant(lambda x, **_: (x.shape, 0.0)),
    "full_like": _constant(lambda x, fill_value, **_: (x.shape, fill_value)),
    "is_floating_point": lambda tape, x: True,
    "dtype": lambda tape, x: torch.float64,
    **{name: _property(name) for name in ("shape", "ndim", "device", "is_cuda", "is_cpu", "layout", "T", "mT")},
    "requires_grad": lambda tape, x: False,
}  # fmt: skip
