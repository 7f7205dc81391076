"""Structures: sets of 0/1 vectors with exact inference."""

from pullback.structures.alignment import Alignment
from pullback.structures.base import Structure
from pullback.structures.binary_tree import BinaryTree
from pullback.structures.categorical import Categorical
from pullback.structures.ctc import CTC
from pullback.structures.dependency import DependencyTree
from pullback.structures.dynamic_program import DynamicProgram
from pullback.structures.factored_chain import FactoredChain
from pullback.structures.knapsack import Knapsack
from pullback.structures.linear_chain import LinearChain
from pullback.structures.matching import Matching
from pullback.structures.segmentation import Segmentation
from pullback.structures.shortest_path import GridPath, ShortestPath
from pullback.structures.subset import Subset
from pullback.structures.top import TopK
from pullback.structures.wrapper import StructureWrapper

__all__ = [
    "CTC",
    "Alignment",
    "BinaryTree",
    "Categorical",
    "DependencyTree",
    "DynamicProgram",
    "FactoredChain",
    "GridPath",
    "Knapsack",
    "LinearChain",
    "Matching",
    "Segmentation",
    "ShortestPath",
    "Structure",
    "StructureWrapper",
    "Subset",
    "TopK",
]
