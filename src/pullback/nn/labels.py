"""Labels of parts: joined before inference over the parts, and split after it.

The score of a labelled structure is the sum over its parts of the score of the part with its label. So the best label of each
part can be found before the best structure, and labels can be summed out before structures are.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.front.layout import check_tensor


def join_labels(scores: Tensor, *, best: bool = False) -> Tensor:
    """Scores of the parts, `[..., *parts]`, from scores of the labelled parts, `[..., *parts, L]`; differentiable.

        log sum over l of exp(s[..., l]),    or    max over l of s[..., l]

    With the first, `log_partition`, `marginals` and `sample` of a structure are those of labelled structures; with the second,
    `argmax` is. `-inf` forbids a label; a part without labels is forbidden. What padding holds stays there.

    Args:
        scores: `[..., *parts, L]`.
        best: the maximum, in place of the sum.

    >>> from pullback import DependencyTree
    >>> scores = torch.zeros(2, 2, 5)                               # two words, 5 labels of arcs
    >>> DependencyTree().log_partition(join_labels(scores)).exp()   # 3 trees, each with 25 ways to label its arcs
    tensor(75.0000)
    """
    _check(scores, "join_labels")
    if best:
        return scores.amax(-1)
    top = scores.detach().amax(-1)
    usable = top.isfinite()
    total = torch.where(usable[..., None], scores, 0.0).logsumexp(-1)
    return torch.where(usable, total, top)


def split_labels(z: Tensor, scores: Tensor, *, best: bool = False) -> Tensor:
    """Labelled structures or marginals, `[..., *parts, L]`, from those of the parts; differentiable.

        z * softmax over l of s[..., l],    or    z * the one-hot vector of the best label

    Args:
        z: `[..., *parts]`: marginals of the joined scores, or structures.
        scores: `[..., *parts, L]`, of the labelled parts.
        best: the best label of each part, in place of the probability of each label.

    >>> from pullback import BinaryTree
    >>> scores = torch.randn(3, 3, 4)                       # spans of three words with 4 labels
    >>> tree = BinaryTree()
    >>> z = split_labels(tree.argmax(join_labels(scores, best=True)), scores, best=True)
    >>> int(z.sum())
    5
    """
    _check(scores, "split_labels")
    check_tensor(z, "split_labels", "z")
    parts = scores.shape[:-1]
    if any(a != b and 1 not in (a, b) for a, b in zip(reversed(z.shape), reversed(parts), strict=False)):
        raise ValueError(
            f"z has shape {list(z.shape)} and scores {list(scores.shape)}; split_labels needs scores [..., *parts, L]"
        )
    used = (z != 0)[..., None] & scores.detach().amax(-1, keepdim=True).isfinite()
    safe = torch.where(used, scores, 0.0)
    if best:
        labels = torch.zeros_like(safe).scatter(-1, safe.argmax(-1, keepdim=True), 1.0)
    else:
        labels = safe.softmax(-1)
    return torch.where(used, z[..., None] * labels, 0.0).to(z.dtype)


def _check(scores: Tensor, owner: str) -> None:
    check_tensor(scores, owner)
    if scores.dim() < 2 or scores.shape[-1] == 0:
        raise ValueError(f"scores has shape {list(scores.shape)}; {owner} needs [..., *parts, L] with L > 0 labels")
