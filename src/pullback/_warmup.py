"""Compiling kernels before they are needed: operations on tiny scores, in several processes, each of which fills the cache."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

import torch

STRUCTURES: dict[str, tuple[str, dict[str, Any], tuple[int, ...]]] = {  # the class, its arguments, the shape of scores
    "categorical": ("Categorical", {}, (3,)),
    "projective": ("DependencyTree", {"projective": True}, (4, 4)),
    "nonprojective": ("DependencyTree", {"projective": False}, (4, 4)),
    "chain": ("LinearChain", {}, (4, 3, 3)),
    "factored_chain": ("FactoredChain", {"transitions": torch.zeros(3, 3)}, (4, 3)),
    "subset": ("Subset", {"k": 2}, (4,)),
    "knapsack": ("Knapsack", {"costs": [2, 1, 1, 3], "budget": 3}, (4,)),
    "shortest_path": ("ShortestPath", {"edges": [(0, 1), (1, 2), (0, 2)], "source": 0, "target": 2}, (3,)),
    "segmentation": ("Segmentation", {}, (4, 2, 2)),
    "binary_tree": ("BinaryTree", {}, (4, 4)),
    "alignment": ("Alignment", {}, (3, 4)),
    "matching": ("Matching", {}, (3, 4)),
    "ctc": ("CTC", {"targets": [1]}, (3, 4)),
}
OPERATIONS = ("sparsemap", "marginals", "entropy", "log_partition", "sample", "argmax")  # what takes longest first
DTYPES = ("float32", "float64")


def warmup(
    structures: Iterable[str] = tuple(STRUCTURES),
    operations: Iterable[str] = OPERATIONS,
    dtypes: Iterable[str] = DTYPES,
    *,
    device: str = "cpu",
    processes: int | None = None,
    progress: bool = True,
) -> None:
    """Compile operations of structures with their gradients, in parallel, so that later first calls do not compile.

    Args:
        structures: names from `categorical`, `projective`, `nonprojective` (dependency trees), `chain`, `factored_chain`,
            `subset`, `knapsack`, `shortest_path`, `segmentation`, `binary_tree`, `alignment`, `matching`, `ctc`; all by
            default.
        operations: names from `argmax`, `marginals`, `log_partition`, `entropy`, `sample`, `sparsemap`; all by default.
        dtypes: `float32`, `float64` or both.
        device: "cpu" or "cuda".
        processes: the number of processes; one per core by default, one on a GPU.
        progress: whether to print progress to stderr.

    >>> import pullback
    >>> pullback.warmup(["projective"], ["argmax"], ["float32"], progress=False)
    """
    jobs = [
        (structure, operation, dtype)
        for operation in _known("operation", operations, OPERATIONS)
        for structure in _known("structure", structures, STRUCTURES)
        for dtype in _known("dtype", dtypes, DTYPES)
    ]
    if processes is not None and processes < 1:
        raise ValueError(f"processes is {processes}; it must be at least 1")
    waiting: queue.SimpleQueue[tuple[str, ...]] = queue.SimpleQueue()
    for job in jobs:
        waiting.put((*job, device))
    count = min(processes or (1 if device == "cuda" else os.cpu_count() or 1), len(jobs))
    shown = _Progress(len(jobs), progress)
    threads = [threading.Thread(target=_work, args=(waiting, shown), daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shown.close()
    if shown.problems:
        raise RuntimeError("some kernels were not compiled: " + "; ".join(shown.problems))


def _known(what: str, names: Iterable[str], all_names: Iterable[str]) -> list[str]:
    given, everything = list(names), list(all_names)
    unknown = [name for name in given if name not in everything]
    if unknown:
        raise ValueError(f"unknown {what} {', '.join(unknown)}; known are {', '.join(everything)}")
    return given


class _Progress:
    """One line on a terminal that is written anew, or a line per job elsewhere."""

    def __init__(self, total: int, shown: bool) -> None:
        self.problems: list[str] = []
        self._total, self._shown, self._done, self._started = total, shown, 0, time.perf_counter()
        self._lock = threading.Lock()

    def step(self, job: Sequence[str], problem: str | None) -> None:
        with self._lock:
            self._done += 1
            if problem:
                self.problems.append(f"{' '.join(job)}: {problem}")
            if self._shown:
                filled = 24 * self._done // max(self._total, 1)
                bar = f"[{'#' * filled}{'.' * (24 - filled)}] {self._done}/{self._total} {' '.join(job)}"
                print(f"\r{bar:<79}" if sys.stderr.isatty() else bar, end="", file=sys.stderr, flush=True)
                print("" if sys.stderr.isatty() else "\n", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._shown:
            seconds = time.perf_counter() - self._started
            start = "\n" if sys.stderr.isatty() else ""
            print(f"{start}{self._done} of {self._total} ready in {seconds:.1f} s", file=sys.stderr)


def _work(waiting: queue.SimpleQueue[tuple[str, ...]], shown: _Progress) -> None:
    """Give jobs to a process of its own until none are left."""
    environment = {**os.environ, "PULLBACK_QUIET": "1", "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = subprocess.Popen(
        [sys.executable, "-c", "from pullback._warmup import serve; serve()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        while True:
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                process.stdin.write(" ".join(job) + "\n")
                process.stdin.flush()
                answer = process.stdout.readline().strip()
            except OSError as error:
                answer = repr(error)
            shown.step(job[:3], None if answer == "ready" else answer or "its process ended")
    finally:
        process.stdin.close()
        process.wait()


def serve() -> None:
    """Do the jobs that come on stdin, one per line."""
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        try:
            compile_job(*line.split())
            print("ready", file=answers, flush=True)
        except Exception as error:
            print(repr(error).replace("\n", " "), file=answers, flush=True)


def compile_job(structure: str, operation: str, dtype: str, device: str) -> None:
    """Call one operation, and differentiate it where that is possible."""
    import pullback

    name, arguments, shape = STRUCTURES[structure]
    made = getattr(pullback, name)(**arguments)
    scores = torch.rand(2, *shape, dtype=getattr(torch, dtype), device=device).requires_grad_()
    try:
        result = getattr(made, operation)(scores)
    except NotImplementedError:  # counting matchings is #P-hard
        return
    if result.requires_grad:
        (result * torch.rand_like(result)).sum().backward()
