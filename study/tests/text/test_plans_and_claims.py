"""Which runs are chosen, and what the rules conclude from results made by the tests."""

import dataclasses

import pytest

from pullback_study.text.claims import CLAIMS, claim_7, claim_8, claim_9, claim_10
from pullback_study.text.config import Config, configure
from pullback_study.text.evidence import Evidence
from pullback_study.text.methods import METHODS, ROWS
from pullback_study.text.plans import FULL, STEPPED, choose, configs_of, deciding, table_cell, with_steps
from pullback_study.text.study import TextStudy
from pullback_study.text.tables import results_table, steps_table
from pullback_study.verdicts import Verdict, claims_tables, verdict

SST, SNLI = FULL["sst"], FULL["snli"]
ATTACHED, FLAT = [7, 6, 6, 6, 6, 1, 0], [2, 0, 2, 2, 2, 2, 2]


def publish(config, root, accuracy, depth=2.0, heads=FLAT, wobble=0.0):
    """A made-up result: `accuracy`, a little more for later seeds."""
    run = TextStudy().run(config, root)
    run.start()
    value = accuracy + 0.01 * config.seed
    rows = [{"step": i, "accuracy": value + wobble * (i % 2) * (1 + 0.1 * config.seed)} for i in range(8)]
    run.write_metrics(rows)
    latent = METHODS[config.estimator].latent
    data = {"vectors": "tiny", "coverage": 1.0, "share": {"train": 1.0}, "checksums": {"train": "a", "vectors": "b"}}
    run.publish(
        {
            "validation_accuracy": value, "test_accuracy": value, "best_epoch": 1, "data": data, "latent_share": 0.1,
            "test_depth": depth + 0.01 * config.seed if latent else None, "example_heads": heads if latent else None,
        }
    )  # fmt: skip


def fill(root, task="sst", accuracy=None, **options):
    """Every row of a task: all candidates of the search on SST, the best learning rate being the second."""
    scope = FULL[task]
    for name in ROWS:
        given = {key: value.get(name, value[None]) for key, value in options.items()}
        for i, candidate in enumerate(table_cell(name, scope, search=task == "sst").candidates):
            for config in candidate:
                publish(config, root, (accuracy or {}).get(name, 80.0) - 5 * (i != 1) * (task == "sst"), **given)


def verdicts(findings):
    return [finding.verdict for finding in findings]


def test_the_search_has_the_same_budget_for_every_row():
    cells = [table_cell(name, SST, search=True) for name in ROWS]
    assert {len(cell.candidates) for cell in cells} == {3}
    assert {config.learning_rate for cell in cells for config in cell.deciding} == set(SST.rates)
    assert {config.seed for config in deciding(cells)} == {0}


def test_the_paper_settings_are_its_table():
    settings = {name: (configure("snli", name).learning_rate, configure("snli", name).step_size) for name in ROWS}
    assert settings["spigot"] == (3e-4, 1.0)
    assert settings["spigot-eg"] == (1e-4, 0.001)
    assert settings["baseline"] == (1e-4, None)
    assert configure("sst", "ste-s") == table_cell("ste-s", SST, search=False).candidates[0][0]


def test_a_row_is_chosen_by_the_deciding_seed_once_all_candidates_are_there(tmp_path):
    cell = table_cell("spigot", SST, search=True)
    for accuracy, candidate in zip((70.0, 71.0), cell.candidates, strict=False):
        publish(candidate[0], tmp_path, accuracy)
    assert choose(cell, tmp_path) is None
    publish(cell.candidates[2][0], tmp_path, 60.0)
    publish(cell.candidates[2][1], tmp_path, 99.0)  # another seed does not decide
    chosen = choose(cell, tmp_path)
    assert chosen.config == cell.candidates[1][0]
    assert not chosen.complete
    only_seed_2 = table_cell("spigot", dataclasses.replace(SST, seeds=(2,)), search=True)
    assert choose(only_seed_2, tmp_path).config == cell.candidates[1][2]


def test_seeds_come_one_after_the_other(tmp_path):
    rows = [choose(table_cell(name, SST, search=False), tmp_path) for name in ROWS]
    assert [config.seed for config in configs_of(rows)] == [0] * 9 + [1] * 9 + [2] * 9


def test_without_runs_nothing_is_decided(tmp_path):
    for rule in CLAIMS.values():
        assert set(verdicts(rule(Evidence(tmp_path)))) == {Verdict.OPEN}


