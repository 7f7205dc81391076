"""Training on a GPU: the CPU's losses, and no step that waits for the device."""

import pytest
import torch

from pullback_study.text.methods import ROWS
from pullback_study.text.trainer import TextTrainer
from text.small import config, corpus

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
    settings = config("sst", estimator, epochs=4, dtype="float64")  # from the third on all steps are replayed
    losses = []
    for device in ("cpu", "cuda"):
        trainer = TextTrainer(settings, corpus(), device)
        trainer.advance(trainer.steps, lambda: False)
        losses.append([row["loss"] for row in trainer.history()[0]])
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


@pytest.mark.parametrize("estimator", ["perturb-and-map", "sparsemap"])
def test_replayed_steps_are_those_that_run_as_they_are(estimator):
    settings = config("snli", estimator, epochs=4)
    rows = []
    for captured in (False, True):
        trainer = TextTrainer(settings, corpus("snli"), "cuda")
        assert trainer._captured
        if not captured:
            trainer._take_step = trainer._update
        trainer.advance(trainer.steps, lambda: False)
        rows.append([row["loss"] for row in trainer.history()[0]])
    assert rows[0] == pytest.approx(rows[1], rel=1e-4)


def test_steps_that_rewind_dropout_are_not_captured():
    assert not TextTrainer(config("snli", "spigot-ce"), corpus("snli"), "cuda")._captured
    assert TextTrainer(config("sst", "spigot-ce"), corpus("sst"), "cuda")._captured


def test_a_run_moves_from_one_device_to_another():
    settings = config("snli", "perturb-and-map", epochs=2)
    for first, second in (("cpu", "cuda"), ("cuda", "cpu")):
        before, after = (TextTrainer(settings, corpus("snli"), device) for device in (first, second))
        before.advance(3, lambda: False)
        after.restore(before.state())
        after.advance(after.steps, lambda: False)
        assert len(after.history()[0]) == 2
