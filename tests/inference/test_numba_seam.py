"""Without Numba, or with one whose internals have changed, PyTorch's operators give the same results on the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.testing import assert_close

from everything import results
from pullback.inference._numba import cache, linked, trial, usable
from pullback.inference.front import plan

TESTS = Path(__file__).parents[1]
WITHOUT = """
import sys, torch
sys.modules["numba"] = sys.modules["llvmlite"] = None
from everything import results
found = results()
assert not [name for name in sys.modules if name.startswith("numba.")]
torch.save(found, {path!r})
"""


def test_without_numba_everything_is_the_same(tmp_path):
    script = WITHOUT.format(path=str(tmp_path / "found"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, sys.path)])}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stderr.count("do not work with Numba") == 1
    without, compiled = torch.load(tmp_path / "found"), results()
    assert set(without) == set(compiled)
    for name, found in compiled.items():
        assert_close(without[name], found, atol=1e-5, rtol=1e-5, msg=lambda said, name=name: f"{name}: {said}")


@pytest.fixture
def untested(monkeypatch):
    """A release of Numba that nobody has tested."""
    monkeypatch.setattr(usable, "_works", None)
    monkeypatch.setattr(usable, "TESTED", ())
    monkeypatch.delenv("PULLBACK_COMPILE", raising=False)


def test_the_trial_passes_whatever_the_default_device():
    with torch.device("meta"):
        trial.run()


def test_a_new_release_that_passes_the_trial_compiles(untested):
    assert usable.works()


@pytest.mark.parametrize("broken", ["raises", "wrong"])
def test_a_new_release_that_fails_the_trial_does_not(untested, monkeypatch, broken):
    if broken == "raises":
        monkeypatch.setattr(trial, "_kernel", lambda *args: 1 / 0)
    else:
        monkeypatch.setattr(trial, "_kernel", lambda *args: None)
    assert not usable.works()
    assert plan.serving.__wrapped__("cpu") == "reference"
    assert plan.serving.__wrapped__("cuda") == "cuda"


def test_compiling_can_be_left_out(untested, monkeypatch):
    monkeypatch.setenv("PULLBACK_COMPILE", "0")
    assert not usable.works()


def test_without_the_cache_s_internals_kernels_are_compiled_in_every_process(monkeypatch):
    monkeypatch.setattr(cache.caching.FunctionCache, "_index_key", None)
    assert not cache.works.__wrapped__()


def test_without_the_linker_s_internals_functions_are_compiled_by_public_means(monkeypatch):
    monkeypatch.setattr(linked, "codegen", SimpleNamespace(JITCodeLibrary=object))
    assert linked.options() == {}
