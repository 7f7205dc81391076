"""Which code and which machine trained a run, or each part of it."""

from __future__ import annotations

import contextlib
import functools
import platform
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pullback_study.runs.store import Stored

_CODE = ("commit", "torch", "pullback")
_UNKNOWN = dict.fromkeys(_CODE)
_DIRTY = "-dirty"


def provenance(device: str) -> dict[str, Any]:
    """Of what this process trains: the machine and the code."""
    import torch

    where = torch.cuda.get_device_name() if device.startswith("cuda") else platform.machine()
    return {"device": where, "threads": torch.get_num_threads(), **_code()}


@functools.cache
def _code() -> dict[str, Any]:
    """The versions that this process has loaded: asked for once, before anyone changes the files."""
    import torch

    import pullback

    commit = _git("describe", "--always", f"--dirty={_DIRTY}", "--abbrev=40")
    return {"torch": str(torch.__version__), "pullback": pullback.__version__, "commit": commit and commit.strip()}


def changed_files() -> list[str]:
    """Files of the library and the study with changes that no commit has; none outside of a repository."""
    return [line[3:] for line in (_git("status", "--porcelain", "--", ":/src", ":/study") or "").splitlines()]


def _git(*words: str) -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), *words]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout
    return None


def check_tree() -> None:
    """Raises `ValueError` if the code that writes a page has changes that no commit has."""
    if changed := changed_files():
        raise ValueError(
            f"the code has changes that no commit has ({', '.join(changed[:3])}{', ...' * (len(changed) > 3)}), so that nobody "
            "could write this page again; commit them, or use --force"
        )


def continued(checkpoint: dict[str, Any] | None, now: dict[str, Any]) -> list[dict[str, Any]]:
    """The provenance of all parts of a run that goes on from a checkpoint, in their order; equal ones once."""
    if checkpoint is None:
        return [now]
    before = [each for each in checkpoint.get("made_by") or [_UNKNOWN] if each != now]
    return [*before, now]


def versions(parts: Sequence[dict[str, Any]]) -> list[str]:
    """The different versions of the code, in words."""
    codes = dict.fromkeys(tuple(each.get(name) for name in _CODE) for each in parts)
    return [f"commit {str(commit)[:12]}{_DIRTY * str(commit).endswith(_DIRTY)}, torch {torch}, pullback {version}"
            for commit, torch, version in codes]  # fmt: skip


def refuse_unfit(runs: Iterable[Stored], rule: str) -> None:
    """Raises `ValueError`, with the rule, if nobody could make one of these runs again."""
    if wrong := [f"{run.path} {why}" for run in runs if (why := unfit(run))]:
        more = f", and {len(wrong) - 1} more" * (len(wrong) > 1)
        raise ValueError(f"{wrong[0]}{more}: {rule}; train these again, or use --force")


def unfit(run: Stored) -> str | None:
    """Why nobody can make a finished run again, and no page should show it; None if it is of one commit without changes."""
    parts = [*run.result.get("earlier", []), run.result]
    commits = [each.get("commit") for each in parts]
    if any(not isinstance(commit, str) for commit in commits):
        return "was trained by code of an unknown commit"
    if dirty := [commit for commit in commits if commit.endswith(_DIRTY)]:
        return f"was trained by code with changes that commit {dirty[0].removesuffix(_DIRTY)[:12]} does not have"
    code = versions(parts)
    return f"was trained by several versions of the code ({'; '.join(code)})" if len(code) > 1 else None