def test_claim_7(tmp_path):
    fill(tmp_path / "a")
    assert verdict(claim_7(Evidence(tmp_path / "a"))) is Verdict.HOLDS
    fill(tmp_path / "b", accuracy={"spigot": 75.0})
    assert verdicts(claim_7(Evidence(tmp_path / "b"))) == [Verdict.HOLDS, Verdict.HOLDS, Verdict.FAILS]


@pytest.mark.parametrize(("at_five", "expected"), [(80.5, Verdict.HOLDS), (85.0, Verdict.FAILS)])
def test_claim_8(at_five, expected, tmp_path):
    fill(tmp_path)
    evidence = Evidence(tmp_path)
    assert verdict(claim_8(evidence)) is Verdict.OPEN
    for name in STEPPED:
        row = evidence.row("sst", name)
        for k, accuracy in ((2, 80.0), (5, at_five)):
            for run in with_steps(row, k, tmp_path).runs:
                publish(run.config, tmp_path, accuracy)
    assert verdict(claim_8(evidence)) is expected
    table = steps_table("SST", [(name, evidence.row("sst", name)) for name in STEPPED], tmp_path)
    assert table.rows[0][3] == f"{at_five + 0.01:.2f}±0.01"


def test_claim_9(tmp_path):
    argmax = [name for name in ROWS if METHODS[name].kind == "Argmax"]
    wobble = {None: 0.0, **dict.fromkeys(argmax, 1.0)}
    accuracy = dict.fromkeys(argmax, 78.0)
    fill(tmp_path / "a", "sst", wobble=wobble)
    fill(tmp_path / "a", "snli", accuracy=accuracy, wobble=wobble)
    assert verdict(claim_9(Evidence(tmp_path / "a"))) is Verdict.HOLDS
    fill(tmp_path / "b", "sst", wobble=wobble)
    fill(tmp_path / "b", "snli", accuracy={**accuracy, "ste-s": 82.0}, wobble=wobble)
    findings = claim_9(Evidence(tmp_path / "b"))
    assert [finding.statement for finding in findings if finding.verdict is Verdict.FAILS] == [
        "relaxations - STE-S, test accuracy, SNLI"
    ]


def test_one_seed_decides_nothing(tmp_path):
    fill(tmp_path)
    one = {"sst": dataclasses.replace(SST, seeds=(0,)), "snli": dataclasses.replace(SNLI, seeds=(0,))}
    for rule in (claim_7, claim_10):
        assert set(verdicts(rule(Evidence(tmp_path, one)))) == {Verdict.OPEN}


def test_claim_10(tmp_path):
    fill(tmp_path / "a", depth={None: 2.1, "spigot-ce": 5.0}, heads={None: FLAT, "spigot-ce": ATTACHED})
    assert verdicts(claim_10(Evidence(tmp_path / "a"))) == [Verdict.HOLDS] * 4
    fill(tmp_path / "b", depth={None: 4.0, "spigot-ce": 2.0}, heads={None: FLAT})
    assert verdicts(claim_10(Evidence(tmp_path / "b"))) == [Verdict.FAILS] * 4


def test_tables_name_vectors_and_share_and_say_where_data_differ(tmp_path):
    fill(tmp_path)
    rows = [(name, choose(table_cell(name, SST, search=True), tmp_path)) for name in ROWS]
    table = results_table("SST", "sst", rows)
    assert table.title == "SST. Vectors tiny (100.0% of tokens), 100% of the training data"
    assert table.rows[0] == ["Baseline", "80.01±0.01≠", "83.79±0.17", "80.01±0.01≠", "83.99±0.32", "", "3 of 3"]
    assert [row[0] for row in table.rows if len(row) == 1] == ["Relaxed", "Argmax"]
    run = rows[0][1].runs[0]
    result = run.result
    (run.path / "result.json").unlink()
    run.publish({**result, "data": {**result["data"], "checksums": {"train": "other", "vectors": "b"}}})
    assert "NOT THE SAME DATA" in results_table("SST", "sst", rows).title
    assert len(claims_tables(CLAIMS, Evidence(tmp_path))) == 4


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"step_size": 1.0}, "marginals makes no inner steps"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0; it must be positive"),
        ({"epochs": 0}, "epochs is 0; it must be at least 1"),
        ({"seed": -1}, "seed is -1; it must be at least 0"),
        ({"dtype": "float16"}, "did you mean"),
        ({"epoch": 3}, "did you mean 'epochs'"),
    ],
)
def test_wrong_settings_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        configure("sst", "marginals", **wrong)
    with pytest.raises(ValueError, match="has no trees"):
        configure("sst", "baseline", projective=True)


def test_a_config_survives_json():
    config = configure("snli", "spigot", seed=2)
    assert Config(**dataclasses.asdict(config)) == config
