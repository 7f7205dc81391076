"""Fixtures of the whole suite: the cross product of `cases` as fixtures, and reproducible hypothesis."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch
from hypothesis import HealthCheck, settings

from cases import CASES, GIBBS_CASES, TREE_CASES, Entry, dtypes
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


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> Iterator[Entry]:
    """Each structure on each backend."""
    yield from _on_backend(request.param)


@pytest.fixture(params=[case for case in CASES if case.projects], ids=str)
def projected_case(request: pytest.FixtureRequest) -> Iterator[Entry]:
    """Each structure with SparseMAP on each backend."""
    yield from _on_backend(request.param)


@pytest.fixture(params=GIBBS_CASES, ids=str)
def gibbs_case(request: pytest.FixtureRequest) -> Iterator[Entry]:
    """Each structure with a distribution on each backend."""
    yield from _on_backend(request.param)


@pytest.fixture(params=TREE_CASES, ids=str)
def tree(request: pytest.FixtureRequest) -> Iterator[Entry]:
    """Each kind of dependency tree on each backend."""
    yield from _on_backend(request.param)


@pytest.fixture(params=[case for case in TREE_CASES if case.projective], ids=str)
def projective(request: pytest.FixtureRequest) -> Iterator[Entry]:
    """Projective trees, single- and multi-root, on each backend."""
    yield from _on_backend(request.param)


@pytest.fixture(params=dtypes, ids=lambda dtype: str(dtype).removeprefix("torch."))
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    """Each precision that inference runs in."""
    return request.param


def _on_backend(case: Entry) -> Iterator[Entry]:
    with backend(case.backend):
        yield case
