"""Readers of heads, tags, segments and masks as tensors: the inverses of the conversions that structures offer for z."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference._torch.transforms import is_mapped
from pullback.inference.front.layout import as_sizes, broadcasts, check_batches, check_tensor

PADDING = (-1, -100)
"""Values that stand for nothing: the readers' own, and the one that PyTorch's cross-entropy ignores."""
_INSTEAD = {
    "tags": "; pullback.nn.CRF skips what has no tag",
    "heads": "; where only some heads are known use log_prob_within(scores, allowed)",
}
"""The alternatives for values that have padding in between."""


def is_readable(x: Tensor) -> bool:
    """Whether values may decide what runs, at no cost."""
    return x.is_cpu and not torch.compiler.is_compiling() and not is_mapped(x)


def as_lengths(values: Any, name: str) -> Tensor | None:
    """Lengths from integers, or from a boolean mask of one more dimension that is true at the first positions.

    >>> as_lengths(torch.tensor([[True, True, False], [True, False, False]]), "lengths")
    tensor([2, 1])
    """
    mask = as_mask(values)
    if mask is None:
        return as_sizes(values, name)
    if is_readable(mask):
        _check_prefix(mask, f"{name} is a mask with a hole", "; pullback.nn.CRF takes masks with holes")
    return mask.sum(-1)


def as_mask(values: Any) -> Tensor | None:
    """A boolean mask, if this is one, or an array or a list of one."""
    if isinstance(values, np.ndarray):
        values = torch.as_tensor(values)
    if not isinstance(values, Tensor) and isinstance(values, Sequence) and values and not isinstance(values, str):
        first = values[0][0] if isinstance(values[0], Sequence) and values[0] else values[0]
        values = torch.as_tensor(values) if isinstance(first, bool) else values
    return values if isinstance(values, Tensor) and values.dtype == torch.bool and values.dim() > 0 else None


def check_width(width: int | None, count: int, name: str) -> None:
    """Raise if lengths were given as a mask of another width than the number of positions."""
    if width not in (None, count):
        raise ValueError(
            f"{name} is a mask [..., {width}], and there are {count} positions; a mask needs an entry for each: cut or pad it, "
            f"or pass {name}=mask.sum(-1)"
        )


def _check_prefix(mask: Tensor, what: str, instead: str) -> None:
    holes = mask[..., 1:] & ~mask[..., :-1]
    if holes.any():
        *batch, position = torch.nonzero(holes)[0].tolist()
        raise ValueError(
            f"{what}: position {position + 1}{f' of example {batch}' if batch else ''} counts and position {position} does "
            f"not; a structure needs the positions that count first{instead}"
        )


def lengths_of(lengths: Tensor, batch: torch.Size, n: int, device: torch.device, name: str = "lengths") -> Tensor:
    """The lengths on this device, for sequences of n positions with these leading dimensions."""
    if not broadcasts(lengths.shape, batch) and lengths.shape == (*batch, n):
        raise ValueError(
            f"{name} has shape {list(lengths.shape)}, that of a mask; a mask must be of torch.bool: pass mask.bool()"
        )
    check_batches(lengths.shape, batch, name, "the sequences")
    if is_readable(lengths):
        wrong = (lengths < 0) | (lengths > n)
        if wrong.any():
            where = torch.nonzero(wrong)[0].tolist()
            raise ValueError(f"{name}{where or ''} is {int(lengths[tuple(where)])}; {n} positions need {name} from 0 to {n}")
    return lengths.to(device)


def integers(x: Any, owner: str, name: str, shape: str = "n") -> Tensor:
    """A tensor of integers of at least one dimension, as int64."""
    check_tensor(x, owner, name)
    if x.dim() == 0:
        raise ValueError(f"{name} has shape []; {owner} needs [..., {shape}]")
    if x.dtype.is_floating_point or x.dtype.is_complex or x.dtype == torch.bool:
        raise TypeError(f"{name} have dtype {x.dtype}; they must be integers")
    return x.long()


def is_padding(x: Tensor) -> Tensor:
    return (x == PADDING[0]) | (x == PADDING[1])


def real_positions(x: Tensor, lengths: Tensor | None, name: str) -> tuple[Tensor, Tensor]:
    """Which of `[..., n]` count, and x of the same shape: those of the lengths, or else all that are no padding, -1 or -100."""
    if lengths is None:
        real = ~is_padding(x)
        if is_readable(x):
            _check_prefix(real, f"{name} has padding ({PADDING[0]} or {PADDING[1]}) in between", _INSTEAD.get(name, ""))
        return real, x
    n = x.shape[-1]
    real = torch.arange(n, device=x.device) < lengths_of(lengths, x.shape[:-1], n, x.device)[..., None]
    real, x = torch.broadcast_tensors(real, x)
    return real, x


def check_range(x: Tensor, real: Tensor, most: int | Tensor, name: str, hint: str, *, least: int = 0, **known: int) -> None:
    """Raise if an entry that counts is below `least` or above `most`; the hint may name what is known."""
    if not is_readable(x):
        return
    wrong = real & ((x < least) | (x > most))
    if wrong.any():
        where = torch.nonzero(wrong)[0].tolist()
        raise ValueError(f"{name}{where} is {int(x[tuple(where)])}; {hint.format(**known)}")


def ones_at(places: Tensor, real: Tensor, size: int) -> Tensor:
    """0/1 vectors `[..., size]` with a one at each of the places `[..., S]` that counts."""
    if places.shape[-1] == 1 and size > 0:
        z = torch.zeros(*places.shape[:-1], size, device=places.device)
        scatter = z.scatter_ if is_readable(places) else z.scatter  # in place is faster, and not possible under torch.vmap
        return scatter(-1, places.clamp(0, size - 1), real.to(z.dtype))
    z = torch.zeros(*places.shape[:-1], size + 1, device=places.device)  # one more, for what does not count
    return z.scatter(-1, torch.where(real, places, size).clamp(0, size), 1.0)[..., :size]


def tuples(parts: Any, width: int, owner: str, name: str) -> Tensor:
    """Nested lists of tuples, such as segments, as integers `[..., S, width]` with -1 for nothing; such tensors stay."""
    if isinstance(parts, Tensor):
        x = integers(parts, owner, name, f"S, {width}")
        if x.dim() < 2 or x.shape[-1] != width:
            raise ValueError(f"{name} has shape {list(x.shape)}; {owner} needs [..., S, {width}]")
        return x
    batch, rows = _flattened(parts, _depth(parts), name)
    for row in rows:
        for part in row:
            if not isinstance(part, tuple | list) or len(part) != width or not all(isinstance(i, int) for i in part):
                raise ValueError(f"{name} has the entry {part!r}; {owner} needs lists of tuples of {width} integers")
    most = max([len(row) for row in rows] + [0])
    filled = [[*map(list, row), *[[PADDING[0]] * width] * (most - len(row))] for row in rows]
    return torch.tensor(filled, dtype=torch.long).reshape(*batch, most, width)


def _depth(parts: Any) -> int:
    """How many lists are around a list of tuples; an empty list is one."""
    if not isinstance(parts, list) or not parts or not isinstance(parts[0], list):
        return 0
    if all(isinstance(part, list) and part and not isinstance(part[0], list | tuple) for part in parts):
        return 0  # tuples that are written as lists
    return 1 + max([_depth(part) for part in parts])


def _flattened(parts: Any, depth: int, name: str) -> tuple[list[int], list[Any]]:
    """The leading dimensions of nested lists, and the lists of tuples in order."""
    if not isinstance(parts, list):
        raise TypeError(f"{name} is a {type(parts).__name__}; it must be a list of tuples, nested like the batch, or a tensor")
    if depth == 0:
        return [], [parts]
    inner = [_flattened(part, depth - 1, name) for part in parts]
    shape = inner[0][0]
    if [other for other, _ in inner] != [shape] * len(inner):
        raise ValueError(f"{name} is nested unevenly: the examples have shapes {[other for other, _ in inner]}")
    return [len(parts), *shape], [row for _, rows in inner for row in rows]
