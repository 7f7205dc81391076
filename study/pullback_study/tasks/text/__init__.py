"""Sentiment of sentences (SST) and natural language inference (SNLI), with latent dependency trees.

The paper's text speaks of projective trees for SST only, and its code used non-projective ones for SNLI: so do we, by
default. For STE-I it lists no step size: with one inner step it only scales the parser's gradient.
"""

from __future__ import annotations

from pullback_study.tasks.text.task import TextTask

SST = TextTask(
    name="sst",
    title="SST",
    about="Sentiment of a sentence, through a latent dependency tree.",
    models="pullback_study.tasks.text.models:sentiment",
    sides=1,
    labels=("negative", "positive"),
    best={
        "baseline": (2e-5, None), "marginals": (1e-4, None), "sparsemap": (5e-5, None), "perturb-and-map": (5e-5, None),
        "ste-s": (5e-5, None), "ste-i": (1e-4, 1.0), "spigot": (1e-4, 0.1), "spigot-ce": (5e-5, 0.1),
        "spigot-eg": (5e-5, 0.1),
    },
    batch_size=32,
    weight_decay=1e-4,
    averaged_over=16,
    projective=True,
    example=("A", "taut", ",", "intelligent", "psychological", "drama", "."),
)  # fmt: skip
SNLI = TextTask(
    name="snli",
    title="SNLI",
    about="Whether a sentence follows from another, through two latent dependency trees.",
    models="pullback_study.tasks.text.models:DecomposableAttention",
    sides=2,
    labels=("entailment", "neutral", "contradiction"),
    best={
        "baseline": (1e-4, None), "marginals": (1e-4, None), "sparsemap": (3e-4, None), "perturb-and-map": (1e-4, None),
        "ste-s": (3e-4, None), "ste-i": (1e-4, 1.0), "spigot": (3e-4, 1.0), "spigot-ce": (1e-4, 0.1),
        "spigot-eg": (1e-4, 0.001),
    },
    batch_size=64,
    weight_decay=0.01,
    averaged_over=64,
    projective=False,
)  # fmt: skip
