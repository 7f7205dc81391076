"""Table 1: which runs are chosen, what the rules conclude, and the figures, from results made by the tests."""

import dataclasses
import math
from dataclasses import dataclass

import pytest

from pullback_study.published import rows
from pullback_study.results.cells import interval
from pullback_study.results.choice import Chosen, Runs
from pullback_study.results.paper import clusters
from pullback_study.results.paper.claims_clusters import CLAIMS, Clusters, Paper
from pullback_study.results.paper.clusters import (
    METHODS,
    TASK,
    VARIANTS,
    groups,
    results,
    steps_plan,
    table_plan,
)
from pullback_study.results.paper.verdicts import Verdict, best_of, decide, exceeds, near, verdict

# A world in which every claim holds: accuracy and V-measure.
WORLD = {
    "linear": (60, 0), "gold": (90, 100), "marginals": (89, 70), "sparsemap": (89, 72),
    "perturbed-marginals": (88, 97), "perturb-and-map": (88, 97), "sfe": (60, 50), "sfe-baseline": (89, 98),
    "ste-s": (80, 85), "ste-i": (88, 97), "spigot": (70, 25), "spigot-ce": (88, 97), "spigot-eg": (88, 97),
}  # fmt: skip
CALLS = {"spigot-ce": 1, "spigot-eg": 1}


@dataclass(frozen=True)
class FakeRun:
    seed: int
    metrics: dict
    rows: list

    def curve(self):
        return self.rows


def fake_run(config, accuracy, v_measure):
    wobble = 0.1 * config.seed
    early = 80 if config.estimator in ("marginals", "sparsemap") else 65
    noise = 2.0 + config.seed if config.estimator == "spigot" else 0.1
    late = [(step, accuracy + noise * (step % 200 == 0)) for step in range(8000, 10_001, 100)]
    rows = [{"step": step, "accuracy": value} for step, value in [(1000, early + wobble), *late]]
    numbers = {"accuracy": accuracy + wobble, "v_measure": v_measure - wobble}
    result = {f"{split}_{name}": value for split in ("validation", "test") for name, value in numbers.items()}
    result["decoder_calls"] = (config.inner_steps or 1) + CALLS.get(config.estimator, 0)
    return FakeRun(config.seed, result, rows)


class World(Clusters):
    """Runs that were never made."""

    def __init__(self, world):
        super().__init__(world, clusters.FULL)

    def row(self, place, estimator):
        return self.made(table_plan(estimator, place, grid=True), estimator)

    def steps(self, estimator):
        plans = {k: steps_plan(estimator, k) for k in clusters.inner_steps(clusters.FULL)}
        return {k: self.made(plan, estimator, k / 4 * (estimator == "spigot-ce")) for k, plan in plans.items()}

    def made(self, plan, estimator, gain=0.0):
        accuracy, v_measure = self.runs[estimator]
        configs = plan.candidates[0]
        return Chosen(TASK, estimator, configs, tuple(fake_run(config, accuracy + gain, v_measure) for config in configs))


def test_rules_on_the_numbers_of_the_paper(tmp_path):
    """With four runs a standard error becomes an interval by Student's t, 3.182; differences count as unpaired."""
    (spigot,) = [each for each in CLAIMS[12](Paper(Runs(tmp_path))) if "accuracy" in each.statement]
    assert spigot.interval.mean == pytest.approx(84.5 - 68.8)
    assert spigot.interval.high - spigot.interval.mean == pytest.approx(3.182 * math.hypot(1.43, 1.02))
    assert spigot.verdict is Verdict.HOLDS
    shortfalls = CLAIMS[3](Paper(Runs(tmp_path)))
    assert Verdict.FAILS not in {finding.verdict for finding in shortfalls}  # a rule that the paper's own table does not fail
    (eg,) = [each for each in shortfalls if "SPIGOT-EG, accuracy, 10 clusters" in each.statement]
    assert eg.interval.mean == pytest.approx(86.45 - 79.4)


def test_a_shortfall_is_judged_against_the_papers_own():
    world = WORLD | {"marginals": (92, 70), "spigot-eg": (82, 97)}  # 10 points below; the paper has 7.05 with 10 clusters
    found = {each.statement.split(" (")[0]: each.verdict for each in CLAIMS[3](World(world))}
    assert found["best row - SPIGOT-EG, accuracy, 10 clusters"] is Verdict.HOLDS
    assert found["best row - SPIGOT-EG, accuracy, 3 clusters"] is Verdict.FAILS


def verdicts(evidence):
    return {number: verdict(rule(evidence)) for number, rule in CLAIMS.items()}


def test_without_runs_nothing_is_decided(tmp_path):
    assert set(verdicts(Clusters(Runs(tmp_path))).values()) == {Verdict.OPEN}


