"""Errors about the arguments of estimators, and about what `downstream` returns."""

from __future__ import annotations

import math

from torch import Tensor

from pullback.structures import Categorical, Structure


def positive(owner: object, name: str, value: float | Tensor) -> float | Tensor:
    """`value` if it is a positive number; tensors pass unseen, since looking would synchronise with the device."""
    if not isinstance(value, Tensor) and not 0 < value < math.inf:
        raise ValueError(f"{type(owner).__name__}: {name} is {value!r}; it must be positive and finite")
    return value


def not_negative(owner: object, name: str, value: float) -> float:
    """`value` if it is zero or a positive number."""
    if not 0 <= value < math.inf:
        raise ValueError(f"{type(owner).__name__}: {name} is {value!r}; it must be at least 0, and finite")
    return value


def in_unit_interval(owner: object, name: str, value: float) -> float:
    """`value` if it is in [0, 1)."""
    if not 0 <= value < 1:
        raise ValueError(f"{type(owner).__name__}: {name} is {value!r}; it must be in [0, 1)")
    return value


def at_least(owner: object, name: str, value: int, least: int) -> int:
    """`value` if it is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{type(owner).__name__}: {name} is {value!r}; it must be an integer of at least {least}")
    return value


def example_shape(structure: Structure, scores: Tensor) -> tuple[int, ...]:
    """`(B,)`, the first dimension; `()` for the scores of a single structure."""
    return tuple(scores.shape[: scores.dim() - structure.event_dims][:1])


def event_dims(structure: Structure) -> tuple[int, ...]:
    """The dimensions of the parts, from the end."""
    return tuple(range(-structure.event_dims, 0))


def losses_of(structure: Structure, scores: Tensor, losses: Tensor) -> Tensor:
    """The losses that `downstream` returned, if there is one for each example."""
    if not isinstance(losses, Tensor):
        raise TypeError(f"downstream returned {type(losses).__name__}; it must return a tensor of losses, [B]")
    expected = example_shape(structure, scores)
    if tuple(losses.shape) != expected:
        raise ValueError(
            f"downstream returned losses of shape {list(losses.shape)} for scores of shape {list(scores.shape)}; "
            f"it must return one loss for each example, {list(expected)}: "
            f"use reduction='none', and sum over what is left inside an example"
        )
    return losses


def categorical_only(owner: object, structure: Structure, instead: str) -> None:
    """An error for structures other than a `Categorical`, which says what to use instead."""
    if not isinstance(structure, Categorical):
        raise TypeError(f"{owner!r} works with Categorical() only, not with {structure!r}; use {instead}")
