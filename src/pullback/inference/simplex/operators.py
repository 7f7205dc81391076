"""The operator of sparsemax, the projection onto the simplex, over the last dimension of scores `[R, K]`.

Registered as those of trees are (`inference/operators.py`): one name, one implementation for each backend.
Rows without a finite score are the caller's concern.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pullback.inference import operators

_SCHEMAS = {"project": "(Tensor scores) -> Tensor", "project_vjp": "(Tensor mu, Tensor direction) -> Tensor"}


@functools.cache
def _implementation(operation: str, backend: str) -> Callable[..., Tensor]:
    return getattr(importlib.import_module(f"pullback.inference.simplex.{backend}"), operation)


def _kernel(operation: str, device: str) -> Callable[..., Tensor]:
    return lambda *args: _implementation(operation, operators._forced or device)(*args)


_library = torch.library.Library("pullback", "FRAGMENT")
for _operation, _schema in _SCHEMAS.items():
    _library.define(f"simplex_{_operation}{_schema}")
    _library.impl(f"simplex_{_operation}", _kernel(_operation, "cpu"), "CPU")
    _library.impl(f"simplex_{_operation}", _kernel(_operation, "cuda"), "CUDA")

    @torch.library.register_fake(f"pullback::simplex_{_operation}", lib=_library)
    def _shape(first: Tensor, *rest: Tensor) -> Tensor:
        return first.new_empty(first.shape)


simplex_project = torch.ops.pullback.simplex_project.default
simplex_project_vjp = torch.ops.pullback.simplex_project_vjp.default


def _keep_mu(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(output.detach())


def _keep_support(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0])


def _backward(ctx: Any, grad: Tensor) -> Tensor:
    (mu,) = ctx.saved_tensors
    return simplex_project_vjp(mu, grad)


def _backward_again(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
    """J is a symmetric projector, and constant where it is defined: J v is linear in v."""
    return None, _backward(ctx, grad)


torch.library.register_autograd("pullback::simplex_project", _backward, setup_context=_keep_mu, lib=_library)
torch.library.register_autograd(
    "pullback::simplex_project_vjp", _backward_again, setup_context=_keep_support, lib=_library
)
