"""A user's own structure needs only `argmax`."""

import pytest
import torch
from torch.testing import assert_close

import pullback as pb


class Subset(pb.Structure):
    """Exactly two of K parts."""

    def argmax(self, scores):
        best = scores.detach().topk(2, dim=-1).indices
        return torch.zeros_like(scores).scatter(-1, best, 1.0)


def subset_projection(scores):
    """The projection onto {0 <= mu <= 1, sum mu = 2}: clip(s - tau, 0, 1), with tau by bisection."""
    low, high = scores.amin(-1, keepdim=True) - 2, scores.amax(-1, keepdim=True) + 2
    for _ in range(200):
        middle = (low + high) / 2
        too_much = (scores - middle).clamp(0, 1).sum(-1, keepdim=True) > 2
        low, high = torch.where(too_much, middle, low), torch.where(too_much, high, middle)
    return (scores - low).clamp(0, 1)


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_sparsemap_comes_with_the_argmax(scale):
    scores = scale * torch.randn(3, 4, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert_close(Subset().sparsemap(scores), subset_projection(scores), atol=1e-9, rtol=0)


def test_sparsemap_of_a_users_structure_is_differentiable():
    scores = torch.randn(3, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    assert torch.autograd.gradcheck(Subset().sparsemap, scores)


def test_sparsemap_of_a_users_structure_returns_its_certificate():
    scores = torch.randn(3, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    solution = Subset().sparsemap_solution(scores)
    assert (solution.gap <= 1e-10).all()
    assert solution.converged.all()
    mean = (solution.weights[..., None] * solution.structures).sum(-2)
    assert_close(mean, solution.mu)
    assert (solution.structures[solution.weights > 0].sum(-1) == 2).all()


def test_score_comes_with_the_argmax():
    scores = torch.tensor([3.0, 2.0, -torch.inf])
    assert Subset().score(scores, Subset().argmax(scores)) == 5


@pytest.mark.parametrize("operation", ["marginals", "log_partition", "entropy", "sample"])
def test_what_is_missing_is_said(operation):
    with pytest.raises(NotImplementedError, match=rf"Subset does not define `{operation}`.*Subset\.{operation}"):
        getattr(Subset(), operation)(torch.zeros(3))


class Enumerated(Subset):
    """Two of K parts, with a log-partition by enumeration."""

    centre_dims = (-1,)

    def everything(self, k):
        return torch.combinations(torch.arange(k), 2)

    def log_partition(self, scores):
        return scores[..., self.everything(scores.shape[-1])].sum(-1).logsumexp(-1)


def two_of(scores):
    """All pairs as vectors, and their probabilities."""
    pairs = torch.combinations(torch.arange(scores.shape[-1]), 2)
    z = torch.zeros(len(pairs), scores.shape[-1], dtype=scores.dtype).scatter(1, pairs, 1.0)
    return z, (scores @ z.T).softmax(-1)


SCORES = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
OTHER = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(4))


def test_expectations_come_with_a_log_partition():
    z, p = two_of(SCORES)
    _, q = two_of(OTHER)
    structure = Enumerated()
    assert_close(structure.marginals(SCORES), p @ z)
    assert_close(structure.entropy(SCORES), -(p * p.log()).sum(-1))
    assert_close(structure.entropy(SCORES + 1e6), structure.entropy((SCORES + 1e6) - 1e6))
    assert_close(structure.log_prob(SCORES[:, None], z), p.log())
    assert_close(structure.kl(SCORES, OTHER), (p * (p / q).log()).sum(-1))
    assert torch.equal(structure.kl(SCORES, SCORES), torch.zeros(3, dtype=torch.float64))
    assert structure.marginals(SCORES.float()).dtype == torch.float32
    assert not structure.marginals(SCORES).requires_grad


@pytest.mark.parametrize("operation", ["marginals", "entropy", "log_prob", "kl"])
def test_what_follows_from_a_log_partition_is_differentiable_and_transforms(operation):
    structure = Enumerated()

    def run(s, o=OTHER):
        if operation == "log_prob":
            return structure.log_prob(s, structure.argmax(o))
        return structure.kl(s, o) if operation == "kl" else getattr(structure, operation)(s)

    leaf = SCORES.clone().requires_grad_()
    assert torch.autograd.gradcheck(run, leaf, check_forward_ad=True)
    with torch.autograd.forward_ad.dual_level():  # of scores that no backward pass sees
        dual = run(torch.autograd.forward_ad.make_dual(SCORES, OTHER))
        assert not dual.requires_grad
        tangent = torch.autograd.forward_ad.unpack_dual(dual).tangent
    assert_close(tangent, torch.func.jvp(run, (SCORES,), (OTHER,))[1])
    with torch.inference_mode():
        assert_close(run(SCORES.clone()), run(SCORES))
        inside = SCORES.clone()
    assert_close(run(inside), run(SCORES))
    if operation == "kl":
        assert torch.autograd.gradcheck(lambda o: run(SCORES, o), OTHER.clone().requires_grad_())
    expected = run(SCORES)
    (slope,) = torch.autograd.grad(run(leaf).sum(), leaf)
    assert_close(torch.func.grad(lambda s: run(s).sum())(SCORES), slope)
    assert_close(torch.vmap(run)(SCORES, OTHER), expected)
    _, along = torch.func.jvp(lambda s: run(s).sum(), (SCORES,), (OTHER,))
    assert_close(along, (slope * OTHER).sum())


def test_kl_of_forbidden_parts():
    """Nothing where both forbid a part, inf where only the other does and it has probability."""
    structure, both = Enumerated(), SCORES.clone()
    both[:, 0] = -torch.inf
    other = OTHER.clone()
    other[:, 0] = -torch.inf
    assert_close(structure.kl(both, other), structure.kl(SCORES[:, 1:], OTHER[:, 1:]))
    assert (structure.kl(SCORES, other) == torch.inf).all()
    assert structure.kl(both, OTHER).isfinite().all()


def test_a_log_partition_without_a_gradient_is_an_error():
    class Blind(Enumerated):
        def log_partition(self, scores):
            return super().log_partition(scores.detach())

    with pytest.raises(RuntimeError, match=r"Blind\.log_partition has no gradient"):
        Blind().marginals(SCORES)


def test_a_wrapper_does_what_the_inner_structure_does():
    calls = []

    class Counting(pb.StructureWrapper):
        def around(self, operation, inference, scores):
            calls.append(operation)
            return inference(scores)

    inner = pb.DependencyTree(torch.tensor([3, 2]))
    scores = torch.randn(2, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    wrapped = Counting(inner)
    for operation in ("argmax", "marginals", "entropy", "log_partition", "sparsemap", "allowed"):
        assert torch.equal(getattr(wrapped, operation)(scores), getattr(inner, operation)(scores))
        assert calls[-1] == operation
    mu = inner.marginals(scores)
    assert torch.equal(wrapped.step_inside(scores, mu, 0 * mu)[0], inner.step_inside(scores, mu, 0 * mu)[0])
    assert calls[-1] == "step_inside"
    assert type(wrapped.sparsemap_solution(scores).active_set) is type(inner.sparsemap_solution(scores).active_set)
    assert wrapped.event_dims == 2
    assert wrapped.lengths is inner.lengths
    assert not hasattr(pb.StructureWrapper(pb.Categorical()), "step_inside")


def test_equal_structures():
    assert pb.DependencyTree([3, 2]) == pb.DependencyTree(torch.tensor([3, 2]))
    assert hash(pb.DependencyTree([3, 2])) == hash(pb.DependencyTree(torch.tensor([3, 2])))
    assert pb.DependencyTree([3, 2]) != pb.DependencyTree([3, 1])
    assert pb.DependencyTree() != pb.DependencyTree(projective=False)
    assert pb.DependencyTree() != pb.DependencyTree([3])
    assert pb.Categorical() == pb.Categorical()
    assert pb.Categorical() != pb.DependencyTree()


@pytest.mark.parametrize("scores", [[[1.0, 2.0], [3.0, 4.0]], torch.zeros(2, 2).numpy()], ids=["list", "array"])
@pytest.mark.parametrize("structure", [pb.Categorical(), pb.DependencyTree(), Subset()], ids=["categorical", "tree", "own"])
def test_scores_are_tensors(structure, scores):
    for operation in ("argmax", "sparsemap"):
        if isinstance(structure, Subset) and operation == "argmax":
            continue
        with pytest.raises(TypeError, match=r"scores is a \w+; .*torch\.as_tensor"):
            getattr(structure, operation)(scores)


def test_a_structure_survives_pickling():
    import copy
    import pickle

    tree = pb.DependencyTree(torch.tensor([3, 2]), projective=False)
    tree.argmax(torch.zeros(2, 3, 3))
    assert pickle.loads(pickle.dumps(tree)) == copy.deepcopy(tree) == tree


def test_log_prob_says_that_log_partition_is_missing():
    with pytest.raises(NotImplementedError, match="log_partition"):
        Subset().log_prob(torch.zeros(3), torch.tensor([1.0, 1.0, 0.0]))


def test_a_structure_without_argmax_cannot_be_made():
    with pytest.raises(TypeError, match="argmax"):
        type("Nothing", (pb.Structure,), {})()
