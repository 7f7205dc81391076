"""pysdtw: soft dynamic time warping by Numba, on a CPU and a GPU. Minus its value is a log-partition, with scores = -costs."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from benchmarks.comparison import Contender
from benchmarks.problem import Problem


def alignment(problem: Problem) -> Contender:
    """Its value with the gradient in the costs; computing the costs from sequences is left out."""
    if not hasattr(np, "row_stack"):
        np.row_stack = np.vstack  # numba-cuda 0.30, which pysdtw runs on, names it; NumPy 2.5 has only the other name
    from pysdtw import SoftDTW

    leaf = problem.scores.clone().requires_grad_()
    model = SoftDTW(gamma=1.0, dist_func=lambda *_: -leaf, use_cuda=leaf.is_cuda)
    x, y = (leaf.new_zeros(len(leaf), size, 1) for size in leaf.shape[1:])

    def call() -> Tensor:
        return torch.autograd.grad(-model(x, y).sum(), leaf)[0]

    return Contender("pysdtw", call)
