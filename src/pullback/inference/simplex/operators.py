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

from pullback.inference import autograd, operators, vmap

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
    autograd.keep(ctx, output.detach())


def _keep_support(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    autograd.keep(ctx, inputs[0])


def _along(ctx: Any, direction: Tensor) -> Tensor:
    """J v, and v J: J is a symmetric projector."""
    (mu,) = ctx.saved_tensors
    return simplex_project_vjp(mu, direction)


autograd.register(
    _library, "simplex_project",
    setup=_keep_mu, backward=lambda ctx, grad: (_along(ctx, grad),), tangent=_along,
)  # fmt: skip
autograd.register(  # J is constant where it is defined: J v is linear in v
    _library, "simplex_project_vjp",
    setup=_keep_support, backward=lambda ctx, grad: (None, _along(ctx, grad)), tangent=lambda ctx, _, v: _along(ctx, v),
)  # fmt: skip

for _operation in _SCHEMAS:
    vmap.register(_library, f"simplex_{_operation}")
