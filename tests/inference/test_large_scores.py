"""Scores of any size: large finite masks, trees that cannot avoid a large score, scores from 1e-8 to 1e8 side by side.

The oracle adds up the scores of every tree as fractions, without rounding.
"""

import functools
import math
from fractions import Fraction

import pytest
import torch
from torch.testing import assert_close

import pullback as pb
from each import each
from pullback.inference.front.family import backend

MASKS = [-1e9, -1e18, -1e30, torch.finfo(torch.float32).min, "finfo.min"]
KINDS = [(True, True), (True, False), (False, True), (False, False)]
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-11}
EACH_TREE = pytest.mark.parametrize(
    ("projective", "multiroot"), KINDS, ids=["projective-multi", "projective-single", "all-multi", "all-single"]
)
EACH_DTYPE = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])


@pytest.fixture(autouse=True)
def _on_cpu():
    with backend("cpu"):
        yield


@functools.cache
def all_trees(projective, multiroot, n):
    return pb.DependencyTree(projective=projective, multiroot=multiroot).enumerate(n).double()


def exact(scores, projective, multiroot):
    """Log Z, marginals, entropy, its gradient, and J v for v = scores' positions, of `[n, n]`: from exact totals."""
    n = scores.shape[-1]
    z = all_trees(projective, multiroot, n)
    values = [[None if x == -math.inf else Fraction(x) for x in row] for row in scores.double().tolist()]
    arcs = [[values[h][m] for h, m in tree.nonzero().tolist()] for tree in z]
    totals = [None if None in of else sum(of, Fraction(0)) for of in arcs]
    best = max(total for total in totals if total is not None)
    gaps = [-math.inf if total is None else float(max(total - best, Fraction(-(10**6)))) for total in totals]
    log_p = torch.tensor(gaps, dtype=torch.float64)
    log_z = log_p.logsumexp(0)
    log_p = log_p - log_z
    p = log_p.exp()
    log_p = torch.where(p > 0, log_p, 0.0)
    mu = torch.einsum("t,thm->hm", p, z)
    entropy = -(p * log_p).sum()
    slope = -torch.einsum("t,thm->hm", p * (log_p + entropy), z)
    along = torch.einsum("thm,hm->t", z, direction_of(n))
    product = torch.einsum("t,thm->hm", p * (along - (p * along).sum()), z)
    return {
        "log_partition": torch.tensor(float(best + Fraction(float(log_z))), dtype=torch.float64),
        "marginals": mu,
        "entropy": entropy,
        "gradient of entropy": slope,
        "gradient of marginals": product,
    }


def direction_of(n):
    return torch.arange(n * n, dtype=torch.float64).reshape(n, n).sin()


def found(scores, projective, multiroot):
    """The same for a batch `[B, n, n]`, from the library."""
    tree = pb.DependencyTree(projective=projective, multiroot=multiroot)
    leaves = [scores.clone().requires_grad_() for _ in range(2)]
    tree.entropy(leaves[0]).sum().backward()
    (tree.marginals(leaves[1]) * direction_of(scores.shape[-1]).to(scores.dtype)).sum().backward()
    return {
        "log_partition": tree.log_partition(scores),
        "marginals": tree.marginals(scores),
        "entropy": tree.entropy(scores),
        "gradient of entropy": leaves[0].grad,
        "gradient of marginals": leaves[1].grad,
    }


def assert_exact(scores, projective, multiroot, tolerance):
    results = found(scores, projective, multiroot)
    for i, one in enumerate(scores):
        expected = exact(one, projective, multiroot)
        for name, result in results.items():
            rounding = 8 * torch.finfo(scores.dtype).eps * abs(float(expected[name])) if name == "log_partition" else 0.0
            assert_close(
                result[i].double(), expected[name], atol=tolerance + rounding, rtol=0, msg=lambda m, n=name: f"{n}: {m}"
            )


