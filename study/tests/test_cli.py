import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pullback

typer_testing = pytest.importorskip("typer.testing")


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """The command line in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        from pullback_study.cli import app

        return typer_testing.CliRunner().invoke(app, arguments, env={"COLUMNS": "160"})

    return run


def tiny(*more, estimator="spigot-ce", steps="4"):
    start = ("train", "synthetic", "--estimator", estimator, "--clusters", "3")
    return (*start, "--steps", steps, "--device", "cpu", *more)


def test_every_command_explains_itself(invoke):
    for command in ([], ["train"], ["train", "synthetic"], ["runs"], ["reproduce"], ["reproduce", "table1"]):
        result = invoke(*command, "--help")
        assert result.exit_code == 0
    assert "pullback reproduce table1 --grid" in invoke("reproduce", "table1", "--help").output


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (tiny(estimator="spigot-cd"), "did you mean 'spigot-ce'?"),
        (tiny("--step-sise", "1"), "--step-size"),
        (tiny("--gamma-scale", "papr"), "did you mean 'paper'?"),
        (tiny("--inner-steps", "0"), "inner_steps is 0; it must be at least 1"),
        (tiny("--seed", "-1"), "seed is -1; it must be at least 0"),
        (tiny("--step-size", "1", estimator="softmax"), "makes no inner steps"),
        (("reproduce", "tabel1"), "table1"),
        (("runs", "--status", "don"), "did you mean 'done'?"),
    ],
    ids=str,
)
def test_a_mistake_gets_a_hint_and_no_stack_trace(invoke, arguments, hint):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert hint in " ".join(result.output.split())
    assert "Traceback" not in result.output
    assert not Path("runs").exists()


def test_train_then_list(invoke):
    result = invoke(*tiny("--seed", "0", "--seed", "1", "--evaluate-every", "2"))
    assert result.exit_code == 0, result.output
    assert "2 trained now" in result.output
    assert result.output.count("test accuracy") == 2
    assert "2 done before, 0 trained now" in invoke(*tiny("--seed", "0", "--seed", "1", "--evaluate-every", "2")).output
    listed = invoke("runs").output
    assert "2 of 2 runs" in listed
    assert listed.count("done") == 2


def test_runs_of_an_empty_folder(invoke):
    assert "0 of 0 runs" in invoke("runs").output


def test_ctrl_c_says_how_to_go_on(tmp_path):
    command = [sys.executable, "-m", "pullback_study", *tiny(steps="100000")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True, env=environment)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("runs/*/config.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Run the same command again" in errors
    assert "Traceback" not in errors
    assert list(tmp_path.glob("runs/groups/*/checkpoint.pt"))


def test_the_library_does_not_import_the_command_line():
    program = (
        "import pullback, sys\n"
        "bad = [name for name in sys.modules if name.startswith(('typer', 'rich', 'pullback_study'))]\n"
        "sys.exit(' '.join(bad) or 0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert pullback.__version__
