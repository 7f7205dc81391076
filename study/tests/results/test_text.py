"""Table 2: which runs are chosen, and what the rules conclude, from results made by the tests."""

import dataclasses
import json

import pytest

from pullback_study.results.choice import Runs, seed_by_seed
from pullback_study.results.paper import reported
from pullback_study.results.paper.claims_text import (
    CLAIMS,
    Paper,
    Text,
    claim_7,
    claim_8,
    claim_9,
    claim_10,
    claim_14,
    claim_15,
    claim_16,
    claim_17,
    wide_claims,
)
from pullback_study.results.paper.text import (
    FULL,
    MANY,
    METHODS,
    ROWS,
    STEPPED,
    TASKS,
    choose,
    frozen,
    groups,
    on_data_of,
    results,
    steps_table,
    table_plan,
    timed,
    wide_groups,
    wide_on,
)
from pullback_study.results.paper.verdicts import Verdict, verdict

SST, SNLI = FULL["sst"], FULL["snli"]
FIVE = dataclasses.replace(SNLI, seeds=(0, 1, 2, 3, 4), searched=())
ATTACHED, FLAT = [7, 6, 6, 6, 6, 1, 0], [2, 0, 2, 2, 2, 2, 2]


def publish(config, root, accuracy, depth=2.0, heads=FLAT, wobble=0.0, task="sst"):
    """A made-up result: `accuracy`, a little more for later seeds."""
    run = TASKS[task].run(config, root)
    run.start()
    value = accuracy + 0.01 * config.seed
    rows = [{"step": i, "accuracy": value + wobble * (i % 2) * (1 + 0.1 * config.seed)} for i in range(8)]
    run.write_curve(rows)
    latent = METHODS[config.estimator].latent
    data = {"vectors": "tiny", "coverage": 1.0, "share": {"train": 1.0}, "checksums": {"train": "a", "vectors": "b"}}
    run.publish(
        {
            "validation_accuracy": value, "test_accuracy": value, "best_epoch": 1, "data": data, "latent_share": 0.1,
            "test_depth": depth + 0.01 * config.seed if latent else None, "example_heads": heads if latent else None,
        }
    )  # fmt: skip


def fill(root, task="sst", accuracy=None, protocol=None, **options):
    """Every row of a task: all candidates of the search, the best learning rate being the second."""
    protocol = protocol or FULL[task]
    for name in ROWS:
        given = {key: value.get(name, value[None]) for key, value in options.items()}
        plan = table_plan(name, protocol, search=True)
        for i, configs in enumerate(zip(plan.candidates, plan.deciding, strict=True)):
            for config in {config for some in configs for config in some}:
                publish(config, root, (accuracy or {}).get(name, 80.0) - 5 * (i != 1), **given, task=task)


def verdicts(findings):
    return [finding.verdict for finding in findings]


def test_the_search_has_the_same_budget_for_every_row():
    plans = [table_plan(name, SST, search=True) for name in ROWS]
    assert {len(plan.candidates) for plan in plans} == {3}
    deciding = [config for plan in plans for candidate in plan.deciding for config in candidate]
    assert {config.learning_rate for config in deciding} == set(SST.rates)
    assert {config.seed for config in deciding} == {0}


def test_the_paper_settings_are_its_table():
    configs = {name: table_plan(name, SNLI, search=False).configs[0] for name in ROWS}
    settings = {name: (config.learning_rate, config.step_size) for name, config in configs.items()}
    assert settings["spigot"] == (3e-4, 1.0)
    assert settings["spigot-eg"] == (1e-4, 0.001)
    assert settings["baseline"] == (1e-4, None)


def test_a_row_is_chosen_by_the_deciding_seed_once_all_candidates_are_there(tmp_path):
    plan = table_plan("spigot", SST, search=True)
    for accuracy, candidate in zip((70.0, 71.0), plan.candidates, strict=False):
        publish(candidate[0], tmp_path, accuracy)
    assert not plan.choose(Runs(tmp_path))
    publish(plan.candidates[2][0], tmp_path, 60.0)
    publish(plan.candidates[2][1], tmp_path, 99.0)  # another seed does not decide
    chosen = plan.choose(Runs(tmp_path))
    assert chosen.config == plan.candidates[1][0]
    assert not chosen.complete
    only_seed_2 = table_plan("spigot", dataclasses.replace(SST, seeds=(2,)), search=True)
    assert only_seed_2.choose(Runs(tmp_path)).config == plan.candidates[1][2]


