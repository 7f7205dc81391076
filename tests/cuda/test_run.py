"""The command that runs everything on a GPU: what it accepts, and what it starts; no GPU is needed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

SPEC = importlib.util.spec_from_file_location("run_on_a_gpu", Path(__file__).with_name("run.py"))
COMPUTE_SANITIZER = """#!{python}
import os, sys
with open({log!r}, "a") as file:
    print(os.environ["PULLBACK_UNPROVEN_KERNELS"], os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"], *sys.argv[1:], file=file)
sys.exit(9 if "racecheck" in sys.argv and os.environ["PULLBACK_UNPROVEN_KERNELS"] == "1" else 0)
"""


@pytest.fixture
def module():
    module = importlib.util.module_from_spec(SPEC)
    SPEC.loader.exec_module(module)
    return module


@pytest.mark.parametrize("words", [["--sanitise"], ["--sanit"], ["--quick", "--sanitize"], ["quick"]], ids=" ".join)
def test_what_it_does_not_know_is_an_error(module, monkeypatch, capsys, words):
    monkeypatch.setattr(sys, "argv", ["run.py", *words])
    with pytest.raises(SystemExit) as end:
        module.main()
    assert end.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_the_sanitizer_gets_every_check_with_both_kinds_of_kernels(module, monkeypatch, tmp_path, capsys):
    log, tool = tmp_path / "log", tmp_path / "compute-sanitizer"
    tool.write_text(COMPUTE_SANITIZER.format(python=sys.executable, log=str(log)))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(sys, "argv", ["run.py", "--sanitize"])
    assert module.main() == 1
    assert "failed: racecheck (PULLBACK_UNPROVEN_KERNELS=1)" in capsys.readouterr().out
    lines = [line.split() for line in log.read_text().splitlines()]
    assert [line[:2] for line in lines] == [["0", "1"], ["1", "1"]] * 2
    assert [line[line.index("--tool") + 1] for line in lines] == ["memcheck", "memcheck", "racecheck", "racecheck"]
    for line in lines:
        assert line[line.index("--error-exitcode") + 1] == "9"
        assert line[line.index("--target-processes") + 1] == "all"
        program = line.index(sys.executable)  # what is sanitized comes after the tool's own options
        assert line[program + 1 : program + 5] == ["-m", "tests.fuzz", "--device", "cuda"]
        assert line.index("--error-exitcode") < program


def test_without_a_sanitizer_it_says_what_it_needs(module, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(module.shutil, "which", lambda name, path=None: None)
    monkeypatch.setattr(sys, "argv", ["run.py", "--sanitize"])
    with pytest.raises(SystemExit, match="compute-sanitizer, which is part of the CUDA toolkit"):
        module.main()
