"""The benchmark of regrets: its data, its regret, and what it stores."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import pullback as pb

shortest_paths = pytest.importorskip("benchmarks.shortest_paths")


def test_costs_follow_their_formula():
    setting = shortest_paths.Setting()
    x, costs = shortest_paths.draw(4, setting, seed=3)
    mixing = np.random.RandomState(3).binomial(1, 0.5, (40, 5))
    for i in range(4):
        for e in range(40):
            plain = ((sum(mixing[e] * x[i]) / 5**0.5 + 3) ** 4 + 1) / 3.5**4
            assert 0.5 * plain - 1e-5 <= costs[i, e] <= 1.5 * plain + 1e-5


def test_data_are_those_of_pyepo():
    """The sums that PyEPO 2.2.7's generator has for seed 42, and its first features and costs."""
    x, costs = shortest_paths.draw(2000, shortest_paths.Setting(), seed=42)
    assert x.sum() == pytest.approx(-24.86402601, rel=1e-9)
    assert costs.sum(dtype=np.float64) == pytest.approx(57675.15168, rel=1e-6)
    assert x[0, 0] == pytest.approx(-0.6800247216)
    assert costs[0, 0] == pytest.approx(0.3539175987, rel=1e-6)


def test_train_and_test_are_apart():
    setting = shortest_paths.QUICK
    found = shortest_paths.data(setting, seed=1)
    both = torch.cat([found.train[0], found.test[0]])
    assert len(both) == 2 * setting.examples == len(both.unique(dim=0))


def test_regret_of_the_truth_is_zero_and_of_the_longest_paths_is_that_of_the_definition():
    paths = pb.ShortestPath(shortest_paths.edges(5), 0, 24)
    costs = shortest_paths.data(shortest_paths.QUICK, seed=1).test[1]
    assert shortest_paths.regret(paths, lambda x: x, costs, costs) == 0
    longest, best = (costs * paths.argmax(costs)).sum(-1), (costs * paths.argmax(-costs)).sum(-1)
    found = shortest_paths.regret(paths, lambda x: -x, costs, costs)
    assert found == pytest.approx(float((longest - best).sum() / best.sum()), rel=1e-5)


def test_results_are_kept_by_seed_and_not_trained_again(tmp_path, capsys, monkeypatch):
    arguments = ["--quick", "--methods", "mse", "spo+", "--results", str(tmp_path)]
    shortest_paths.main(arguments)
    first = capsys.readouterr().out
    assert "SPOPlus" in first
    assert "two stages" in first
    stored = json.loads((tmp_path / "seed-42.json").read_text())
    assert set(stored["methods"]) == {"mse", "spo+"}
    trained, own = [], shortest_paths.train

    def watched(setting, seed, name):
        trained.append(setting)
        return own(setting, seed, name)

    monkeypatch.setattr(shortest_paths, "train", watched)
    shortest_paths.main(arguments)
    assert capsys.readouterr().out == first
    assert shortest_paths.QUICK not in trained
