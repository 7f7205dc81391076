"""Random batches for each structure, on the CPU and in Triton's interpreter; `python -m tests.fuzz` runs for longer."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import torch

import fuzz
import pullback as pb
from fuzz.minimal import smallest
from fuzz.worker import Task, batch_of, problems_of, run
from pullback.inference._triton import support as triton_support

ROOT = Path(__file__).parents[1]
PROJECTIVE = ["projective", "projective-single"]
NONPROJECTIVE = ["nonprojective", "nonprojective-single"]


class Group(NamedTuple):
    """What one process fuzzes in the interpreter.

    Attributes:
        names: of structures.
        kernels: which must run, and run in no group before: files in `pullback.inference`, with names.
        choices: of the `Task`.
        unproven: whether kernels serve that have not been right on a GPU since they changed.
    """

    names: list[str]
    kernels: Mapping[str, str] = MappingProxyType({})
    choices: Mapping[str, Any] = MappingProxyType({})
    unproven: bool = False


EARLY_MAXIMA = MappingProxyType({"early": True, "part": "maxima"})
GROUPS = {
    "projective": Group(
        PROJECTIVE,
        {
            "eisner.cuda_inside": "log_partition",
            "eisner.cuda_maximum": "argmax",
            "eisner.cuda_outside": "marginals",
            "eisner.cuda_sampling": "sample",
            "sparsemap.cuda_active_set": "_make_changes admit multiply remove share",
            "sparsemap.cuda_face": "clear tilt",
            "sparsemap.cuda_projective": "another_projective best_projective",
            "sparsemap.cuda_projector": "_measure apply",
            "sparsemap.cuda_search": "_gap",
            "sparsemap.cuda_solve": "solve",
            "sparsemap.cuda_state": "forget place replace restart",
            "sparsemap.cuda_trees": "enter start",
            "sparsemap.cuda_weights": "gain mean measure rebuild refine settle",
            "trees.local_polytope_cuda": "_project",
        },
    ),
    "nonprojective": Group(
        NONPROJECTIVE,
        {
            "chu_liu_edmonds.cuda": "_argmax",
            "matrix_tree.cuda_marginals": "log_partition marginals",
            "matrix_tree.cuda_sampling": "sample",
            "sparsemap.cuda_trees": "best_of_all",
        },
    ),
    "others": Group(
        ["subset", "binary-tree", "own"],
        {
            "engine.hypergraph.cuda_kernels": "read_goal",
            "engine.hypergraph.cuda_likelihood": "_likelihood",
            "engine.hypergraph.cuda_maximum": "argmax",
            "engine.hypergraph.cuda_narrow": "through upward",
            "sparsemap.cuda_step": "_begin _complete _penalty _read _search finish step",
            "subset.cuda_kernels": "run",
            "subset.cuda_picks": "pick",
        },
    ),
    "sequences": Group(
        ["chain", "segmentation", "alignment", "alignment-forward"],
        {
            "alignment.cuda_sweeps": "sweep",
            "chain.cuda_paths": "path",
            "chain.cuda_slopes": "slopes",
            "chain.cuda_sums": "sums",
        },
    ),
    "early sums": Group(
        ["chain", "segmentation", "binary-tree"],
        {"chain.cuda_wide": "path sums", "engine.hypergraph.cuda_kernels": "downward gather upward"},
        MappingProxyType({"early": True, "part": "sums"}),
    ),
    "early trees": Group(["projective"], {"sparsemap.cuda_long": "best_long"}, EARLY_MAXIMA),
    "unproven": Group(
        PROJECTIVE,
        {"eisner.cuda_maximum": "short", "sparsemap.cuda_shared": "best_shared"},
        MappingProxyType({"part": "maxima"}),
        True,
    ),
    "unproven early": Group(["projective"], {"sparsemap.cuda_shared": "another_shared"}, EARLY_MAXIMA, True),
}
EXCEPTIONS = {
    "_triton.launcher._probe": "a test of how kernels are started on a GPU",
    "eisner.cuda_charts._shared": "the address of shared memory, of which the interpreter has none",
}


def kernels_of(group: Group) -> set[str]:
    return {f"{file}.{name}" for file, names in group.kernels.items() for name in names.split()}


@pytest.mark.parametrize("name", fuzz.STRUCTURES)
def test_random_batches(name):
    task = Task("cpu", seed=1, seconds=0, batches=24, names=[name], large=0.0, count=16)
    for number in range(task.batches):
        batch = batch_of(task, number)
        count, wrong = problems_of(batch, "cpu")
        assert count > 0
        assert not wrong, f"{batch}: {wrong}"


@pytest.mark.parametrize("group", GROUPS)
def test_every_mask_on_the_kernels_of_a_gpu_in_the_interpreter(group, monkeypatch):
    if triton_support.triton is None:
        pytest.skip("needs Triton: pip install triton")
    if torch.cuda.is_available() or triton_support.interpreting():
        pytest.skip("python tests/cuda/run.py fuzzes the kernels on a GPU")
    names, _, choices, unproven = GROUPS[group]
    for name, value in (("TRITON_INTERPRET", 1), ("PULLBACK_UNPROVEN_KERNELS", int(unproven)), ("OMP_NUM_THREADS", 1)):
        monkeypatch.setenv(name, str(value))  # of the process that it starts
    batches = fuzz.TURNS * len(names)
    task = Task("cuda", seed=0, seconds=1800, batches=batches, names=names, large=0.0, count=3, every_mask=True)
    tally = run(replace(task, **choices))
    assert not tally.failures, "\n".join(tally.failures)
    assert tally.batches == batches
    assert tally.checks > 8 * batches
    assert not kernels_of(GROUPS[group]) - set(tally.ran)


def test_every_kernel_is_one_of_a_group():
    """What is launched, and what is compiled as a function of its own; the rest is part of these."""
    folder = ROOT / "src" / "pullback" / "inference"
    kernels = {
        ".".join([*file.relative_to(folder).with_suffix("").parts, name])
        for file in folder.rglob("*.py")
        for name in re.findall(r"^@jit\([^)]+\)\ndef (\w+)\(", file.read_text(), re.MULTILINE)
    }
    assert kernels - EXCEPTIONS.keys() == set().union(*map(kernels_of, GROUPS.values()))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_itself():
    command = [sys.executable, "-m", "tests.fuzz", "--device", "cuda", "--minutes", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


def test_a_wrong_answer_is_found_and_made_small(monkeypatch):
    """A chain whose marginals are wrong where the first tag is certain."""
    right = pb.LinearChain.marginals

    def wrong(self, scores):
        mu = right(self, scores)
        return torch.where(scores < -1e8, mu + 0.01, mu)

    monkeypatch.setattr(pb.LinearChain, "marginals", wrong)
    task = Task("cpu", seed=0, seconds=0, batches=0, names=["chain"], large=0.0, count=16)
    batches = [batch_of(task, number) for number in range(30)]
    failing = [batch for batch in batches if any(text.startswith("marginals") for text in problems_of(batch, "cpu")[1])]
    assert failing
    least = smallest(failing[0], lambda batch: any(x.startswith("marginals") for x in problems_of(batch, "cpu")[1]), tries=300)
    assert len(least.sizes) == 1
    assert least.masked.sum() == 1
    assert not torch.where(least.masked | least.scores.isnan(), 0.0, least.scores).any()


def test_a_process_that_ends_with_an_error_after_its_batches_is_a_failure(monkeypatch):
    """As one does that compute-sanitizer watches."""

    def started(command, **options):
        folder = Path(command[command.index("--work") + 1])
        tally = {"batches": 2, "examples": 5, "checks": 7, "failures": [], "ran": [], "done": True}
        (folder / "state").write_text(json.dumps(tally))
        return subprocess.CompletedProcess(command, 9)

    monkeypatch.setattr(subprocess, "run", started)
    tally = run(Task("cuda", seed=0, seconds=60, batches=2, names=["chain"], large=0.0, count=3))
    assert tally.batches == 2
    assert tally.failures == ["a process checked its batches and ended with 9"]
