"""Fixtures of the tests of estimators: each structure, and each estimator of the registry."""

from __future__ import annotations

import pytest

from estimators.worlds import DETERMINISTIC, REGISTERED, WORLDS, World
from pullback.estimators.registry import Entry


@pytest.fixture(params=WORLDS, ids=str)
def world(request: pytest.FixtureRequest) -> World:
    return request.param


@pytest.fixture(params=REGISTERED, ids=lambda entry: entry.name)
def entry(request: pytest.FixtureRequest) -> Entry:
    return request.param


@pytest.fixture(params=DETERMINISTIC, ids=lambda entry: entry.name)
def deterministic(request: pytest.FixtureRequest) -> Entry:
    return request.param
