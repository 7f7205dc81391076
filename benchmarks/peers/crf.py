"""Chains, spans and segments of torch-struct, and pytorch-crf's chains, in our layout."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.comparison import Contender
from benchmarks.peers.torch_struct import _import
from benchmarks.problem import Problem


def _edges(scores: Tensor) -> Tensor:
    """Our `[B, n, C, C]` as torch-struct's `[B, n - 1, new tag, old tag]`; the scores of the first tags join the first edge."""
    edges = scores[:, 1:].transpose(-1, -2).clone()
    edges[:, 0] += scores[:, :1, 0]
    return edges.contiguous()


def _from_edges(scores: Tensor, edges: Tensor) -> Tensor:
    out = torch.zeros_like(scores)
    out[:, 1:] = edges.transpose(-1, -2)
    out[:, 0, 0] = edges[:, 0].sum(-2)
    return out


def _contender(problem: Problem, potentials: Tensor, crf: str, operation: str, back) -> Contender:
    library = _import()
    leaf = potentials.requires_grad_()
    direction = torch.randn_like(potentials)

    def call():
        distribution = getattr(library, crf)(leaf)
        if operation == "argmax":
            return distribution.argmax.detach()
        mu = distribution.marginals
        if operation == "marginals":
            return mu.detach()
        return mu.detach(), torch.autograd.grad(mu, leaf, direction)[0]

    def read(result):
        return (back(result[0] if isinstance(result, tuple) else result),)

    return Contender("torch-struct", call, read)


def chain(operation: str):
    return lambda problem: _contender(
        problem, _edges(problem.scores), "LinearChainCRF", operation, lambda edges: _from_edges(problem.scores, edges)
    )


def tree(operation: str):
    return lambda problem: _contender(
        problem, problem.scores[..., None].clone(), "TreeCRF", operation, lambda spans: spans[..., 0]
    )


def segments(operation: str):
    """Its semi-Markov model scores pairs of labels, C times the work: each label's score is given for all labels before it,
    with the transition to it, if the structure has transitions.
    """

    def make(problem: Problem) -> Contender:
        n, widths, labels = problem.scores.shape[1:]
        potentials = torch.full((len(problem.scores), n, widths + 1, labels, labels), -1e9, device=problem.scores.device)
        potentials[:, :, 1:] = problem.scores[..., None]
        if problem.structure.transitions is not None:
            potentials[:, 1:, 1:] += problem.structure.transitions.detach().T
        back = lambda found: found[:, :, 1:].sum(-1)  # noqa: E731
        if operation == "log-partition":
            return _log_partition(potentials, back)
        return _contender(problem, potentials, "SemiMarkovCRF", operation, back)

    return make


def _log_partition(potentials: Tensor, back) -> Contender:
    library = _import()
    leaf = potentials.requires_grad_()
    return Contender(
        "torch-struct",
        lambda: torch.autograd.grad(library.SemiMarkovCRF(leaf).partition.sum(), leaf)[0],
        lambda gradient: (back(gradient),),
    )


def decode(problem: Problem) -> Contender:
    """pytorch-crf's Viterbi, on emissions and transitions."""
    from torchcrf import CRF

    model, emissions = _model(CRF, problem)
    return Contender("pytorch-crf", lambda: model.decode(emissions), lambda tags: (problem.from_tags(torch.tensor(tags)),))


def likelihood(problem: Problem) -> Contender:
    """pytorch-crf's log-likelihood of a tag sequence, with its gradient in the emissions."""
    from torchcrf import CRF

    model, emissions = _model(CRF, problem)
    leaf, tags = emissions.requires_grad_(), problem.tags

    def call():
        value = model(leaf, tags, reduction="sum")
        return torch.autograd.grad(value, leaf)[0]

    return Contender("pytorch-crf", call)


def likelihood_of_all(problem: Problem) -> Contender:
    """The same with its gradients in emissions, start, end and transitions."""
    from torchcrf import CRF

    model, emissions = _model(CRF, problem)
    leaves, tags = (emissions.requires_grad_(), *model.parameters()), problem.tags
    return Contender("pytorch-crf", lambda: torch.autograd.grad(model(leaves[0], tags, reduction="sum"), leaves))


def decode_lists(problem: Problem) -> Contender:
    """pytorch-crf's Viterbi, and its tags."""
    from torchcrf import CRF

    return decoding(module(CRF, problem), problem)


def decoding(model, problem: Problem) -> Contender:
    """The lists of tags that a module decodes."""
    emissions = problem.emissions
    return Contender("pytorch-crf", lambda: model.decode(emissions), lambda tags: (torch.tensor(tags),))


def module(crf, problem: Problem):
    """A module with the interface of pytorch-crf and the transitions of a problem."""
    return _model(crf, problem)[0]


def _model(crf, problem: Problem):
    model = crf(problem.scores.shape[-1], batch_first=True).to(problem.scores.device)
    with torch.no_grad():
        model.transitions.copy_(problem.transitions)
        model.start_transitions.zero_()
        model.end_transitions.zero_()
    return model, problem.emissions.clone()
