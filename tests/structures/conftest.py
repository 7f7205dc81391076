"""Fixtures of the promise tests: every structure, with parts of any shape, on the reference and the compiled backend."""

from __future__ import annotations

import pytest

from cases import ENTRIES, Entry, backends, on_backends
from each import Each
from pullback.inference.front.family import backend


@pytest.fixture(params=ENTRIES, ids=lambda entry: entry.name)
def entry(request: pytest.FixtureRequest) -> Each:
    """Each structure."""
    return _on_a_cpu(request.param)


@pytest.fixture(params=[entry for entry in ENTRIES if entry.projects], ids=lambda entry: entry.name)
def projected(request: pytest.FixtureRequest) -> Each:
    """Each structure with SparseMAP."""
    return _on_a_cpu(request.param)


@pytest.fixture(params=[entry for entry in ENTRIES if entry.gibbs], ids=lambda entry: entry.name)
def gibbs(request: pytest.FixtureRequest) -> Each:
    """Each structure with a distribution."""
    return _on_a_cpu(request.param)


@pytest.fixture
def name_of_backend() -> Each:
    """The name of each backend, which runs the test."""
    return Each([name for name in backends if name != "cuda"], backend)


def _on_a_cpu(entry: Entry) -> Each:
    cases = [case for case in on_backends([entry]) if case.backend != "cuda"]
    if not cases:
        pytest.skip("for CPUs")
    return Each(cases, lambda case: backend(case.backend))