def test_seeds_come_one_after_the_other(tmp_path):
    rows = choose(SST, Runs(tmp_path), search=False)
    assert [config.seed for config in seed_by_seed(rows)] == [0] * 9 + [1] * 9 + [2] * 9


def test_without_runs_nothing_is_decided(tmp_path):
    for rule in CLAIMS.values():
        assert set(verdicts(rule(Text(Runs(tmp_path))))) == {Verdict.OPEN}


def test_what_was_not_run_is_in_the_report_alone(tmp_path):
    fill(tmp_path)
    hidden = {group.title: group.warning for group in groups(Runs(tmp_path))}
    assert not hidden["SST, at the learning rate that the search chose for each row"]
    assert hidden["SNLI, at the learning rate that the search chose for each row"] == "There are no runs of it yet."
    assert hidden["SST, the number of inner steps"] == "There are no runs of it yet."


def test_claim_7(tmp_path):
    better = {"marginals": 81.0, "sparsemap": 81.0, "spigot": 82.0}
    fill(tmp_path / "a", accuracy=better)
    assert verdict(claim_7(Text(Runs(tmp_path / "a")))) is Verdict.HOLDS
    fill(tmp_path / "b", accuracy={**better, "spigot": 75.0})
    assert verdicts(claim_7(Text(Runs(tmp_path / "b")))) == [Verdict.HOLDS, Verdict.FAILS, Verdict.FAILS]
    fill(tmp_path / "c", accuracy={**better, "baseline": 83.0})
    assert verdicts(claim_7(Text(Runs(tmp_path / "c")))) == [Verdict.HOLDS, Verdict.FAILS, Verdict.HOLDS]


def test_claims_14_and_15(tmp_path):
    fill(tmp_path / "a", accuracy={"marginals": 81.0, "sparsemap": 81.0})
    fill(tmp_path / "a", "snli", accuracy={"marginals": 81.0, "sparsemap": 81.0}, protocol=FIVE)
    evidence = Text(Runs(tmp_path / "a"), {"snli": FIVE})
    assert verdict(claim_14(evidence)) is verdict(claim_15(evidence)) is Verdict.HOLDS
    fill(tmp_path / "b", accuracy={"spigot": 90.0})
    evidence = Text(Runs(tmp_path / "b"))
    assert [finding.statement for finding in claim_14(evidence) if finding.verdict is Verdict.FAILS] == [
        "SPIGOT - better relaxation, test accuracy, SST"
    ]
    assert claim_15(evidence)[0].verdict is Verdict.FAILS


def test_snli_needs_five_seeds_and_a_fair_search(tmp_path):
    fill(tmp_path, "snli", accuracy={"marginals": 81.0, "sparsemap": 81.0}, protocol=FIVE)
    assert claim_15(Text(Runs(tmp_path), {"snli": FIVE}))[1].verdict is Verdict.HOLDS
    four = dataclasses.replace(FIVE, seeds=FIVE.seeds[:4])
    assert claim_15(Text(Runs(tmp_path), {"snli": four}))[1].verdict is Verdict.OPEN
    short = dataclasses.replace(FIVE, searched=(("epochs", 2),))
    for name in ROWS:  # a short search, which prefers another rate for one row
        for i, candidate in enumerate(table_plan(name, short, search=True).deciding):
            for config in candidate:
                publish(config, tmp_path, 80.0 + (i == (2 if name == "ste-i" else 1)), task="snli")
    assert claim_15(Text(Runs(tmp_path), {"snli": short}))[1].verdict is Verdict.OPEN


def test_rules_on_the_numbers_of_the_paper(tmp_path):
    """On SNLI the paper's relaxations are (85.01 + 85.35) / 2, its straight-through rows 81.1, 81, 83.52, 79.2 and 84.84."""
    (found,) = [finding for finding in claim_15(Paper(Runs(tmp_path))) if finding.statement.endswith("SNLI")]
    straight = (81.1 + 81.0 + 83.52 + 79.2 + 84.84) / 5
    assert found.interval.mean == pytest.approx((85.01 + 85.35) / 2 - straight)
    spread = sum(s**2 for s in (0.65, 0.32, 0.24, 0.68, 0.16)) / 25 + (0.11**2 + 0.06**2) / 4
    assert found.interval.high - found.interval.mean == pytest.approx(4.303 * (spread / 3) ** 0.5)
    assert {finding.verdict for finding in claim_10(Paper(Runs(tmp_path)))} == {Verdict.OPEN}