def normal(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def masked(n, size, projective, multiroot, seed):
    """Which arcs to forbid so that a tree is left, `[B, n, n]`."""
    generator = torch.Generator().manual_seed(seed)
    z = all_trees(projective, multiroot, n)
    kept = z[torch.randint(len(z), (size,), generator=generator)].bool()
    return (torch.rand(size, n, n, generator=generator) < 0.6) & ~kept


@EACH_TREE
@EACH_DTYPE
@each("mask", MASKS)
def test_a_large_finite_mask_is_like_minus_infinity(projective, multiroot, dtype, mask):
    mask = torch.finfo(dtype).min if mask == "finfo.min" else mask
    for n in (1, 2, 3, 5):
        scores = normal(16, n, n, seed=n).to(dtype)
        forbidden = masked(n, 16, projective, multiroot, seed=n)
        large = found(scores.masked_fill(forbidden, mask), projective, multiroot)
        infinite = found(scores.masked_fill(forbidden, -torch.inf), projective, multiroot)
        for name, result in large.items():
            assert_close(result, infinite[name], atol=TOLERANCE[dtype], rtol=0, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("mask", [-1e18, -1e30, -torch.inf], ids=str)
def test_masks_that_once_lost_all_digits(mask):
    single = pb.DependencyTree(projective=False, multiroot=False)
    scores = torch.tensor([[-0.97, mask], [-3.95, 1.92]], dtype=torch.float64)
    assert_close(single.log_partition(scores), torch.tensor(-3.95 + 1.92, dtype=torch.float64))
    rows = [[2.4, -0.9, mask, mask], [0.4, 2.0, mask, mask], [mask, 1.1, 1.6, 1.6], [-1.0, -0.5, -1.7, -1.5]]
    mu = single.marginals(torch.tensor(rows, dtype=torch.float64))
    assert_close(mu.sum(0), torch.ones(4, dtype=torch.float64))


@EACH_TREE
@EACH_DTYPE
@each("size", [1e8, 1e9, 1e18, 1e30])
def test_where_every_tree_uses_a_large_score(projective, multiroot, dtype, size):
    """Two words whose only good heads are each other: a tree takes one large score, one way or the other."""
    scores = normal(8, 4, 4, seed=3)
    high, low = scores.clone(), scores.clone()
    high[:, 0, 1], high[:, 1, 0] = size, size
    low[:, :, :2] = -size
    low[:, 0, 1], low[:, 1, 0] = scores[:, 0, 1], scores[:, 1, 0]
    anywhere = torch.where(normal(8, 4, 4, seed=4) > 0, size, scores)
    for case in (high, low, anywhere, -anywhere):
        assert_exact(case.to(dtype), projective, multiroot, 20 * TOLERANCE[dtype])


@EACH_TREE
@EACH_DTYPE
def test_scores_of_all_sizes_side_by_side(projective, multiroot, dtype):
    for n in (2, 4, 5):
        powers = 16 * torch.rand(12, n, n, generator=torch.Generator().manual_seed(n), dtype=torch.float64) - 8
        assert_exact((normal(12, n, n, seed=n) * 10**powers).to(dtype), projective, multiroot, 20 * TOLERANCE[dtype])


@pytest.mark.parametrize("multiroot", [True, False], ids=["multi", "single"])
def test_an_example_out_of_range_has_the_same_bits_alone_and_in_a_batch(multiroot):
    """Neither do lanes share an order of elimination, nor does one that needs a larger range change its neighbours."""
    n, lengths = 9, torch.tensor([9, 4, 9, 7, 9, 9, 1, 9, 8, 9, 9])
    scores = 300 * normal(11, n, n, seed=12)
    scores[2:4, 1:, 0] = -torch.inf  # only the root leads to the first word
    scores[4, :, 2], scores[5, :8, 8], scores[7] = -1e30, -torch.inf, scores[7] / 300
    scores[9:, :4][:, :, :4] = -1e9

    def results(rows):
        leaves = [scores[rows].clone().requires_grad_() for _ in range(2)]
        tree = pb.DependencyTree(lengths[rows], projective=False, multiroot=multiroot)
        entropy, mu = tree.entropy(leaves[0]), tree.marginals(leaves[1])
        (mu * direction_of(n)).sum().backward()
        entropy.sum().backward()
        return tree.log_partition(scores[rows]), entropy, mu, leaves[0].grad, leaves[1].grad

    whole = results(slice(None))
    assert all(result.isfinite().all() for result in whole)
    for i in range(11):
        for together, alone in zip(whole, results(slice(i, i + 1)), strict=True):
            assert torch.equal(together[i : i + 1], alone)


def test_two_words_that_only_a_single_root_leads_to():
    """No tree has both, whatever paths the elimination of one makes to the other."""
    scores = 200 * normal(4, 4, 4, seed=13)
    for a, b in ((2, 3), (0, 1), (1, 3)):
        of = scores[a]
        diagonal = of.diagonal().clone()
        of[:, [a, b]] = -torch.inf
        of.diagonal().copy_(diagonal)
    tree = pb.DependencyTree(projective=False, multiroot=False, validate=False)
    assert tree.log_partition(scores).isnan().tolist() == [True, True, True, False]
    assert tree.marginals(scores).isnan().flatten(1).all(1).tolist() == [True, True, True, False]
    assert_exact(scores[3:], False, False, 1e-9)


@pytest.mark.parametrize("part", range(0, 4096, 512))
def test_a_root_far_above_all_others(part):
    """Sums of weights into a word leave out the arc from a single root, which may be any power of two times as large."""
    single = pb.DependencyTree(projective=False, multiroot=False)
    scores = torch.tensor([[0.0, -(20480 + part - 0.2) * math.log(2)], [0.0, 0.0]], dtype=torch.float64)
    assert single.marginals(scores).tolist() == [[0.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize("mask", [-1e31, -1e80, -1e300, torch.finfo(torch.float64).min], ids=str)
def test_masks_beside_masks_of_other_sizes(mask):
    """Three trees have the same best score, beside a mask of -1e30, which is small beside the other one."""
    scores = torch.zeros(1, 4, 4, dtype=torch.float64)
    scores[0, 1, 0], scores[0, 2, 1], scores[0, 3, 2] = 42102.0, 648526.0, -1293801.0
    scores[0, 2, 2], scores[0, 2, 3] = mask, -1e30
    trees = pb.DependencyTree()
    assert_close(trees.entropy(scores), torch.tensor([math.log(3)], dtype=torch.float64), atol=1e-9, rtol=0)
    assert_close(trees.log_partition(scores), torch.tensor([648526 + math.log(3)], dtype=torch.float64))


def test_long_sentences_out_of_range():
    scores = 100 * normal(2, 100, 100, seed=14)
    tree = pb.DependencyTree(projective=False)
    found = tree.log_partition(scores), tree.marginals(scores)
    with backend("reference"):
        assert_close(found, (tree.log_partition(scores), tree.marginals(scores)), atol=1e-10, rtol=1e-14)


@EACH_TREE
@pytest.mark.parametrize("mask", [-1e9, -1e30, -torch.inf], ids=str)
def test_samples_avoid_masked_arcs(projective, multiroot, mask):
    tree = pb.DependencyTree(projective=projective, multiroot=multiroot)
    forbidden = masked(5, 64, projective, multiroot, seed=9)
    for scale in (1.0, 1e3):  # random walks, and elimination
        drawn = tree.sample((scale * normal(64, 5, 5, seed=8)).masked_fill(forbidden, mask))
        assert (drawn.sum(1) == 1).all()
        assert not drawn[forbidden].any()


@EACH_TREE
@EACH_DTYPE
def test_without_checks_a_bad_example_is_nan_and_the_others_are_right(projective, multiroot, dtype):
    scores = normal(6, 4, 4, seed=11).to(dtype)
    scores[1, :, 2], scores[3, 0, 1], scores[4, 1, 0] = -torch.inf, torch.nan, torch.inf
    lengths = torch.tensor([4, 4, 5, 4, 4, 3])
    tree = pb.DependencyTree(lengths, projective=projective, multiroot=multiroot, validate=False)
    sound = pb.DependencyTree(lengths[[0, 5]], projective=projective, multiroot=multiroot)

    def gradient(structure, s):
        leaf = s.clone().requires_grad_()
        return torch.autograd.grad(structure.entropy(leaf).sum(), leaf)[0]

    drawn = tree.sample(scores)
    assert drawn[1:5].isnan().all()
    assert (drawn[0].sum(0) == 1).all()
    operations = [lambda t, s, n=name: getattr(t, n)(s) for name in ("argmax", "marginals", "log_partition", "entropy")]
    for operation in [*operations, gradient]:
        result = operation(tree, scores)
        assert result[1:5].isnan().all()
        assert torch.equal(result[[0, 5]], operation(sound, scores[[0, 5]]))


@pytest.mark.parametrize(("dtype", "low", "jump", "floor", "end"), [
    (torch.float32, -100.0, 55.0, -56.0, 100.0),
    (torch.float64, -800.0, 590.0, -450.0, 1100.0),
])  # fmt: skip
def test_a_tag_too_rare_for_the_dtype_may_win_later(dtype, low, jump, floor, end):
    """The first tag's weight underflows at position 0, and its transitions make up for that at the next two positions."""
    scores = torch.zeros(1, 3, 2, 2, dtype=dtype)
    scores[0, 0, 0, 0], scores[0, 1, 0, 0], scores[0, 1, 1, 0], scores[0, 2, 0, 0] = low, jump, floor, end
    best = low + jump + end
    leaf = scores.requires_grad_()
    log_z = pb.LinearChain().log_partition(leaf)
    assert_close(log_z.item(), best, rtol=1e-6, atol=1e-4)
    (mu,) = torch.autograd.grad(log_z.sum(), leaf)
    first = pb.LinearChain().from_tags(torch.zeros(1, 3, dtype=torch.long), 2)
    assert_close(mu, first.to(dtype), rtol=0, atol=1e-4)


@pytest.mark.parametrize("mask", [-1e9, -1e30, torch.finfo(torch.float64).min, -torch.inf])
def test_divergences_do_not_multiply_masks_by_rounded_zeros(mask):
    """One tree has the arc 2 -> 0 of probability zero, which the ratio of two sums gives as 5e-17."""
    scores = torch.tensor([[0.0, 0.0, mask], [mask, 0.0, mask], [0.0, 2.0537959246434305e-8, 0.0]], dtype=torch.float64)
    other = torch.cos(torch.arange(9.0, dtype=torch.float64)).reshape(3, 3)
    tree = pb.DependencyTree(projective=False, multiroot=False)
    z = tree.enumerate(3).double().flatten(1)
    p, q = (torch.where(z > 0, s.flatten(), 0.0).sum(1).log_softmax(0) for s in (scores, other))
    expected = torch.where(p > -1e8, p.exp() * (p - q), 0.0).sum()
    assert_close(tree.kl(scores, other), expected, atol=1e-6, rtol=0)
