"""`pullback sweep` and `pullback runs` as a user types them."""

import csv
from pathlib import Path

import pytest

typer_testing = pytest.importorskip("typer.testing")

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


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("sweep.toml").write_text(SWEEP)

    def run(*arguments):
        from pullback_study.cli import app

        return typer_testing.CliRunner().invoke(app, arguments, env={"COLUMNS": "160"})

    return run


def sweep(*more):
    return ("sweep", "sweep.toml", "--device", "cpu", "--workers", "1", *more)


def test_a_sweep_from_plan_to_summary(invoke):
    planned = invoke(*sweep("--dry-run"))
    assert planned.exit_code == 0, planned.output
    assert "10 runs: 10 new; 3 groups to train" in planned.output
    assert not Path("runs").exists()
    done = invoke(*sweep("--by", "estimator"))
    assert done.exit_code == 0, done.output
    assert "0 done before, 10 trained now" in done.output
    assert "Best configuration for each estimator, by validation accuracy" in done.output
    assert all(f"  {name}" in done.output for name in ("spigot,", "spigot-ce,", "marginals"))
    again = invoke(*sweep("--markdown"))
    assert "10 done before, 0 trained now" in again.output
    assert "| configuration | seeds | valid. accuracy | test accuracy | test V-measure |" in again.output
    assert "10 runs: 10 done; 0 groups to train" in invoke(*sweep("--dry-run")).output

    listed = invoke("runs", "--where", "estimator=spigot", "--where", "step_size>0.5", "--sort", "-test_accuracy").output
    assert "2 of 10 runs" in listed
    assert invoke("runs", "--where", "seed=1", "--csv", "out.csv").exit_code == 0
    with open("out.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5
    assert {row["seed"] for row in rows} == {"1"}
    assert invoke("runs", "--csv", "-").output.startswith("run,status,study,version,estimator")


def test_a_run_that_fails_is_reported_and_tried_again(invoke, monkeypatch):
    from pullback_study.synthetic.study import Synthetic

    trainer = Synthetic.trainer

    def unlucky(self, configs, device):
        if configs[0].estimator == "spigot":
            raise RuntimeError("out of luck")
        return trainer(self, configs, device)

    with monkeypatch.context() as patch:
        patch.setattr(Synthetic, "trainer", unlucky)
        failed = invoke(*sweep())
    assert failed.exit_code == 1
    assert "SPIGOT, 3 clusters: RuntimeError: out of luck" in failed.output
    assert "Run the same command again to retry" in failed.output
    assert "2 configurations are left out" in failed.output
    assert invoke("runs", "--status", "failed").output.count("RuntimeError: out of luck") == 4
    assert "6 done before, 4 trained now" in invoke(*sweep()).output


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("seed = [0, 1]", "sead = [0, 1]"), "line 5: a config of this task has no field 'sead'; did you mean 'seed'?"),
        (("seed = [0, 1]", "seed = []"), "line 5: seed: the list is empty"),
        (("steps = 4", "steps = '4'"), "line 6: steps: '4' is a string; it must be an integer"),
        (("synthetic", "synthetics"), "line 2: there is no task 'synthetics'; did you mean 'synthetic'?"),
    ],
)
def test_a_bad_file_is_refused_before_anything_starts(invoke, change, said):
    Path("sweep.toml").write_text(SWEEP.replace(*change))
    result = invoke(*sweep())
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
    assert "Traceback" not in result.output
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (sweep("--by", "step_sise"), "did you mean 'step_size'?"),
        (("sweep", "sweep.toml", "--workers", "0"), "there must be at least one"),
        (("sweep", "nothing.toml"), "cannot be read"),
        (("runs", "--where", "seed"), "is not a condition"),
    ],
)
def test_bad_options_get_a_hint(invoke, arguments, said):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
    assert not Path("runs").exists()


def test_help_has_examples(invoke):
    assert "pullback sweep examples/sweep.toml --dry-run" in invoke("sweep", "--help").output
    assert "--sort -test_accuracy" in invoke("runs", "--help").output


def test_the_example_is_right():
    from pullback_study.sweep.file import read

    found = read(Path(__file__).parents[2] / "examples" / "sweep.toml")
    assert len(found.configs) == 16
