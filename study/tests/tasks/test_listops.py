"""ListOps: expressions and their trees, the replicated model against plain formulas, and training."""

import gzip
import itertools
import math
import statistics

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pullback_study.corpora import find_data
from pullback_study.tasks import find_task
from pullback_study.tasks.listops import train
from pullback_study.tasks.listops.data import Split, batches, encode, generate, in_order
from pullback_study.tasks.listops.expressions import DRAWN, depth, draw, executed, heads
from pullback_study.tasks.listops.model import Encoded, Model, lstm
from pullback_study.tasks.listops.task import TREES
from pullback_study.tasks.listops.train import compared

TASK = find_task("listops")
TINY = {
    "depth": 2, "tokens": 12, "train_examples": 40, "validation_examples": 12, "test_examples": 12, "steps": 4,
    "evaluate_every": 2, "batch_size": 8, "size": 6, "dtype": "float64", "deeper_examples": 2,
}  # fmt: skip


def nested(text):
    """The value by Python's own parser: [MAX 2 [MIN 4 7 ] ] as a nested list."""

    def worth(item):
        if isinstance(item, int):
            return item
        name, *arguments = item[0], *map(worth, item[1:])
        rules = {"MIN": min, "MAX": max, "MED": lambda v: math.floor(statistics.median(v)), "SM": lambda v: sum(v) % 10}
        return rules[name](arguments)

    words = [f"['{word[1:]}'," if word.startswith("[") else "]," if word == "]" else f"{word}," for word in text.split()]
    return worth(eval("".join(words))[0])


def test_expressions_follow_the_recipe():
    drawn = draw(range(1, 6), 500, tokens=50, seed="a test")
    assert len({tuple(each) for each in drawn}) == 500
    assert [sum(depth(each) == d for each in drawn) for d in range(1, 6)] == [100] * 5
    assert max(map(len, drawn)) <= 50
    assert {each[0] for each in drawn} == set(DRAWN)
    for tokens in drawn:
        owners = heads(tokens)
        arguments = [sum(o == i and i != j and tokens[j] != "]" for j, o in enumerate(owners)) for i in range(len(tokens))]
        assert all((2 <= n <= 5) == tokens[i].startswith("[") for i, n in enumerate(arguments))
        assert executed(tokens, heads(tokens)) == nested(" ".join(tokens))
    assert drawn == draw(range(1, 6), 500, tokens=50, seed="a test") != draw(range(1, 6), 500, tokens=50, seed="another")


def test_gold_trees_are_projective_with_token_0_as_the_only_root():
    for tokens in draw([1, 3, 4], 60, tokens=40, seed="trees"):
        owners = heads(tokens)
        arcs = [(head, modifier) for modifier, head in enumerate(owners) if modifier]
        assert owners[0] == 0
        assert all(head < modifier for head, modifier in arcs)
        assert not any(a < c < b < d for (a, b), (c, d) in itertools.permutations(arcs, 2))


def test_values_of_the_official_lines():
    try:
        folder = find_data(None) / "listops"
    except ValueError as error:
        pytest.skip(str(error))
    if not (folder / "test_d20s.tsv").exists():
        pytest.skip(f"no ListOps in {folder.parent}")
    lines = (folder / "test_d20s.tsv").read_text().splitlines()[:2000]
    with gzip.open(folder / "valid_d20s.official1000.tsv.gz", "rt") as more:
        lines += more.read().splitlines()
    used = set()
    for label, text in (line.split("\t") for line in lines):
        tokens = [token for token in text.split() if token not in "()"]
        assert executed(tokens, heads(tokens)) == int(label)
        used |= {token for token in tokens if token.startswith("[")}
    assert used == {*DRAWN, "[SM"}


