"""`pullback reproduce`: the commands, with training replaced by results made by the tests."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pullback_study.cli import app, terminal
from pullback_study.results.paper.clusters import TASK, table_plan
from pullback_study.results.registry import BEGIN, END
from report.folders import publish


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """The command line in an empty folder; every run that is wanted gets a made-up result at once, and progress is told."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    monkeypatch.setattr("pullback_study.runs.provenance.changed_files", list)  # whatever the developer has changed

    def train(task, configs, *, runs, **how):
        if configs:
            terminal.err.print("training ...")
        for config in dict.fromkeys(configs):
            run = task.run(config, runs)
            if run.done:
                continue
            if task.name == "synthetic":
                publish(runs, config, 80.0, 100.0 if config.seed % 2 else 60.0)
            else:
                run.start()
                numbers = {"validation_accuracy": 80.0, "test_accuracy": 81.0 + config.seed, "test_depth": 2.0}
                run.publish({**numbers, "best_epoch": 1})

    monkeypatch.setattr(terminal, "train_or_exit", train)
    return lambda *words: CliRunner().invoke(app, ["reproduce", *words], env={"COLUMNS": "160"})


def test_markdown_holds_the_tables_alone_and_progress_goes_to_stderr(invoke):
    done = invoke("table1", "--quick", "--only", "softmax", "--only", "gold", "--markdown")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("**3 clusters")
    assert "training" not in done.stdout
    assert done.stderr.count("training ...") == 1
    rows = [line.split("|")[1].strip() for line in done.stdout.splitlines() if "±" in line and line.startswith("|")]
    assert rows == ["Gold cluster labels", "Softmax"] * 2  # the table's order
    assert "±: median ± standard error over 2 seeds." in done.stdout
    assert "not comparable with the paper's" in done.stdout


def test_many_seeds(invoke):
    done = invoke("table1", "--seeds", "10", "--only", "ste-i", "--only", "spigot")
    assert done.exit_code == 0, done.output
    assert "50% [24%, 76%]" in done.stdout
    assert "over 10 seeds" in done.stdout
    assert sorted(path.name for path in Path("figures").glob("*.svg")) == [
        f"clusters-{k}-{measure}.svg" for k in (10, 3) for measure in ("accuracy", "v_measure")
    ]
    assert len(list(Path("runs").iterdir())) == 2 * 2 * 10


def test_json_names_the_runs(invoke):
    done = invoke("table1", "--quick", "--only", "gold", "--json")
    first = json.loads(done.stdout)[0]["rows"][0]["cells"]["accuracy"]
    assert len(first["runs"]) == 2
    assert (Path("runs") / first["runs"][0] / "result.json").exists()


def test_a_folder_for_figures_that_cannot_be_made_is_a_message(invoke):
    Path("file").touch()
    done = invoke("curves", "--quick", "--figures", "file/figures")
    assert done.exit_code == 2
    assert "training" not in done.stderr
    assert "file/figures" in done.stderr
    assert "Traceback" not in done.output


@pytest.mark.parametrize("command", ["curves", "steps"])
def test_figures(invoke, command):
    done = invoke(command, "--quick", "--seeds", "3")
    assert done.exit_code == 0, done.output
    assert Path(f"figures/synthetic-{command}-quick.svg").read_text().startswith("<?xml")
    assert "Median and range of 3 seeds." in " ".join(done.stderr.split())
    assert done.stdout == ""


def test_text_tables(invoke, monkeypatch):
    from pullback_study.results.paper import text

    protocol = text.FULL["sst"]
    monkeypatch.setattr("pullback_study.cli.reproduce._text_protocol", lambda *a, **k: (text.TASKS["sst"], protocol))
    done = invoke("table2", "--search", "--only", "spigot", "--markdown")
    assert done.exit_code == 0, done.output
    assert "| SPIGOT | 80.00±0.00≠ | 84.51±0.80 | 82.00±1.00≠ | 84.80±1.10 | 2.00±0.00 | 3 of 3 |" in done.stdout
    assert len(list(Path("runs").iterdir())) == 5  # seed 0 at three rates, two more seeds at the chosen one
    done = invoke("steps", "--task", "sst", "--markdown")
    assert "| SPIGOT | 82.00±1.00 | 82.00±1.00 | 82.00±1.00 | 2.0, 2.0, 2.0 |" in done.stdout


