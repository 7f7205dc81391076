"""ListOps: who is chosen, who goes on to five seeds, and what the rules conclude, from results made by the tests."""

import dataclasses
from pathlib import Path

import pytest

from pullback_study.results.choice import Runs
from pullback_study.results.listops import (
    BASELINES,
    CLAIMS,
    FULL,
    PAPER,
    ROWS,
    TASK,
    claims,
    contenders,
    finalists,
    groups,
    long_runs,
    longer,
    on_bed,
    plan,
    results,
)
from pullback_study.results.paper.verdicts import Verdict
from pullback_study.results.registry import markdown


def publish(root, config, accuracy, attachment):
    run = TASK.run(config, root)
    run.start()
    names = [metric.name for metric in TASK.metrics if metric.name != "loss"]
    numbers = {name: (attachment if "attach" in name or "edge" in name else accuracy) + 0.1 * config.seed for name in names}
    run.write_curve([{"step": 250, "accuracy": accuracy, "attachment": attachment, "loss": 1.0}])
    run.publish({**numbers, "test_precision": attachment, "test_recall": attachment, "step_ms": 5.0})


def screen(root, best):
    for i, name in enumerate(ROWS):
        for config in plan(name).first:
            publish(root, config, best.get(name, 50 + 0.5 * i) + (config.learning_rate == 1e-3), 60)


def test_the_screening_chooses_rates_and_finalists(tmp_path):
    best = {"blackbox": 90, "imle": 91, "reinmax": 92, "lpgd": 93, "spigot": 94}
    screen(tmp_path, best)
    assert plan("imle").choose(Runs(tmp_path)).config.learning_rate == 1e-3
    assert set(finalists(Runs(tmp_path))) == {*BASELINES, *PAPER, *best}
    assert len(PAPER) == 8
    assert [row.name for row in results(Runs(tmp_path), final=True).rows] == finalists(Runs(tmp_path))
    rows = results(Runs(tmp_path), final=False).rows
    assert [row.name for row in rows] == list(ROWS)
    assert [row.heading for row in rows] == sorted([row.heading for row in rows], key=["Baselines", "Relaxed", "Argmax"].index)
    assert "test_attachment" not in rows[ROWS.index("lstm")].cells  # it has no trees


def test_the_best_five_go_on_to_the_longer_runs_with_as_many_seeds(tmp_path):
    assert contenders(Runs(tmp_path)) == list(BASELINES)
    best = {"blackbox": 90, "imle": 91, "reinmax": 92, "lpgd": 93, "spigot": 94}
    screen(tmp_path, best)
    assert set(contenders(Runs(tmp_path))) == {*BASELINES, *best}
    for tuned in (False, True):
        table = long_runs(Runs(tmp_path), tuned=tuned)
        assert [row.name for row in table.rows] == contenders(Runs(tmp_path))
        assert "not run" in table.markdown()
        longest = longer(FULL, tuned=tuned)
        assert len(longest.seeds) >= 5
        assert longest["steps"] >= 20_000
    assert len(FULL.seeds) >= 5


def test_each_bed_has_a_table_with_its_command():
    found = [table for group in groups(Runs(Path("nowhere"))) for table in group.tables]
    assert all(not table.runs for table in found)
    commands = {table.command.removesuffix(" --runs nowhere") for table in found}
    for words in ("--heads open", "--heads operators", "--no-brackets", "--depth 3 --tokens 20", "--depth 8 --tokens 50"):
        assert f"pullback reproduce listops {words}" in commands
    assert len(plan("gold", on_bed(depth=3)).configs) == len(FULL.rates) * 5
    assert plan("gold", on_bed(depth=8)).configs[0].tokens == 50
    assert on_bed(depth=4, tokens=30)["tokens"] == 30


def test_a_row_that_is_added_later_says_so(tmp_path):
    screen(tmp_path, {"blackbox": 90, "imle": 91, "reinmax": 92, "lpgd": 93, "spigot": 94})
    for config in plan("sfe").choose(Runs(tmp_path)).configs[1:]:
        publish(tmp_path, config, 40, 90)
    table = results(Runs(tmp_path), final=True)
    assert "sfe" not in finalists(Runs(tmp_path))
    assert "sfe" in [row.name for row in table.rows]
    assert "added when the screening was known: SFE." in table.markdown()


@pytest.mark.parametrize(("gold", "expected"), [(97, Verdict.HOLDS), (60, Verdict.FAILS)])
def test_verdicts(tmp_path, gold, expected):
    screen(tmp_path, {"gold": gold, "marginals": 80})
    assert {claim.verdict for claim in claims(Runs(tmp_path))} == {Verdict.OPEN}  # one seed decides nothing
    for name in finalists(Runs(tmp_path)):
        chosen = plan(name).choose(Runs(tmp_path))
        for config in chosen.configs[1:]:
            publish(tmp_path, config, chosen.values("test_accuracy")[0], 80 if name == "marginals" else 60)
    decided = {claim.number: claim.verdict for claim in claims(Runs(tmp_path))}
    assert decided[101] is expected
    assert len(decided) == len(CLAIMS)
    assert "Marginals" in markdown(groups(Runs(tmp_path)), claims(Runs(tmp_path)))
    assert any(figure.name == "listops-curves" for group in groups(Runs(tmp_path)) for figure in group.figures)


def test_seeds_share_everything_but_the_seed():
    for candidate in plan("spigot").candidates:
        assert [config.seed for config in candidate] == list(FULL.seeds)
        assert len({dataclasses.replace(config, seed=0) for config in candidate}) == 1
