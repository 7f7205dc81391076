"""Training on a GPU: the CPU's losses, and no step that waits for the device."""

import pytest
import torch

from experiments.text.small import config, corpus
from pullback.experiments.text.methods import ROWS
from pullback.experiments.text.trainer import TextTrainer

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("estimator", ROWS)
@pytest.mark.parametrize("task", ["sst", "snli"])
def test_steps_do_not_wait_for_the_device(task, estimator):
    trainer = TextTrainer(config(task, estimator), corpus(task), "cuda")
    trainer.advance(1, lambda: False)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        trainer.advance(3, lambda: False)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    trainer.advance(4, lambda: False)
    (row,) = trainer.history()[0]
    assert 0 <= row.get("latent_share", 0.0) < 1


@pytest.mark.parametrize("estimator", ["baseline", "marginals", "spigot"])
def test_the_losses_are_those_of_the_cpu(estimator):
    settings = config("sst", estimator, epochs=1, dtype="float64")
    losses = []
    for device in ("cpu", "cuda"):
        trainer = TextTrainer(settings, corpus(), device)
        trainer.advance(trainer.steps, lambda: False)
        losses.append(trainer.history()[0][0]["loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_a_run_moves_from_one_device_to_another():
    settings = config("snli", "perturb-and-map", epochs=2)
    for first, second in (("cpu", "cuda"), ("cuda", "cpu")):
        before, after = (TextTrainer(settings, corpus("snli"), device) for device in (first, second))
        before.advance(3, lambda: False)
        after.restore(before.state())
        after.advance(after.steps, lambda: False)
        assert len(after.history()[0]) == 2
