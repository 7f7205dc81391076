import dataclasses
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from pullback import Categorical
from pullback_study.tasks import find_task
from pullback_study.tasks.schema import option
from pullback_study.tasks.synthetic.train import METHODS, Outputs, generate
from tasks.small import SIZES, small

SYNTHETIC = {"clusters": 4, "steps": 20, **SIZES}
PLANTED = {"n": 3, "train_examples": 64, "validation_examples": 20, "test_examples": 20, "batch_size": 16,
           "steps": 10, "evaluate_every": 5}  # fmt: skip
LISTOPS = {"train_examples": 20, "validation_examples": 10, "test_examples": 20, "deeper_examples": 5, "depth": 2,
           "batch_size": 5, "size": 8, "steps": 4, "evaluate_every": 2}  # fmt: skip


def never():
    return False


def replicas(configs):
    return find_task("synthetic").trainer(configs, "cpu")


def trained(configs, steps=50):
    group = replicas(configs)
    group.advance(steps, never)
    return group


def settings(estimator):
    """Two seeds, two learning rates, and two step sizes where there are any; both scales of gamma."""
    pulled_back = METHODS[estimator].pulled_back
    for scale in ("paper", "example") if pulled_back else (None,):
        yield [
            small(estimator, seed=seed, learning_rate=rate, step_size=size, gamma_scale=scale)
            for seed in (0, 1)
            for rate in (0.01, 0.02)
            for size in ((0.5, 2.0) if pulled_back else (None,))
        ]


