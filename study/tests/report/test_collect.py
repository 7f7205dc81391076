"""What the report says is what the runs say."""

import itertools
import shutil

import pytest

from pullback_study.paper import reported
from pullback_study.report.collect import collect
from pullback_study.report.numbers import beside, finite, thinned
from pullback_study.report.page import render
from pullback_study.statistics import standard_error
from pullback_study.synthetic.claims import CLAIMS
from pullback_study.synthetic.evidence import Evidence
from pullback_study.synthetic.methods import ROWS
from pullback_study.synthetic.plans import steps_cell, table_cell
from pullback_study.synthetic.study import Synthetic
from pullback_study.verdicts import verdict
from report.folders import NASTY, publish


def rows_of(data, variant="best", part="10 clusters", table="table1"):
    (found,) = [one for one in data[table] if one["name"] == variant]
    (rows,) = [one["rows"] for one in found["parts"] if one["title"] == part]
    return {row["name"]: row for row in rows}


def test_a_number_is_the_median_of_its_runs_beside_the_papers(data):
    row = rows_of(data)["marginals"]
    cell = row["cells"]["accuracy"]
    assert [(seed, value) for _, seed, value in cell["runs"]] == [(0, 89.0), (1, 90.0), (2, 91.0), (3, 92.0)]
    assert cell["value"] == 90.5
    assert cell["spread"] == round(standard_error([89.0, 90.0, 91.0, 92.0]), 4)
    paper = reported("synthetic", "Softmax", "10 clusters", "accuracy")
    assert cell["paper"] == list(paper)
    assert cell["difference"] == pytest.approx(90.5 - paper.value)
    assert cell["differs"]
    assert row["setting"] == "learning rate 0.002"


def test_a_difference_within_both_spreads_is_not_marked():
    paper = reported("synthetic", "Softmax", "10 clusters", "accuracy")
    assert not beside(paper.value + paper.spread + 0.9, 1.0, paper)["differs"]
    assert beside(paper.value + paper.spread + 1.1, 1.0, paper)["differs"]


def test_every_row_of_both_tables_is_there(data):
    assert list(rows_of(data)) == list(ROWS)
    for part in ("SST", "SNLI"):
        assert len(rows_of(data, "best", part, "table2")) == 9


def test_what_is_missing_comes_with_its_progress_and_its_command(data, folder):
    row = rows_of(data)["spigot-ce"]
    assert row["runs"] == {"total": 4, "killed": 1}
    assert row["command"] == f"pullback reproduce table1 --only spigot-ce --runs {folder}"
    assert row["cells"]["accuracy"] == {"paper": [83.5, 0.87]}
    grid = rows_of(data, "grid")["spigot-ce"]
    assert grid["runs"]["total"] == 36
    assert "--grid --only spigot-ce" in grid["command"]


def test_variants_without_runs_are_left_out(data):
    assert [table["name"] for table in data["table1"]] == ["grid", "best"]


def test_the_commands_of_missing_runs_are_real(data):
    """Each parses: it fails, if at all, only for the want of something to train."""
    import click
    import typer

    from pullback_study.cli import app

    rows = [row for table in data["table1"] + data["table2"] for part in table["parts"] for row in part["rows"]]
    commands = {row["command"] for row in rows if "command" in row}
    commands |= {figure["command"] for figure in data["curves"] + data["steps"]}
    commands |= {command for claim in data["claims"] for command in claim["commands"]}
    group = typer.main.get_command(app)
    for command in commands:
        words = command.split()[1:]
        name, context = "pullback", None
        found: click.Command = group
        while isinstance(found, click.Group):
            context = found.make_context(name, words, parent=context)
            name, found, words = found.resolve_command(context, [*context.protected_args, *context.args])
        found.make_context(name, words, parent=context)


def test_learning_curves_of_unfinished_runs_are_drawn(data):
    (figure,) = [one for one in data["curves"] if one["name"] == "curves-10"]
    series = {line["name"]: line for line in figure["series"]}
    assert series["spigot-ce"]["x"] == [100]
    assert series["spigot-ce"]["lines"]["accuracy"] == {"y": [55.5], "low": [55.5], "high": [55.5]}
    assert series["marginals"]["x"] == list(range(1000, 10001, 1000))
    assert series["marginals"]["lines"]["v_measure"]["y"] == [70.0] * 10
    assert series["ste-s"]["x"] == []


def test_the_figure_on_steps(data):
    (figure,) = data["steps"]
    series = {line["name"]: line for line in figure["series"]}
    assert series["ste-i"]["x"] == list(range(1, 11))
    assert series["ste-i"]["lines"]["accuracy"]["y"] == [80 + k + 1.5 for k in range(1, 11)]
    assert series["spigot"]["x"] == []


