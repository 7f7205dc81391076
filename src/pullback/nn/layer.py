"""A structure and an estimator as one module."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from pullback.estimators.base import Estimator
from pullback.structures import Structure, StructureWrapper
from pullback.structures.family import FamilyStructure
from pullback.structures.readers import as_lengths


class StructuredLayer(torch.nn.Module):
    """A structure inside a network: scores in, structures or averages of structures out.

    In training it is the estimator's layer; in evaluation, its prediction without noise. Estimators whose inner steps call the
    decoder again cannot be layers, and raise an error that says to use `estimator.objective`.

    Args:
        structure: the structure. What it holds as parameters, such as the transitions of a `FactoredChain`, are parameters of
            the layer, and in its `state_dict` by the names of `weights`.
        estimator: how gradients get through it. If it has state, the layer's `state_dict` holds it.

    >>> from pullback import Marginals, Subset
    >>> layer = StructuredLayer(Subset(1), Marginals())
    >>> layer(torch.zeros(1, 4), lengths=torch.tensor([2]))
    tensor([[0.5000, 0.5000, 0.0000, 0.0000]])
    """

    def __init__(self, structure: Structure, estimator: Estimator) -> None:
        super().__init__()
        if not isinstance(structure, Structure) or not isinstance(estimator, Estimator):
            raise TypeError(
                f"StructuredLayer was given {type(structure).__name__} and {type(estimator).__name__}; "
                f"it needs a Structure and an Estimator"
            )
        self.structure = structure
        self.estimator = estimator
        own = vars(_innermost(structure)).items()
        self.weights = torch.nn.ParameterDict({name: x for name, x in own if isinstance(x, torch.nn.Parameter)})

    def forward(self, scores: Tensor, lengths: Any = None) -> Tensor:
        """Structures or averages of structures, of the shape of the scores.

        Args:
            scores: `[..., *parts]`.
            lengths: for this call, in place of the structure's own; integers, or a boolean prefix mask.
        """
        structure = self.structure if lengths is None else with_lengths(self.structure, lengths)
        if self.weights:  # which may have been replaced in the layer, as torch.func.functional_call does
            structure = _changed(structure, dict(self.weights.items()))
        return self.estimator(structure, scores) if self.training else self.estimator.predict(structure, scores)

    def extra_repr(self) -> str:
        return f"{self.structure!r}, {self.estimator!r}"


def with_lengths(structure: Structure, lengths: Any) -> Structure:
    """A copy of the structure with these lengths."""
    own = copy.copy(_innermost(structure))
    if isinstance(own, FamilyStructure):
        if any(size.name == "lengths" and size.told for size in own._layout.sizes):
            return _changed(structure, {"lengths": own._as_lengths(lengths), "_widths": own._widths})
    elif hasattr(own, "lengths"):
        return _changed(structure, {"lengths": as_lengths(lengths, "lengths")})
    raise TypeError(f"{structure!r} has no lengths; call the layer without them")


def _innermost(structure: Structure) -> Structure:
    while isinstance(structure, StructureWrapper):
        structure = structure.inner
    return structure


def _changed(structure: Structure, values: dict[str, Any]) -> Structure:
    """A copy with these attributes, of the structure inside where it is wrapped."""
    found = copy.copy(structure)
    if isinstance(found, StructureWrapper):
        found.inner = _changed(found.inner, values)
    else:
        vars(found).update(values)
    return found
