"""What the explorer is told about the library's estimators: descriptions made of parts that it knows."""

from __future__ import annotations

from typing import Any

import pullback as pb
from pullback.estimators import registry
from pullback_study.results.paper.names import name_of

_LOSSES = {pb.Perceptron: "perceptron", pb.CrossEntropy: "cross-entropy", pb.SparseMAPLoss: "sparsemap"}
_STARTS = {pb.FromArgmax: "argmax", pb.FromMarginals: "marginals", pb.FromZero: "zero"}
_UPDATES = {pb.Unconstrained: "unconstrained", pb.Projected: "projected", pb.Mirror: "mirror"}
_LAYERS: dict[type, dict[str, Any]] = {
    pb.Marginals: {"forward": "softmax", "backward": "softmax"},
    pb.SparseMAP: {"forward": "sparsemax", "backward": "sparsemax"},
    pb.STEMarginals: {"forward": "argmax", "backward": "softmax"},
}


def presets() -> list[dict[str, Any]]:
    """The estimators of the registry that the explorer can show, in its order; the others are left out."""
    found = []
    for entry in registry.ENTRIES:
        description = describe(entry.make())
        if description is not None:
            found.append({"name": entry.name, "title": name_of(entry.name, structured=False).label, **description})
    return found


def describe(estimator: Any) -> dict[str, Any] | None:
    """An estimator as the parts that the explorer knows; None for one that has others.

    >>> describe(pb.SPIGOT(step_size=1.0))
    {'family': 'pulled-back', 'loss': 'perceptron', 'start': 'argmax', 'update': 'projected'}
    """
    if isinstance(estimator, pb.PulledBack):
        parts = {"loss": _LOSSES.get(type(estimator.loss)), "start": _STARTS.get(type(estimator.start)),
                 "update": _UPDATES.get(type(estimator.update))}  # fmt: skip
        return {"family": "pulled-back", **parts} if None not in parts.values() else None
    layer = _LAYERS.get(type(estimator))
    return None if layer is None else {"family": "layer", **layer}