def test_impossible_wishes_are_errors():
    with pytest.raises(ValueError, match=r"found 300 of 400 distinct expressions of depth 1 with at most 4 tokens"):
        draw([1], 400, tokens=4, seed="x")  # three operators and two digits: 300
    with pytest.raises(ValueError, match="continues after its end, at token 4"):
        heads(["[MIN", "1", "2", "]", "3"])
    with pytest.raises(ValueError, match="without a closing bracket"):
        heads(["[MIN", "1", "2"])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"depth": 0}, "depth is 0; it must be at least 1"),
        ({"dropout": -0.1}, "dropout is -0.1; it must be at least 0"),
        ({"dropout": 1.0}, "it must be below 1"),
        ({"train_examples": 0}, "train_examples is 0"),
        ({"depth": 5, "tokens": 10}, "tokens is 10; an expression of depth 5 has at least 16"),
        ({"learning_rate": -1.0}, "learning_rate is -1.0; it must be positive"),
        ({"rounds": 0}, "rounds is 0"),
        ({"clip": 0.0}, "clip is 0.0; it must be positive"),
        ({"brackets": False, "tokens": 25}, "tokens is 25; an expression of depth 5 has at least 26"),
        ({"brackets": False, "heads": "open"}, "there are none: use 'all'"),
        ({"projection": "local"}, "gold has none: leave it out"),
    ],
)
def test_bad_options_are_errors(fields, message):
    with pytest.raises(ValueError, match=message):
        TASK.configure(estimator="gold", **fields)


def test_an_epoch_has_every_expression_and_each_seed_its_own_order():
    split, *_ = generate(3, 30, (60, 8, 8), 0)
    widths, rows = batches(split, 7, [0, 1], epoch=0)
    for seed in range(2):
        assert set(rows[:, seed].flatten().tolist()) == set(range(60))
    assert all((split.widths[rows[i]] == width).all() for i, width in enumerate(widths))
    alone = batches(split, 7, [1], epoch=0)
    assert alone[0] == widths
    assert torch.equal(alone[1][:, 0], rows[:, 1])
    assert not torch.equal(batches(split, 7, [1], epoch=1)[1], alone[1])
    assert sorted(torch.cat([part for part, _ in in_order(split, 9)]).tolist()) == list(range(60))


def test_the_lstm_is_pytorchs():
    plain = torch.nn.LSTM(5, 4, bias=False, dtype=torch.float64)
    x = torch.randn(7, 3, 5, dtype=torch.float64)
    gates = x @ plain.weight_ih_l0.T
    found = lstm(torch.stack([gates, 2 * gates], 1), torch.stack([plain.weight_hh_l0.T] * 2))
    torch.testing.assert_close(found[:, 0], plain(x)[0])
    assert not torch.allclose(found[:, 0], found[:, 1])


def test_the_decoder_passes_messages_from_children_to_heads():
    model = Model(size=4, lstms=0, rounds=2, dropout=0.0)
    theta = torch.stack([model.initial(0), model.initial(1)])
    batch = encode([["[MAX", "2", "[MIN", "4", "7", "]", "0", "]"], ["[MIN", "1", "2", "]"]])
    batch = batch.take(torch.arange(2).expand(2, 2), 8)
    named, weights = model.named(theta), torch.rand(2, 2, 8, 8, dtype=torch.float64)
    encoded = model.encode(named, batch, training=False)
    found = model.logits(named, Encoded(None, encoded.embeddings), weights.flatten(0, 1))
    for r, b in itertools.product(range(2), range(2)):
        own = {name: each[r] for name, each in named.items()}
        e = own["decoder.embedding"][batch.tokens[r, b]]
        state = e
        for _ in range(2):
            received = []
            for h in range(8):
                total = torch.zeros(4, dtype=torch.float64)
                for m in range(8):
                    if h != m:
                        hidden = e[h] @ own["message.head"] + state[m] @ own["message.child"] + own["message.bias"]
                        message = hidden.relu() @ own["message.output"] + own["message.output_bias"]
                        total = total + weights[r, b, h, m] * message
                received.append(total)
            state = e + torch.stack(received)
        hidden = (state[0] @ own["output.hidden"] + own["output.hidden_bias"]).relu()
        torch.testing.assert_close(found[r, b], hidden @ own["output.logits"] + own["output.logits_bias"])


