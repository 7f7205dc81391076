from dataclasses import dataclass

import pytest

from pullback_study.statistics import interval
from pullback_study.synthetic.claims import CLAIMS
from pullback_study.synthetic.config import Config
from pullback_study.synthetic.evidence import Evidence
from pullback_study.synthetic.methods import METHODS
from pullback_study.synthetic.plans import INNER_STEPS, Chosen, choose, steps_cell, table_cell
from pullback_study.synthetic.study import Synthetic
from pullback_study.synthetic.tables import results_table
from pullback_study.verdicts import Verdict, above, claims_tables, verdict, within

# A world in which every claim holds: accuracy and V-measure.
WORLD = {
    "linear": (60, 0), "gold": (90, 100), "marginals": (89, 70), "sparsemap": (89, 72),
    "perturbed-marginals": (88, 97), "perturb-and-map": (88, 97), "sfe": (60, 50), "sfe-baseline": (89, 98),
    "ste-s": (80, 85), "ste-i": (88, 97), "spigot": (70, 25), "spigot-ce": (88, 97), "spigot-eg": (88, 97),
}  # fmt: skip
CALLS = {"spigot-ce": 1, "spigot-eg": 1}

@dataclass(frozen=True)
class FakeRun:
    config: Config
    result: dict
    metrics: list


def fake_run(config, accuracy, v_measure):
    wobble = 0.1 * config.seed
    early = 80 if config.estimator in ("marginals", "sparsemap") else 65
    noise = 2.0 + config.seed if config.estimator == "spigot" else 0.1
    late = [(step, accuracy + noise * (step % 200 == 0)) for step in range(8000, 10_001, 100)]
    metrics = [{"step": step, "accuracy": value} for step, value in [(1000, early + wobble), *late]]
    numbers = {"accuracy": accuracy + wobble, "v_measure": v_measure - wobble}
    result = {f"{split}_{name}": value for split in ("validation", "test") for name, value in numbers.items()}
    result["decoder_calls"] = (config.inner_steps or 1) + CALLS.get(config.estimator, 0)
    return FakeRun(config, result, metrics)


class World(Evidence):
    """Runs that were never made."""

    def row(self, estimator, clusters):
        configs = table_cell(estimator, clusters, grid=True).candidates[0]
        return Chosen(configs[0], tuple(fake_run(config, *self.root[estimator]) for config in configs))

    def steps(self, estimator):
        accuracy, v_measure = self.root[estimator]
        found = {}
        for k in INNER_STEPS:
            configs = steps_cell(estimator, k).candidates[0]
            gain = k / 4 * (estimator == "spigot-ce")
            found[k] = Chosen(configs[0], tuple(fake_run(config, accuracy + gain, v_measure) for config in configs))
        return found


def verdicts(evidence):
    return {number: verdict(rule(evidence)) for number, rule in CLAIMS.items()}


def test_without_runs_nothing_is_decided(tmp_path):
    assert set(verdicts(Evidence(tmp_path)).values()) == {Verdict.OPEN}


def test_a_world_in_which_all_claims_hold():
    assert verdicts(World(WORLD)) == dict.fromkeys(CLAIMS, Verdict.HOLDS)
    assert len(claims_tables(CLAIMS, World(WORLD))) == len(CLAIMS)


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
    run = Synthetic().run(config, root)
    run.start()
    run.publish(fake_run(config, accuracy, v_measure).result)


def test_a_choice_waits_for_all_candidates_and_takes_the_best_on_validation(tmp_path):
    cell = table_cell("spigot-ce", 3, grid=True)
    assert len(cell.candidates) == 9
    for config in cell.configs[:-1]:
        publish(tmp_path, config, 70 + 5 * (config.step_size == 1.0) + (config.learning_rate == 0.002), 50)
    assert choose(cell, tmp_path) is None
    publish(tmp_path, cell.configs[-1], 70, 50)
    chosen = choose(cell, tmp_path)
    assert (chosen.config.learning_rate, chosen.config.step_size) == (0.002, 1.0)
    assert [run.config.seed for run in chosen.runs] == [0, 1, 2, 3]


def test_the_table_marks_what_differs(tmp_path):
    cells = [table_cell(name, 3, grid=False) for name in ("linear", "marginals", "ste-i")]
    for config in cells[0].configs:
        publish(tmp_path, config, 68, 0)
    for config in cells[1].configs:
        publish(tmp_path, config, 80, 66.9)
    rows = {row[0]: row[1:] for row in results_table("t", cells, tmp_path).rows}
    assert rows["Linear model"][:2] == ["68.15±0.06 ", "68.05±0.09"]
    assert "≠" in rows["Softmax"][0]
    assert "≠" not in rows["Softmax"][2]
    assert rows["STE-I"] == ["not run", "92.60±0.23", "not run", "100.00±0.00"]


def test_every_row_of_the_paper_is_there():
    from pullback_study.paper import _tables

    assert {method.row for method in METHODS.values() if method.in_paper} == set(_tables()["synthetic"]["rows"])


def test_intervals_and_verdicts():
    assert interval([1.0, 1.0, 1.0, 1.0]) == (1.0, 1.0, 1.0)
    assert above(interval([5.0]), 0.0) is Verdict.OPEN
    nan = interval([float("nan")] * 4)
    assert above(nan, 0.0) is within(nan, 1.0) is Verdict.OPEN
