"""Tag sequences with transitions apart, against pytorch-crf."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec

import torch
from torch import Tensor

from benchmarks.comparison import Row, Run
from benchmarks.peers import crf
from benchmarks.problem import Problem
from pullback import FactoredChain
from pullback.nn import CRF

_SIZES = ((64, 50, 20), (32, 60, 128), (8, 50, 500))
_PROGRAM = """
import json, sys, torch
module, batch, n, tags = sys.argv[1], *map(int, sys.argv[2:])
CRF = __import__(module, fromlist=["CRF"]).CRF

def step(batch, n, tags):
    model, emissions = CRF(tags, batch_first=True), torch.randn(batch, n, tags, requires_grad=True)
    (-model(emissions, torch.randint(tags, (batch, n)))).backward()
    model.decode(emissions.detach())

def kilobytes(field):
    return int(next(x for x in open("/proc/self/status") if x.startswith(field)).split()[1])

torch.set_num_threads(1)
step(2, 3, 4)
open("/proc/self/clear_refs", "w").write("5")  # the largest size from here on
before = kilobytes("VmRSS")
step(batch, n, tags)
print(json.dumps((kilobytes("VmHWM") - before) / 1024))
"""


def _gradients(problem: Problem, ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...]) -> float:
    """The largest difference of the gradients of emissions, start, end and transitions, as a share of the largest of each."""
    return max(((a - b).abs().max() / b.abs().max()).item() for a, b in zip(ours, theirs, strict=True))


def factored(run: Run) -> Iterator[Row]:
    """Tag sequences with emissions and transitions apart, against pytorch-crf, with gradients for all of them.

    The largest difference is that of gradients as a share of the largest, and of the scores of decoded sequences. Memory is
    the most by which a process grows, in MB, in a step of training and decoding.
    """
    for (batch, n, tags), threads in ((size, threads) for size in _SIZES for threads in run.threads):
        plain = Problem("", threads, FactoredChain(torch.zeros(tags, tags)), (n, tags), batch, run.device)
        module = crf.module(CRF, plain)
        weights = module.transitions, module.start_transitions, module.end_transitions
        chain = FactoredChain(*weights)
        problem = replace(plain, structure=chain)
        leaf, z, given = problem.emissions.clone().requires_grad_(), problem.from_tags(problem.tags), problem.tags
        leaves = leaf, *module.parameters()
        label = f"{batch} x {n}, C = {tags}"
        of_gradients = {
            "of structures": lambda f=chain, x=leaf, y=z, to=leaves: torch.autograd.grad(f.log_prob(x, y).sum(), to),
            "pullback.nn.CRF": lambda f=module, x=leaf, y=given, to=leaves: torch.autograd.grad(f(x, y), to),
        }
        for name, call in of_gradients.items():
            case = replace(problem, label=f"log-likelihood and backward, {label}, {name}")
            yield run.compare("factored", case, call, [crf.likelihood_of_all], _gradients)  # type: ignore[arg-type]
        case = replace(problem, label=f"argmax, {label}")
        yield run.compare("factored", case, lambda f=chain, x=leaf: f.argmax(x), [crf.decode], _scores)  # type: ignore[arg-type]
        case = replace(problem, label=f"decode, {label}, pullback.nn.CRF")
        decode = crf.decoding(module, problem)
        row = run.compare("factored", case, decode.call, [crf.decode_lists], _same)  # type: ignore[arg-type]
        if tags > 20 and run.device == "cpu" and threads == 1 and sys.platform == "linux":
            row.figures |= {
                f"{name}, MB": _peak(name, batch, n, tags) for name in ("pullback.nn", "torchcrf") if find_spec(name)
            }
        yield row


def _scores(problem: Problem, ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...]) -> float:
    with torch.no_grad():
        values = [problem.structure.score(problem.emissions, z) for (z,) in (ours, theirs)]
    return (values[0] - values[1]).abs().max().item()


def _same(problem: Problem, ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...]) -> float:
    return _scores(problem, *((problem.from_tags(torch.as_tensor(tags)),) for (tags,) in (ours, theirs)))


def _peak(module: str, batch: int, n: int, tags: int) -> float:
    """By how much a process of its own grows at most."""
    given = [sys.executable, "-W", "ignore", "-c", _PROGRAM, module, *map(str, (batch, n, tags))]
    return json.loads(subprocess.run(given, capture_output=True, text=True, check=True).stdout)
