"""What a figure depends on: the hardware, the versions and the commit."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import torch

from benchmarks import peers

_CHANGED = " with changes"


def environment(device: str) -> dict[str, str]:
    """A description by name, in the order in which it is printed."""
    found = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": _commit(),
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
    }
    if torch.device(device).type == "cuda":
        found["gpu"] = torch.cuda.get_device_name(device)
        found["triton"] = metadata.version("triton")
    for library in ("torch", "numba", "numpy"):
        found[library] = metadata.version(library)
    for peer, version in peers.versions().items():
        found[peer] = version or "not installed, skipped"
    return found


def made_by(command: str, *names: str) -> str:
    """How the tables of a page were made, as its first line, with these facts of the environment.

    Leaves the program if the code has changes that no commit has: nobody could make the tables again.
    """
    facts = environment("cpu")
    if facts["commit"].endswith(_CHANGED):
        sys.exit("src/ or benchmarks/ has changes that no commit has, so that nobody could make this page again; commit them")
    return f"Made by `{command}`: {', '.join(f'{name} {facts[name]}' for name in names)}."


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    facts = {key.strip(): value.strip() for key, value in facts.items()}
    name = facts.get("model name", platform.machine())
    wide = "AVX-512" if "avx512f" in facts.get("flags", "") else "AVX2" if "avx2" in facts.get("flags", "") else ""
    return f"{name} (family {facts['cpu family']}, model {facts['model']}, {wide})" if wide else name


def _commit() -> str:
    here = Path(__file__).parent
    try:
        commit = _git("rev-parse", "--short", "HEAD", at=here)
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", "../src", ".", at=here)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit}{_CHANGED}" if changed else commit


def _git(*args: str, at: Path) -> str:
    return subprocess.run(["git", *args], cwd=at, capture_output=True, text=True, check=True).stdout.strip()