def test_claims_and_pages_train_nothing(invoke):
    done = invoke("claims", "--markdown")
    assert done.exit_code == 0
    assert done.stdout.count("**Claim") == 24
    assert done.stdout.count(": not decided. ") == 24
    page = Path("page.md")
    page.write_text(f"# Results\n{BEGIN}\nstale words\n{END}\nthe end\n")
    for study in ("synthetic", "text", "listops"):
        done = invoke("page", str(page), "--study", study)
        assert done.exit_code == 2
        assert f"there are no runs of {study} in runs/" in done.stderr
    assert "stale words" in page.read_text()
    assert not Path("runs").exists()


def test_a_page_is_written_unless_it_would_lose_numbers(invoke):
    page = Path("page.md")
    page.write_text(f"# Results\n{BEGIN}\nstale words\n{END}\nthe end\n")
    assert invoke("table1", "--only", "gold", "--only", "softmax", "--runs", "more").exit_code == 0
    assert invoke("table1", "--only", "gold", "--runs", "fewer").exit_code == 0
    assert invoke("page", str(page), "--runs", "more").exit_code == 0
    written = page.read_text()
    assert written.startswith("# Results\n")
    assert written.endswith("the end\n")
    assert "stale words" not in written
    assert "not run" in written
    lost = invoke("page", str(page), "--runs", "fewer")
    assert lost.exit_code == 2
    assert "numbers that these runs do not give (Softmax)" in " ".join(lost.stderr.split())
    assert page.read_text() == written
    assert invoke("page", str(page), "--runs", "more").exit_code == 0
    assert invoke("page", str(page), "--runs", "fewer", "--force").exit_code == 0
    assert page.read_text() != written


@pytest.mark.parametrize("command", ["page", "recovery"])
def test_a_page_is_not_written_by_code_with_changes(invoke, monkeypatch, command):
    page = Path("page.md")
    page.write_text(f"{BEGIN}\n{END}\n")
    for config in table_plan("spigot", 3, grid=False).configs:
        publish(Path("runs"), config, 80.0, 60.0)
    words = ["recovery", "--no-train", "--page", str(page)] if command == "recovery" else ["page", str(page)]
    monkeypatch.setattr("pullback_study.runs.provenance.changed_files", lambda: ["src/pullback/core.py"])
    done = invoke(*words)
    assert done.exit_code == 2
    assert "the code has changes that no commit has (src/pullback/core.py)" in " ".join(done.stderr.split())
    assert page.read_text() == f"{BEGIN}\n{END}\n"
    assert invoke(*words, "--force").exit_code == 0


CLEAN, OTHER = {"commit": "a" * 40, "torch": "2", "pullback": "1"}, {"commit": "b" * 40, "torch": "2", "pullback": "1"}


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        (CLEAN, None),
        ({}, "was trained by code of an unknown commit"),
        ({**CLEAN, "commit": "a" * 40 + "-dirty"}, "was trained by code with changes that commit aaaaaaaaaaaa does not have"),
        ({**CLEAN, "earlier": [{**OTHER, "commit": "b" * 40 + "-dirty"}]}, "with changes that commit bbbbbbbbbbbb does not"),
        ({**CLEAN, "earlier": [OTHER]}, "several versions of the code (commit bbbbbbbbbbbb, torch 2, pullback 1; commit aaaa"),
        ({**CLEAN, "earlier": [{**CLEAN, "torch": "3"}]}, "torch 3, pullback 1; commit aaaaaaaaaaaa, torch 2, pullback 1)"),
        ({**CLEAN, "earlier": [{**CLEAN, "device": "another"}]}, None),
    ],
    ids=["clean", "unknown", "dirty", "begun dirty", "mixed", "another torch", "another device"],
)  # fmt: skip
@pytest.mark.parametrize("command", ["page", "recovery"])
def test_a_page_rests_on_runs_of_one_clean_commit_each(invoke, command, origin, said):
    page = Path("page.md")
    page.write_text(f"{BEGIN}\n{END}\n")
    configs = table_plan("spigot", 3, grid=False).configs
    for config in configs:
        run = TASK.run(config, Path("runs"))
        run.start()
        code = origin if config is configs[0] else CLEAN
        run.publish({"validation_accuracy": 80.0, "test_accuracy": 80.0, "test_v_measure": 50.0, **code})
    words = ["recovery", "--no-train", "--page", str(page)] if command == "recovery" else ["page", str(page)]
    done = invoke(*words)
    assert done.exit_code == (2 if said else 0), done.output
    if said:
        assert said in done.stderr.replace("\n", " ")
        assert page.read_text() == f"{BEGIN}\n{END}\n"
        assert invoke(*words, "--force").exit_code == 0
    assert "spigot" in page.read_text().lower()


