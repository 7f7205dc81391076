"""The task of docs/write-a-task.md, taken from the page: it appears in every command, table and in the report."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pullback_study import tasks
from pullback_study.cli import app
from pullback_study.listed import load
from pullback_study.runs import list_runs

PAGE = Path(__file__).parents[2] / "docs" / "write-a-task.md"
SWEEP = """
task = "pointers"
[fields]
seed = [0, 1]
epochs = 1
[[grid]]
estimator = ["marginals", "ste-i"]
learning_rate = [0.01]
"""


@pytest.fixture
def code(tmp_path, monkeypatch):
    """The page's module, on the path and in the registry."""
    (text,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "pointers.py").write_text(text)
    (tmp_path / "sweep.toml").write_text(SWEEP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(tasks.TASKS, "pointers", "pointers:TASK")
    yield text
    load.cache_clear()
    sys.modules.pop("pointers", None)


def invoke(*arguments):
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.output
    return result


def test_it_appears_everywhere(code):
    assert len(code.splitlines()) < 120
    assert "--noise" in invoke("train", "pointers", "--help").output
    assert "spigot-ce" in invoke("estimators", "pointers").output
    fields = ("--estimator", "softmax", "--learning-rate", "0.05", "--epochs", "8", "--device", "cpu")
    trained = invoke("train", "pointers", *fields)
    (run,) = list_runs(Path("runs"))
    assert f"attachment {run.metrics['test_attachment']:.2f}" in trained.stdout
    assert run.metrics["test_attachment"] > 70  # it finds the tree that nobody has shown it; by chance about a quarter
    swept = invoke("sweep", "sweep.toml", "--device", "cpu", "--workers", "1", "--by", "estimator").stdout
    assert all(word in swept for word in ("marginals", "ste-i", "Attachment", "±"))
    assert "5 of 5 runs" in invoke("runs", "--where", "task=pointers").output
    invoke("report", "--out", "report.html")
    page = Path("report.html").read_text()
    assert "Pointers" in page
    assert all(run.id in page for run in list_runs(Path("runs")))
    assert json.loads((run.path / "config.json").read_text())["task"] == "pointers"


def test_a_variable_is_enough(code, tmp_path):
    environment = {
        **os.environ, "PULLBACK_TASKS": "pointers=pointers:TASK",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *(path for path in sys.path if path)]),
    }  # fmt: skip
    command = [sys.executable, "-m", "pullback_study", "train", "--help"]
    listed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert "pointers" in listed


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("broken", "PULLBACK_TASKS has 'broken'; write name=module:ATTRIBUTE, separated by commas"),
        ("own=no_such:X", "the task 'own' cannot be loaded from no_such:X: ModuleNotFoundError: No module named 'no_such'"),
        ("sst=own:TASK", "PULLBACK_TASKS names a task 'sst', which is built in; give yours another name"),
    ],
)
def test_a_wrong_variable_is_one_line(given, said):
    command = [sys.executable, "-m", "pullback_study", "train", "own", "--seed", "0"]
    environment = {**os.environ, "PULLBACK_TASKS": given, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode
    assert ended.stderr.splitlines() == [said]


@pytest.mark.parametrize("content", ["raise RuntimeError('half')", "(", "import sys; sys.exit('gone')", "1 / 0"])
@pytest.mark.parametrize(
    "words",
    [["runs"], ["runs", "--estimator", "spigot"], ["runs", "--where", "estimator=softmax"], ["train", "--help"], ["report"],
     ["estimators", "sst"], ["train", "synthetic", "--help"], ["reproduce", "recovery", "--no-train", "--page", "p.md",
      "--force"]],
    ids=" ".join,
)  # fmt: skip
def test_a_module_that_fails_stops_no_command_that_does_not_need_it(content, words, tmp_path, monkeypatch):
    (tmp_path / "half.py").write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(tasks.TASKS, "half", "half:TASK")
    load.cache_clear()
    monkeypatch.chdir(tmp_path)
    run = tasks.find_task("synthetic").run(tasks.find_task("synthetic").configure(estimator="spigot", steps=5), Path("runs"))
    run.start()
    run.publish({"validation_accuracy": 50.0})
    stored = Path("runs", "a" * 16)
    stored.mkdir()
    (stored / "config.json").write_text('{"task": "half", "version": 1, "config": {"estimator": "own", "seed": 0}}')
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    needed = CliRunner().invoke(app, ["train", "half", "--estimator", "own"])
    assert needed.exit_code == 2
    assert "the task 'half' cannot be loaded from half:TASK: " in needed.stderr


def test_a_task_that_cannot_be_loaded_is_named(code, monkeypatch):
    monkeypatch.setitem(tasks.TASKS, "broken", "no.such.module:TASK")
    with pytest.raises(ValueError, match=r"'broken' cannot be loaded from no\.such\.module:TASK"):
        tasks.find_task("broken")
    monkeypatch.setitem(tasks.TASKS, "odd", "pointers:Config")
    with pytest.raises(ValueError, match="is not a Task"):
        tasks.find_task("odd")
    monkeypatch.setitem(tasks.TASKS, "other", "pointers:TASK")
    with pytest.raises(ValueError, match="is called 'pointers'; list it as pointers=pointers:TASK"):
        tasks.find_task("other")


OWN = """
import pullback as pb
from pullback_study.tasks import Method

class Twice(pb.Surrogate):
    def __init__(self, step_size=1.0):
        self.step_size = step_size

    def gradient(self, structure, scores, z, gamma):
        return 2 * self.step_size * gamma

MINE = Method("twice", "Twice", "Argmax", Twice, aliases=("two",))
OTHER = Method("sparsemax", "Taken", "Argmax", Twice)
"""


COMMANDS = """
import sys
from pullback_study.__main__ import main
for words in sys.argv[1:]:
    sys.argv[1:] = words.split()
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""


def commands(folder, estimators, *lines):
    """Several commands, one after the other in one process, until one fails."""
    environment = {
        **os.environ, "PULLBACK_ESTIMATORS": estimators,
        "PYTHONPATH": os.pathsep.join([str(folder), *(path for path in sys.path if path)]),
    }  # fmt: skip
    program = [sys.executable, "-c", COMMANDS, *lines]
    return subprocess.run(program, env=environment, capture_output=True, text=True, check=False, cwd=folder)


def test_an_estimator_of_ones_own_is_listed_trained_and_reported(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    lists = [f"estimators {task}" for task in ("synthetic", "planted", "listops", "sst")]
    small = "--clusters 3 --features 8 --train-examples 60 --steps 4 --step-size 0.5"
    done = commands(tmp_path, "twice=mine:MINE", *lists, f"train synthetic --estimator two {small}", "report")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("twice") == len(lists), done.stdout
    assert "Twice" in done.stderr
    (run,) = list_runs(tmp_path / "runs")
    assert (run.state, run.config["estimator"], run.config["step_size"]) == ("done", "twice", 0.5)
    assert "Twice" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("given", "said", "everywhere"),
    [
        ("twice", "PULLBACK_ESTIMATORS has 'twice'; write name=module:ATTRIBUTE, separated by commas", True),
        ("sparsemax=mine:OTHER", "PULLBACK_ESTIMATORS names an estimator 'sparsemax', which is built in; give yours "
         "another name", True),
        ("twice=none:X", "the estimator 'twice' cannot be loaded from none:X: ModuleNotFoundError: "
         "No module named 'none'", False),
        ("twice=mine:Twice", "mine:Twice is not a Method; see docs/write-an-estimator.md", None),
        ("three=mine:MINE", "the estimator of mine:MINE is called 'twice'; list it as twice=mine:MINE", None),
    ],
)  # fmt: skip
def test_a_wrong_list_of_estimators_is_one_line(given, said, everywhere, tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    others = [] if everywhere is None else ["estimators synthetic"]
    done = commands(tmp_path, given, *others, f"train synthetic --estimator {given.partition('=')[0]}")
    assert done.returncode
    assert done.stderr.splitlines() == [said]
    if everywhere is not None:
        assert ("Estimator" not in done.stdout) == everywhere
