"""What latent trees look like and what they know about syntax."""

from pullback.experiments.trees.agreement import Score, attachment
from pullback.experiments.trees.baselines import left_branching, random_trees, right_branching
from pullback.experiments.trees.shape import Shape, depth, is_projective, shape
from pullback.experiments.trees.treebank import Agreement, compare

__all__ = [
    "Agreement",
    "Score",
    "Shape",
    "attachment",
    "compare",
    "depth",
    "is_projective",
    "left_branching",
    "random_trees",
    "right_branching",
    "shape",
]
