"""The text studies as the runner sees them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pullback_study.study import Study, Trainer
from pullback_study.text.config import Config
from pullback_study.text.methods import find_method
from pullback_study.text.tasks import find_task

if TYPE_CHECKING:
    from pullback_study.corpora.corpus import Corpus


class TextStudy(Study):
    """SST or SNLI: every run trains by itself.

    Args:
        data: the folder of the data; None for `$PULLBACK_DATA`. Only training needs it.
    """

    name: ClassVar[str] = "text"
    version: ClassVar[int] = 2
    config_type: ClassVar[type] = Config

    def __init__(self, data: Path | None = None) -> None:
        self.data = data

    def partition(self, configs: Sequence[Config]) -> list[list[Config]]:
        return [[config] for config in configs]

    def trainer(self, configs: Sequence[Config], device: str) -> Trainer:
        from pullback_study.corpora import find_data
        from pullback_study.text.trainer import TextTrainer

        (config,) = configs
        folder = find_data(self.data)
        there = find_task(config.task).training_data(folder)
        if there != config.data:
            raise ValueError(f"this run is on {config.data!r}, and the training data in {folder} is {there!r}")
        return TextTrainer(config, _corpus(config.task, folder, config.vectors), device)

    def sources(self, config: Config) -> dict[str, Path]:
        from pullback_study.corpora import find_data, vector_file
        from pullback_study.corpora.layout import SPLITS

        task = find_task(config.task)
        try:
            folder = find_data(self.data)
            if task.training_data(folder) != config.data:
                return {}
            files = {split: task.file(folder, split) for split in SPLITS}
            return {**files, "vectors": vector_file(folder, config.vectors)}
        except ValueError:
            return {}

    def label(self, configs: Sequence[Config]) -> str:
        (config,) = configs
        inner = f", {config.inner_steps} inner steps" if (config.inner_steps or 1) > 1 else ""
        row = find_method(config.estimator).row
        return f"{find_task(config.task).title}, {row}, rate {config.learning_rate:g}{inner}, seed {config.seed}"


@functools.lru_cache(maxsize=2)
def _corpus(task: str, folder: Path, vectors: str) -> Corpus:
    return find_task(task).load(folder, vectors)
