"""The config of a run on text."""

from __future__ import annotations

from dataclasses import dataclass

from pullback_study.tasks.latent.config import LatentConfig
from pullback_study.tasks.schema import option


@dataclass(frozen=True)
class TextConfig(LatentConfig):
    """One run; the model is the one of the epoch with the best validation accuracy."""

    gamma_scale: str | None = option(
        None,
        help="What a step size is multiplied with. `paper`: the gradient of the averaged loss, as in the paper's code, and the "
        "surrogate used as it is; `example`: the gradient of one example's loss.",
        shown="paper",
        choices=("paper", "example"),
    )
    projection: str | None = option(
        None,
        help="What inner steps are projected onto. `exact`: the marginal polytope, by SparseMAP; `local`: a simpler set that "
        "contains it.",
        shown="exact for SPIGOT, local for SPIGOT-CE",
        choices=("exact", "local"),
    )
    projective: bool | None = option(
        None, help="Whether arcs may not cross.", shown="the task's", flags="--projective/--non-projective"
    )
    data: str | None = option(None, help="The training data: a part is another one than the whole.", hidden=True)
    vectors: str | None = option(
        None,
        help="Word vectors: a name in `vectors/`, or a file.",
        shown="the best in `vectors/`: glove.840B.300d, else googlenews_mapped.300d, else the widest",
    )
    embeddings: str = option(
        "fixed", help="Whether the word vectors stay fixed or are trained too.", choices=("fixed", "trained")
    )
    epochs: int = option(40, help="Passes over the training data.", least=1)
    batch_size: int | None = option(  # type: ignore[assignment]
        None, help="Examples.", shown="the paper's", least=1
    )
    weight_decay: float | None = option(  # type: ignore[assignment]
        None, help="AdamW's.", shown="the paper's", least=0
    )