@pytest.mark.parametrize("estimator", METHODS)
def test_together_as_alone(estimator):
    for configs in settings(estimator):
        together = trained(configs)
        for r in (0, len(configs) // 2 + 1):
            alone = trained([configs[r]])
            torch.testing.assert_close(together.theta[r], alone.theta[0], rtol=1e-9, atol=1e-12)
            assert together.history()[r][-1] == pytest.approx(alone.history()[0][-1])


@pytest.mark.parametrize("estimator", ["marginals", "sparsemap", "ste-s", "ste-i", "spigot", "spigot-ce", "spigot-eg"])
def test_equals_a_plain_training_loop(estimator):
    """nn.Linear, nn.Bilinear, cross-entropy over two outputs, torch.optim.Adam, one model."""
    config = small(estimator, gamma_scale="example" if METHODS[estimator].pulled_back else None, learning_rate=0.01)
    group = trained([config])
    data = generate(clusters=4, seed=0, features=8, sizes=(60, 20, 20))[0]
    encoder, decoder = nn.Linear(8, 4).double(), nn.Bilinear(4, 8, 2).double()
    initial = group.model.named(group.model.initial(0))
    with torch.no_grad():
        for name, parameter in nn.ModuleDict({"encoder": encoder, "decoder": decoder}).named_parameters():
            parameter.copy_(initial[name])
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01)
    step_size = torch.full((60, 1), config.step_size or 1.0, dtype=torch.float64)
    method = METHODS[estimator].build(groups=1, step_size=step_size, steps=1, noise=torch.zeros_like)
    for _ in range(50):
        optimizer.zero_grad()
        losses = method.objective(
            Categorical(), encoder(data.x), lambda z: F.cross_entropy(decoder(z, data.x), data.y, reduction="none")
        )
        losses.mean().backward()
        optimizer.step()
    found = group.parameters()[0]
    torch.testing.assert_close(found["encoder.weight"], encoder.weight.detach(), rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(found["decoder.weight"], decoder.weight.detach(), rtol=1e-8, atol=1e-10)
    assert group.history()[0][-1]["loss"] == pytest.approx(losses.mean().item())


def test_the_papers_scale_of_gamma_takes_inner_steps_of_eta_over_n():
    """One update: Adam's first mean shows the gradient. The surrogate is for eta / n, and not divided by n again."""
    n = 60
    paper = trained([small("spigot-eg", step_size=n * 0.5, gamma_scale="paper")], steps=1)
    example = trained([small("spigot-eg", step_size=0.5, gamma_scale="example")], steps=1)
    mine, other = (group.model.named(group.adam.mean[0]) for group in (paper, example))
    torch.testing.assert_close(mine["encoder.weight"], n * other["encoder.weight"])
    torch.testing.assert_close(mine["decoder.weight"], other["decoder.weight"])


@pytest.mark.parametrize(
    ("estimator", "inner_steps", "calls"),
    [("ste-i", 1, 1), ("spigot", 1, 1), ("spigot", 3, 3), ("spigot-ce", 1, 2), ("spigot-eg", 3, 4), ("gold", None, 1)],
)
def test_decoder_calls_are_those_of_a_step(estimator, inner_steps, calls, monkeypatch):
    made = []
    monkeypatch.setattr(Outputs, "logits", lambda *given, logits=Outputs.logits: (made.append(1), logits(*given))[1])
    group = trained([small(estimator, inner_steps=inner_steps, evaluate_every=10)], steps=1)
    assert len(made) == calls
    assert group.results()[0]["decoder_calls"] == calls


def test_baselines_know_what_they_should():
    assert trained([small("gold")], 1).results()[0]["test_v_measure"] == 100
    assert trained([small("linear")], 1).results()[0]["test_v_measure"] == 0
    assert {name: tuple(value.shape) for name, value in trained([small("linear")], 1).parameters()[0].items()} == {
        "encoder.weight": (0, 8), "encoder.bias": (0,), "decoder.weight": (2, 1, 8), "decoder.bias": (2,),
    }  # fmt: skip


def test_a_replica_that_diverges_does_not_stop_the_others():
    group = trained([small("marginals", seed=0, learning_rate=rate) for rate in (0.01, 1e300)])
    alone = trained([small("marginals", seed=0, learning_rate=0.01)])
    torch.testing.assert_close(group.theta[0], alone.theta[0])


@pytest.mark.parametrize("task", ["synthetic", "planted", "listops"])
@pytest.mark.parametrize("when", ["from the start", "at the end"])
def test_diverged_is_diverged_in_every_measure(task, when):
    """A model of NaN predicts something, and may even look perfect: its numbers are NaN all the same."""
    fields = {"synthetic": SYNTHETIC, "planted": PLANTED, "listops": LISTOPS}[task]
    method = "marginals" if task == "listops" else "ste-i"
    group = find_task(task).trainer([find_task(task).configure(estimator=method, seed=s, **fields) for s in (0, 1)], "cpu")
    if when == "at the end":
        group.advance(group.steps, never)
    with torch.no_grad():
        group.theta[0, 0] = math.nan
    if when == "from the start":
        group.advance(group.steps, never)
    diverged, fine = group.results()
    measures = {metric.name for metric in find_task(task).metrics if metric.name.startswith(("validation_", "test_", "depth_"))}
    best_counts = task == "listops" and when == "at the end"  # the best model is one from before
    for name in measures & fine.keys():
        assert math.isnan(diverged[name]) == (not best_counts), name
        assert math.isfinite(fine[name]), name
    if when == "from the start":
        assert all(math.isnan(row["accuracy"]) for row in group.history()[0])


def test_groups_must_be_of_one_kind():
    with pytest.raises(ValueError, match="seed, learning_rate, step_size only"):
        replicas([small("spigot"), small("spigot-ce")])
    with pytest.raises(ValueError, match="same number of replicas for each seed"):
        replicas([small(seed=0), small(seed=0, learning_rate=0.5), small(seed=1)])


@pytest.mark.parametrize("estimator", [name for name, method in METHODS.items() if not method.reads_back])
def test_a_step_can_be_captured(estimator):
    """A CUDA graph holds kernels only: a step must not read a tensor's value, nor make a tensor from the host's."""
    seen = set()

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.add(function.overloadpacket.__name__)
            return function(*args, **(kwargs or {}))

    group = trained([small(estimator, seed=seed) for seed in (0, 1)], steps=1)
    with Watch():
        group.advance(2, never)
    assert "softplus" in seen
    assert not seen & {"_local_scalar_dense", "nonzero", "masked_select", "lift_fresh", "unique", "equal"}


@pytest.mark.parametrize("task", ["synthetic", "planted", "listops"])
def test_a_later_option_with_its_default_changes_no_number(task):
    """Neither the replicas' own noise nor the numbers that an estimator draws from PyTorch's generators."""
    fields = {"synthetic": {**SYNTHETIC, "evaluate_every": 1}, "planted": PLANTED, "listops": LISTOPS}[task]
    now = find_task(task)
    added = [("later", int, option(3, help="An option of a later version."))]
    config_type = dataclasses.make_dataclass("Later", added, bases=(now.config_type,), frozen=True)
    later = dataclasses.replace(now, config_type=config_type)

    def after_a_step(of, seed):
        group = of.trainer([of.configure(estimator="sfe-baseline", seed=seed, **fields)], "cpu")
        drawn = group.random.state[0]
        group.advance(1, never)
        return drawn, group.theta.detach()

    for one, other in zip(after_a_step(now, 0), after_a_step(later, 0), strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(after_a_step(now, 0)[0], after_a_step(now, 1)[0])
