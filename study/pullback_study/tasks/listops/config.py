"""The config of a run on ListOps."""

from __future__ import annotations

from dataclasses import dataclass

from pullback_study.tasks.config import EstimatorConfig
from pullback_study.tasks.schema import option


@dataclass(frozen=True)
class Config(EstimatorConfig):
    """One run. All seeds are trained on the same expressions; they differ in initialisation, order and noise."""

    depth: int = option(5, help="Expressions of depth 1 to this one, in equal parts.", least=1)
    tokens: int = option(50, help="Of an expression, at most.", least=4)
    train_examples: int = option(20_000, help="Training expressions.", least=1)
    validation_examples: int = option(1000, help="Validation expressions.", least=1)
    test_examples: int = option(2000, help="Test expressions.", least=1)
    deeper_examples: int = option(300, help="Test expressions of each greater depth, 8 and 10.", least=1)
    data_seed: int = option(0, help="Of the expressions.", least=0)
    steps: int = option(4000, help="Training steps, each on one batch.", least=1)
    evaluate_every: int = option(250, help="Steps between evaluations; the best model on the validation data is kept.", least=1)
    batch_size: int = option(100, help="Expressions of similar length.", least=1)
    size: int = option(60, help="Of embeddings and states.", least=1)
    rounds: int | None = option(None, help="Of message passing.", shown="the depth", least=1)
    dropout: float = option(0.1, help="Of the embeddings.", least=0)
    projection: str | None = option(
        None,
        help="Of SPIGOT-CE: `exact`, or `local`, onto a set that contains the marginal polytope (docs/results/text.md).",
        shown="local",
        choices=("exact", "local"),
    )
    dtype: str = option("float32", help="Precision.", choices=("float32", "float64"))
