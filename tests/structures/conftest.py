"""Fixtures of the promise tests: every structure, with parts of any shape, on the reference and the compiled backend."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cases import ENTRIES, Entry, backends
from pullback.inference.front.family import backend


@pytest.fixture(params=[b for b in backends if b != "cuda"])
def name_of_backend(request: pytest.FixtureRequest) -> Iterator[str]:
    with backend(request.param):
        yield request.param


@pytest.fixture(params=ENTRIES, ids=lambda entry: entry.name)
def entry(request: pytest.FixtureRequest, name_of_backend: str) -> Entry:
    """Each structure."""
    return request.param


@pytest.fixture(params=[entry for entry in ENTRIES if entry.projects], ids=lambda entry: entry.name)
def projected(request: pytest.FixtureRequest, name_of_backend: str) -> Entry:
    """Each structure with SparseMAP."""
    return request.param


@pytest.fixture(params=[entry for entry in ENTRIES if entry.gibbs], ids=lambda entry: entry.name)
def gibbs(request: pytest.FixtureRequest, name_of_backend: str) -> Entry:
    """Each structure with a distribution."""
    return request.param
