"""What a run learns: data, a model, and a structure between the two halves of the model."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pullback.structures import Structure


@dataclass(frozen=True, eq=False)
class Examples:
    """Examples as tensors by name, each with one row per example; also a batch of them.

    >>> examples = Examples({"x": torch.zeros(5, 3), "label": torch.arange(5)})
    >>> len(examples), examples.take(torch.tensor([1, 2]))["label"]
    (5, tensor([1, 2]))
    """

    tensors: dict[str, Tensor]

    def __len__(self) -> int:
        return len(next(iter(self.tensors.values())))

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def take(self, rows: Tensor) -> Examples:
        return Examples({name: values[rows] for name, values in self.tensors.items()})

    def first(self, count: int) -> Examples:
        return Examples({name: values[:count] for name, values in self.tensors.items()})

    def to(self, device: torch.device, dtype: torch.dtype) -> Examples:
        return Examples(
            {name: values.to(device, dtype if values.is_floating_point() else None) for name, values in self.tensors.items()}
        )


class Problem(abc.ABC):
    """Data, a model that scores the parts of a structure, and a decoder that reads the structure.

    It never knows which estimator trains it.
    """

    model: nn.Module  # whose parameters are trained
    splits: tuple[Any, Any, Any]  # training, validation and test examples
    gradient_scale: float = 1.0  # what the gradient of the scores is multiplied with
    scorer: Sequence[str] = ()  # the parameters that `frozen_after` trains anew; the decoder reads none of them
    capturable: bool = False  # in CUDA graphs: what changes, changes in place, and noise of the decoder is drawn by `encode`
    captured: bool = False  # whether the trainer does so: few different widths are then worth some padding

    @abc.abstractmethod
    def scores(self, batch: Any, encoded: Any) -> Tensor:
        """The scores of the parts, `[B, ..., *parts]`."""

    @abc.abstractmethod
    def structure(self, batch: Any) -> Structure:
        """The structure of a batch: which parts there are, with lengths and masks."""

    @abc.abstractmethod
    def losses(self, batch: Any, encoded: Any, z: Tensor | None) -> Tensor:
        """One loss per example, `[B]`, from structures or averages of structures; z is None for a baseline."""

    def supervision(self, batch: Any, structure: Any, scores: Tensor) -> Tensor | None:
        """A loss of the scores themselves, `[B]`, beside the decoder's, such as that of gold structures; usually none."""
        return None

    @abc.abstractmethod
    def measures(self, batch: Any, encoded: Any, z: Tensor | None, best: Tensor | None) -> dict[str, Tensor]:
        """By name, one number for each item (an example, a word, ...), of which evaluation takes the mean.

        `z` is what the decoder sees at evaluation, `best` the best structure, which is another one for relaxations; both are
        None for a baseline.
        """

    def encode(self, batch: Any) -> Any:
        """What scores and decoder share; nothing by default."""
        return None

    def batches(self, split: Any, size: int, *, seed: int | None, epoch: int = 0) -> Sequence[tuple[Tensor, int]]:
        """The batches of an epoch: rows of a split, `[B]`, and a width that all examples are padded to.

        The order depends on seed and epoch; without a seed, for evaluation, it is that of the split.
        """
        rows = torch.arange(len(split))
        if seed is not None:
            rows = torch.randperm(len(split), generator=torch.Generator().manual_seed(1_000_003 * seed + epoch))
        return [(part, 0) for part in rows.split(size)]

    def gather(self, split: Any, rows: Tensor, width: int) -> Any:
        """The batch of these rows."""
        return split.take(rows)

    def results(self) -> dict[str, Any]:
        """More for the result of a run, with the model of the best epoch."""
        return {}

    def to(self, device: torch.device, dtype: torch.dtype) -> None:
        """Move model and data."""
        self.model.to(device, dtype)
        self.splits = tuple(split.to(device, dtype) for split in self.splits)  # type: ignore[assignment]
