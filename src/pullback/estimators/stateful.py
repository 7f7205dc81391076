"""Estimators and baselines with state are modules, so that a model that holds one has the state in its `state_dict`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from pullback.estimators.config import Configured
from pullback.inference._torch.derivatives import transforming


class Stateful(Configured, nn.Module):
    """A module whose buffers are float64 numbers that training moves, and whose state is copied into a checkpoint.

    Printing, configs and `same_options` are about the options, not about the state. Like every module, it is equal only to
    itself: PyTorch collects the modules of a model in sets. Buffers stay float64 when the model is cast to another
    dtype, and follow the losses to their device.
    """

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __init__(self) -> None:
        nn.Module.__init__(self)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """A copy of the state, for a checkpoint."""
        return nn.Module.state_dict(self, *args, **kwargs)

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Restore the state that `state_dict` returned."""
        if state and not self.state_dict():
            raise ValueError(f"{self!r} has no state; got the entries {sorted(state)}")
        return nn.Module.load_state_dict(self, state, strict, assign)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        nn.Module._save_to_state_dict(self, destination, prefix, keep_vars)  # type: ignore[no-untyped-call]
        for name in () if keep_vars else (*self._buffers, *self._parameters):
            if prefix + name in destination:
                destination[prefix + name] = destination[prefix + name].clone()

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *args: Any) -> None:
        for name, buffer in self._buffers.items():
            value = state_dict.get(prefix + name)
            if value is not None and buffer is not None and value.shape != buffer.shape:
                raise ValueError(f"{name} has shape {list(value.shape)}; {self!r} needs {list(buffer.shape)}")
        nn.Module._load_from_state_dict(self, state_dict, prefix, *args)  # type: ignore[arg-type]

    def buffers_to(self, device: torch.device) -> None:
        """Make the buffers ready to be moved on a device."""
        if transforming():
            raise NotImplementedError(
                f"{self!r} has state that training moves, which torch.func does not allow: use torch.autograd.grad or "
                f"backward(), or an estimator without state (LeaveOneOut(samples) as a baseline, IMLE)"
            )
        for name, value in self._buffers.items():
            if value is not None and (value.device != device or value.dtype != torch.float64):
                self._buffers[name] = value.to(device, torch.float64)
