"""ListOps as a task."""

from __future__ import annotations

from dataclasses import dataclass

from pullback_study.tasks import Method, Metric, ReplicaTask
from pullback_study.tasks.schema import EstimatorConfig, option

LSTMS = {"lstm": 1, "gold": 0}
"""How many LSTMs a baseline has; all other rows have two."""
EXTRAPOLATED = (8, 10)
"""Depths beyond those of training that a model is tested on."""
TREES = ("gold", "sfe", "sfe-baseline", "sfe-leave-one-out", "sfe-leave-one-out-4", "sfe-self-critical", "sparse-expectation")
"""The rows whose decoder sees whole trees alone, and needs no gradient for them."""
RATES = (5e-4, 1e-3, 2e-3)
"""The learning rates that are searched, the same for every row."""


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
    heads: str = option(
        "all",
        help="Which tokens may be heads: all, all but closing brackets (`open`), or the operators alone.",
        choices=("all", "open", "operators"),
    )
    brackets: bool = option(
        True,
        help="Whether closing brackets are in the expressions; without them, every operator has 4 arguments.",
        flags="--brackets/--no-brackets",
    )
    scaled: bool = option(False, help="Divide arc scores by the root of their size.", flags="--scaled/--not-scaled")
    entropy: float = option(
        0.0, help="The weight, at first, of a bonus for the entropy of the trees; it falls linearly to 0.", least=0
    )
    entropy_steps: int = option(2000, help="The steps in which the entropy bonus falls to 0.", least=1)
    noise_steps: int | None = option(
        None,
        help="The steps in which the temperature of training, and with it the weight of noise, grows from 0 to 1.",
        shown="1 from the start",
        least=1,
    )
    encoder_rate: float = option(1.0, help="The learning rate of the encoder over that of the decoder.", positive=True)
    clip: float | None = option(None, help="The largest norm of a gradient.", shown="none", positive=True)
    rounds: int | None = option(None, help="Of message passing.", shown="the depth", least=1)
    dropout: float = option(0.1, help="Of the embeddings.", least=0)
    projection: str | None = option(
        None,
        help="Of SPIGOT-CE: `exact`, or `local`, onto a set that contains the marginal polytope (docs/results/text.md).",
        shown="local",
        choices=("exact", "local"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        shortest = 4 + 3 * (self.depth - 1) if self.brackets else 6 + 5 * (self.depth - 1)
        if self.tokens < shortest:
            raise ValueError(f"tokens is {self.tokens}; an expression of depth {self.depth} has at least {shortest}")
        if not self.brackets and self.heads == "open":
            raise ValueError("heads is 'open', which leaves out closing brackets; there are none: use 'all'")
        if self.dropout >= 1:
            raise ValueError(f"dropout is {self.dropout}; it must be below 1")


TASK = ReplicaTask(
    name="listops",
    title="ListOps",
    about="Nested operations on digits; the latent dependency tree is known.",
    config_type=Config,
    baselines=(Method("lstm", "LSTM, no trees", "Baselines"), Method("gold", "Gold trees", "Baselines")),
    four_samples=True,
    projections={"spigot-ce": "local"},
    trained_by="pullback_study.tasks.listops.train:ListOpsReplicas",
    tables_by=("heads", "depth", "brackets"),
    metrics=(
        Metric("validation_accuracy", "Validation accuracy", curve="accuracy"),
        Metric("validation_attachment", "Validation attachment", curve="attachment", headline=False),
        Metric("test_accuracy", "Test accuracy"),
        Metric("test_attachment", "Attachment"),
        Metric("test_attachment_open", "Without closing brackets"),
        Metric("test_attachment_operators", "Attachment of inner operators", headline=False),
        Metric("test_attachment_digits", "Attachment of digits", headline=False),
        Metric("test_attachment_brackets", "Attachment of closing brackets", headline=False),
        Metric("validation_execution", "Validation execution", curve="execution", headline=False),
        Metric("test_execution", "Execution"),
        Metric("test_precision", "Edge precision"),
        Metric("test_recall", "Edge recall"),
        Metric("test_sampled", "Sampled arcs", headline=False),
        Metric("depth_8_accuracy", "Accuracy, depth 8"),
        Metric("depth_8_attachment", "Attachment, depth 8", headline=False),
        Metric("depth_10_accuracy", "Accuracy, depth 10"),
        Metric("depth_10_attachment", "Attachment, depth 10", headline=False),
        Metric("loss", "Loss", curve="loss", headline=False, digits=4),
    ),
)
