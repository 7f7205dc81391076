"""The explorer's estimators are the library's."""

import json

import pytest

from pullback.estimators.registry import ENTRIES
from pullback_study.report.page import presets
from pullback_study.tasks.methods import NAMES
from report.nodes import in_node, needs_node
from report.settings import RECIPES, in_library, random_settings

pytestmark = needs_node
PRESETS = {preset["name"]: preset for preset in presets()}


def assert_agree(page, library):
    for name, expected in library.items():
        if name == "path":
            for k, label in expected.items():
                assert page["path"][k] == pytest.approx(label, abs=1e-5)
        else:
            assert page[name] == pytest.approx(expected, abs=1e-5)


DETERMINISTIC = [entry.name for entry in ENTRIES if not entry.stochastic and entry.name in NAMES]


def test_every_estimator_of_the_paper_without_noise_can_be_explored_and_others_need_not():
    assert len(DETERMINISTIC) == 7
    shown = {preset["name"] for preset in in_node("explorer", "given.filter(known)", list(PRESETS.values()))}
    assert set(DETERMINISTIC) <= shown < {entry.name for entry in ENTRIES} == set(PRESETS)


@pytest.mark.parametrize("name", [*DETERMINISTIC, "own"])
def test_the_page_agrees_with_the_library(name):
    settings = random_settings(2 * len(RECIPES) if name == "own" else 20, seed=len(name))
    estimators = [each["recipe"] if name == "own" else PRESETS[name] for each in settings]
    found = in_node("explorer", "given.map(([estimator, settings]) => evaluate(estimator, settings))",
                    list(zip(estimators, settings, strict=True)))  # fmt: skip
    for page, each in zip(found, settings, strict=True):
        assert_agree(page, in_library(name, each))


def test_the_label_of_a_projected_step_is_in_the_simplex_and_its_trial_is_not_needed_to_be():
    settings = random_settings(20, seed=3)
    script = f"given.map((settings) => evaluate({json.dumps(PRESETS['spigot'])}, settings))"
    for found in in_node("explorer", script, settings):
        assert len(found["trials"]) == len(found["path"]) - 1
        for mu in found["path"]:
            assert min(mu) >= 0
            assert sum(mu) == pytest.approx(1, abs=1e-9)


def test_a_point_of_the_plane_is_its_vector():
    for vector in ([0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [-1.0, 2.0, 0.0]):
        for expression in ("fromPlane(toPlane(given), 1)", "fromPlane(point(pixel(toPlane(given))), 1)"):
            assert in_node("explorer", expression, vector) == pytest.approx(vector, abs=1e-12)


def test_rows_sort_with_missing_values_last():
    rows = [{"by": "3"}, {}, {"by": "20"}, {"by": "3"}]
    script = """['descending', 'ascending', 'none'].map((order) =>
        sorted(given, (row) => row.by, order).map((row) => given.indexOf(row)))"""
    assert in_node("report", script, rows) == [[2, 0, 3, 1], [0, 3, 2, 1], [0, 1, 2, 3]]
    words = [{"by": "spigot"}, {"by": "gold"}, {"by": "7"}]
    found = in_node("report", "sorted(given, (row) => row.by, 'ascending').map((row) => row.by)", words)
    assert found == ["7", "gold", "spigot"]
