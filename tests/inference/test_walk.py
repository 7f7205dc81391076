"""The way from a call to its kernel is short: how many functions of the library a call enters, and in how many files."""

import os
import sys

import pytest
import torch

import pullback as pb

STEPS = {  # at most so many functions in so many files
    "argmax": (19, 9),
    "marginals": (40, 9),
    "sparsemap": (70, 21),
    "spigot": (132, 40),
}


def step(name, tree, scores, direction):
    if name == "argmax":
        tree.argmax(scores)
    elif name == "spigot":
        pb.SPIGOT(1.0).objective(tree, scores, lambda z: (z * direction).sum((1, 2))).sum().backward()
    else:
        getattr(tree, name)(scores).backward(direction)


@pytest.mark.parametrize("name", STEPS)
def test_the_walk_of_a_call(name):
    """Of projective trees, with the backward pass; compiled functions count, too."""
    tree, direction = pb.DependencyTree(), torch.randn(1, 4, 4)
    scores = torch.randn(1, 4, 4, requires_grad=True)
    for _ in range(2):  # the first call makes its plan
        step(name, tree, scores, direction)
    root, entered = os.path.dirname(pb.__file__), []

    def look(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(root):
            entered.append(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        step(name, tree, scores, direction)
    finally:
        sys.setprofile(before)
    calls, files = STEPS[name]
    assert 0 < len(entered) <= calls
    assert len(set(entered)) <= files
