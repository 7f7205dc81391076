"""Fixtures of the whole suite: the cross product of `cases` as fixtures, and reproducible hypothesis."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

from cases import FEW, TREES, Entry, dtypes, on_backends
from each import Each, run
from pullback.inference.front.family import backend

settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    max_examples=40,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.register_profile("search", settings.get_profile("fixed"), derandomize=False, max_examples=500)
settings.load_profile(os.environ.get("PULLBACK_TEST_HYPOTHESIS", "fixed"))


def pytest_collection_finish() -> None:
    """Thousands of tests, and what they import, stay until the end: the collector of garbage need not look at them."""
    gc.freeze()


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Fixtures may have several values in one test."""
    return run(pyfuncitem)


@pytest.fixture(params=FEW, ids=lambda entry: entry.name)
def case(request: pytest.FixtureRequest) -> Each:
    """Each structure on each backend, of dependency trees half of the kinds."""
    return _on_backends(request.param)


@pytest.fixture(params=[entry for entry in FEW if entry.projects], ids=lambda entry: entry.name)
def projected_case(request: pytest.FixtureRequest) -> Each:
    """Each structure with SparseMAP on each backend."""
    return _on_backends(request.param)


@pytest.fixture(params=[entry for entry in FEW if entry.gibbs], ids=lambda entry: entry.name)
def gibbs_case(request: pytest.FixtureRequest) -> Each:
    """Each structure with a distribution on each backend."""
    return _on_backends(request.param)


@pytest.fixture(params=TREES, ids=lambda entry: entry.name)
def tree(request: pytest.FixtureRequest) -> Each:
    """Each kind of dependency tree on each backend."""
    return _on_backends(request.param)


@pytest.fixture(params=[entry for entry in TREES if entry.projective], ids=lambda entry: entry.name)
def projective(request: pytest.FixtureRequest) -> Each:
    """Projective trees, single- and multi-root, on each backend."""
    return _on_backends(request.param)


@pytest.fixture
def dtype() -> Each:
    """Each precision that inference runs in."""
    return Each(dtypes)


def _on_backends(entry: Entry) -> Each:
    return Each(on_backends([entry]), lambda case: backend(case.backend))