@pytest.mark.parametrize(("at_five", "expected"), [(80.5, Verdict.HOLDS), (85.0, Verdict.FAILS)])
def test_claim_8(at_five, expected, tmp_path):
    fill(tmp_path)
    evidence = Text(Runs(tmp_path))
    assert verdict(claim_8(evidence)) is Verdict.OPEN
    for name in STEPPED:
        row = evidence.row("sst", name)
        for k, accuracy in ((2, 80.0), (5, at_five)):
            for config in row.configs:
                publish(dataclasses.replace(config, inner_steps=k), tmp_path, accuracy)
    evidence = Text(Runs(tmp_path))
    assert verdict(claim_8(evidence)) is expected
    table = steps_table("SST", [evidence.row("sst", name) for name in STEPPED], Runs(tmp_path))
    assert table.text().rows[0][3] == f"{at_five + 0.01:.2f}±0.01"


def test_claim_9(tmp_path):
    argmax = [name for name in ROWS if METHODS[name].kind == "Argmax"]
    wobble = {None: 0.0, **dict.fromkeys(argmax, 1.0)}
    accuracy = dict.fromkeys(argmax, 78.0)
    fill(tmp_path / "a", "sst", wobble=wobble)
    fill(tmp_path / "a", "snli", accuracy=accuracy, wobble=wobble, protocol=FIVE)
    assert verdict(claim_9(Text(Runs(tmp_path / "a"), {"snli": FIVE}))) is Verdict.HOLDS
    fill(tmp_path / "b", "sst", wobble=wobble)
    fill(tmp_path / "b", "snli", accuracy={**accuracy, "ste-s": 82.0}, wobble=wobble, protocol=FIVE)
    findings = claim_9(Text(Runs(tmp_path / "b"), {"snli": FIVE}))
    assert [finding.statement for finding in findings if finding.verdict is Verdict.FAILS] == [
        "relaxations - STE-S, test accuracy, SNLI"
    ]


def test_one_seed_decides_nothing(tmp_path):
    fill(tmp_path)
    one = {"sst": dataclasses.replace(SST, seeds=(0,)), "snli": dataclasses.replace(SNLI, seeds=(0,))}
    for rule in (claim_7, claim_10):
        assert set(verdicts(rule(Text(Runs(tmp_path), one)))) == {Verdict.OPEN}


def test_a_comparison_uses_the_seeds_that_all_its_rows_have(tmp_path):
    for name in ROWS:
        plan = table_plan(name, MANY["sst"], search=True)
        for i, configs in enumerate(zip(plan.candidates, plan.deciding, strict=True)):
            there = configs[0][1 : 10 if name != "spigot" else 9] if i == 1 else ()
            for config in {*there, *configs[1]}:
                better = 2.0 if name == "spigot" else 1.0 * (name in ("marginals", "sparsemap"))
                publish(config, tmp_path, 80.0 + better - 5 * (i != 1) - (config.seed == 9))
    assert verdicts(claim_7(Text(Runs(tmp_path)))) == [Verdict.HOLDS] * 3
    assert "1.00 [1.00, 1.00]" in claim_7(Text(Runs(tmp_path)))[0].evidence
    few = {"sst": dataclasses.replace(MANY["sst"], seeds=tuple(range(2, 20)))}
    assert verdicts(claim_7(Text(Runs(tmp_path), few))) == [Verdict.OPEN] * 3


def test_claim_10(tmp_path):
    fill(tmp_path / "a", depth={None: 2.1, "spigot-ce": 5.0}, heads={None: FLAT, "spigot-ce": ATTACHED})
    assert verdicts(claim_10(Text(Runs(tmp_path / "a")))) == [Verdict.HOLDS] * 4
    fill(tmp_path / "b", depth={None: 4.0, "spigot-ce": 2.0}, heads={None: FLAT})
    assert verdicts(claim_10(Text(Runs(tmp_path / "b")))) == [Verdict.FAILS] * 4


