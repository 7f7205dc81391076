"""The command: `python -m tests.fuzz --device cpu|cuda --minutes 30 --seed 0`."""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import torch

from pullback.inference._triton import support as triton_support
from tests import interpreter

from .every_mask import TURNS
from .subjects import STRUCTURES
from .worker import ROOT, Task, problems_of, run, work


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=sys.modules[__package__].__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="cuda without a GPU: Triton's interpreter")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batches", type=int, default=2**62, help="stop after so many batches")
    parser.add_argument("--structures", nargs="+", choices=list(STRUCTURES), metavar="NAME", help=", ".join(STRUCTURES))
    parser.add_argument("--large", type=float, help="the share of batches with sizes at the switches of kernels")
    parser.add_argument("--count", type=int, help="the most examples of a batch with small sizes")
    parser.add_argument("--every-mask", action="store_true", help="every kind of mask once, small, instead of random batches")
    parser.add_argument(
        "--early", action="store_true", help="in the interpreter: kernels for large inputs serve for small ones"
    )
    parser.add_argument(
        "--part", choices=["all", "maxima", "sums"], default="all", help="argmax and SparseMAP; or all but that"
    )
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--batch", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        os.environ["TRITON_INTERPRET"] = "1"  # read by the processes that are started
    if triton_support.interpreting():
        interpreter.patch()
        interpreter.record()
        interpreter.poison(True)
        if args.early:
            interpreter.early()
    if args.work:
        folder, start = Path(args.work[0]), int(args.work[1])
        work(Task(**json.loads((folder / "task").read_text())), start, folder / "state", interpreter.ran)
        return 0
    if args.batch:
        _, wrong = problems_of(pickle.loads(Path(args.batch).read_bytes()), args.device)
        print("\n".join(wrong))
        return bool(wrong)
    real = args.device == "cpu" or torch.cuda.is_available()
    large = args.large if args.large is not None else (0.0 if not real else 0.005 if args.device == "cpu" else 0.3)
    count = args.count or (32 if real else 3)
    began = time.monotonic()
    names = args.structures or list(STRUCTURES)
    batches = TURNS * len(names) if args.every_mask else args.batches
    choices = args.every_mask, args.early, args.part
    tally = run(Task(args.device, args.seed, 60 * args.minutes, batches, names, large, count, *choices))
    for failure in tally.failures:
        print(failure)
    if tally.ran:
        print("ran:", *tally.ran)
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    where = args.device if real else "Triton's interpreter"
    print(
        f"{tally.examples} examples in {tally.batches} batches, {tally.checks} checks, {len(tally.failures)} failures "
        f"({where}, seed {args.seed}, commit {commit}, {time.monotonic() - began:.0f} s)"
    )
    return bool(tally.failures)


if __name__ == "__main__":
    sys.exit(main())