def test_a_world_in_which_all_claims_hold():
    assert verdicts(World(WORLD)) == dict.fromkeys(CLAIMS, Verdict.HOLDS)
    (first, *_) = decide(CLAIMS, World(WORLD))
    assert first.table().title.startswith("Claim 1: holds. Cluster separation is needed")
    assert first.rule.endswith("the linear model's by more than 10 points.")


def test_a_rule_that_cannot_be_applied_decides_nothing():
    (claim,) = decide({1: lambda evidence: evidence["row"]}, {})
    assert claim.verdict is Verdict.OPEN
    assert "KeyError" in claim.findings[0].evidence


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        ({"linear": (88, 0)}, {1}),
        ({"sfe": (89, 98)}, {2}),
        ({"sfe-baseline": (70, 60)}, {2, 3}),
        ({"spigot-eg": (70, 60)}, {3}),
        ({"spigot": (88, 97)}, {4, 6}),
        ({"marginals": (89, 99)}, {5}),
    ],
    ids=str,
)
def test_worlds_in_which_a_claim_does_not_hold(change, fails):
    assert fails <= {number for number, found in verdicts(World(WORLD | change)).items() if found is Verdict.FAILS}


def publish(root, config, accuracy, v_measure):
    run = TASK.run(config, root)
    run.start()
    made = fake_run(config, accuracy, v_measure)
    run.write_curve(made.rows)
    run.publish(made.metrics)


def test_a_choice_waits_for_all_candidates_and_takes_the_best_on_validation(tmp_path):
    plan = table_plan("spigot-ce", 3, grid=True)
    assert len(plan.candidates) == 9
    for config in plan.configs[:-1]:
        publish(tmp_path, config, 70 + 5 * (config.step_size == 1.0) + (config.learning_rate == 0.002), 50)
    assert not plan.choose(Runs(tmp_path))
    publish(tmp_path, plan.configs[-1], 70, 50)
    chosen = plan.choose(Runs(tmp_path))
    assert (chosen.config.learning_rate, chosen.config.step_size) == (0.002, 1.0)
    assert [run.seed for run in chosen.runs] == [0, 1, 2, 3]


def test_with_many_seeds_the_first_four_choose_and_the_others_run_at_the_choice_alone(tmp_path):
    plan = table_plan("marginals", 3, grid=True, protocol=clusters.MANY)
    deciding = [config for candidate in plan.deciding for config in candidate]
    assert {config.seed for config in deciding} == {0, 1, 2, 3}
    for config in deciding:
        publish(tmp_path, config, 70 + (config.learning_rate == 0.001), 50)
    assert plan.choose(Runs(tmp_path)).config.learning_rate == 0.001
    assert not plan.choose(Runs(tmp_path)).complete  # 44 seeds are missing
    assert not Clusters(Runs(tmp_path), grid=True).rows(3, "marginals")[0].done  # four of 48 decide nothing
    for config in plan.choose(Runs(tmp_path)).configs[4:]:
        publish(tmp_path, config, 71, 50)
    assert plan.choose(Runs(tmp_path)).complete
    assert len(plan.choose(Runs(tmp_path)).values("test_accuracy")) == 48


@pytest.mark.parametrize("seeds", [1, 4])
def test_a_setting_that_diverged_wins_no_search(seeds, tmp_path):
    plan = table_plan("marginals", 3, grid=True)
    for setting, candidate in enumerate(plan.candidates):
        for config in candidate:
            diverged = setting == 0 and config.seed < seeds
            publish(tmp_path, config, math.nan if diverged else 70 + 0.1 * (setting == 1), 50)
    assert plan.choose(Runs(tmp_path)).configs == plan.candidates[1]


def test_a_setting_that_diverged_does_not_win_by_a_metric_below_zero(tmp_path):
    task = dataclasses.replace(TASK, selected_by="validation_v_measure")
    plan = dataclasses.replace(table_plan("marginals", 3, grid=True), task=task)
    for value, candidate in zip((-2.0, math.nan, -1.0), plan.candidates, strict=True):
        for config in candidate:
            publish(tmp_path, config, 70, value)
    assert plan.choose(Runs(tmp_path)).configs == plan.candidates[2]


def test_a_row_that_diverged_is_not_the_best():
    world = World(WORLD | {"marginals": (math.nan, math.nan)})
    rows = [world.row(3, name) for name in ("marginals", "gold", "linear")]
    assert best_of(rows, "test_accuracy") is rows[1]


def test_many_seeds_are_split_into_groups_of_a_limited_size():
    plan = table_plan("spigot", 10, grid=True, protocol=dataclasses.replace(clusters.MANY, seeds=tuple(range(80))))
    groups = TASK.partition(plan.configs)
    assert [len(group) for group in groups] == [9 * 74, 9 * 6]  # 9 settings; 2^25 scores are 671 replicas of 50,000
    assert {config for group in groups for config in group} == set(plan.configs)


