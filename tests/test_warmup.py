"""Kernels can be compiled ahead of time, by name, in Python and from the command line."""

import os
import subprocess
import sys

import pytest

import pullback
from pullback import _warmup
from pullback.__main__ import main


def run(*arguments, **variables):
    return subprocess.run(
        [sys.executable, *arguments], env={**os.environ, **variables}, capture_output=True, text=True, timeout=300
    )


def test_what_was_warmed_up_is_not_compiled_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PULLBACK_CACHE", str(tmp_path))
    words = ["pullback", "warmup", "projective", "--operations", "argmax", "--dtypes", "float32"]
    monkeypatch.setattr("sys.argv", words)
    main()
    said = capsys.readouterr()
    assert "1/1 projective argmax float32" in said.err
    assert said.out == ""
    call = "import torch, pullback; pullback.DependencyTree().argmax(torch.zeros(2, 3, 3))"
    assert run("-c", call).stderr == ""


def test_every_structure_of_the_table_exists_and_every_name_is_known():
    for name, (kind, arguments, shape) in _warmup.STRUCTURES.items():
        structure = getattr(pullback, kind)(**arguments)
        assert len(shape) == structure.event_dims, name


@pytest.mark.parametrize("wrong", [{"structures": ["nope"]}, {"operations": ["nope"]}, {"dtypes": ["nope"]}], ids=str)
def test_an_unknown_name_is_an_error_that_lists_the_known_ones(wrong):
    with pytest.raises(ValueError, match=r"unknown \w+ nope; known are \w+"):
        pullback.warmup(**wrong)


@pytest.mark.parametrize("processes", [0, -1])
def test_warming_up_needs_a_process(processes, monkeypatch):
    with pytest.raises(ValueError, match=f"processes is {processes}; it must be at least 1"):
        pullback.warmup(["chain"], processes=processes)
    monkeypatch.setattr("sys.argv", ["pullback", "warmup", "chain", "--processes", str(processes)])
    with pytest.raises(SystemExit, match=f"error: processes is {processes}"):
        main()


def test_a_process_that_fails_is_reported(monkeypatch):
    monkeypatch.setitem(_warmup.STRUCTURES, "projective", ("DependencyTree", {}, (4, 5)))
    with pytest.raises(ValueError, match="scores has shape"):
        _warmup.compile_job("projective", "argmax", "float32", "cpu")


def test_the_command_says_its_version():
    done = run("-m", "pullback", "--version")
    assert done.stdout.strip() == f"pullback {pullback.__version__}"
