"""The commands as a user types them."""

import ast
import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pullback
import pullback_study
from pullback_study.cli import app
from pullback_study.tasks import TASKS, find_task

SOURCES = Path(pullback_study.__file__).parent


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """The command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, arguments, env={"COLUMNS": "160"})


def tiny(*more, estimator="spigot-ce", steps="4"):
    start = ("train", "synthetic", "--estimator", estimator, "--clusters", "3", "--features", "8")
    return (*start, "--train-examples", "60", "--steps", steps, "--device", "cpu", *more)


def commands(group=app):
    """Every command, as the words that call it."""
    import typer

    def below(command, words):
        yield words
        for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
            yield from below(command.get_command(None, name), [*words, name])

    return list(below(typer.main.get_command(group), []))


@pytest.mark.parametrize("columns", ["60", "100"])
def test_every_command_explains_itself(columns):
    for words in commands():
        result = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": columns})
        assert result.exit_code == 0, (words, result.output)
        assert len(result.output.splitlines()) < 100, words
        assert not any(odd in result.output for odd in ("…", "\\b")), result.output
        assert not [line for line in result.output.splitlines() if line.startswith("  --") and "list[" in line]
    assert "[required]" in CliRunner().invoke(app, ["train", "sst", "--help"]).output
    help_of_train = CliRunner().invoke(app, ["train", "synthetic", "--help"], env={"COLUMNS": columns}).output
    assert "--validation-examples" in help_of_train
    assert "--evaluate-every" in help_of_train


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["train", "--help"], ["train", "sst", "--help"], ["sweep", "-h"]])
def test_help_does_not_wait_for_torch(words):
    program = (
        "import sys; from pullback_study.cli import app\n"
        f"try: app({words!r}, prog_name='pullback')\n"
        "except SystemExit: pass\n"
        "sys.exit(' '.join(name for name in ('torch', 'pullback', 'pandas', 'matplotlib', 'ray') if name in sys.modules) or 0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


def test_the_version(invoke):
    assert invoke("--version").output == f"pullback-study {pullback_study.__version__}\n"


@pytest.mark.parametrize("task", TASKS)
def test_estimators_are_listed_without_quoting_anything(task, invoke):
    listed = invoke("estimators", task).output
    assert all(name in listed for name in find_task(task).methods)
    assert "softmax" in listed


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (tiny(estimator="spigot-cd"), "did you mean 'spigot-ce'?"),
        (tiny("--step-sise", "1"), "--step-size"),
        (tiny("--gamma-scale", "papr"), "paper"),
        (tiny("--inner-steps", "0"), "inner_steps is 0; it must be at least 1"),
        (tiny("--seed", "-1"), "seed is -1; it must be at least 0"),
        (tiny("--step-size", "1", estimator="softmax"), "marginals has none: leave it out"),
        (("train", "synthetic", "--clusters", "3"), "estimator is missing"),
        (("reproduce", "tabel1"), "table1"),
        (("runs", "--status", "don"), "did you mean 'done'?"),
        (("runs", "--runs", "none"), "the folder none/ does not exist"),
        (("runs", "--runs", ".", "--estimator", "spigt"), "there is no such estimator; did you mean 'spigot'?"),
        (("estimators", "ssst"), "did you mean 'sst'?"),
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
    twice = tiny("--seed", "0", "--seed", "1", "--evaluate-every", "2", "--gamma-scale", "example")
    result = invoke(*twice)
    assert result.exit_code == 0, result.output
    assert "2 runs in runs/: 2 trained, 0 already done" in result.stderr
    assert [line[:8] for line in result.stdout.splitlines()] == ["seed 0: ", "seed 1: "]
    assert result.stdout.count("test accuracy") == 2
    assert "2 runs in runs/: 0 trained, 2 already done" in invoke(*twice).stderr
    listed = invoke("runs").output
    assert "2 of 2 runs" in listed
    assert listed.count("done") == 2
    assert "gamma_scale=example" in listed


def test_train_shows_the_escapes_of_its_arguments_and_sends_none(invoke):
    evil = "\x1b[31m\u202e\x9b1m"
    done = invoke(*tiny("--runs", f"runs{evil}"))
    assert done.exit_code == 0
    shown = done.stdout + done.stderr
    assert "runs\\x1b[31m" in shown
    assert not {"\x1b", "\u202e", "\x9b"} & set(shown)


def test_runs_of_an_empty_folder(invoke):
    Path("runs").mkdir()
    assert "0 of 0 runs" in invoke("runs").output


def test_a_full_disk_is_a_message(tmp_path):
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))"
    program = f"{limited}; sys.argv[1:] = ['estimators']; from pullback_study.__main__ import main; main()"
    with open(tmp_path / "out", "w") as file:
        ended = subprocess.run([sys.executable, "-c", program], stdout=file, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "cannot write the output: File too large\n"


def test_damaged_files_are_not_to_be_tried_again(invoke):
    assert invoke(*tiny()).exit_code == 0
    (result,) = Path("runs").glob("*/result.json")
    result.write_bytes(b"\xff")
    damaged = invoke(*tiny())
    assert damaged.exit_code == 1
    assert "result.json is not text" in damaged.stderr
    assert "delete it to train this run from the start" in damaged.stderr
    assert "to retry" not in damaged.stderr
    assert "1 of 1 run in runs/" in invoke("runs").output


def test_a_folder_that_cannot_be_used_is_one_mistake(invoke):
    Path("file").write_text("")
    result = invoke(*tiny("--runs", "file/runs", "--seed", "0", "--seed", "1"))
    assert result.exit_code == 2
    assert result.output.count("file/runs") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("reproduce", "page", "missing.md", "--study", "text"), "cannot update the page missing.md: No such file"),
        (("reproduce", "page", "folder", "--study", "text"), "cannot update the page folder: Is a directory"),
        (("runs", "--csv", "folder"), "cannot write the list of runs to folder: Is a directory"),
        (("runs", "--csv", ""), "Is a directory"),
        (("report", "--out", "."), "cannot write the report to .: Is a directory"),
        (("report", "--out", ""), "cannot write the report to .: Is a directory"),
        (("report", "--out", "file/x.html"), "cannot write the report to file/x.html: "),
        (("sweep", "missing.toml"), "the sweep file missing.toml cannot be read: No such file"),
    ],
    ids=str,
)
def test_what_the_system_refuses_is_named(invoke, arguments, said):
    Path("file").write_text("")
    Path("folder").mkdir()
    Path("runs").mkdir()
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
    assert "Errno" not in result.output


SWEEP = """
task = "synthetic"
[fields]
clusters = 3
seed = [0, 1]
steps = 4
evaluate_every = 2
features = 8
train_examples = 60
validation_examples = 20
test_examples = 20
[[grid]]
estimator = ["spigot", "spigot-ce"]
step_size = [0.1, 1.0]
[[grid]]
estimator = "softmax"
"""


def sweep(*more):
    Path("sweep.toml").write_text(SWEEP)
    return ("sweep", "sweep.toml", "--device", "cpu", "--workers", "1", *more)


def test_a_sweep_from_plan_to_summary(invoke):
    planned = invoke(*sweep("--dry-run"))
    assert planned.exit_code == 0, planned.output
    assert "10 runs: 10 new; 3 groups to train" in planned.output
    assert not Path("runs").exists()
    done = invoke(*sweep("--by", "estimator"))
    assert done.exit_code == 0, done.output
    assert "10 runs in runs/: 10 trained, 0 already done" in done.stderr
    assert "Best configuration for each estimator, by validation accuracy" in done.stdout
    assert all(name in done.stdout for name in ("spigot,", "spigot-ce,", "marginals"))
    again = invoke(*sweep("--markdown"))
    assert "0 trained, 10 already done" in again.stderr
    assert all(line.startswith(("|", "**", "")) for line in again.stdout.splitlines())
    assert "±" in again.stdout
    assert "standard error" in again.stdout
    assert "10 runs: 10 done; 0 groups to train" in invoke(*sweep("--dry-run")).output

    chosen = ("--where", "estimator=spigot", "--where", "step_size>0.5", "--sort", "-test_accuracy")
    assert "2 of 10 runs" in invoke("runs", *chosen).output
    assert "2 of 10 runs" in invoke("runs", "--estimator", "softmax").output
    assert invoke("runs", "--where", "seed=1", "--csv", "out.csv").exit_code == 0
    with open("out.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5
    assert {row["seed"] for row in rows} == {"1"}
    assert invoke("runs", "--csv", "-").output.startswith("run,state,task,version,estimator")


def test_a_run_that_fails_is_reported_and_tried_again(invoke, monkeypatch):
    kind = type(find_task("synthetic"))
    trainer = kind.trainer

    def unlucky(self, configs, device):
        if configs[0].estimator == "spigot":
            raise RuntimeError("out of luck")
        return trainer(self, configs, device)

    with monkeypatch.context() as patch:
        patch.setattr(kind, "trainer", unlucky)
        failed = invoke(*sweep())
    assert failed.exit_code == 1
    assert "SPIGOT, clusters 3, learning rate 0.002: RuntimeError: out of luck" in failed.output
    assert "Run the same command again to retry" in failed.output
    assert invoke("runs", "--status", "failed").output.count("RuntimeError: out of luck") == 4
    assert "4 trained, 6 already done" in invoke(*sweep()).output


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("seed = [0, 1]", "sead = [0, 1]"), "[fields]: a config of this task has no field 'sead'; did you mean 'seed'?"),
        (("steps = 4", "steps = '4'"), "steps is '4', a string; it must be an integer"),
        (("[fields]", ""), "(known are fields, grid, task); fields of the config belong under [fields]"),
        (("synthetic", "synthetics"), "there is no task 'synthetics'; did you mean 'synthetic'?"),
    ],
)
def test_a_bad_file_is_refused_before_anything_starts(invoke, change, said):
    arguments = sweep()
    Path("sweep.toml").write_text(SWEEP.replace(*change))
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--by", "step_sise"), "did you mean 'step_size'?"),
        (("--workers", "0"), "Invalid value for '--workers'"),
    ],
)
def test_bad_options_get_a_hint(invoke, arguments, said):
    result = invoke(*sweep(*arguments))
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
    assert not Path("runs").exists()


def test_the_example_is_right():
    from pullback_study.runs.sweep import read

    assert len(read(Path(__file__).parents[2] / "examples" / "sweep.toml").configs) == 16


def test_ctrl_c_says_how_to_resume(tmp_path):
    command = [sys.executable, "-m", "pullback_study", *tiny(steps="100000")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True, env=environment)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("runs/*/config.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Stopping: saving checkpoints" in errors
    assert "Run the same command again to resume" in errors
    assert "Traceback" not in errors
    assert output == ""
    assert list(tmp_path.glob("runs/.work/*/checkpoint.pt"))


PUBLIC = {"pullback", "pullback.viz", "pullback.estimators", "pullback.losses", "pullback.parts", "pullback.structures"}


def test_the_study_imports_public_names_alone_and_the_library_never_imports_it():
    private = []
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "pullback":
                private += [f"{path.name}: {node.module}"] if node.module not in PUBLIC else []
    assert private == []
    library = Path(pullback.__file__).parent
    assert not [path for path in library.rglob("*.py") if "pullback_study" in path.read_text()]


@pytest.mark.parametrize("part", ["corpora", "runs", "tasks", "trees"])
def test_what_trains_and_reads_never_imports_results_report_or_commands(part):
    above = tuple(f"pullback_study.{each}" for each in ("results", "report", "cli"))
    for path in (SOURCES / part).rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        modules = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
        modules += [each.name for node in nodes if isinstance(node, ast.Import) for each in node.names]
        assert [each for each in modules if each.startswith(above)] == [], path


def test_only_their_folders_and_the_registry_name_the_paper_s_corpora():
    def named(path):
        words = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
        return {"sst", "snli"} & {word for word in words if isinstance(word, str)}

    allowed = ("tasks/text/", "tasks/__init__.py", "corpora/", "results/paper/", "cli/reproduce.py")
    paths = [path for path in SOURCES.rglob("*.py") if not str(path.relative_to(SOURCES)).startswith(allowed)]
    assert [str(path.relative_to(SOURCES)) for path in paths if named(path)] == []
