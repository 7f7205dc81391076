"""Table 2 and the figures on text."""

import statistics

import pytest

from pullback_study.paper import reported
from pullback_study.report.collect import collect
from pullback_study.text.claims import CLAIMS
from pullback_study.text.evidence import Evidence
from pullback_study.text.plans import FULL, table_cell
from pullback_study.text.study import TextStudy
from pullback_study.verdicts import verdict

DATA = {
    "vectors": "tiny <b>", "coverage": 0.5, "share": {"train": 0.25}, "checksums": {"train": "a", "vectors": "b"},
    "dimension": 4,
}  # fmt: skip


def publish(root, config, validation, test, depth):
    run = TextStudy().run(config, root)
    run.start()
    epochs = range(1, 5)
    run.write_metrics({"step": 10 * e, "epoch": e, "accuracy": validation - 4 + e, "depth": depth} for e in epochs)
    run.publish({
        "validation_accuracy": validation, "test_accuracy": test, "test_depth": depth, "best_epoch": 4, "data": DATA,
        "seconds_of_epoch": 1.0, "latent_share": 0.1, "device": "a test", "threads": 1, "example_heads": [7, 6, 6, 6, 6, 1, 0],
    })  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Marginals on SST: the whole search, its second rate the best; SPIGOT: two of three seeds at the paper's setting."""
    root = tmp_path_factory.mktemp("text")
    for rate, candidate in enumerate(table_cell("marginals", FULL["sst"], search=True).candidates):
        for config in candidate:
            publish(root, config, 80 + (rate == 1) + config.seed, 82 + config.seed, 2.5)
    for config in table_cell("spigot", FULL["sst"], search=False).candidates[0][:2]:
        publish(root, config, 81 + config.seed, 83.0, 4.0)
    return root


@pytest.fixture(scope="module")
def found(folder):
    return collect(folder)


def row(found, variant, name, part="SST"):
    (table,) = [one for one in found["table2"] if one["name"] == variant]
    (rows,) = [one["rows"] for one in table["parts"] if one["title"] == part]
    return next(each for each in rows if each["name"] == name)


def test_a_row_of_the_search_has_the_rate_that_validation_prefers(found):
    marginals = row(found, "search", "marginals")
    assert marginals["setting"] == f"learning rate {FULL['sst'].rates[1]:g}"
    cell = marginals["cells"]["test"]
    assert (cell["value"], cell["spread"]) == (83.0, 1.0)
    assert [(seed, value) for _, seed, value in cell["runs"]] == [(0, 82), (1, 83), (2, 84)]
    assert cell["paper"] == list(reported("structured", "Marginals", "SST", "test"))
    assert "command" not in marginals


def test_a_row_with_some_seeds_shows_them_and_how_to_get_the_others(found, folder):
    spigot = row(found, "best", "spigot")
    assert spigot["cells"]["validation"]["value"] == 81.5
    assert spigot["cells"]["validation"]["spread"] == round(statistics.stdev([81, 82]), 4)
    assert spigot["runs"] == {"total": 3, "done": 2}
    assert spigot["command"] == f"pullback reproduce table2 --task sst --only spigot --runs {folder}"


def test_a_row_without_runs(found):
    missing = row(found, "search", "spigot-ce")
    assert missing["cells"]["test"] == {"paper": [83.01, 0.55]}
    assert missing["runs"]["total"] == len(FULL["sst"].rates)


def test_the_vectors_are_named(found):
    (table,) = [one for one in found["table2"] if one["name"] == "search"]
    assert "tiny <b>" in table["parts"][0]["note"]


def test_only_tasks_that_were_run_or_are_the_papers_are_shown(found):
    assert {one["name"]: [part["title"] for part in one["parts"]] for one in found["table2"]} == {
        "search": ["SST"], "best": ["SST", "SNLI"],
    }  # fmt: skip


def test_learning_curves_over_the_epochs(found):
    (figure,) = [one for one in found["curves"] if one["name"] == "curves-sst"]
    marginals = next(line for line in figure["series"] if line["name"] == "marginals")
    assert marginals["x"] == [1, 2, 3, 4]
    assert marginals["lines"]["accuracy"]["y"] == [79.0, 80.0, 81.0, 82.0]
    assert marginals["lines"]["accuracy"]["low"] == [78, 79, 80, 81]
    assert marginals["lines"]["depth"]["y"] == [2.5] * 4


def test_the_number_of_inner_steps(tmp_path):
    cell = table_cell("spigot", FULL["sst"], search=True)
    for config in [config for candidate in cell.candidates for config in candidate]:
        publish(tmp_path, config, 80.0, 81.0, 3.0)
    (figure,) = [one for one in collect(tmp_path)["steps"] if one["name"] == "steps-sst"]
    line = figure["series"][0]
    assert line["x"] == [1]
    assert line["lines"]["accuracy"]["y"] == [81.0]
    assert line["runs"] == {"total": 9, "done": 3}
    assert "steps --task sst" in figure["command"]


def test_verdicts_on_text_are_those_of_the_rules(found, folder):
    claims = {claim["number"]: claim for claim in found["claims"]}
    for number, rule in CLAIMS.items():
        assert claims[number]["verdict"] == verdict(rule(Evidence(folder))).value
        assert claims[number]["rule"].startswith("Rule:")


def test_a_broken_result_is_a_message(folder, tmp_path):
    config = table_cell("baseline", FULL["sst"], search=False).candidates[0][0]
    run = TextStudy().run(config, tmp_path)
    run.start()
    (run.path / "result.json").write_text("{}")
    assert "cannot be read" in row(collect(tmp_path), "best", "baseline")["problem"]
