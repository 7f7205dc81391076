"""Trees that depend only on the length of a sentence."""

from __future__ import annotations

from collections.abc import Sequence


def left_branching(n: int) -> list[int]:
    """Each word's head is the next one; the last word is the root.

    >>> left_branching(4)
    [2, 3, 4, 0]
    """
    return [*range(2, n + 1), 0] if n else []


def right_branching(n: int) -> list[int]:
    """Each word's head is the one before it; the first word is the root.

    >>> right_branching(4)
    [0, 1, 2, 3]
    """
    return list(range(n))


def random_trees(lengths: Sequence[int], seed: int) -> list[list[int]]:
    """Trees drawn uniformly from all projective ones, with any number of roots: samples of zero scores.

    The tree of a sentence depends on the seed and on all lengths.

    >>> random_trees([1, 0, 2], seed=0)[:2]
    [[0], []]
    """
    import torch

    from pullback.structures import DependencyTree

    generator = torch.Generator().manual_seed(seed)
    trees: list[list[int]] = [[] for _ in lengths]
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    for start in range(0, len(order), _BATCH):  # of similar lengths, so that little is padding
        batch = order[start : start + _BATCH]
        sizes = torch.tensor([lengths[i] for i in batch])
        n = int(sizes.max())
        tree = DependencyTree(lengths=sizes)
        heads = tree.heads(tree.sample(torch.zeros(len(batch), n, n), generator)).tolist()
        for i, drawn in zip(batch, heads, strict=True):
            trees[i] = drawn[: lengths[i]]
    return trees


_BATCH = 256
