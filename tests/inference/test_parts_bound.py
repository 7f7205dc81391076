"""How many parts a structure may have, asked in every projection: what it depends on is found out once."""

import inspect

import pytest
import torch

import pullback as pb


@pytest.mark.parametrize("structure", [pb.DependencyTree(), pb.DependencyTree(projective=False, multiroot=False)])
def test_no_signature_is_read_in_a_projection(structure, monkeypatch):
    scores = torch.randn(2, 4, 4)
    structure.sparsemap(scores)

    def refused(*args, **kwargs):
        raise AssertionError("a signature is read in every call")

    monkeypatch.setattr(inspect, "signature", refused)
    assert structure.sparsemap(scores).shape == scores.shape
