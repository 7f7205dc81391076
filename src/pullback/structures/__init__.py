"""Structures: sets of 0/1 vectors with exact inference."""

from pullback.structures.base import Structure
from pullback.structures.categorical import Categorical
from pullback.structures.dependency import DependencyTree
from pullback.structures.wrapper import Wrapper

__all__ = ["Categorical", "DependencyTree", "Structure", "Wrapper"]
