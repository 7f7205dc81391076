"""Training: it learns, its choices are kept, and a stopped run ends with the numbers it would have had."""

import io

import pytest
import torch

import pullback as pb
from pullback_study.published import settings
from pullback_study.tasks import find_task
from text.small import config, corpus, trainer

SST = find_task("sst")
ROWS = [name for name in SST.methods if name in settings("sst")]


def trained(settings, task="sst", until=10**6, examples=60):
    made = trainer(settings, task, examples=examples)
    made.advance(until, lambda: False)
    return made


def without_times(rows):
    timed = ("seconds", "examples_per_second", "latent_share", "seconds_of_epoch")
    return [{name: value for name, value in row.items() if name not in timed} for row in rows]


@pytest.mark.parametrize("estimator", ROWS)
@pytest.mark.parametrize(("task", "projective"), [("sst", True), ("snli", False)])
def test_every_row_trains_and_tells_its_numbers(task, projective, estimator):
    latent = estimator != "baseline"
    made = trained(config(task, estimator, epochs=1, projective=projective if latent else None), task)
    (row,), (result,) = made.history()[0], made.results()
    assert row["step"] == made.steps == 4
    assert row["loss"] > 0
    assert 0 <= result["test_accuracy"] <= 100
    assert ("depth" in row) == ("latent_share" in row) == latent
    if latent:
        assert result["test_depth"] >= 1
        assert 0 < row["latent_share"] < 1
    if latent and task == "sst":
        assert len(result["example_heads"]) == 7


@pytest.mark.parametrize("estimator", ["baseline", "marginals", "spigot"])
def test_it_learns(estimator):
    (result,) = trained(config(estimator=estimator, epochs=25), examples=120).results()
    assert result["test_accuracy"] > 80


@pytest.mark.parametrize(("task", "estimator"), [("sst", "perturb-and-map"), ("snli", "spigot-ce"), ("sst", "sfe-baseline")])
def test_restored_from_any_step_it_ends_with_the_same_numbers(task, estimator):
    settings = config(task, estimator, epochs=3)
    whole = trained(settings, task)
    part = trained(settings, task, until=6)  # in the middle of the second epoch
    saved = io.BytesIO()
    torch.save(part.state(), saved)
    saved.seek(0)
    torch.rand(5)  # a run's noise is its own
    resumed = trainer(settings, task)
    resumed.restore(torch.load(saved, weights_only=True))
    resumed.advance(10**6, lambda: False)
    assert without_times(whole.history()[0]) == without_times(resumed.history()[0])
    assert without_times(whole.results()) == without_times(resumed.results())
    for expected, found in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(expected, found)
    for name, expected in whole.parameters()[0].items():
        assert torch.equal(expected, resumed.parameters()[0][name])


def test_it_tells_how_many_epochs_have_ended():
    part = trained(config(epochs=3), until=6)
    resumed = trainer(part.config)
    assert (part.epochs, resumed.epochs) == (1, 0)
    resumed.restore(part.state())
    assert resumed.epochs == 1
    resumed.advance(10**6, lambda: False)
    assert resumed.epochs == 3


def test_seeds_decide():
    def rows(seed):
        return without_times(trained(config(estimator="perturb-and-map", seed=seed)).history()[0])

    assert rows(0) == rows(0)
    assert rows(0) != rows(1)


def test_the_parameters_are_those_of_the_best_epoch():
    made = trained(config(epochs=6, learning_rate=0.03))
    (result,) = made.results()
    accuracies = [row["accuracy"] for row in made.history()[0]]
    assert result["validation_accuracy"] == max(accuracies)
    assert result["best_epoch"] == accuracies.index(max(accuracies)) + 1
    until_best = trained(config(epochs=6, learning_rate=0.03), until=4 * result["best_epoch"])
    for name, value in until_best.model.state_dict().items():
        assert torch.equal(made.parameters()[0][name], value)


def test_patience_stops_early():
    made = trained(config(epochs=30, patience=2, learning_rate=1e-9))
    assert len(made.history()[0]) == 3
    assert made.step == made.steps
    (result,) = made.results()
    assert (result["best_epoch"], result["epochs"]) == (1, 3)


