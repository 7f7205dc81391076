"""Which threads to use: PyTorch's team if it passes a test, None for the pool."""

from __future__ import annotations

import multiprocessing
import sys

from pullback.inference._threads import openmp

_tested = False
_team: openmp.Team | None = None


def current() -> openmp.Team | None:
    """PyTorch's OpenMP team; None where there is none, where it fails the test, and in a forked child."""
    global _tested, _team
    if not _tested:
        _team = None if _forked() else _sound(openmp.find())
        _tested = True
    return _team


def forget() -> None:
    """OpenMP does not know that its threads are gone after a fork and would wait for them."""
    global _tested, _team
    _tested, _team = True, None


def _sound(team: openmp.Team | None) -> openmp.Team | None:
    """The team if it does every part of a job, exactly once."""
    done: list[int] = []
    try:
        if team is not None:
            team.run(lambda worker, workers: done.append(worker), 3)
    except Exception:
        return None
    return team if sorted(done) == [0, 1, 2] else None


def _forked() -> bool:
    """Whether `multiprocessing` forked this process, before this module was imported."""
    return multiprocessing.parent_process() is not None and "--multiprocessing-fork" not in sys.orig_argv  # of a spawn
