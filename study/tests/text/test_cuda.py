"""Training on a GPU: the CPU's losses, and no step that waits for the device."""

import pytest
import torch

from text.small import config, trainer
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


@pytest.mark.parametrize("estimator", ["perturb-and-map", "sparsemap"])
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


def test_steps_that_rewind_dropout_are_not_captured():
    assert not trainer(config("snli", "spigot-ce"), "snli", "cuda").graphs
    assert trainer(config("sst", "spigot-ce"), "sst", "cuda").graphs


def test_a_run_moves_from_one_device_to_another():
    settings = config("snli", "perturb-and-map", epochs=2)
    for first, second in (("cpu", "cuda"), ("cuda", "cpu")):
        before, after = (trainer(settings, "snli", device) for device in (first, second))
        before.advance(3, lambda: False)
        after.restore(before.state())
        after.advance(after.steps, lambda: False)
        assert len(after.history()[0]) == 2
