"""The models: their sizes, their formulas, and that padding and batches change nothing."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from pullback import DependencyTree
from pullback_study.published import settings
from pullback_study.tasks import find_task
from pullback_study.tasks.text import models as module
from pullback_study.tasks.text.models import ArcScorer, BatchDropout, BiLSTM, DecomposableAttention, Sentiment

TASKS = {name: find_task(name) for name in ("sst", "snli")}
METHODS = TASKS["sst"].methods

TREES = {"projective": True, "non-projective": False}


@pytest.mark.parametrize(
    ("model", "thousands"),
    [
        (lambda: Sentiment(trees=False), 150),
        (lambda: Sentiment(trees=True), 180),
        (lambda: DecomposableAttention(trees=False), 340),
        (lambda: DecomposableAttention(trees=True), 420),
    ],
    ids=["SST", "SST latent", "SNLI", "SNLI latent"],
)
def test_as_many_parameters_as_the_paper_reports(model, thousands):
    assert abs(sum(each.numel() for each in model().parameters()) / 1000 - thousands) < 3


def test_arc_scores_are_the_papers_formula():
    torch.manual_seed(0)
    scorer = ArcScorer(4, 5).double()
    h = torch.randn(2, 3, 4, dtype=torch.float64)
    weight = torch.cat([scorer.head.weight, scorer.modifier.weight], 1)
    scores = scorer(h)
    for b in range(2):
        for i in range(3):
            for j in range(3):
                from_where = scorer.root if i == j else h[b, i]
                hidden = torch.tanh(weight @ torch.cat([from_where, h[b, j]]) + scorer.head.bias)
                torch.testing.assert_close(scores[b, i, j], scorer.output.weight[0] @ hidden)


@pytest.mark.parametrize("shape", [(5, 3, 4), (2, 3, 1, 4), (3, 4)], ids=str)
def test_arcs_in_slices_are_those_of_the_whole(shape, monkeypatch):
    torch.manual_seed(0)
    scorer, h = ArcScorer(4, 5).double(), torch.randn(*shape, dtype=torch.float64, requires_grad=True)
    given = [scorer.head(h), scorer.modifier(h), scorer.output.weight[0]]
    for size in (1, 2 * 3 * 3 * 5, 10**6):  # numbers: one sentence at a time, two, and all
        monkeypatch.setattr(module, "SLICE", size)
        whole = torch.tanh(given[0][..., :, None, :] + given[1][..., None, :, :]) @ given[2]
        arcs, weights = module.sliced_arcs(*given), torch.randn(whole.shape, dtype=torch.float64)
        torch.testing.assert_close(arcs, whole)
        expected = torch.autograd.grad((weights * whole).sum(), given, retain_graph=True)
        torch.testing.assert_close(torch.autograd.grad((weights * arcs).sum(), given, retain_graph=True), expected)


def test_each_word_gets_the_vector_of_its_head():
    scorer = ArcScorer(4, 5)
    h = torch.randn(3, 4)
    z = torch.tensor([[0.0, 1, 0], [0, 0, 0], [1, 0, 1]])  # root -> 3, 3 -> 1, 1 -> 2
    torch.testing.assert_close(scorer.heads(h, z), torch.stack([h[2], h[0], scorer.root.detach()]))
    half = (z + torch.eye(3)) / 2
    torch.testing.assert_close(scorer.heads(h, half)[1], (h[0] + scorer.root.detach()) / 2)


def test_the_bilstm_is_the_one_over_packed_sequences():
    torch.manual_seed(0)
    ours, packed = BiLSTM(3, 8), nn.LSTM(3, 4, bidirectional=True, batch_first=True)
    for name, parameter in ours.forwards.named_parameters():
        getattr(packed, name).data.copy_(parameter)
    for name, parameter in ours.backwards.named_parameters():
        getattr(packed, f"{name}_reverse").data.copy_(parameter)
    x, lengths = torch.randn(4, 6, 3), torch.tensor([6, 4, 1, 3])
    expected, _ = packed(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
    torch.testing.assert_close(ours(x, lengths), pad_packed_sequence(expected, batch_first=True)[0])


def outputs(model, estimator, projective, vectors, lengths):
    encoded = model.encode(vectors, lengths)
    if estimator is None:
        return model.logits(encoded, None), None, None
    scores, trees = model.parser(encoded.states), DependencyTree(lengths, projective=projective, multiroot=True)
    mu = estimator.predict(trees, scores)
    return model.logits(encoded, mu), trees.heads(trees.argmax(scores)), mu


@pytest.mark.parametrize("trees", TREES)
@pytest.mark.parametrize("estimator", ["baseline", "marginals", "sparsemap", "spigot"])
@pytest.mark.parametrize("task", TASKS)
def test_padding_and_other_sentences_change_nothing(task, estimator, trees):
    torch.manual_seed(1)
    method = METHODS[estimator]
    built = method.build(step_size=1.0, steps=1)
    model = TASKS[task].model(5, method.latent).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3.0)  # fresh parameters give scores near zero, and all trees alike
    sides = (2,) if TASKS[task].sides == 2 else ()
    lengths = torch.randint(1, 8, (6, *sides))
    lengths[0] = 1
    vectors = torch.randn(6, *sides, 12, 5, dtype=torch.float64)
    padded = torch.where(torch.arange(12)[:, None] < lengths[..., None, None], vectors, torch.nan)
    with torch.no_grad():
        logits, heads, mu = outputs(model, built, TREES[trees], padded, lengths)
        assert logits.isfinite().all()
        for b in range(6):
            n = int(lengths[b].max())
            alone = outputs(model, built, TREES[trees], padded[b : b + 1, ..., :n, :], lengths[b : b + 1])
            torch.testing.assert_close(alone[0][0], logits[b], rtol=1e-9, atol=1e-11)
            if built:
                assert torch.equal(alone[1][0], heads[b][..., :n])
                torch.testing.assert_close(alone[2][0], mu[b][..., :n, :n], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("estimator", [name for name, method in METHODS.items() if name in settings("sst") and method.latent])
@pytest.mark.parametrize("task", TASKS)
def test_a_gradient_reaches_all_parts_by_every_estimator(task, estimator):
    torch.manual_seed(0)
    model = TASKS[task].model(5, True)
    built = METHODS[estimator].build(step_size=1.0, steps=1)
    sides = (2,) if TASKS[task].sides == 2 else ()
    vectors, lengths = torch.randn(4, *sides, 6, 5), torch.randint(3, 7, (4, *sides))
    encoded = model.encode(vectors, lengths)
    labels = torch.tensor([0, 1, 0, 1])
    losses = built.objective(
        DependencyTree(lengths, multiroot=True),
        model.parser(encoded.states),
        lambda mu: nn.functional.cross_entropy(model.logits(encoded, mu), labels, reduction="none"),
    )
    losses.mean().backward()
    assert losses.shape == (4,)
    silent = [name for name, parameter in model.named_parameters() if not parameter.grad.abs().sum() > 0]
    assert not silent


def test_dropout_is_drawn_once_per_batch_and_keeps_the_mean():
    torch.manual_seed(0)
    model = DecomposableAttention(4)
    vectors, lengths = torch.randn(3, 2, 5, 4), torch.full((3, 2), 5)
    trees = torch.eye(5).expand(3, 2, 5, 5)
    first = model.encode(vectors, lengths)
    logits = model.logits(first, trees)
    again = model.logits(first, trees)
    other = model.logits(model.encode(vectors, lengths), trees)
    assert torch.equal(logits, again)
    assert not torch.allclose(logits, other)
    drop = BatchDropout(0.2)
    drop.draw(vectors, 200, 500)
    dropped = drop(torch.ones(200, 500))
    assert set(dropped.unique().tolist()) == {0.0, 1.25}
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.01)
    assert torch.equal(drop.eval()(vectors), vectors)
