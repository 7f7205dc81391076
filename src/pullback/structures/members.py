"""Membership: which tensors are structures, and errors that name the example that is not one.

Of all structures y, <2z - 1, y> = |y and z| - |y without z| is largest at z itself, if z is one of them. So one argmax decides.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from pullback.inference._torch.transforms import is_mapped
from pullback.inference.front.layout import Flat

if TYPE_CHECKING:
    from pullback.structures.base import Structure
    from pullback.structures.family import FamilyStructure

Family_ = TypeVar("Family_", bound="FamilyStructure")
_EXACT = (torch.float32, torch.float64)
_STEPS = 16
"""How often a point comes nearer to what may be an average, an argmax each."""


def signs(z: Tensor) -> Tensor:
    """2z - 1 in a dtype that inference takes."""
    z = z.detach()
    return 2 * (z if z.dtype in _EXACT else z.float()) - 1


def are_equal(structure: Structure, z: Tensor, best: Tensor) -> Tensor:
    """Whether structures are the argmax of their signs, `[...]`; no entry is padding."""
    return (z == best).flatten(z.dim() - structure.event_dims).all(-1)


def are_members(structure: FamilyStructure, z: Tensor) -> Tensor:
    """Whether each of `[..., *parts]` is a structure, `[...]` of bool; padding is not read."""
    flat = structure._flat(signs(z))
    best = _argmax(structure, flat)
    if best.shape[1:].numel() == 0:
        return flat.reshape(_exist(structure, flat))
    same = best == z.detach().reshape(best.shape)
    failed = best.flatten(1)[:, 0].isnan()  # no structure of this size exists, or z is not finite
    return flat.reshape((same | ~flat.mask).flatten(1).all(1) & ~failed)


def _argmax(structure: FamilyStructure, flat: Flat) -> Tensor:
    """The argmax; NaN for examples without one."""
    found: Tensor = structure.family.call("argmax", flat.scores, *flat.sizes, options=structure._options(), validate=False)
    return found


def _exist(structure: FamilyStructure, flat: Flat) -> Tensor:
    """For tensors without entries, which cannot be NaN: whether the empty structure is one, `[B]`."""
    found = []
    for example in range(flat.scores.shape[0]):
        sizes = [size[example : example + 1] for size in flat.sizes]
        try:
            structure.family.call("argmax", flat.scores[:1], *sizes, options=structure._options(), validate=True)
            found.append(True)
        except ValueError:
            found.append(False)
    return torch.tensor(found, dtype=torch.bool, device=flat.scores.device)


def is_feasible(structure: FamilyStructure, scores: Tensor) -> Tensor:
    """Whether each of `[..., *parts]` leaves some structure without a forbidden part, `[...]` of bool."""
    free = torch.where(scores.detach() == -torch.inf, -torch.inf, 0.0)
    flat = structure._flat(free)
    best = _argmax(structure, flat)
    if best.shape[1:].numel() == 0:
        return flat.reshape(_exist(structure, flat))
    return flat.reshape(~best.flatten(1)[:, 0].isnan())


def one_of(structure: Family_, example: tuple[int, ...]) -> Family_:
    """The structure of one example of a batch, at this place."""
    one = copy.copy(structure)
    for size in structure._layout.sizes:
        values = getattr(structure, size.name)
        if values is not None and (batch := size.batch_of(values)):
            place = example[len(example) - len(batch) :]
            setattr(one, size.name, values[tuple(min(i, n - 1) for i, n in zip(place, batch, strict=True))])
    return one


def are_targets(structure: Structure, mu: Tensor) -> Tensor:
    """Whether each of `[..., *parts]` is a structure, or may be an average of structures, `[...]` of bool.

    An average mu has entries from 0 to 1 and the sums that all structures share, and max over z of <d, z> is at least <d, mu>
    for every d. The d that are tried are 2 mu - 1, and the ways to mu from points that come nearer to it (Gilbert, 1966): few
    other tensors pass them.
    """
    direction = signs(mu)
    inside = structure.allowed(direction)
    point = torch.where(inside, mu.detach().to(direction.dtype), 0.0)
    whole = ((point == 0) | (point == 1)).flatten(mu.dim() - structure.event_dims).all(-1)
    slack = 4 * torch.finfo(mu.dtype if mu.is_floating_point() else direction.dtype).eps ** 0.5
    dims = tuple(range(-structure.event_dims, 0))
    possible = ((point >= -slack) & (point <= 1 + slack)).flatten(mu.dim() - structure.event_dims).all(-1)
    point = torch.where(possible.reshape(*possible.shape, *[1] * structure.event_dims), point, 0.0)
    near = slack * (1 + point.sum(dims))
    found = structure.argmax(torch.where(inside, 2 * point - 1, 0.0))
    fine = possible & (((2 * point - 1) * (found - point)).sum(dims) >= -near) & _share_sums(structure, point, found, slack)
    reached = found
    for _ in range(_STEPS if not bool((whole | ~fine).all()) else 0):
        way = point - reached
        found = structure.argmax(way)
        fine &= (way * (found - point)).sum(dims) >= -near
        move = found - reached
        step = ((way * move).sum(dims, keepdim=True) / move.square().sum(dims, keepdim=True).clamp_min(1)).clamp(0, 1)
        reached = reached + step * move
    return torch.where(whole, structure.contains(mu), fine)


def _share_sums(structure: Structure, point: Tensor, z: Tensor, slack: float) -> Tensor:
    """Whether sums over `centre_dims`, which are those of all structures, agree with a structure's, `[...]` of bool."""
    if structure.centre_dims is None:
        return torch.ones(point.shape[: point.dim() - structure.event_dims], dtype=torch.bool, device=point.device)
    sums, own = point.sum(structure.centre_dims, keepdim=True), z.sum(structure.centre_dims, keepdim=True)
    return ((sums - own).abs() <= slack * (1 + own)).flatten(point.dim() - structure.event_dims).all(-1)


def why_no_target(structure: Structure, mu: Tensor, example: tuple[int, ...]) -> str:
    """Why one tensor, `[*parts]`, is neither a structure nor an average of structures."""
    if ((mu > 0) & (mu < 1)).any() and not ((mu < 0) | (mu > 1)).any():
        return "nor is it an average of structures (are scores and target swapped?)"
    return structure._why_not(mu, example)


def check(
    structure: Structure,
    z: Tensor,
    name: str,
    decide: Callable[[Tensor], Tensor],
    why_not: Callable[[Tensor, tuple[int, ...]], str] | None = None,
) -> None:
    """Raise if some of `[..., *parts]` are not what `decide` wants, naming the first; where values are checked at all."""
    wanted = z.is_cpu if structure.validate is None else structure.validate
    if not wanted or torch.compiler.is_compiling() or is_mapped(z):
        return
    good = decide(z)
    if bool(good.all()):
        return
    first = torch.nonzero(~good)[0].tolist() if good.dim() else []
    one = z.detach()[tuple(first)]
    raise ValueError(
        f"{name}{first or ''} is not a structure of {structure!r}: {(why_not or structure._why_not)(one, tuple(first))} "
        f"(validate=False switches this check off)"
    )
