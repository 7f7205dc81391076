from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from benchmarks.calls import with_backward
from benchmarks.comparison import Row, Run
from benchmarks.inputs import Case
from benchmarks.peers import supar, torch_struct
from pullback import DependencyTree


def marginals_backward(run: Run) -> Iterator[Row]:
    """Projective marginals, forward and backward. The difference is over marginals and gradients. On a GPU PyTorch hands
    each backward pass to a thread of its own; with "one thread" it stays on the caller's, for everybody
    (`torch.autograd.set_multithreading_enabled(False)`).
    """
    for case in run.cases():
        yield _compare(run, case)
        if case.scores.is_cuda:
            with torch.autograd.set_multithreading_enabled(False):
                row = _compare(run, replace(case, label=f"{case.label}, one thread"))
            yield row


def _compare(run: Run, case: Case) -> Row:
    ours = with_backward(DependencyTree(case.lengths).marginals, case)
    return run.compare("marginals_backward", case, ours, [torch_struct.marginals_backward, supar.marginals_backward])