def test_tables_name_vectors_and_share_and_say_where_data_differ(tmp_path):
    fill(tmp_path)
    rows = choose(SST, Runs(tmp_path), search=True)
    table = results("SST", SST, rows, Runs(tmp_path), "--search")
    assert table.title == "SST. Vectors tiny (100.0% of tokens), 100% of the training data"
    lines = table.text().rows
    found = next(line for line in lines if line[0] == "Baseline")
    assert found == ["Baseline", "80.01±0.01≠", "83.79±0.17", "80.01±0.01≠", "83.99±0.32", "", "3 of 3"]
    assert [row[0] for row in lines if len(row) == 1][-2:] == ["Relaxed", "Argmax"]
    run = TASKS["sst"].run(rows[0].configs[0], tmp_path)
    result = run.result
    (run.path / "result.json").unlink()
    run.publish({**result, "data": {**result["data"], "checksums": {"train": "other", "vectors": "b"}}})
    rows = choose(SST, Runs(tmp_path), search=True)
    assert "NOT THE SAME DATA" in results("SST", SST, rows, Runs(tmp_path)).title


def test_the_tables_are_on_the_data_that_most_runs_have(tmp_path):
    mine = SST.having(vectors="mine")
    for config in table_plan("spigot", mine, search=False).configs:
        publish(config, tmp_path, 77.0)
    runs = Runs(tmp_path)
    protocol = on_data_of(runs, SST)
    assert protocol == mine
    (row,) = [row for row in results("SST", protocol, choose(protocol, runs, search=False), runs).rows if row.name == "spigot"]
    assert row.cells["test"].show() == "77.01±0.01"


def test_claim_16(tmp_path):
    fill(tmp_path)
    evidence = Text(Runs(tmp_path))
    assert set(verdicts(claim_16(evidence))) == {Verdict.OPEN}
    assert set(verdicts(claim_16(Paper(Runs(tmp_path))))) == {Verdict.OPEN}
    for name, gain in zip(STEPPED, (1.0, 2.0, -1.0), strict=True):
        for k in (1, 5):
            row = frozen(evidence.row("sst", name), evidence.runs, k)
            assert {config.frozen_after for config in row.configs} == {40}
            for config in row.configs:
                publish(config, tmp_path, 80.0 + gain * (k == 5))
    assert verdicts(claim_16(Text(Runs(tmp_path)))) == [Verdict.HOLDS, Verdict.HOLDS, Verdict.FAILS]


@pytest.mark.parametrize(("power", "expected"), [(1, Verdict.HOLDS), (-1, Verdict.FAILS)])
def test_claim_17(power, expected, tmp_path):
    """Times in the paper's order, or in the reverse one; those of the table's own runs decide nothing."""
    fill(tmp_path)
    assert verdicts(claim_17(Text(Runs(tmp_path)))) == [Verdict.OPEN] * 2
    for row in timed("sst", SST, Runs(tmp_path)):
        (config,) = row.configs
        publish(config, tmp_path, 80.0)
        minutes = reported("structured", row.method.label, "SST", "minutes")
        seconds = (minutes.value if minutes else 1.0) ** power
        (TASKS["sst"].run(config, tmp_path).path / "metrics.jsonl").write_text(json.dumps({"step": 1, "seconds": seconds}))
    assert verdicts(claim_17(Text(Runs(tmp_path)))) == [expected, Verdict.OPEN]


def test_the_wider_search_has_the_papers_step_sizes_and_a_page_of_its_own(tmp_path):
    wide = wide_on(Runs(tmp_path))
    assert len(table_plan("marginals", wide, search=True).settings) == 5
    assert len(table_plan("spigot", wide, search=True).settings) == 15
    assert len(table_plan("spigot", SST, search=True).settings) == 3
    (group,) = wide_groups(Runs(tmp_path))
    assert group.tables[0].markdown().count("not run") >= 2 * len(ROWS)
    assert "wider" not in " ".join(each.title for each in groups(Runs(tmp_path)))
    assert wide_claims(Runs(tmp_path)) == []
    part = wide.having(train_examples=100)
    for name in ROWS:
        for config in table_plan(name, part, search=True).first:
            publish(config, tmp_path, 80 + 3 * (config.learning_rate == 0.002) + (config.step_size == 10))
    found = Runs(tmp_path)
    assert wide_on(found)["train_examples"] == 100
    assert table_plan("spigot", wide_on(found), search=True).choose(found).config.step_size == 10
    assert "| Marginals | 0.002 |" in wide_groups(found)[0].tables[1].markdown()
    assert [claim.number for claim in wide_claims(found)] == [7, 14, 15]
