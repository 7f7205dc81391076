"""Processes: which one is meant, whether it lives, and how many cores there are for it."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
from pathlib import Path


@functools.cache
def machine() -> str:
    """A name for the processes that share this one's table of process ids: this boot of this machine or container."""
    try:
        about = Path("/proc/sys/kernel/random/boot_id").read_text() + os.readlink("/proc/self/ns/pid")
    except OSError:
        about = platform.node()
    return hashlib.sha256(about.encode()).hexdigest()[:12]


def start_of(pid: int) -> int:
    """When a process of this machine began, in ticks since the boot; 0 if it is gone.

    With its number it names a process for good: numbers are used again.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])


def lives(pid: int, start: int) -> bool:
    """Whether the process that began then still lives."""
    if Path("/proc/self").exists():
        return start_of(pid) == start
    with contextlib.suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True


def cores() -> int:
    """The cores this process may use: those it is bound to, and no more than a container's quota."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        count = min(count, max(1, int(quota) // int(period)))
    return count
