"""The config of a run that trains in batches."""

from __future__ import annotations

from dataclasses import dataclass

from pullback_study.tasks.config import EstimatorConfig
from pullback_study.tasks.schema import option


@dataclass(frozen=True)
class LatentConfig(EstimatorConfig):
    """One run."""

    epochs: int = option(10, help="Passes over the training data.", least=1)
    patience: int | None = option(
        None, help="Stop after this many epochs without a better validation score.", shown="never", least=1
    )
    train_examples: int | None = option(None, help="Use only this many training examples.", shown="all", least=1)
    batch_size: int = option(32, help="Examples per batch.", least=1)
    weight_decay: float = option(0.0, help="The weight decay of AdamW.", least=0)
    dtype: str = option("float32", help="The precision.", choices=("float32", "float64"))