@pytest.mark.parametrize(
    ("words", "hint"),
    [(["table1", "--only", "spigt"], "did you mean 'spigot'"), (["page", "none.md"], "cannot update the page none.md"),
     (["table2", "--only", "spigot", "--data", "none"], "none"), (["table1", "--seeds", "0"], "--seeds")],
    ids=str,
)  # fmt: skip
def test_mistakes_are_messages(invoke, words, hint):
    done = invoke(*words)
    assert done.exit_code == 2
    assert hint in done.stderr
    assert not Path("runs").exists()


def test_check_draws_equally_many_runs_of_each_study():
    from random import Random
    from types import SimpleNamespace as Run

    from pullback_study.cli.pages import _drawn

    runs = [Run(task="planted", id=i) for i in range(900)] + [Run(task="synthetic", id=i) for i in range(3)]
    for seed in range(5):
        drawn = _drawn(runs, 4, Random(seed))
        assert [run.task for run in drawn].count("planted") == 2
        assert len({(run.task, run.id) for run in drawn}) == 4
    assert len(_drawn(runs, 10, Random(0))) == 10
    assert {_drawn(runs, 1, Random(seed))[0].task for seed in range(9)} == {"planted", "synthetic"}


def test_check_prints_the_kept_tables_and_trains_runs_again(tmp_path, monkeypatch):
    """With runs of 20 steps; the number of one was changed since, and shows."""
    monkeypatch.chdir(tmp_path)
    from pullback_study.results.choice import Runs
    from pullback_study.results.registry import pack
    from pullback_study.runs.files import read_json
    from pullback_study.runs.train import train

    sizes = {"train_examples": 200, "validation_examples": 100, "test_examples": 100}
    configs = [TASK.configure(estimator="marginals", clusters=3, steps=20, seed=seed, **sizes) for seed in (0, 1)]
    train(TASK, configs, tmp_path / "runs", device="cpu")
    right, changed = (TASK.run(config, tmp_path / "runs") for config in configs)
    kept = read_json(changed.path / "result.json")
    (changed.path / "result.json").write_text(json.dumps(kept | {"test_accuracy": kept["test_accuracy"] + 5}))
    pack(Runs(tmp_path / "runs"), ["synthetic"], tmp_path / "pages" / "runs-synthetic.tar.xz", force=True)
    words = ["--count", "2", "--draw", "0", "--results", "pages", "--device", "cpu", "--markdown"]
    done = CliRunner().invoke(app, ["reproduce", "check", *words])
    assert done.exit_code == 0, done.output
    lines = [line for line in done.stdout.splitlines() if "Test accuracy" in line]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    differences = {row[0][-6:]: row[4] for row in rows}
    assert differences == {"seed 0": "0.00", "seed 1": "-5.00"}
    again = {row[0][-6:]: float(row[3]) for row in rows}
    assert again == pytest.approx({"seed 0": right.result["test_accuracy"], "seed 1": kept["test_accuracy"]})
    assert list(tmp_path.glob("again")) == []
    nothing = CliRunner().invoke(app, ["reproduce", "check", "--results", "elsewhere"])
    assert nothing.exit_code == 2
    assert "has no archive of runs whose data are generated" in nothing.stderr
