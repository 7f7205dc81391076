"""Errors about the arguments of estimators, and errors and a warning about what `downstream` returns."""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from pullback.inference._torch.derivatives import transforming
from pullback.structures import Categorical, Structure

Method = TypeVar("Method", bound=Callable[..., Tensor])


def positive(owner: object, name: str, value: float | Tensor) -> float | Tensor:
    """`value` if it is positive; tensors on a GPU pass unseen, since looking would synchronise with the device."""
    if type(value) is float and 0 < value < math.inf:
        return value
    if isinstance(value, Tensor):
        if value.device.type == "cpu" and not bool((value > 0).all()):
            raise ValueError(f"{_setting(owner, name, value)}; all its entries must be positive, such as {_such(owner, name)}")
        return value
    return _number(owner, name, value, lambda x: 0 < x < math.inf, "positive and finite")


def not_negative(owner: object, name: str, value: float) -> float:
    """`value` if it is zero or a positive number."""
    return _number(owner, name, value, lambda x: 0 <= x < math.inf, "at least 0, and finite")


def in_unit_interval(owner: object, name: str, value: float) -> float:
    """`value` if it is in [0, 1)."""
    return _number(owner, name, value, lambda x: 0 <= x < 1, "in [0, 1)")


def up_to_one(owner: object, name: str, value: float) -> float:
    """`value` if it is in (0, 1]."""
    return _number(owner, name, value, lambda x: 0 < x <= 1, "in (0, 1]")


def above_one(owner: object, name: str, value: float, instead: str) -> float:
    """`value` if it is above 1; `instead` says what there is at 1."""
    return _number(owner, name, value, lambda x: 1 < x < math.inf, f"above 1 ({instead}), and finite")


def at_least(owner: object, name: str, value: int, least: int) -> int:
    """`value` if it is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"{_setting(owner, name, value)}; it must be an integer of at least {least}, such as {least}")
    return int(value)


def switch(owner: object, name: str, value: bool) -> bool:
    """`value` if it is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{_setting(owner, name, value)}; it must be True or False")
    return value


def _number(owner: object, name: str, value: float, fits: Callable[[float], bool], wanted: str) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{_setting(owner, name, value)}; it must be a number, {wanted}, such as {_such(owner, name)}")
    if not fits(float(value)):
        raise ValueError(f"{_setting(owner, name, value)}; it must be {wanted}, such as {_such(owner, name)}")
    return value  # type: ignore[return-value]


def _setting(owner: object, name: str, value: object) -> str:
    return f"{type(owner).__name__}: {name} is {value!r}"


def _such(owner: object, name: str) -> object:
    """A value that would do: the default, or 1.0."""
    default = inspect.signature(type(owner)).parameters[name].default
    return 1.0 if default is inspect.Parameter.empty else default


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
    expected = tuple(scores.shape[: scores.dim() - structure.event_dims][:1])
    if tuple(losses.shape) != expected:
        raise ValueError(
            f"downstream returned losses of shape {list(losses.shape)} for scores of shape {list(scores.shape)}; "
            f"it must return one loss per example, {list(expected)}: "
            f"use reduction='none' and sum over all other dimensions"
        )
    return losses


def checking(method: Method) -> Method:
    """The method, after a look at its structure and scores."""

    @functools.wraps(method)
    def checked(self: Any, structure: Structure, scores: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not isinstance(scores, Tensor) or not isinstance(structure, Structure):
            raise arguments_error(self, structure, scores)
        return method(self, structure, scores, *args, **kwargs)

    return checked  # type: ignore[return-value]


def arguments_error(owner: object, structure: object, scores: object) -> TypeError:
    """The error for arguments that are no structure and scores."""
    if not isinstance(structure, Structure):
        return TypeError(
            f"{owner!r} was given a structure of type {type(structure).__name__}; it must be a Structure, such as "
            f"Categorical(), followed by the scores"
        )
    return TypeError(
        f"{owner!r} was given scores of type {type(scores).__name__}; they must be a tensor: use torch.as_tensor(scores)"
    )


def categorical_only(owner: object, structure: Structure, instead: str) -> None:
    """An error for structures other than a `Categorical`, which says what to use instead."""
    if not isinstance(structure, Categorical):
        raise TypeError(f"{owner!r} works with Categorical() only, not with {structure!r}; use {instead}")


_looked_at: WeakKeyDictionary[Any, set[type]] = WeakKeyDictionary()


class UnusedStructureWarning(UserWarning):
    """The losses that `downstream` returns have no gradient in z."""


def warn_if_unused(owner: object, downstream: Callable[..., Tensor], losses: Tensor, z: Tensor) -> None:
    """Warn if the losses do not depend on z: once for each function and type of estimator, since looking takes time.

    Args:
        owner: the estimator.
        downstream: what returned the losses.
        losses: `[B]`.
        z: what it was given; without a gradient, nothing is said.
    """
    if torch.compiler.is_compiling() or z.grad_fn is None:
        return
    seen = _looked_at.setdefault(getattr(downstream, "__code__", None) or _code(downstream), set())
    if type(owner) in seen or transforming():
        return
    seen.add(type(owner))
    if not _depends(losses, z):
        warn_unused(owner)


def warn_unused(owner: object) -> None:
    """The warning itself."""
    warnings.warn(
        f"the losses do not depend on z, so the scores get no gradient from {owner!r}: downstream takes an argmax of z, "
        f"detaches it, or ignores it. For losses without a gradient in z use ScoreFunction()",
        UnusedStructureWarning,
        stacklevel=4,
    )


def _code(downstream: Callable[..., Tensor]) -> Any:
    """The part of a function that stays the same when it is defined anew, as in a training loop."""
    while isinstance(downstream, functools.partial):
        downstream = downstream.func
    return getattr(downstream, "__code__", type(downstream))


def _depends(losses: Tensor, z: Tensor) -> bool:
    """Whether a path leads from the losses to z in the autograd graph."""
    left, known = [losses.grad_fn], set()
    while left:
        node = left.pop()
        if node is z.grad_fn:
            return True
        if node is not None and node not in known:
            known.add(node)
            left.extend(following for following, _ in node.next_functions)
    return False
