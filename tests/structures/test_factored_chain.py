"""Factored chains: gradients of what belongs to the structure, against linear chains, whose scores are pairs of tags."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import pullback as pb
from each import each
from pullback.inference.factored import cpu
from pullback.inference.front.family import backend

LENGTHS = torch.tensor([6, 3, 1, 0, 2])
B, N, C = len(LENGTHS), 6, 5


def _leaves(*batch: int, seed: int = 0) -> list[Tensor]:
    """Emissions, transitions, start and end."""
    generator = torch.Generator().manual_seed(seed)
    shapes = (B, N, C), (*batch, C, C), (*batch, C), (*batch, C)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_() for shape in shapes]


def _of_pairs(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> tuple[pb.LinearChain, Tensor]:
    chain = pb.LinearChain(LENGTHS)
    if transitions.dim() == 3:
        transitions = transitions[:, None].expand(B, N - 1, C, C)
    return chain, chain.combine(emissions, transitions, start, end)


OPERATIONS = {
    "log_partition": (lambda chain, s: chain.log_partition(s), lambda chain, s: chain.log_partition(s)),
    "entropy": (lambda chain, s: chain.entropy(s), lambda chain, s: chain.entropy(s)),
    "marginals": (lambda chain, s: chain.marginals(s), lambda chain, s: chain.tag_marginals(chain.marginals(s))),
    "kl": (lambda chain, s: chain.kl(s, s.detach().sin()), None),
    "log_prob": (
        lambda chain, s: chain.log_prob(s, chain.from_tags(torch.arange(B * N).reshape(B, N) % C)),
        lambda chain, s: chain.log_prob(s, chain.from_tags(torch.arange(B * N).reshape(B, N) % C, C)),
    ),
    "log_prob_within": (
        lambda chain, s: chain.log_prob_within(s, (torch.arange(C) != 2).expand(N, C)),
        lambda chain, s: chain.log_prob_within(s, (torch.arange(C) != 2).expand(N, C, C)),
    ),
}


@pytest.mark.parametrize("batch", [(), (B,)], ids=["shared", "one each"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_values_and_gradients_of_all_that_belongs_to_it(name: str, batch: tuple[int, ...]) -> None:
    """Reverse and forward mode."""
    run, of_pairs = OPERATIONS[name]
    leaves, tangents = _leaves(*batch), _leaves(*batch, seed=1)

    def ours(*x: Tensor) -> Tensor:
        return run(pb.FactoredChain(*x[1:], LENGTHS), x[0])

    def theirs(*x: Tensor) -> Tensor:
        if of_pairs is not None:
            return of_pairs(*_of_pairs(*x))
        chain, scores = _of_pairs(*x)
        return chain.kl(scores, _of_pairs(x[0].detach().sin(), *x[1:])[1])

    found, expected = ours(*leaves), theirs(*leaves)
    torch.testing.assert_close(found, expected)
    weight = torch.linspace(0.5, 1.5, found.numel(), dtype=torch.float64).reshape(found.shape)
    slopes = [torch.autograd.grad((x * weight).sum(), leaves) for x in (found, expected)]
    for ours_, theirs_ in zip(*slopes, strict=True):
        torch.testing.assert_close(ours_, theirs_)
    plain, along = [x.detach() for x in leaves], [x.detach() for x in tangents]
    _, tangent = torch.func.jvp(ours, tuple(plain), tuple(along))
    slope = sum((x * y).sum() for x, y in zip(slopes[0], along, strict=True))
    torch.testing.assert_close((tangent * weight).sum(), slope)


def test_emissions_in_half_precision_and_transitions_in_float32_make_float32() -> None:
    """As PyTorch promotes them: what the scores of pairs have, which `LinearChain.combine` makes of the same tensors."""
    leaves = [x.detach().float() for x in _leaves()]
    leaves = [leaves[0].bfloat16().requires_grad_(), *leaves[1:]]
    ours, (theirs, scores) = pb.FactoredChain(*leaves[1:], LENGTHS), _of_pairs(*leaves)
    z = ours.from_tags(torch.arange(B * N).reshape(B, N) % C)
    allowed = (torch.arange(C) != 2).expand(N, C)
    found = {
        "log_partition": (ours.log_partition(leaves[0]), theirs.log_partition(scores)),
        "entropy": (ours.entropy(leaves[0]), theirs.entropy(scores)),
        "topk": (ours.topk(leaves[0], 1).scores, theirs.topk(scores, 1).scores),
        "score": (ours.score(leaves[0], ours.argmax(leaves[0])), theirs.score(scores, theirs.argmax(scores))),
        "within": (ours.log_prob_within(leaves[0], allowed), theirs.log_prob_within(scores, allowed[:, None].expand(N, C, C))),
        "log_prob": (ours.log_prob(leaves[0], z), -pb.losses.CrossEntropy()(ours, leaves[0], z)),
        "wrapped": (ours.log_prob(leaves[0], z), -pb.losses.CrossEntropy()(pb.StructureWrapper(ours), leaves[0], z)),
    }
    for name, (one, other) in found.items():
        assert one.dtype == other.dtype == torch.float32, name
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
    assert all(ours.sample(leaves[0]).dtype == op(leaves[0]).dtype == torch.float32 for op in (ours.argmax, ours.marginals))
    found["log_partition"][0].sum().backward()
    assert leaves[0].grad is not None
    assert leaves[0].grad.dtype == torch.bfloat16
    wide = pb.FactoredChain(leaves[1].double())
    assert wide.log_partition(leaves[0]).dtype == torch.float64


def test_structures_of_given_transitions() -> None:
    """Best, k best and drawn sequences are those of the pairs."""
    leaves = [x.detach() for x in _leaves(B)]
    ours, (theirs, scores) = pb.FactoredChain(*leaves[1:], LENGTHS), _of_pairs(*leaves)
    assert torch.equal(ours.tags(ours.argmax(leaves[0])), theirs.tags(theirs.argmax(scores)))
    found, expected = ours.topk(leaves[0], 4), theirs.topk(scores, 4)
    torch.testing.assert_close(found.scores, expected.scores)
    mean = ours.sample(leaves[0], torch.Generator().manual_seed(0), samples=4000).mean(0)
    torch.testing.assert_close(mean, ours.marginals(leaves[0]), rtol=0, atol=0.05)


def test_vmap_over_transitions() -> None:
    emissions, transitions, start, end = [x.detach() for x in _leaves(B)]
    each = torch.vmap(lambda t: pb.FactoredChain(t, start[0], end[0], LENGTHS).log_partition(emissions))(transitions)
    for one, t in zip(each, transitions, strict=True):
        torch.testing.assert_close(one, pb.FactoredChain(t, start[0], end[0], LENGTHS).log_partition(emissions))


@pytest.mark.parametrize("low", [-torch.inf, -1e9, -1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_forbidden_transitions(low: float, dtype: torch.dtype) -> None:
    """Transitions that may not be used, in a scheme where some tags have a single tag that may stand before them."""
    emissions, transitions, start, end = [x.detach().to(dtype) for x in _leaves()]
    hidden = torch.tensor([[0, 1, 0, 1, 0], [0, 0, 0, 1, 0], [1, 1, 0, 0, 1], [1, 1, 1, 0, 1], [0, 1, 0, 1, 0]]).bool()
    transitions = transitions.masked_fill(hidden, low)
    start = start.masked_fill(torch.tensor([False, True, False, True, False]), low)
    emissions[0, 2, [0, 2, 3, 4]] = low  # only tag 1, which must follow tag 1, is left: from the start on
    start[1] = 0.0
    leaves = emissions, transitions, start, end
    ours, (theirs, scores) = pb.FactoredChain(*leaves[1:], LENGTHS), _of_pairs(*[x.double() for x in leaves])
    assert torch.equal(ours.tags(ours.argmax(emissions)), theirs.tags(theirs.argmax(scores)))
    tolerance = {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(ours.log_partition(emissions).double(), theirs.log_partition(scores), **tolerance)
    torch.testing.assert_close(ours.marginals(emissions).double(), theirs.tag_marginals(theirs.marginals(scores)), **tolerance)
    torch.testing.assert_close(ours.entropy(emissions).double(), theirs.entropy(scores), **tolerance)


def test_hidden_markov_models() -> None:
    """The likelihood is the sum over paths of products of probabilities; logits and padding mean the same."""
    generator = torch.Generator().manual_seed(0)
    logits = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((3,), (3, 3), (3, 4))]
    initial, transition, emission = (x.softmax(-1) for x in logits)
    seen = torch.tensor([[0, 3, 1, -1], [2, 2, -1, -1]])
    chain, scores = pb.FactoredChain.hmm(initial, transition, emission, seen)
    for example, symbols in enumerate(([0, 3, 1], [2, 2])):
        forward = initial * emission[:, symbols[0]]
        for symbol in symbols[1:]:
            forward = (forward @ transition) * emission[:, symbol]
        torch.testing.assert_close(chain.log_partition(scores)[example].exp(), forward.sum())
    other, same = pb.FactoredChain.hmm(*logits, seen.clamp_min(0), lengths=[3, 2], logits=True)
    torch.testing.assert_close(other.log_partition(same), chain.log_partition(scores))


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match=r"transitions has shape \[3, 2\]; a FactoredChain needs \[\.\.\., C, C\]"):
        pb.FactoredChain(torch.zeros(3, 2))
    with pytest.raises(ValueError, match=r"end has shape \[2\]; for 3 tags it needs \[\.\.\., 3\]"):
        pb.FactoredChain(torch.zeros(3, 3), end=torch.zeros(2))
    with pytest.raises(ValueError, match=r"scores has shape \[1, 4, 2\]; transitions \[3, 3\]"):
        pb.FactoredChain(torch.zeros(3, 3)).argmax(torch.zeros(4, 2))
    with pytest.raises(ValueError, match=r"tensor of shape \[2, 3, 3\]; its leading dimensions must broadcast .* \[5\]"):
        pb.FactoredChain(torch.zeros(2, 3, 3)).argmax(torch.zeros(5, 4, 3))
    with pytest.raises(ValueError, match=r"1 of the batch.* no feasible tag sequence"):
        pb.FactoredChain(torch.full((3, 3), -torch.inf), lengths=[1, 2]).argmax(torch.zeros(2, 4, 3))
    with pytest.raises(ValueError, match=r"lengths\[1\] is 5; scores of 4 positions need lengths from 0 to 4"):
        pb.FactoredChain(torch.zeros(3, 3), lengths=[1, 5]).argmax(torch.zeros(2, 4, 3))
    with pytest.raises(NotImplementedError, match="LinearChain"):
        pb.FactoredChain(torch.zeros(3, 3)).sparsemap(torch.zeros(2, 4, 3))


def _random(*batch: int, tags: int, scale: float, forbidden: float, dtype: torch.dtype) -> list[Tensor]:
    """Emissions of seven positions, transitions, start and end."""
    generator, found = torch.Generator().manual_seed(tags), []
    for shape in ((*batch, 7, tags), (tags, tags), (tags,), (tags,)):
        x = scale * torch.randn(shape, generator=generator, dtype=torch.float64)
        found.append(x.masked_fill(torch.rand(shape, generator=generator) < forbidden, -torch.inf).to(dtype))
    return found


@each("forbidden", [0.0, 0.3])
@each("scale", [1.0, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("tags", [1, 3, 8, 16, 20, 37, 70])
def test_backends_agree(tags: int, scale: float, forbidden: float) -> None:
    """Large scores, for which sums are taken in logarithms, forbidden ones, and tags that do not fill a vector."""
    lengths = torch.tensor([7, 4, 1, 0, 2])
    for dtype, tolerance in ((torch.float32, 3e-5), (torch.float64, 1e-9)):
        plain = _random(5, tags=tags, scale=scale, forbidden=forbidden, dtype=dtype)
        along = torch.sin(torch.arange(plain[0].numel())).reshape(plain[0].shape).double()
        found: dict[str, list[Tensor]] = {}
        for name in ("cpu", "reference"):
            with backend(name):
                leaves = [x.to(dtype if name == "cpu" else torch.float64).requires_grad_() for x in plain]
                chain, own = pb.FactoredChain(*leaves[1:], lengths, validate=False), found.setdefault(name, [])
                own.append(chain.argmax(leaves[0]).double())
                values = chain.log_partition(leaves[0]), chain.entropy(leaves[0]), chain.marginals(leaves[0])
                for value, weight in zip(values, (1.0, 1.0, along), strict=True):
                    total = (value.nan_to_num(0.0) * weight).sum()
                    own += [value.double(), *(x.double() for x in torch.autograd.grad(total, leaves))]
        for ours, theirs in zip(found["cpu"], found["reference"], strict=True):
            torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance, equal_nan=True)


def test_tags_that_emissions_all_but_forbid() -> None:
    """At position 1 tag 0 is better by 150 than the others, whose weights are rounded to zero, and leads nowhere."""
    transitions = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
    transitions[0] = -torch.inf
    emissions = torch.zeros(2, 6, 5)
    emissions[:, 1, 0] = emissions[1, 3, 0] = 150.0
    emissions[:, 4, 2] = 1.0
    chain = pb.FactoredChain(transitions)
    every = chain.enumerate(6, 5).double()
    scores = chain.score(emissions.double()[:, None], every)
    p = scores.softmax(1)
    torch.testing.assert_close(chain.log_partition(emissions), scores.logsumexp(1).float())
    torch.testing.assert_close(chain.marginals(emissions), torch.einsum("bs,snc->bnc", p, every).float(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(chain.entropy(emissions), -(p * p.clamp_min(1e-99).log()).sum(1).float())
    drawn = chain.sample(emissions, torch.Generator().manual_seed(0), samples=4000).mean(0)
    torch.testing.assert_close(drawn, chain.marginals(emissions), rtol=0, atol=0.05)


def test_transitions_of_some_examples() -> None:
    """Neighbours in a batch share their transitions or do not, and one that is bad does not concern the others."""
    emissions, transitions, start, end = [x.detach() for x in _leaves(B)]
    transitions[1], transitions[3], start[3] = transitions[0], torch.nan, torch.nan  # of length 0
    chain = pb.FactoredChain(transitions, start, end, LENGTHS)
    for operation in ("argmax", "marginals", "log_partition", "entropy"):
        together = getattr(chain, operation)(emissions)
        for b in range(B):
            one = pb.FactoredChain(transitions[b], start[b], end[b], LENGTHS[b])
            torch.testing.assert_close(together[b], getattr(one, operation)(emissions[b]))
    transitions[0, 1, 2] = torch.nan
    with pytest.raises(ValueError, match=r"sequence 0 of the batch .* contains NaN"):
        chain.marginals(emissions)
    loose = pb.FactoredChain(transitions, start, end, LENGTHS, validate=False)
    for operation in ("argmax", "marginals", "log_partition", "entropy"):
        found = getattr(loose, operation)(emissions)
        assert found[0].isnan().all()
        assert not found[1:].isnan().any()


def test_log_prob_of_sequences_and_of_averages() -> None:
    """One pass gives it with its gradient; padding holds anything, and z that are no sequences are named."""
    leaves = _leaves()
    chain = pb.FactoredChain(*leaves[1:], LENGTHS)
    z = chain.sample(leaves[0].detach(), torch.Generator().manual_seed(0))
    padding = torch.arange(N) >= LENGTHS[:, None]
    dirty = z.masked_fill(padding[..., None], torch.nan)
    mixed = (z + chain.argmax(leaves[0].detach())) / 2
    for given, clean in ((dirty, z), (mixed, mixed)):
        ours = chain._log_prob(leaves[0], given)
        theirs = chain.score(leaves[0], clean) - chain.log_partition(leaves[0])
        torch.testing.assert_close(ours, theirs)
        slopes = [torch.autograd.grad(x.sum(), leaves) for x in (ours, theirs)]
        for one, other in zip(*slopes, strict=True):
            torch.testing.assert_close(one, other)
    assert torch.equal(chain.tags(dirty), chain.tags(z))
    assert chain.contains(dirty).all()
    for wrong in (2 * z, z + 1e-30, z * (torch.arange(N) != 1)[:, None]):
        assert chain.contains(wrong).tolist() == [False, False, length_is(wrong, z, 2), True, False]
    with pytest.raises(ValueError, match="z"):
        chain.log_prob(leaves[0], z * 2)


def length_is(wrong: Tensor, z: Tensor, example: int) -> bool:
    """Whether a change is in the padding of an example of one position only."""
    return bool(torch.equal(wrong[example, 0], z[example, 0]))


def test_k_best_of_large_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are found by partitioning, which is that of the engine where scores differ."""
    leaves = [x.detach() for x in _leaves(B)]
    chain = pb.FactoredChain(*leaves[1:], LENGTHS)
    expected = chain.topk(leaves[0], 7)
    monkeypatch.setattr("pullback.structures.factored_chain._MOST_PAIRS", 0)
    found = chain.topk(leaves[0], 7)
    torch.testing.assert_close(found.scores, expected.scores)
    assert torch.equal(found.structures, expected.structures)


