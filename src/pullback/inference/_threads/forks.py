"""Threads after a fork, of which the child has only one.

OpenMP waits for the threads it had before the fork, for ever: a child that calls a PyTorch operator which runs on several
threads hangs if such an operator has run in the parent. So where the parent has threads of compiled code, PyTorch in the
child starts with one thread, as it does in the workers of a `DataLoader`.
"""

from __future__ import annotations

import os
import threading

import torch

from pullback.inference._threads import leaving, pool, team

_at_risk = False


def watch() -> None:
    """Look at every fork of this process from now on."""
    if hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(before=_before, after_in_child=_after)


def _before() -> None:
    global _at_risk
    try:
        _at_risk = len(os.listdir("/proc/self/task")) > threading.active_count()
    except OSError:  # not Linux
        _at_risk = True


def _after() -> None:
    for part in (team, pool, leaving):
        part.forget()
    if _at_risk:
        torch.set_num_threads(1)
