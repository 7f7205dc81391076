"""Learn through an argmax over structures."""

from pullback.structures import Categorical, DependencyTree, Structure

__version__ = "0.1.0"
__all__ = ["Categorical", "DependencyTree", "Structure"]