def test_the_table_marks_what_differs(tmp_path):
    four = dataclasses.replace(VARIANTS["best"], protocol=clusters.FULL, words=())
    for name, accuracy, v_measure in (("linear", 68, 0), ("marginals", 80, 66.9)):
        for config in table_plan(name, 3, grid=False).configs[: 4 if name == "linear" else 3]:
            publish(tmp_path, config, accuracy, v_measure)
    table = results(four, 3, Runs(tmp_path))
    rows = {row[0]: row[1:] for row in table.text().rows}
    assert rows["Linear model"][:2] == ["68.15±0.06", "68.05±0.09"]
    assert "≠" in rows["Softmax"][0]
    assert "≠" not in rows["Softmax"][2]
    assert rows["STE-I"] == ["not run", "92.60±0.23", "not run", "100.00±0.00", "0 of 4"]
    assert "±: median ± standard error over 3 to 4 seeds." in table.caption
    assert table.command == f"pullback reproduce table1 --runs {tmp_path}"


def test_the_report_adds_estimators_that_the_paper_does_not_have(tmp_path):
    for config in table_plan("reinmax", 3, grid=False, protocol=clusters.QUICK).configs:
        publish(tmp_path, config, 70, 50)
    quick = next(group for group in groups(Runs(tmp_path)) if group.title == "Quick runs")
    (row,) = [row for row in quick.tables[0].rows if row.name == "reinmax"]
    assert (row.cells["accuracy"].show(), row.cells["accuracy"].reference) == ("70.05±0.05", None)
    assert [row.name for row in quick.tables[0].rows].index("reinmax") > 11


def test_a_quick_table_says_what_is_reduced_and_is_not_judged_by_the_paper_s_numbers(tmp_path):
    for config in table_plan("spigot", 3, grid=False, protocol=clusters.QUICK).configs:
        publish(tmp_path, config, 10, 10)
    quick = results(VARIANTS["quick"], 3, Runs(tmp_path))
    (row,) = [row for row in quick.text().rows if row[0] == "SPIGOT"]
    assert row[1] == "10.05±0.05"
    assert "≠" not in quick.markdown()
    assert '"differs": true' not in quick.json()
    assert "not comparable" in results(VARIANTS["quick"], 3, Runs(tmp_path)).caption[-1]
    assert "2 of 4 seeds, 1000 of 10000 steps" in results(VARIANTS["quick"], 3, Runs(tmp_path)).warning
    assert not results(VARIANTS["best"], 3, Runs(tmp_path)).warning


def test_many_seeds_show_quartiles_and_how_many_runs_find_every_cluster(tmp_path):
    protocol = clusters.FULL.on(range(12))
    for config in table_plan("ste-i", 3, grid=False, protocol=protocol).configs:
        publish(tmp_path, config, 90, 100.0 + 0.1 * config.seed if config.seed % 3 else 60.0)
    table = results(clusters.Variant("many", ("ste-i",), protocol=protocol), 3, Runs(tmp_path))
    words = clusters.spreads(table).text()
    assert words.rows[1][-1] == "67% [39%, 86%]"
    assert any("Wilson" in note for note in words.notes)
    assert table.distribution("v_measure").drawn


def test_the_figures_are_the_medians_of_the_runs(tmp_path):
    for k in (1, 3):
        for config in steps_plan("spigot", k).configs:
            publish(tmp_path, config, 60 + k + (config.step_size == 2.0), 20)
    table = clusters.steps_table(Runs(tmp_path), clusters.FULL)
    assert [row.texts["calls"] for row in table.rows] == [row.texts["inner"] for row in table.rows] != []
    figure = clusters.steps(Runs(tmp_path))
    (curve,) = figure.panels[0].curves
    assert (curve.label, list(curve.x)) == ("SPIGOT", [1, 3])
    assert curve.y == pytest.approx([62.15, 64.15])  # the larger step size is the better one
    assert not clusters.curves(Runs(tmp_path), clusters.QUICK).drawn


def test_every_row_of_the_paper_is_there():
    assert {METHODS[name].label for name in clusters.ROWS} == set(rows("synthetic"))
    assert len(clusters.ROWS) == 13


def test_intervals_and_verdicts():
    assert interval([1.0, 1.0, 1.0, 1.0]) == (1.0, 1.0, 1.0)
    assert exceeds("one seed", [5.0]).verdict is Verdict.OPEN
    nan = [float("nan")] * 4
    assert exceeds("", nan).verdict is near("", nan, 1.0).verdict is Verdict.OPEN
    assert exceeds("", [4.0, 5.0, 6.0], 1.0).verdict is exceeds("", [-4.0, -5.0, -6.0], -9.0).verdict is Verdict.HOLDS
    assert exceeds("", [4.0, 5.0, 6.0], 9.0).verdict is Verdict.FAILS
    shortfalls = {(0.0, 0.5, 1.0): Verdict.HOLDS, (7.0, 8.0, 9.0): Verdict.FAILS, (-2.0, 8.0, 18.0): Verdict.OPEN}
    assert {values: near("", values, 3.0).verdict for values in shortfalls} == shortfalls
