"""Reproducible hypothesis for the study's tests, consoles whose width is that of each test, and a cache of corpora."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from pullback.inference._numba import folder

settings.register_profile(
    "study", derandomize=True, deadline=None, max_examples=40, database=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("study")

# A console that is made while COLUMNS is set keeps that width. Tests set COLUMNS per command: the consoles are made without it.
os.environ.pop("COLUMNS", None)
import pullback_study.cli.terminal  # noqa: E402, F401


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, but for compiled kernels, which are those of all tests."""
    own, kernels = tmp_path / "cache", folder.cache_folder()
    (own / "pullback").mkdir(parents=True)
    if kernels is not None:
        kernels.mkdir(parents=True, exist_ok=True)
        (own / "pullback" / kernels.name).symlink_to(kernels)
    monkeypatch.setenv("PULLBACK_CACHE", str(own))
    return own