def test_measures_count_heads_without_the_root():
    tokens = ["[MAX", "2", "[MIN", "4", "7", "]", "0", "]"]
    batch = encode([tokens]).take(torch.zeros(1, 1, dtype=torch.int64), 8)
    gold = batch.gold(torch.float64).flatten(0, 1)
    assert gold.argmax(-2).tolist() == [heads(tokens)]
    wrong = gold.clone()
    wrong[0, :, 5] = torch.eye(8, dtype=torch.float64)[0]  # a closing bracket
    wrong[0, :, 6] = torch.eye(8, dtype=torch.float64)[2]  # a digit
    weak = 0.6 * wrong
    weak[0, :, 1] *= 0.5  # an edge of weight 0.3 is none
    logits = torch.nn.functional.one_hot(torch.tensor([[4]]), 10).double()
    found = {name: 100 * right.sum() / all_.sum() for name, (right, all_) in compared(batch, logits, weak, wrong, gold).items()}
    expected = {"accuracy": 100.0, "attachment": 500 / 7, "attachment_open": 400 / 5, "precision": 400 / 6, "recall": 400 / 7}
    expected |= {"attachment_operators": 100.0, "attachment_digits": 75.0, "attachment_brackets": 50.0}
    expected["sampled"] = 100.0
    expected["execution"] = 0.0  # [MAX 2 [MIN 4 7 0 ] ] is worth 2, not 4
    assert {name: each.item() for name, each in found.items()} == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_gold_trees_evaluate_to_the_labels_and_harmless_differences_do_not_matter(seed):
    split = generate(4, 40, (200, 50, 50), seed)[1]
    assert split.executes(split.gold(torch.float32)).all()
    harmless = split.gold(torch.float32)
    harmless.masked_fill_(split.closing()[:, None, :], 0.0)
    harmless[:, 0] += split.closing().float()  # every closing bracket hangs on the first operator
    assert split.executes(harmless).all()
    flat = torch.zeros_like(harmless)
    flat[:, 0] = split.inside().float()  # so does every token: an inner operator has no arguments, and so no value
    assert torch.equal(split.executes(flat), split.depths == 1)


@pytest.mark.parametrize(("which", "allowed"), [("all", range(8)), ("open", (0, 1, 2, 3, 4, 6)), ("operators", (0, 2))])
def test_which_tokens_may_be_heads(which, allowed):
    batch = encode([["[MAX", "2", "[MIN", "4", "7", "]", "0", "]"], ["[MED", "1", "2", "]"]])
    assert batch.may_be_heads(which)[0].nonzero()[:, 0].tolist() == list(allowed)
    trainer = trained(group("perturbed-marginals", [(0, 0.01)], heads=which), until=2)
    split = trainer.splits["validation"]
    part = split.take(torch.arange(6)[None], split.tokens.shape[1])
    scores = trainer._scores(trainer.model.encode(trainer.model.named(trainer.theta), part, training=False), part)
    best = trainer._structure(part).argmax(scores)
    heads_of = best.sum(-1) > 0
    assert not (heads_of & ~part.may_be_heads(which).flatten(0, 1)).any()
    (result,) = trainer.results()
    assert 0 <= result["test_execution"] <= 100
    if which == "operators":
        assert result["test_attachment_brackets"] >= 0


def test_without_closing_brackets_the_tokens_decide_the_tree():
    split, *_ = generate(3, 40, (60, 5, 5), 0, brackets=False)
    assert not split.closing().any()
    assert split.executes(split.gold(torch.float32)).all()
    for tokens, owners, length in zip(split.tokens.tolist(), split.heads.tolist(), split.lengths.tolist(), strict=True):
        wanting, found = [], []  # operators and how many arguments they still want
        for place, token in enumerate(tokens[:length]):
            found.append(wanting[-1][0] if wanting else place)
            if wanting:
                wanting[-1][1] -= 1
            if token < 3:
                wanting.append([place, 4])
            while wanting and not wanting[-1][1]:
                wanting.pop()
        assert found == owners[:length]


