"""Random scores of awkward kinds, for every structure and operation, against enumeration in extended precision.

    python -m tests.fuzz --minutes 30 [--seed 0]

Kinds: normal scores, large finite masks, alone and mixed (which must act like -inf), exact ties, sizes from 1e-8 to 1e8 side
by side, and views with strange strides. Each failure is printed with the seed that makes it again.
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
import time
from collections import Counter

import numpy as np
import torch
from torch import Tensor

import pullback as pb

STRUCTURES = {  # how to make it, the shape of scores, the sizes of `enumerate`
    "categorical": (pb.Categorical, lambda n: (n + 1,), lambda n: (n + 1,)),
    "projective": (lambda: pb.DependencyTree(projective=True), lambda n: (n, n), lambda n: (n,)),
    "projective-single": (lambda: pb.DependencyTree(multiroot=False), lambda n: (n, n), lambda n: (n,)),
    "nonprojective": (lambda: pb.DependencyTree(projective=False), lambda n: (n, n), lambda n: (n,)),
    "nonprojective-single": (
        lambda: pb.DependencyTree(projective=False, multiroot=False), lambda n: (n, n), lambda n: (n,),
    ),
    "chain": (pb.LinearChain, lambda n: (n, 2, 2), lambda n: (n, 2)),
    "subset": (lambda: pb.Subset(2), lambda n: (n + 1,), lambda n: (n + 1,)),
    "segmentation": (pb.Segmentation, lambda n: (n, 2, 2), lambda n: (n, 2, 2)),
    "binary-tree": (pb.BinaryTree, lambda n: (n, n), lambda n: (n,)),
    "alignment": (pb.Alignment, lambda n: (n, n), lambda n: (n, n)),
    "matching": (pb.Matching, lambda n: (n, n + 1), lambda n: (n, n + 1)),
}  # fmt: skip
KINDS = ("normal", "mask", "ties", "mixed", "views")
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-8}


@functools.cache
def everything(name: str, n: int) -> Tensor:
    """All structures of a size, `[S, *parts]`."""
    make, _, sizes = STRUCTURES[name]
    return make().enumerate(*sizes(n)).double()


def draw(name: str, n: int, kind: str, dtype: torch.dtype, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Scores of one example, and which parts are masked (some structure avoids all of these)."""
    z, shape = everything(name, n), STRUCTURES[name][1](n)
    scores = torch.randn(shape, generator=generator, dtype=torch.float64)
    masked = torch.zeros(shape, dtype=torch.bool)
    if kind == "ties":
        scores = torch.randint(-1, 2, shape, generator=generator).double()
    if kind == "mixed":
        scores = scores * 10 ** (16 * torch.rand(shape, generator=generator, dtype=torch.float64) - 8)
    if kind == "mask":
        kept = z[int(torch.randint(len(z), (), generator=generator))].bool()
        masked = (torch.rand(shape, generator=generator) < 0.5) & ~kept
        masks = torch.tensor([-1e9, -1e12, -1e18, -1e30, torch.finfo(torch.float32).min, -torch.inf], dtype=torch.float64)
        several = torch.rand((), generator=generator) < 0.5  # one mask everywhere, or another for each part
        chosen = torch.randint(len(masks), shape if several else (), generator=generator)
        scores = torch.where(masked, masks[chosen], scores)
    scores = scores.to(dtype)
    if kind == "views":
        scores = scores[None].expand(2, *shape)[1].movedim(0, -1).contiguous().movedim(-1, 0)
    return scores, masked


def exact(name: str, n: int, scores: Tensor, masked: Tensor) -> dict[str, np.ndarray]:
    """Answers by enumeration in NumPy's longdouble, without the structures that use a masked part."""
    z = everything(name, n)
    z = z[(z * masked).flatten(1).sum(1) == 0].flatten(1).numpy().astype(np.longdouble)
    s = np.where(masked, 0.0, scores.double()).reshape(-1).astype(np.longdouble)
    totals = z @ s
    best = totals.max()
    p = np.exp(totals - best)
    mass = p.sum()
    p /= mass
    log_p = np.where(p > 0, totals - best - np.log(mass), 0)
    entropy = -(p * log_p).sum()
    return {
        "best": best,
        "log_partition": best + np.log(mass),
        "marginals": p @ z,
        "entropy": entropy,
        "entropy gradient": -((p * (log_p + entropy)) @ z),
        "marginals gradient": (p * (z @ direction(s.size) - p @ z @ direction(s.size))) @ z,
        "structures": z,
        "scores": s,
    }


