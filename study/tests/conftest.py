"""Reproducible hypothesis for the study's tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "study", derandomize=True, deadline=None, max_examples=40, database=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("study")