def test_what_a_hidden_markov_model_forbids_has_no_gradient():
    """At zeros of all three tables; the others have that of the logarithm."""
    initial = torch.tensor([0.4, 0.6, 0.0], dtype=torch.float64, requires_grad=True)
    transition = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    emission = torch.tensor([[0.9, 0.1], [0.0, 1.0], [0.5, 0.5]], dtype=torch.float64, requires_grad=True)
    tables = initial, transition, emission
    chain, scores = pb.FactoredChain.hmm(*tables, torch.tensor([0, 1, 1, 0]))
    slopes = torch.autograd.grad(chain.log_partition(scores), tables)
    for x, slope in zip(tables, slopes, strict=True):
        assert slope.isfinite().all()
        assert not slope[x == 0].any()
        assert slope[x != 0].any()
    forward, shown = initial.detach(), emission.detach()
    for i, symbol in enumerate([0, 1, 1, 0]):
        forward = (forward if i == 0 else forward @ transition.detach()) * shown[:, symbol]
    torch.testing.assert_close(chain.log_partition(scores).detach(), forward.sum().log())


HALF = torch.tensor([0.5, 0.5])


@pytest.mark.parametrize(
    ("tables", "error", "message"),
    [
        (
            (torch.tensor([1.5, -0.5]), torch.eye(2), torch.eye(2)),
            ValueError,
            r"initial\[1\] is -0.5; probabilities are at least 0",
        ),
        ((HALF, torch.tensor([[1.0, 0.0], [0.5, 0.4]]), torch.eye(2)), ValueError, r"transition\[1\] sums to 0.9; rows"),
        ((torch.tensor([0.5, 0.9]), torch.eye(2), torch.eye(2)), ValueError, r"initial sums to 1.4; rows"),
        ((HALF, torch.eye(2), torch.full((2, 2), torch.nan)), ValueError, r"emission\[0, 0\] is nan"),
        (
            (HALF, torch.eye(2).long(), torch.eye(2)),
            TypeError,
            r"transition has dtype torch.int64; .* pass transition.float\(\)",
        ),
        ((HALF, torch.eye(2), torch.eye(3)), ValueError, r"emission has shape \[3, 3\]; transition \[2, 2\] needs \[C, V\]"),
    ],
)
def test_what_is_no_table_of_probabilities(tables, error, message):
    with pytest.raises(error, match=message):
        pb.FactoredChain.hmm(*tables, torch.tensor([0, 1]))