def test_verdicts_are_those_of_the_rules(data, folder):
    claims = {claim["number"]: claim for claim in data["claims"]}
    assert list(claims) == list(range(1, 12))
    for number, rule in CLAIMS.items():
        assert claims[number]["verdict"] == verdict(rule(Evidence(folder))).value
    assert all(claim["links"] and claim["commands"] for claim in claims.values())


def test_a_claim_that_the_runs_decide(tmp_path):
    for name, accuracy in (("gold", 90.0), ("linear", 60.0)):
        for clusters in (3, 10):
            for config in table_cell(name, clusters, grid=True).configs:
                publish(tmp_path, config, accuracy, 50.0)
    claim = collect(tmp_path)["claims"][0]
    assert claim["verdict"] == "holds"
    assert claim["findings"][0]["interval"] == [30.0, 30.0, 30.0]
    assert claim["findings"][0]["threshold"] == 10.0


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_without_runs(tmp_path, there):
    root = tmp_path / "runs"
    if there:
        root.mkdir()
    found = collect(root)
    assert found["runs"]["counts"] == {}
    assert {claim["verdict"] for claim in found["claims"]} == {"not decided"}
    assert not any(row["cells"]["accuracy"].get("runs") for row in rows_of(found).values())


def test_open_runs_are_listed_with_their_errors(data):
    failed, killed = data["runs"]["open"]
    assert failed["error"] == NASTY
    assert (killed["status"], killed["progress"]) == ("killed", 0.01)
    assert data["runs"]["counts"]["synthetic"]["failed"] == 1


BROKEN = [
    ("result.json", "{"), ("result.json", "[]"), ("result.json", "{}"), ("result.json", '{"test_accuracy": "high"}'),
    ("metrics.jsonl", "{"), ("metrics.jsonl", "7\n"), ("metrics.jsonl", ""), ("config.json", "{"), ("config.json", "[1]"),
    ("config.json", "{}"), ("config.json", '{"study": 3, "config": null}'), ("error.json", "[]"),
    ("metrics.jsonl", '{"step": "100", "accuracy": 1}'), ("metrics.jsonl", '{"step": NaN}'),
    ("config.json", '{"study": "\\ud800", "version": NaN, "config": {"seed": NaN, "steps": Infinity, "estimator": []}}'),
]  # fmt: skip


def test_broken_directories_do_not_spoil_the_report(folder, tmp_path):
    root = tmp_path / "runs"
    shutil.copytree(folder, root)
    cells = [table_cell("gold", clusters, grid=False) for clusters in (3, 10)] + [steps_cell("ste-i", k) for k in (2, 3)]
    victims = [Synthetic().run(config, root).path for cell in cells for config in cell.configs]
    for victim, (name, content) in zip(victims, BROKEN, strict=False):
        (victim / name).write_text(content)
        if name == "error.json":
            (victim / "result.json").unlink()
    found = collect(root)
    render({**found, "made": ""}).encode()
    small, large = (rows_of(found, part=part) for part in ("3 clusters", "10 clusters"))
    assert "cannot be read" in small["gold"]["problem"]
    assert {name for name, row in small.items() if "setting" in row} == {"linear", "marginals", "spigot"}
    assert {name for name, row in large.items() if "setting" in row} == {"linear", "gold", "marginals", "spigot", "ste-i"}
    (curves,) = [figure["series"] for figure in found["curves"] if figure["name"] == "curves-10"]
    assert [line["name"] for line in curves if "problem" in line] == ["gold"]


def test_a_diverged_run_is_shown_as_one(tmp_path):
    for config in table_cell("linear", 3, grid=False).configs:
        publish(tmp_path, config, float("nan"), 0.0)
    cell = rows_of(collect(tmp_path), part="3 clusters")["linear"]["cells"]["accuracy"]
    assert cell["value"] is None
    assert "differs" not in cell


def test_long_curves_are_thinned_evenly_and_keep_their_end():
    points = list(range(10_000))
    kept = thinned(points)
    assert len(kept) <= 200
    assert kept[-1] == 9_999
    assert len({b - a for a, b in itertools.pairwise(kept)}) == 1
    assert thinned(points[:7]) == points[:7]


def test_what_is_not_a_number_is_none():
    assert [finite(value) for value in (float("nan"), float("inf"), "1", None, True)] == [None] * 5
    assert finite(1.23456) == 1.2346


def test_the_report_leaves_the_runs_as_they_are(folder, tmp_path):
    copy = tmp_path / "runs"
    shutil.copytree(folder, copy)
    before = {path: path.stat().st_mtime_ns for path in copy.glob("*/*")}
    collect(copy)
    assert {path: path.stat().st_mtime_ns for path in copy.glob("*/*")} == before
