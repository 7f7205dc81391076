"""How `torch.vmap` sees the operators: their first dimension is a batch already, so a mapped one joins it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def register(library: torch.library.Library, name: str) -> None:
    """Register the rule of an operator whose tensors, arguments and results, all have the batch as first dimension."""
    operator = getattr(getattr(torch.ops, library.ns), name).default

    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        def join(x: Any, dim: int | None) -> Any:
            if not isinstance(x, Tensor):
                return x
            x = x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
            return x.flatten(0, 1).contiguous()

        def split(x: Tensor) -> Tensor:
            return x.unflatten(0, (info.batch_size, -1 if x.shape[0] else 0))

        found = operator(*map(join, args, in_dims))
        if isinstance(found, Tensor):
            return split(found), 0
        return tuple(map(split, found)), (0,) * len(found)

    torch.library.register_vmap(f"{library.ns}::{name}", rule, lib=library)


def is_mapped(x: Tensor) -> bool:
    """Whether `torch.vmap` maps over a dimension of x, so that nothing may depend on its values."""
    functorch: Any = getattr(torch._C, "_functorch", None)
    try:
        while functorch.is_functorch_wrapped_tensor(x) and not functorch.is_batchedtensor(x):
            x = functorch.get_unwrapped(x)
        return functorch.is_batchedtensor(x)
    except AttributeError:
        return _refuses_to_be_read(x)


def _refuses_to_be_read(x: Tensor) -> bool:
    """The public way to know: a mapped tensor has no single value."""
    try:
        x.detach().sum().item()
    except RuntimeError:
        return True
    return False
