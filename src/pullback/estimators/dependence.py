"""A warning where the losses do not depend on z, so that the scores learn nothing."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from pullback.inference._torch.derivatives import transforming

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
    if torch.compiler.is_compiling() or z.grad_fn is None or transforming():
        return
    seen = _looked_at.setdefault(_code(downstream), set())
    if type(owner) in seen:
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