def direction(size: int) -> np.ndarray:
    """Where to differentiate the marginals along."""
    return np.sin(np.arange(size)).astype(np.longdouble)


def check(name: str, n: int, kind: str, dtype: torch.dtype, seed: int) -> list[str]:
    """What is wrong with the answers for one random example."""
    scores, masked = draw(name, n, kind, dtype, torch.Generator().manual_seed(seed))
    structure, right = STRUCTURES[name][0](), exact(name, n, scores, masked)
    tolerance, size = TOLERANCE[dtype], float(np.abs(right["scores"]).max(initial=0))
    rounding = 32 * torch.finfo(dtype).eps * size
    wrong = []

    def compare(what: str, found: Tensor, expected: np.ndarray, allowed: float) -> None:
        error = np.abs(found.detach().double().reshape(-1).numpy() - np.asarray(expected, dtype=float).reshape(-1))
        if not (error <= allowed).all():
            wrong.append(f"{name} n={n} {kind} {dtype} seed={seed}: {what} is off by {error.max():.2g}")

    z = structure.argmax(scores)
    chosen = (z.double() * torch.where(masked, 0.0, scores.double())).sum()
    compare("argmax", chosen + 1e9 * (z * masked).sum(), right["best"], tolerance + rounding)
    if name != "matching":
        leaves = [scores.detach().clone().requires_grad_() for _ in range(2)]
        structure.entropy(leaves[0]).sum().backward()
        along = torch.from_numpy(direction(scores.numel()).astype(float)).reshape(scores.shape).to(dtype)
        (structure.marginals(leaves[1]) * along).sum().backward()
        compare("log_partition", structure.log_partition(scores), right["log_partition"], tolerance + rounding)
        compare("marginals", structure.marginals(scores), right["marginals"], tolerance)
        compare("entropy", structure.entropy(scores), right["entropy"], tolerance)
        compare("entropy's gradient", leaves[0].grad, right["entropy gradient"], 10 * tolerance)
        compare("marginals' gradient", leaves[1].grad, right["marginals gradient"], 10 * tolerance)
    if size < 1e4:
        mu = structure.sparsemap(scores).double()
        inner = torch.from_numpy(right["scores"].astype(float)) - mu.reshape(-1)  # the projection's optimality
        gains = torch.from_numpy(right["structures"].astype(float)) @ inner - (mu.reshape(-1) @ inner)
        compare("sparsemap", (mu * masked).sum() + gains.amax().clamp_min(0.0), np.zeros(1), 10 * tolerance * (1 + size))
    if size < 1e4 and dtype == torch.float64:
        found, before, after = along_a_line(structure, scores, masked)
        if (before - after).abs().max() < 1e-6:  # differentiable along the line, where the Jacobian's faces all agree
            compare("sparsemap's gradient", found, after.numpy(), 1e-5)
    return wrong


def along_a_line(structure: pb.Structure, scores: Tensor, masked: Tensor, h: float = 1e-4) -> tuple[Tensor, Tensor, Tensor]:
    """SparseMAP's derivative along a direction: by backward (its Jacobian is symmetric), and by differences from both sides."""
    line = torch.from_numpy(direction(scores.numel()).astype(float)).reshape(scores.shape).masked_fill(masked, 0.0)
    leaf = scores.detach().clone().requires_grad_()
    mu = structure.sparsemap(leaf)
    (mu * line).sum().backward()
    before, after = ((structure.sparsemap(scores + step * line) - mu.detach()) / step for step in (-h, h))
    return leaf.grad, before, after


def run(seed: int, seconds: float, names: list[str] | None = None, limit: int | None = None) -> tuple[int, list[str]]:
    """Check examples until the time is over; returns how many, and what was wrong."""
    chooser, until, done, wrong = random.Random(seed), time.monotonic() + seconds, 0, []
    while time.monotonic() < until and (limit is None or done < limit):
        name = chooser.choice(names or list(STRUCTURES))
        kind, n, dtype = chooser.choice(KINDS), chooser.randint(2, 4), chooser.choice(list(TOLERANCE))
        wrong += check(name, n, kind, dtype, chooser.getrandbits(31))
        done += 1
    return done, wrong


def main() -> None:
    """Run for as long as one likes."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--structures", nargs="+", choices=list(STRUCTURES))
    args = parser.parse_args()
    done, wrong = run(args.seed, 60 * args.minutes, args.structures)
    for line in wrong[:50]:
        print(line)
    kinds = Counter(line.split(" seed=")[0].split(" torch")[0] + line.split(":")[1].split(" is off")[0] for line in wrong)
    print(f"{done} examples, {len(wrong)} failures {dict(kinds) if kinds else ''}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
