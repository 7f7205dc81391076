"""Automatic differentiation inside an operator, for the reference implementations."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def with_autograd(function: Callable[[Tensor], Any], x: Tensor) -> Any:
    """Call a function of a leaf with the values of x, in a thread of its own: inside an operator autograd is off for the
    whole thread. That thread makes its backward passes itself: the one that PyTorch has for a GPU may be waiting for it here.
    """
    result: list[Any] = []
    errors: list[BaseException] = []
    stream = torch.cuda.current_stream(x.device) if x.is_cuda else None

    def run() -> None:
        try:
            on_stream = torch.cuda.stream(stream) if stream is not None else contextlib.nullcontext()
            with on_stream, torch.enable_grad(), torch.autograd.set_multithreading_enabled(False):
                result.append(function(x.detach().clone().requires_grad_()))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return result[0]


def gradient(value: Tensor, of: Tensor, create_graph: bool = False) -> Tensor:
    """The gradient of the sum of a value; zeros where it does not depend on `of`."""
    if not value.requires_grad:
        return torch.zeros_like(of)
    (found,) = torch.autograd.grad(value.sum(), of, create_graph=create_graph, materialize_grads=True)
    return found
