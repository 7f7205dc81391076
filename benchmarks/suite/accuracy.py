from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from benchmarks.comparison import OURS, Contender, Row, Run
from benchmarks.inputs import Case, full
from benchmarks.peers import supar, torch_struct
from pullback import DependencyTree

_SCALES = (1.0, 10.0, 20.0, 100.0)
_DIGITS = 400  # the determinant of 20 words at scores of 100 spans some 10^3 binary orders of magnitude
_SENTENCES, _WORDS = 2, 20


def _ours(case: Case) -> Contender:
    return Contender(OURS, partial(DependencyTree(projective=False).marginals, case.scores))


_CONTENDERS = (_ours, torch_struct.nonprojective_marginals, supar.nonprojective_marginals)


def accuracy(run: Run) -> Iterator[Row]:
    """The largest error of non-projective marginals in float32, as random normal scores are scaled up. The truth is
    the matrix-tree theorem in arithmetic of 400 digits, in which subtractions do no harm.
    """
    for scale in _SCALES:
        case = full(_WORDS, _SENTENCES, threads=1, device=run.device)
        case = Case(f"scores x {scale:g}", 1, scale * case.scores, None, case.direction)
        truth = torch.stack([_matrix_tree(scores) for scores in case.scores.cpu()])
        row = Row("accuracy", case.label, case.threads)
        for contender in run.installed(_CONTENDERS, case):
            try:
                (mu,) = contender.read(contender.call())
            except Exception as error:
                row.note += f"{contender.name} raises {type(error).__name__}. "
                continue
            row.figures[contender.name] = (mu.detach().cpu().double() - truth).abs().max().item()
        yield row


def _matrix_tree(scores: Tensor) -> Tensor:
    """Marginals of all trees of one sentence: mu_hm = w_hm (L^-1_mm - L^-1_mh), at the root w_m L^-1_mm."""
    import mpmath

    n = len(scores)
    with mpmath.workdps(_DIGITS):
        w = [[mpmath.exp(mpmath.mpf(s)) for s in row] for row in scores.tolist()]
        laplacian = mpmath.matrix(n, n)
        for m in range(n):
            for h in range(n):
                laplacian[h, m] = sum(w[k][m] for k in range(n)) if h == m else -w[h][m]
        inverse = laplacian**-1
        mu = [[w[h][m] * (inverse[m, m] - (0 if h == m else inverse[m, h])) for m in range(n)] for h in range(n)]
        return torch.tensor([[float(x) for x in row] for row in mu], dtype=torch.float64)
