"""The oracle of SparseMAP for one sentence finds the same trees as the argmax of a batch, ties included."""

import numba
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import pullback as pb
from pullback.inference.eisner import spans


@numba.njit
def best(scores, like, work, multiroot):
    """The best tree of `[n, n]` scores, and whether there is one; places beside arcs hold NaN, but for those of the root."""
    n = len(scores)
    placed, heads = np.full(2 * (n + 1) * spans.pitch_of(n), np.nan, like.dtype), np.full(n, -1, np.int16)
    for m in range(n):
        placed[(n + 1 + m + 1) * spans.pitch_of(n)] = -np.inf
        for h in range(n):
            placed[spans.place_of(h, m, n)] = scores[h, m]
    return heads, spans.best_heads(placed, n, multiroot, spans.workspace(work, n, like.dtype)[0], heads)


@pytest.mark.parametrize("multiroot", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(n=st.integers(1, 40), seed=st.integers(0, 2**32 - 1), forbidden=st.sampled_from([0.0, 0.1, 0.5]))
def test_the_same_tree_as_the_argmax(dtype, multiroot, n, seed, forbidden):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-3, 4, (n, n)).astype(float)
    scores[rng.random((n, n)) < forbidden] = -np.inf
    expected = pb.DependencyTree(multiroot=multiroot, validate=False).argmax(torch.from_numpy(scores))
    heads, exists = best(scores, np.empty(0, dtype), np.zeros(8 * spans.numbers_for(n), np.uint8), multiroot)
    assert exists == (not expected.isnan().any())
    if exists:
        assert heads.tolist() == expected.argmax(0).tolist()
