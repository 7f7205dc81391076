"""Fixtures of the tests of estimators: each structure, and each estimator of the registry."""

from __future__ import annotations

import pytest

from each import Each
from estimators.worlds import DETERMINISTIC, REGISTERED, WORLDS
from pullback.estimators.registry import Entry


@pytest.fixture
def world() -> Each:
    return Each(WORLDS)


@pytest.fixture(params=REGISTERED, ids=lambda entry: entry.name)
def entry(request: pytest.FixtureRequest) -> Entry:
    return request.param


@pytest.fixture(params=DETERMINISTIC, ids=lambda entry: entry.name)
def deterministic(request: pytest.FixtureRequest) -> Entry:
    return request.param