def test_tables_that_are_not_checked():
    """Rounded rows are fine, and with `validate=False` any positive numbers are weights."""
    thirds = torch.full((3,), 1 / 3).half()
    pb.FactoredChain.hmm(thirds, thirds.expand(3, 3), thirds.expand(3, 3), torch.tensor([0, 1]))
    chain, scores = pb.FactoredChain.hmm(2 * HALF, torch.eye(2), torch.eye(2), torch.tensor([0, 0]), validate=False)
    assert chain.log_partition(scores).exp() == 1.0


@pytest.mark.parametrize("operation", ["log_partition", "marginals", "log_prob", "sample"])
def test_large_scores_take_float64_where_it_has_room(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which examples do is their own affair: a result has the same bits in any batch. Beyond float64 there are logarithms."""
    leaves = [x.detach().float() for x in _leaves(B)]
    factors = torch.tensor([100.0, 1.0, 100.0, 1.0, 3000.0])
    emissions, transitions, start, end = (x * factors.reshape(-1, *[1] * (x.dim() - 1)) for x in leaves)
    lengths = torch.full((B,), N)
    z = pb.FactoredChain(transitions).from_tags(torch.arange(B * N).reshape(B, N) % C)
    given: dict[str, tuple[Any, ...]] = {"log_prob": (z.float(),), "sample": (torch.Generator().manual_seed(0),)}
    dtypes, spread = [], cpu.Calls._spread

    def noted(self: Any, kernel: Any, cost: float, scores: Tensor, *rest: Any) -> int:
        dtypes.append((scores.dtype, len(scores)))
        return spread(self, kernel, cost, scores, *rest)

    def found(rows: slice, dtype: torch.dtype = torch.float32) -> Tensor:
        own = [x[rows].to(dtype) for x in (transitions, start, end)]
        more = [x[rows].to(dtype) if isinstance(x, Tensor) else x for x in given.get(operation, ())]
        return getattr(pb.FactoredChain(*own, lengths[rows]), operation)(emissions[rows].to(dtype), *more)

    with monkeypatch.context() as patch:
        patch.setattr(cpu.Calls, "_spread", noted)
        whole = found(slice(None))
    assert (torch.float64, 2) in dtypes
    if operation == "sample":
        assert pb.FactoredChain(transitions, start, end).contains(whole).all()
        return
    torch.testing.assert_close(whole.double(), found(slice(None), torch.float64), rtol=1e-6, atol=1e-6)
    assert torch.equal(whole, torch.cat([found(slice(b, b + 1)) for b in range(B)]))


def test_single_positions_have_no_transitions():
    """Whatever a kernel finds in fresh memory: NaN, here."""
    transitions, scores = torch.zeros(40, 40, requires_grad=True), torch.randn(3, 1, 40)
    chain = pb.FactoredChain(transitions)
    for _ in range(10):
        used = [np.full(size, np.nan, np.float32) for size in range(1600, 1800, 2) for _ in range(8)]
        used = used[::2]  # holes of these sizes, which are filled first
        (gradient,) = torch.autograd.grad(chain.log_partition(scores).sum(), transitions)
        assert torch.equal(gradient, torch.zeros(40, 40))
