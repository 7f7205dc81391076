"""The explorer's estimators are the library's."""

import pytest

from pullback.estimators.registry import ENTRIES
from report.nodes import in_node, needs_node
from report.settings import RECIPES, in_library, random_settings

pytestmark = needs_node
NAMES = ["ste-i", "spigot", "spigot-ce", "spigot-eg", "marginals", "sparsemap", "ste-s", "perturbed-marginals",
         "perturb-and-map", "sfe", "sfe-baseline"]  # fmt: skip


def assert_agree(page, library):
    for name, expected in library.items():
        if name == "path":
            for k, label in expected.items():
                assert page["path"][k] == pytest.approx(label, abs=1e-5)
        else:
            assert page[name] == pytest.approx(expected, abs=1e-5)


def test_every_estimator_of_the_paper_can_be_explored():
    assert set(in_node("mechanics", "ESTIMATORS")) == {entry.name for entry in ENTRIES if entry.in_paper} == set(NAMES)


@pytest.mark.parametrize("name", [*NAMES, "own"])
def test_the_page_agrees_with_the_library(name):
    settings = random_settings(2 * len(RECIPES) if name == "own" else 20, seed=len(name))
    found = in_node("mechanics", f"given.map((settings) => evaluate({name!r}, settings))", settings)
    for page, each in zip(found, settings, strict=True):
        assert_agree(page, in_library(name, each))


def test_the_label_of_a_projected_step_is_in_the_simplex_and_its_trial_is_not_needed_to_be():
    settings = random_settings(20, seed=3)
    for found in in_node("mechanics", "given.map((settings) => evaluate('spigot', settings))", settings):
        assert len(found["trials"]) == len(found["path"]) - 1
        for mu in found["path"]:
            assert min(mu) >= 0
            assert sum(mu) == pytest.approx(1, abs=1e-9)


def test_the_expected_loss_is_the_mean_over_the_corners():
    loss = {"kind": "linear", "gradient": [3.0, 6.0, 9.0]}
    assert in_node("mechanics", "expectedLoss([0, 0, 0], given)", loss) == pytest.approx(6.0)
