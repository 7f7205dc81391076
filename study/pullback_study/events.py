"""TensorBoard event files beside the metrics, for those who watch runs there."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def available() -> bool:
    """Whether TensorBoard is installed."""
    return importlib.util.find_spec("tensorboard") is not None


class EventFiles:
    """Appends each run's new evaluations to an event file in its directory.

    Args:
        folders: the run directories.
        after: the step where training goes on; the viewer drops what an interrupted process wrote beyond it.
    """

    def __init__(self, folders: Sequence[Path], after: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writers = [SummaryWriter(str(folder), purge_step=after + 1) for folder in folders]
        self._written = after

    def write(self, history: Sequence[Sequence[dict[str, Any]]]) -> None:
        for writer, rows in zip(self._writers, history, strict=True):
            for row in rows:
                if row["step"] > self._written:
                    for name in row.keys() - {"step"}:
                        writer.add_scalar(name, row[name], row["step"])
            writer.flush()
        self._written = max((rows[-1]["step"] for rows in history if rows), default=self._written)

    def close(self) -> None:
        for writer in self._writers:
            writer.close()
