"""ListOps: who is chosen, who goes on to five seeds, and what the rules conclude, from results made by the tests."""

import dataclasses

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


def test_the_best_two_go_on_to_the_published_setting(tmp_path):
    assert contenders(Runs(tmp_path)) == list(BASELINES)
    screen(tmp_path, {"blackbox": 90, "imle": 91, "spigot": 94})
    assert set(contenders(Runs(tmp_path))) == {*BASELINES, "spigot", "imle"}
    assert [row.name for row in long_runs(Runs(tmp_path)).rows] == contenders(Runs(tmp_path))
    assert "not run" in long_runs(Runs(tmp_path)).markdown()


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
