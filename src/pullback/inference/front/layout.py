"""The layout of a structure's scores: batch dimensions, sizes, dtype, which entries are parts, and the way back."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference._torch.derivatives import DISPATCHED, route
from pullback.inference.front import checks

_FULL, _HALF = (torch.float32, torch.float64), (torch.float16, torch.bfloat16)
_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)  # PyTorch does not compare them
ARRAY = "pullback_array"
"""The attribute of sizes that have their array behind them: PyTorch takes as long for it as a small kernel."""
Parts = Callable[[tuple[int, ...], tuple[Tensor, ...], torch.device], Tensor]
"""From the shape of the parts, the sizes `[B]` and a device to `[1 or B, *parts]` of bool."""


@dataclass(frozen=True)
class Size:
    """One number for each example, such as its length, or a list of numbers.

    Attributes:
        name: of the argument of the structure.
        bounds: the letter of the axes whose entries at or beyond it are padding, or None for a number that is not a size.
        dims: how many dimensions a list has, 0 for one number. Only the algorithm reads the numbers of lists.
        told: whether errors name it.
    """

    name: str
    bounds: str | None
    dims: int = 0
    told: bool = True

    def batch_of(self, values: Tensor) -> torch.Size:
        """The leading dimensions of the values of a batch."""
        return values.shape[: values.dim() - self.dims]


class Flat:
    """Scores as one batch.

    Attributes:
        scores: `[B, *parts]`, float32 or float64.
        sizes: `[B]` each, int64, on the device of the scores.
        batch: the leading dimensions of the caller's scores.
        dtype: of the results.
        route: how a call with these scores reaches its kernel (`derivatives.route`).
    """

    __slots__ = ("batch", "dtype", "layout", "route", "scores", "sizes")

    def __init__(
        self, layout: Layout, scores: Tensor, sizes: tuple[Tensor, ...], batch: torch.Size, dtype: torch.dtype, route: int
    ) -> None:
        self.layout = layout
        self.scores = scores
        self.sizes = sizes
        self.batch = batch
        self.dtype = dtype
        self.route = route

    @property
    def mask(self) -> Tensor:
        """Which entries are parts, `[B, *parts]` of bool."""
        return self.layout.mask(self.scores, self.sizes)

    def restore(self, result: Tensor) -> Tensor:
        """From `[B, ...]` to the caller's dtype and leading dimensions."""
        if result.dtype != self.dtype:
            result = result.to(self.dtype)
        return result if len(self.batch) == 1 else result.reshape(self.batch + result.shape[1:])

    def reshape(self, result: Tensor) -> Tensor:
        """From `[B, ...]` to the caller's leading dimensions."""
        return result if len(self.batch) == 1 else result.reshape(self.batch + result.shape[1:])