def test_one_message_per_token_makes_the_numbers_of_all():
    model = Model(size=5, lstms=0, rounds=3, dropout=0.0)
    named = model.named(torch.stack([model.initial(0), model.initial(1)]).requires_grad_())
    batch = generate(3, 30, (6, 2, 2), 0)[0].take(torch.arange(6).view(2, 3), 24)
    encoded = model.encode(named, batch, training=False)
    z = batch.gold(torch.float64).flatten(0, 1)
    every, gathered = (model.logits(named, encoded, z, trees=trees) for trees in (False, True))
    torch.testing.assert_close(gathered, every, rtol=1e-12, atol=1e-12)
    weights = torch.randn_like(every)
    for one, other in zip(*(
        torch.autograd.grad((each * weights).sum(), list(named.values()), allow_unused=True, retain_graph=True)
        for each in (every, gathered)
    ), strict=True):  # fmt: skip
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(other, one, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("estimator", TREES[:-1])  # sparse expectations take a call of the decoder per tree
def test_what_sees_trees_alone_trains_as_with_all_messages(estimator, monkeypatch):
    gathered = trained(group(estimator, [(0, 0.01)]), until=2).theta
    monkeypatch.setattr(train, "TREES", ())
    torch.testing.assert_close(gathered, trained(group(estimator, [(0, 0.01)]), until=2).theta)


class TestTrainingOptions:
    """Each changes a step as its formula says; the defaults are the formulas without them."""

    def losses(self, estimator="marginals", step=0, **fields):
        trainer = TASK.trainer(group(estimator, [(0, 0.01)], dropout=0.0, **fields), "cpu")
        trainer.clock.fill_(step)
        rows, width = trainer.batch()
        return trainer, trainer.splits["train"].take(rows, width), trainer.losses(rows, width)

    def test_scaled_scores(self):
        trainer, batch, _ = self.losses(scaled=True)
        usual, *_ = self.losses()
        encoded = trainer.model.encode(trainer.model.named(trainer.theta), batch, training=False)
        torch.testing.assert_close(trainer.model.scores(encoded), usual.model.scores(encoded) / math.sqrt(TINY["size"]))

    @pytest.mark.parametrize(("step", "weight"), [(0, 0.3), (5, 0.15), (10, 0.0), (40, 0.0)])
    def test_entropy_bonus(self, step, weight):
        trainer, batch, with_bonus = self.losses(step=step, entropy=0.3, entropy_steps=10)
        *_, without = self.losses(step=step)
        encoded = trainer.model.encode(trainer.model.named(trainer.theta), batch, training=False)
        entropy = trainer._structure(batch).entropy(trainer._scores(encoded, batch))
        torch.testing.assert_close(with_bonus, without - weight * entropy)

    def test_temperature(self):
        trainer, batch, found = self.losses(step=1, noise_steps=8)
        named = trainer.model.named(trainer.theta)
        encoded = trainer.model.encode(named, batch, training=False)
        scores = trainer._scores(encoded, batch)
        seen = scores / 0.25
        mu = trainer._structure(batch).marginals(seen)
        losses = torch.nn.functional.cross_entropy(
            trainer.model.logits(named, encoded, mu)[0], batch.labels[0], reduction="none"
        )
        torch.testing.assert_close(found, losses)
        name = "encoder.recurrent"
        (gamma,) = torch.autograd.grad(losses.sum(), seen, retain_graph=True)
        (expected,) = torch.autograd.grad(scores, named[name], gamma.nan_to_num(), retain_graph=True)
        (gradient,) = torch.autograd.grad(found.sum(), trainer.theta)
        torch.testing.assert_close(trainer.model.named(gradient)[name], expected)
        *_, late = self.losses(step=8, noise_steps=8)
        torch.testing.assert_close(late, self.losses(step=8)[2])

    def test_the_encoder_s_rate(self):
        slow, usual = (TASK.trainer(group("ste-i", [(0, 0.01)], dropout=0.0, encoder_rate=rate), "cpu") for rate in (0.25, 1.0))
        before = usual.model.named(usual.theta.detach().clone())
        for trainer in (slow, usual):
            trainer.advance(1, lambda: False)
        for name, start in before.items():
            moved = [trainer.model.named(trainer.theta.detach())[name] - start for trainer in (slow, usual)]
            torch.testing.assert_close(moved[0], moved[1] * (0.25 if name.startswith("encoder") else 1.0))

    def test_clipping(self):
        trainer = TASK.trainer(group("marginals", [(0, 0.01), (1, 0.01)], clip=1.0), "cpu")
        gradient = torch.stack([torch.full_like(trainer.theta[0], 2.0), torch.zeros_like(trainer.theta[0])])
        gradient[1, 0] = 0.5
        expected = gradient.detach().clone()
        large = torch.nn.Parameter(expected[0].clone())
        large.grad = expected[0].clone()
        torch.nn.utils.clip_grad_norm_([large], 1.0)
        found = trainer.scaled(gradient)
        torch.testing.assert_close(found[0], large.grad, rtol=1e-5, atol=0)
        torch.testing.assert_close(found[1], expected[1])

    def test_defaults_leave_runs_where_they_are(self, tmp_path):
        run = TASK.run(TASK.configure(estimator="marginals"), tmp_path)
        assert run.identity["config"] == {"estimator": "marginals", "learning_rate": 0.001}


def group(estimator, settings, **fields):
    return [TASK.configure(estimator=estimator, seed=seed, learning_rate=rate, **TINY, **fields) for seed, rate in settings]


def trained(configs, until=4):
    trainer = TASK.trainer(configs, "cpu")
    trainer.advance(until, lambda: False)
    return trainer


@pytest.mark.parametrize("estimator", ["marginals", "ste-i"])
def test_together_as_alone(estimator):
    settings = [(0, 0.01), (0, 0.02), (3, 0.01)]
    together = trained(group(estimator, settings, dropout=0.0))
    for r, setting in enumerate(settings):
        alone = trained(group(estimator, [setting], dropout=0.0))
        torch.testing.assert_close(together.theta[r], alone.theta[0])
        assert together.results()[r]["test_attachment"] == pytest.approx(alone.results()[0]["test_attachment"])


def test_a_group_that_was_interrupted_ends_with_the_same_numbers():
    configs = group("perturb-and-map", [(0, 0.01), (1, 0.01)])
    straight, first, second = trained(configs), trained(configs, until=3), TASK.trainer(configs, "cpu")
    second.restore(first.state())
    second.advance(4, lambda: False)
    assert torch.equal(second.theta, straight.theta)
    assert second.history() == straight.history()


@pytest.mark.parametrize("estimator", TASK.methods)
def test_every_row_trains(estimator):
    configs = group(estimator, [(0, 0.01)])
    before = TASK.trainer(configs, "cpu").theta.detach().clone()
    trainer = trained(configs, until=2)
    (result,) = trainer.results()
    assert trainer.theta.isfinite().all()
    assert not torch.equal(before, trainer.theta)
    assert 0 <= result["depth_10_accuracy"] <= 100
    assert ("test_attachment" in result) == (estimator != "lstm")
    assert estimator != "gold" or result["test_attachment"] == result["test_precision"] == 100.0


@pytest.mark.parametrize("estimator", ["gold", "lstm", "marginals", "imle", "sfe-baseline", "spigot-eg"])
def test_a_step_can_be_captured(estimator):
    """A CUDA graph holds kernels only: a step must not read a tensor's value, nor make a tensor from the host's."""
    seen = set()

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.add(function.overloadpacket.__name__)
            return function(*args, **(kwargs or {}))

    trainer = trained(group(estimator, [(0, 0.01), (1, 0.01)]), until=1)
    with Watch():
        trainer.update(*trainer.batch())
    assert "bmm" in seen or "mm" in seen
    assert not seen & {"_local_scalar_dense", "nonzero", "masked_select", "lift_fresh", "unique", "equal"}


def test_gold_trees_learn_small_expressions():
    config = TASK.configure(
        estimator="gold", learning_rate=0.01, depth=1, tokens=4, train_examples=150, validation_examples=50, test_examples=20,
        steps=60, evaluate_every=30, batch_size=50, size=16, dropout=0.0, deeper_examples=2,
    )  # fmt: skip
    rows = trained([config], until=60).history()[0]
    assert rows[-1]["accuracy"] > 30 > 10  # chance is 10
    assert isinstance(generate(1, 4, (150, 50, 20), 0)[0], Split)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_fused_lstm_is_the_formula():
    inputs, recurrent = torch.randn(5, 2, 3, 16, requires_grad=True), torch.randn(2, 4, 16, requires_grad=True)
    states = [lstm(*(x.to(device) for x in (inputs, recurrent))).cpu() for device in ("cpu", "cuda")]
    torch.testing.assert_close(*states, atol=1e-5, rtol=1e-4)
    gradients = (torch.autograd.grad(x.square().sum(), (inputs, recurrent)) for x in states)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
