"""The page of planted trees: what its rules conclude, and that rows without runs are shown."""

import pytest

from pullback_study.results.choice import Runs
from pullback_study.results.paper.verdicts import Verdict
from pullback_study.results.recovery import plans, trees


def publish(root, name, recovery):
    """All runs of a row: a little more for later seeds."""
    for config in plans.search(name, "tree"):
        _write(root, config, 50.0 + (config.learning_rate == 0.03), recovery)
    for n in trees.SIZES:
        for config in trees.row(Runs(root), name, n).configs:
            _write(root, config, 50.0, recovery + 0.1 * (config.seed % 4))


def _write(root, config, accuracy, recovery):
    run = plans.TASK.run(config, root)
    run.start()
    run.write_curve([{"step": 1000, "accuracy": accuracy, "recovery": recovery}])
    run.publish({"validation_accuracy": accuracy, "test_accuracy": accuracy, "test_recovery": recovery})


def verdicts(root):
    return {number: [each.verdict for each in rule(Runs(root))] for number, rule in trees.CLAIMS.items()}


def test_without_runs_nothing_is_decided(tmp_path):
    assert {each for found in verdicts(tmp_path).values() for each in found} == {Verdict.OPEN}
    assert all(cell.show() == "not run" for row in trees.table(Runs(tmp_path), 6).rows for cell in row.cells.values())


@pytest.mark.parametrize(
    ("control", "plain", "perturbed", "expected"),
    [(95.0, 90.0, 96.0, (Verdict.HOLDS, Verdict.HOLDS)), (90.0, 95.0, 99.0, (Verdict.FAILS, Verdict.FAILS))],
)
def test_the_rules(control, plain, perturbed, expected, tmp_path):
    publish(tmp_path, "sfe-control-variate", control)
    publish(tmp_path, "sfe-leave-one-out-4", plain)
    publish(tmp_path, "perturbed-marginals", perturbed)
    found = verdicts(tmp_path)
    assert (found[201], found[202]) == tuple([each] * 2 for each in expected)
    assert found[203] == [Verdict.OPEN] * 2
    row = next(row for row in trees.table(Runs(tmp_path), 10).rows if row.name == "sfe-control-variate")
    assert row.texts == {"seeds": "32 of 32", "setting": "learning rate 0.03"}
    assert row.cells["recovery"].show() == f"{control + 0.15:.1f}±0.1"
    assert trees.groups(Runs(tmp_path))[0].figures