class Layout:
    """The meaning of the last dimensions of scores.

    Args:
        owner: the name of the structure, for messages.
        shape: a letter for each dimension of the parts, such as `"n, C, C"`; equal letters have equal sizes.
        sizes: what else is known of each example.
        parts: which of the entries that are not padding are parts; all by default.
        centre: dimensions over which all structures have the same sum, if there are any: a constant added to the scores
            along them changes neither argmax nor marginals.
        positive: letters whose size must be positive.
    """

    def __init__(
        self,
        owner: str,
        shape: str,
        *,
        sizes: Sequence[Size] = (),
        parts: Parts | None = None,
        centre: tuple[int, ...] | None = None,
        positive: str = "",
    ) -> None:
        self.owner = owner
        self._owner = f"{'an' if owner[0] in 'AEIOU' else 'a'} {owner}"
        self.letters = tuple(shape.split(", "))
        self.dims = len(self.letters)
        self.sizes = tuple(sizes)
        self.parts = parts
        self.centre = centre
        self._positive = positive
        self._positive_axes = [self.letters.index(letter) - self.dims for letter in positive]
        self._limits = [None if size.bounds is None else self.letters.index(size.bounds) - self.dims for size in self.sizes]
        self._named = [(i, size.name, axis) for i, (size, axis) in enumerate(zip(self.sizes, self._limits, strict=True))]
        self._bounded = [[axis for axis, x in enumerate(self.letters) if x == size.bounds] for size in self.sizes]
        self._equal = [
            (self.letters.index(letter) - self.dims, axis - self.dims)
            for axis, letter in enumerate(self.letters)
            if self.letters.index(letter) != axis
        ]

    def flatten(self, scores: Tensor, owner: object) -> Flat:
        """Scores `[..., *parts]` as one batch. The sizes are attributes of their owner, and broadcast against the leading
        dimensions of the scores.
        """
        if not isinstance(scores, Tensor) or not self._fits(scores.shape):
            self.check(scores)
        s, shape, dtype = scores, scores.shape, scores.dtype
        lead = len(shape) - self.dims
        batch = shape[:lead]
        if dtype not in _FULL:
            s, dtype = working(scores), result_dtype(scores)
        if lead != 1:
            s = s.reshape(batch.numel(), *shape[lead:])
            shape = s.shape
        sizes: tuple[Tensor, ...] = ()
        way = route(s)
        for i, name, axis in self._named:
            size = getattr(owner, name)
            if size is None and axis is not None and shape[0] <= 1024 and s.is_cpu and way != DISPATCHED:
                size = _whole(shape[0], shape[axis])
            elif (
                size is None or lead != 1 or self.sizes[i].batch_of(size) != batch or size.dtype != torch.long
                or size.device != s.device
            ):  # fmt: skip
                size = self._flat_size(i, size, s, batch)
            sizes += (size,)
        return Flat(self, s, sizes, batch, dtype, way)

    def check(self, scores: Tensor, name: str = "scores") -> None:
        """Raise if these are no scores of this layout, or no structures, by their name."""
        if not isinstance(scores, Tensor):
            check_tensor(scores, self._owner, name)
        if not self._fits(scores.shape):
            need = f"[..., {', '.join(self.letters)}]" + "".join(f" with {x} > 0" for x in self._positive)
            raise ValueError(f"{name} has shape {list(scores.shape)}; {self._owner} needs {need}")

    def _fits(self, shape: torch.Size) -> bool:
        """Whether this is the shape of scores."""
        if len(shape) < self.dims:
            return False
        for a, b in self._equal:
            if shape[a] != shape[b]:
                return False
        return 0 not in [shape[axis] for axis in self._positive_axes] if self._positive_axes else True

    def mask(self, scores: Tensor, sizes: Sequence[Tensor]) -> Tensor:
        """Which entries of scores `[B, *parts]` are parts, of bool."""
        shape, device = scores.shape, scores.device
        masks = [] if self.parts is None else [self.parts(tuple(shape[1:]), tuple(sizes), device)]
        for index, values in enumerate(sizes):
            axes = self._bounded[index]
            if axes:
                count = shape[1 + axes[0]]
                inside = torch.arange(count, device=device) < values[:, None]
                for axis in axes:
                    masks.append(inside.reshape(shape[0], *[1] * axis, count, *[1] * (self.dims - axis - 1)))
        if not masks:
            return torch.ones(shape, dtype=torch.bool, device=device)
        return functools.reduce(torch.bitwise_and, masks).expand(shape)

    def clean(self, z: Tensor, sizes: Sequence[Tensor | None]) -> Tensor:
        """Structures `[..., *parts]`, zero outside of the parts, where they may hold anything. Sizes of another batch (the
        structures are a few of many, perhaps) are not looked at.
        """
        if self.parts is None and all(size is None for size in sizes):
            return z
        batch = z.shape[: z.dim() - self.dims]
        flat = z.reshape(batch.numel(), *z.shape[len(batch) :])
        bounded = [size if each.bounds else None for each, size in zip(self.sizes, sizes, strict=True)]
        known = [size if size is not None and broadcasts(size.shape, batch) else None for size in bounded]
        unbounded = flat.new_zeros(len(flat), dtype=torch.long)
        inside = [self._flat_size(i, size, flat, batch) if self.sizes[i].bounds else unbounded for i, size in enumerate(known)]
        return flat.masked_fill(~self.mask(flat, inside), 0).reshape(z.shape)

    def status(self, scores: Tensor, sizes: Sequence[Tensor]) -> Tensor:
        """The status of each example without inference, `[B]` of the codes of `checks`: all but INFEASIBLE."""
        status = checks.status_of(scores, self.mask(scores, sizes))
        return self.out_of_range(status, sizes, self.in_range(scores, sizes))

    def out_of_range(self, status: Tensor, sizes: Sequence[Tensor], safe: Sequence[Tensor]) -> Tensor:
        """The status `[B]`, BAD_SIZE for examples whose sizes are not those in range."""
        for each, size, possible in zip(self.sizes, sizes, safe, strict=True):
            status = status if each.dims else torch.where(size != possible, checks.BAD_SIZE, status)
        return status

    def in_range(self, scores: Tensor, sizes: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The sizes, those out of range at the nearest value that is possible."""
        safe: list[Tensor] = []
        for index, size in enumerate(sizes):
            safe.append(size if self.sizes[index].dims else size.clamp(0, self.limit(index, scores.shape)))
        return tuple(safe)

    def limit(self, index: int, shape: torch.Size) -> int | None:
        """The largest value of a size for scores of this shape, None where there is no limit."""
        axis = self._limits[index]
        return None if axis is None else shape[axis]

    def limits(self, shape: torch.Size) -> tuple[int, ...]:
        """The largest value of each size for scores of this shape, 0 where there is no limit."""
        return tuple([0 if axis is None else shape[axis] for axis in self._limits])

    def _flat_size(self, index: int, size: Tensor | None, s: Tensor, batch: torch.Size) -> Tensor:
        name, dims = self.sizes[index].name, self.sizes[index].dims
        if size is None:
            axis = self._limits[index]
            if axis is None:
                raise ValueError(f"{self._owner} needs {name}: pass {self.owner}({name}=...)")
            return torch.full((s.shape[0],), s.shape[axis], dtype=torch.long, device=s.device)
        own, rest = self.sizes[index].batch_of(size), size.shape[size.dim() - dims :]
        if own != batch:
            if not broadcasts(own, batch):
                shape, axis = [*batch, *s.shape[1:]], self._limits[index]
                is_mask = axis is not None and size.shape == (*batch, s.shape[axis])
                raise ValueError(
                    f"{name} has shape {list(size.shape)} and scores {shape}; for these scores {self._owner} needs "
                    f"{name} of shape {[*batch, *rest]}, or of one that broadcasts to it"
                    f"{', or a mask of torch.bool: pass mask.bool()' if is_mask else ''}"
                )
            if not dims and size.numel() == 1 and size.is_cpu and not s.is_cpu and not torch.compiler.is_compiling():
                return torch.full((s.shape[0],), int(size), dtype=torch.long, device=s.device)  # where a copy would wait
            size = size.expand(batch + rest).contiguous()
        if size.dtype != torch.long or size.device != s.device:
            size = size.to(s.device, torch.long)
        return size if len(batch) == 1 else size.reshape(batch.numel(), *rest)


@functools.lru_cache(maxsize=256)
def _whole(count: int, size: int) -> Tensor:
    """The sizes of examples without padding, `[count]`, on the CPU, read only: made once, as that takes as long
    as a tenth of a small call.
    """
    with torch.inference_mode(False):  # whose tensors no other call could keep for a backward pass
        sizes = torch.full((count,), size, dtype=torch.long, device="cpu")
    setattr(sizes, ARRAY, sizes.numpy())
    return sizes


def check_tensor(scores: Any, owner: str, name: str = "scores") -> None:
    """Raise if scores are no tensor."""
    if not isinstance(scores, Tensor):
        raise TypeError(f"{name} is a {type(scores).__name__}; {owner} needs a torch.Tensor: pass torch.as_tensor({name})")


def check_batches(shape: torch.Size, other: torch.Size, name: str, other_name: str) -> None:
    """Raise if two shapes of leading dimensions do not broadcast."""
    if not all(x == y or 1 in (x, y) for x, y in zip(reversed(shape), reversed(other), strict=False)):
        raise ValueError(
            f"the leading dimensions of {name} are {list(shape)} and those of {other_name} {list(other)}; "
            f"they must be equal, or broadcast"
        )


def as_sizes(values: Any, name: str) -> Tensor | None:
    """Sizes as an integer tensor: numbers and lists become one; None stays."""
    if values is None:
        return None
    if not isinstance(values, Tensor):
        try:
            values = torch.as_tensor(values)
        except (TypeError, ValueError, RuntimeError):
            raise TypeError(f"{name} is {values!r}; it must be an integer, or a list or tensor of integers") from None
        values = values.long() if values.numel() == 0 else values  # of an empty batch
    if values.dtype.is_floating_point or values.dtype.is_complex or values.dtype == torch.bool:
        raise TypeError(f"{name} have dtype {values.dtype}; they must be integers")
    return values.long() if values.dtype in _UNSIGNED else values


def as_flag(value: Any, name: str) -> bool:
    """A boolean, of Python or NumPy."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} is {value!r}; it must be True or False")
    return bool(value)


def working(scores: Tensor) -> Tensor:
    """The scores in the precision of inference: half precisions become float32. A view that PyTorch negates when it is read,
    such as the imaginary part of a conjugate, is copied: kernels read memory.
    """
    check_tensor(scores, "inference")
    if scores.dtype not in _FULL + _HALF:
        raise TypeError(
            f"scores have dtype {scores.dtype}; inference needs float64, float32, float16 or bfloat16: pass scores.float(), "
            f"or build them with a decimal point"
        )
    return (scores.float() if scores.dtype in _HALF else scores).resolve_neg()


def result_dtype(scores: Tensor) -> torch.dtype:
    """The dtype of what is returned: the scores' own, but float32 for half precision under autocast."""
    if scores.dtype in _HALF and torch.is_autocast_enabled(scores.device.type):
        return torch.float32
    return scores.dtype


def broadcasts(shape: torch.Size, batch: torch.Size) -> bool:
    """Whether a tensor of this shape can be expanded to the batch."""
    if len(shape) > len(batch):
        return False
    for x, y in zip(reversed(shape), reversed(batch), strict=False):  # noqa: SIM110 (a generator is a call for each)
        if x not in (1, y):
            return False
    return True