@pytest.mark.parametrize("estimator", ["ste-i", "spigot"])
def test_the_papers_scale_divides_the_step_and_not_the_surrogate(estimator):
    def gradient(scale, step_size):
        settings = config(estimator=estimator, gamma_scale=scale, step_size=step_size, dtype="float64")
        made = trainer(settings)
        made._losses(made.problem.gather(made.problem.splits[0], *made.batch())).mean().backward()
        return made.model.parser.output.weight.grad

    paper, example = gradient("paper", 1.6), gradient("example", 0.1)
    torch.testing.assert_close(paper, 16 * example)
    if estimator == "ste-i":  # its surrogate is proportional to the step size
        torch.testing.assert_close(paper, gradient("example", 1.6))


def test_a_part_of_the_training_data():
    whole = corpus("snli").train
    part = whole.first(10)
    assert len(part) == 10
    assert torch.equal(part.lengths, whole.lengths[:10])
    assert torch.equal(part.words, whole.words[: len(part.words)])
    assert len(whole.first(10**6)) == len(whole)


def test_a_loss_that_is_not_finite_is_an_error():
    with pytest.raises((ArithmeticError, ValueError), match=r"NaN|nan|finite"):
        trained(config(learning_rate=1e30, estimator="baseline"))


def test_a_run_that_diverges_at_its_last_step_is_an_error():
    """No loss of a training step has seen it, and the model of NaN has an accuracy."""
    made = trained(config(estimator="baseline", epochs=1), until=3)
    update = made.update

    def diverge(rows, width):
        update(rows, width)
        with torch.no_grad():
            next(made.model.parameters()).fill_(torch.nan)

    made.update = diverge
    with pytest.raises(ArithmeticError, match="epoch 1 ends with parameters that are not finite"):
        made.advance(made.steps, lambda: False)


@pytest.mark.parametrize(
    ("estimator", "projection", "update"),
    [
        ("spigot", None, pb.parts.Projected),
        ("spigot", "local", pb.parts.LocallyProjected),
        ("spigot-ce", None, pb.parts.LocallyProjected),
        ("spigot-ce", "exact", pb.parts.Projected),
    ],
)
def test_what_inner_steps_are_projected_onto(estimator, projection, update):
    made = SST.estimator(config(estimator=estimator, projection=projection, step_size=0.5, inner_steps=3))
    assert type(made.update) is update
    assert made.steps == 3
    assert made.update.step_size == 0.5 / 16


def test_projections_that_there_are_not():
    with pytest.raises(ValueError, match="known are exact, local"):
        config(estimator="spigot", projection="nearly")
    with pytest.raises(ValueError, match="marginals has none"):
        config(estimator="marginals", projection="exact")


def test_embeddings_are_trained_on_request():
    fixed, made = (trained(config(embeddings=how, epochs=1)) for how in ("fixed", "trained"))
    assert "embedding" not in fixed.parameters()[0]
    found, given = made.parameters()[0]["embedding"], corpus().vectors
    assert found.shape == given.shape
    assert (found != given).any()
    assert made.results()[0]["parameters"] == fixed.results()[0]["parameters"] + given.numel()
    others = list(fixed.parameters()[0])
    assert all(torch.equal(a, b) for a, b in zip(initial("fixed", others), initial("trained", others), strict=True))


def initial(embeddings, names):
    parameters = trainer(config(embeddings=embeddings)).model.state_dict()
    return [parameters[name] for name in names]


def test_with_a_frozen_decoder_the_scorer_alone_is_trained_anew():
    settings = config(estimator="spigot", epochs=2, frozen_after=3, inner_steps=2, learning_rate=0.03)
    before = trained(config(estimator="spigot", epochs=3, learning_rate=0.03))
    fresh = trainer(settings).model.state_dict()
    made = trained(settings, until=12)
    assert without_times(made.history()[0]) == without_times(before.history()[0])  # with one inner step
    scorer = ("parser.head.weight", "parser.head.bias", "parser.modifier.weight", "parser.output.weight")
    for name, value in made.model.state_dict().items():
        assert torch.equal(value, (fresh if name in scorer else before.parameters()[0])[name]), name
    resumed = trainer(settings)
    for group in (resumed, made):
        if group is resumed:
            group.restore(trained(settings, until=14).state())
        group.advance(10**6, lambda: False)
    assert without_times(made.results()) == without_times(resumed.results())
    (result,) = made.results()
    assert (made.step, result["epochs"]) == (20, 5)
    assert result["best_epoch"] > 3
    for name, value in made.model.state_dict().items():
        assert torch.equal(value, before.parameters()[0][name]) == (name not in scorer), name
    with pytest.raises(ValueError, match="frozen_after is 3; baseline has no scorer"):
        trainer(config(estimator="baseline", frozen_after=3))
