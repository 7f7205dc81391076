"""The way from a call to its kernel is short: how many functions of the library a call enters, and in how many files."""

import os
import sys

import pytest
import torch

import pullback as pb

CASES = {  # a structure, and the shape of its scores
    "tree": (pb.DependencyTree(), (1, 4, 4)),
    "chain": (pb.LinearChain(), (1, 3, 4, 4)),
    "segmentation": (pb.Segmentation(), (1, 4, 3, 2)),
    "subset": (pb.Subset(2), (1, 4)),
}
STEPS = {  # at most so many functions in so many files
    ("tree", "argmax"): (18, 8),
    ("tree", "marginals"): (37, 8),
    ("tree", "sparsemap"): (44, 12),
    ("tree", "spigot"): (99, 20),
    ("chain", "argmax"): (18, 8),
    ("chain", "marginals"): (33, 9),
    ("chain", "sparsemap"): (58, 13),
    ("chain", "spigot"): (119, 22),
    ("segmentation", "argmax"): (24, 10),
    ("segmentation", "marginals"): (57, 10),
    ("segmentation", "sparsemap"): (57, 13),
    ("segmentation", "spigot"): (123, 24),
    ("subset", "argmax"): (30, 6),
    ("subset", "marginals"): (40, 8),
    ("subset", "sparsemap"): (42, 9),
    ("subset", "spigot"): (121, 14),
}


def step(name, structure, scores, direction):
    if name == "argmax":
        structure.argmax(scores)
    elif name == "spigot":
        pb.SPIGOT(1.0).objective(structure, scores, lambda z: (z * direction).flatten(1).sum(1)).sum().backward()
    else:
        getattr(structure, name)(scores).backward(direction)


@pytest.mark.parametrize(("case", "name"), STEPS)
def test_the_walk_of_a_call(case, name):
    """With the backward pass; compiled functions count, too."""
    structure, shape = CASES[case]
    direction, scores = torch.randn(shape), torch.randn(shape, requires_grad=True)
    for _ in range(2):  # the first call makes its plan
        step(name, structure, scores, direction)
    root, entered = os.path.dirname(pb.__file__), []

    def look(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(root):
            entered.append(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        step(name, structure, scores, direction)
    finally:
        sys.setprofile(before)
    calls, files = STEPS[case, name]
    assert 0 < len(entered) <= calls
    assert len(set(entered)) <= files
