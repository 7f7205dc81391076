"""Runs of any task as tables and curves: nothing here knows an estimator or a task."""

import json
import math

import pytest

from pullback_study.results.choice import Runs
from pullback_study.results.configurations import best_curves, configurations
from pullback_study.results.paper.clusters import TASK
from report.folders import foreign_run, publish, raw_run


@pytest.fixture
def runs(tmp_path):
    for rate, accuracy in ((0.001, 80.0), (0.002, 90.0)):
        for seed in range(3):
            for name in ("spigot", "ste-i"):
                config = TASK.configure(estimator=name, clusters=5, learning_rate=rate, seed=seed, steps=100)
                publish(tmp_path, config, accuracy - (name == "ste-i"), 50.0)
    return Runs(tmp_path)


def test_a_configuration_is_all_but_the_seed_and_the_best_is_first(runs):
    table = configurations("synthetic", runs.of("synthetic"))
    labels = [row.label for row in table.rows]
    assert labels[:2] == ["spigot, learning rate 0.002, step size 0.1", "ste-i, learning rate 0.002, step size 1"]
    assert len(table.rows) == 4
    best = table.rows[0].cells["validation_accuracy"]
    assert (best.value, best.count) == (91.0, 3)
    assert len(set(best.runs)) == 3
    assert "±: mean ± standard error over 3 seeds." in table.markdown()


def test_a_configuration_of_which_one_run_diverged_is_the_last(tmp_path):
    for rate, accuracies in ((0.001, (80.0, 80.0)), (0.002, (95.0, math.nan))):
        for seed, accuracy in enumerate(accuracies):
            publish(tmp_path, TASK.configure(estimator="spigot", clusters=5, learning_rate=rate, seed=seed), accuracy, 50.0)
    table = configurations("synthetic", Runs(tmp_path).of("synthetic"))
    assert [row.label for row in table.rows] == ["learning rate 0.001", "learning rate 0.002"]


def test_the_best_for_each_value_of_a_field_and_a_limit(runs):
    table = configurations("synthetic", runs.of("synthetic"), by=["estimator"])
    assert [row.name for row in table.rows] == ["spigot", "ste-i"]
    assert configurations("synthetic", runs.of("synthetic"), limit=1).notes == ["3 more configurations."]


def test_curves_of_the_best_configurations(runs):
    figure = best_curves("synthetic", runs.of("synthetic"))
    assert {curve.label for panel in figure.panels for curve in panel.curves} == {"SPIGOT", "STE-I"}
    assert figure.panels[0].curves[0].y[-1] == 90.0


def test_a_task_that_is_not_installed_and_runs_with_missing_numbers(tmp_path):
    for seed in range(2):
        foreign_run(tmp_path, f"{seed}" * 16, seed)
    config = {"task": "parity", "version": 3, "config": {"estimator": "imle", "seed": 5, "bits": 9}}
    raw_run(tmp_path, "b" * 16, json.dumps(config), result='{"validation_accuracy": null, "test_accuracy": "high"}')
    table = configurations("parity", Runs(tmp_path).of("parity"))
    assert [row.label for row in table.rows] == ["bits 8", "bits 9"]
    assert table.rows[0].cells["test_f1"].value == 0.5
    assert table.rows[1].cells["test_accuracy"].show() == "diverged"
    assert not best_curves("parity", Runs(tmp_path).of("parity")).drawn
