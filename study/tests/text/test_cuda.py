"""Training on a GPU: the CPU's losses, and no step that waits for the device."""

import pytest
import torch

from pullback_study.runs import read_run
from pullback_study.runs.side_by_side import SideBySide
from pullback_study.runs.train import train
from text.small import config, in_memory, trainer
from text.test_trainer import ROWS

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("estimator", ROWS)
@pytest.mark.parametrize("task", ["sst", "snli"])
def test_steps_do_not_wait_for_the_device(task, estimator):
    made = trainer(config(task, estimator), task, "cuda")
    made.advance(1, lambda: False)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        made.advance(3, lambda: False)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    made.advance(4, lambda: False)
    (row,) = made.history()[0]
    assert 0 <= row.get("latent_share", 0.0) < 1


@pytest.mark.parametrize("estimator", ["baseline", "marginals", "spigot"])
def test_the_losses_are_those_of_the_cpu(estimator):
    settings = config("sst", estimator, epochs=4, dtype="float64")  # from the third on all steps are replayed
    losses = []
    for device in ("cpu", "cuda"):
        made = trainer(settings, device=device)
        made.advance(made.steps, lambda: False)
        losses.append([row["loss"] for row in made.history()[0]])
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


@pytest.mark.parametrize("estimator", ["perturb-and-map", "sparsemap", "spigot-ce"])
def test_replayed_steps_are_those_that_run_as_they_are(estimator):
    settings = config("snli", estimator, epochs=4)
    rows = []
    for captured in (False, True):
        made = trainer(settings, "snli", "cuda")
        assert made.graphs is not None
        if not captured:
            made.graphs = None
        made.advance(made.steps, lambda: False)
        rows.append([row["loss"] for row in made.history()[0]])
    assert rows[0] == pytest.approx(rows[1], rel=1e-4)


def test_a_run_moves_from_one_device_to_another():
    settings = config("snli", "perturb-and-map", epochs=2)
    for first, second in (("cpu", "cuda"), ("cuda", "cpu")):
        before, after = (trainer(settings, "snli", device) for device in (first, second))
        before.advance(3, lambda: False)
        after.restore(before.state())
        after.advance(after.steps, lambda: False)
        assert len(after.history()[0]) == 2


@pytest.mark.parametrize("estimator", ["perturb-and-map", "spigot"])
def test_runs_side_by_side_have_the_numbers_of_runs_alone(estimator, tmp_path, monkeypatch):
    task = in_memory("snli")
    monkeypatch.setattr(type(task), "sources", lambda *_: {})
    configs = [config("snli", estimator, epochs=4, seed=seed) for seed in range(3)]
    found = []
    for name, executor in {"alone": None, "beside": SideBySide(3)}.items():
        assert train(task, configs, tmp_path / name, device="cuda", executor=executor).complete
        curves = [read_run(task.run(config, tmp_path / name).path).curve() for config in configs]
        found.append([[row["loss"] for row in curve] for curve in curves])
    assert found[0] == [pytest.approx(losses, rel=1e-5) for losses in found[1]]
