"""Reproducible hypothesis for the study's tests, and consoles whose width is that of each test."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "study", derandomize=True, deadline=None, max_examples=40, database=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("study")

# A console that is made while COLUMNS is set keeps that width. Tests set COLUMNS per command: the consoles are made without it.
os.environ.pop("COLUMNS", None)
import pullback_study.cli.terminal  # noqa: E402, F401
