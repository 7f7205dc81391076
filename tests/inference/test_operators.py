"""The operators are sound torch.library citizens, and go through torch.compile without a graph break.

To torch.compile an operator is opaque, whatever backend runs below, so these tests spare the slow one.
"""

import pytest
import torch
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

from cases import CATEGORICAL_CASES, DIFFERENTIABLE, OPERATIONS, TREE_CASES, backends
from each import each
from pullback.inference.front.family import backend, backend_of
from pullback.inference.trees.family import TREES

FAST = [case for case in TREE_CASES if not case.is_slow]
EACH = pytest.mark.parametrize("operation", DIFFERENTIABLE.values(), ids=DIFFERENTIABLE)


@pytest.fixture(params=FAST, ids=str)
def tree(request):
    with backend(request.param.backend):
        yield request.param


@pytest.fixture(params=[*CATEGORICAL_CASES, *FAST], ids=str)
def case(request):
    with backend(request.param.backend):
        yield request.param


def arguments(tree, dtype, requires_grad=False):
    scores = tree.random(3, n=4, dtype=dtype, seed=1).requires_grad_(requires_grad)
    lengths = torch.tensor([4, 0, 3], device=tree.device)
    return scores, lengths, (tree.projective, tree.multiroot, True)


@pytest.mark.parametrize("operation", ["log_partition", "marginals", "entropy"])
def test_opcheck_of_what_is_differentiable(tree, dtype, operation):
    scores, lengths, flags = arguments(tree, dtype, requires_grad=True)
    torch.library.opcheck(getattr(TREES, operation), (scores, lengths, *flags))


def test_opcheck_of_argmax(tree, dtype):
    scores, lengths, flags = arguments(tree, dtype)
    torch.library.opcheck(TREES.argmax, (scores, lengths, *flags))


def test_opcheck_of_sample(tree, dtype):
    scores, lengths, flags = arguments(tree, dtype)
    seeds = torch.tensor([1, -2, 2**62], device=tree.device)
    torch.library.opcheck(TREES.sample, (scores, lengths, seeds, *flags))


def test_opcheck_of_the_gradient_of_marginals(tree, dtype):
    scores, lengths, flags = arguments(tree, dtype)
    torch.library.opcheck(TREES.marginals_vjp, (scores, lengths, torch.ones_like(scores), *flags))


def test_opcheck_of_sparsemap_and_its_gradient(tree, dtype):
    """Without the comparison of eager and compiled outputs: the size of the active set depends on the data."""
    scores, lengths, flags = arguments(tree, dtype, requires_grad=True)
    start = torch.empty(3, 0, 4, dtype=torch.int32, device=tree.device)
    weights = torch.empty(3, 0, dtype=torch.float64, device=tree.device)
    inputs = (scores, lengths, start, weights, 1000, True, 0.0, *flags)
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(TREES.sparsemap, inputs, test_utils=checks)
    _, vertices, _, counts, *_ = TREES.sparsemap(*inputs)
    torch.library.opcheck(TREES.sparsemap_vjp, (vertices, counts, torch.ones_like(scores).detach(), False))


def test_opcheck_of_transposed_scores(tree, dtype):
    scores, lengths, flags = arguments(tree, dtype)
    torch.library.opcheck(TREES.argmax, (scores.transpose(1, 2), lengths, *flags))
    torch.library.opcheck(TREES.marginals, (scores.transpose(1, 2), lengths, *flags))


@EACH
def test_a_checkpointed_operation_has_the_same_gradient(tree, operation):
    """Its scores are computed again when its backward pass asks for them, with their own derivatives."""
    leaf, lengths, _ = arguments(tree, torch.float64, requires_grad=True)

    def loss(x):
        return operation(tree.whole(lengths), x * 2).square().sum()

    (expected,) = torch.autograd.grad(loss(leaf), leaf)
    (found,) = torch.autograd.grad(checkpoint(loss, leaf, use_reentrant=False), leaf)
    assert_close(found, expected)


class Model(torch.nn.Module):
    """Words in, scores of arcs or classes, every differentiable operation on them, a number out."""

    def __init__(self, case, lengths=None):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weight = torch.nn.Parameter(torch.randn(6, 6, generator=generator, dtype=torch.float64).to(case.device))
        self.case = case
        self.structure = case.whole() if lengths is None else case.whole(lengths)

    def forward(self, words):
        """`words` is `[B, n, 6]`."""
        scores = words @ self.weight @ words.transpose(-1, -2)
        scores = scores if self.case.kind else scores.flatten(-2)
        found = [operation(self.structure, scores).square().sum() for operation in DIFFERENTIABLE.values()]
        return (torch.stack(found) * torch.arange(1.0, len(found) + 1).to(scores)).sum()


def words(case, batch, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, 4, 6, generator=generator, dtype=torch.float64).to(case.device)


def loss_and_gradient(model, forward, words):
    model.weight.grad = None
    loss = forward(words)
    loss.backward()
    return loss.detach(), model.weight.grad


@pytest.fixture(autouse=True)
def fresh():
    """Each test compiles anew: the limit on recompilations is counted a code object."""
    torch._dynamo.reset()


def assert_compiles(model, *batches, **options):
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", **options)
    for batch in batches:
        inputs = words(model.case, batch, seed=batch)
        assert_close(loss_and_gradient(model, compiled, inputs), loss_and_gradient(model, model, inputs))


def test_a_model_compiles_as_one_graph(case):
    assert_compiles(Model(case), 3)


def test_a_model_with_lengths_compiles_as_one_graph(tree):
    assert_compiles(Model(tree, torch.tensor([4, 2, 0])), 3)


def test_a_model_compiles_for_batches_of_any_size(case):
    assert_compiles(Model(case), 3, 5, dynamic=True)


@pytest.mark.parametrize("operation", ["argmax", "sample"])
def test_argmax_and_sample_compile_as_one_graph(case, operation):
    structure = case.whole()

    def draw(scores):
        return structure.sample(scores) if operation == "sample" else structure.argmax(scores)

    compiled = torch.compile(draw, fullgraph=True, backend="aot_eager")
    scores = case.random(3, n=4)
    torch.manual_seed(0)
    found = compiled(scores)
    torch.manual_seed(0)
    assert torch.equal(found, draw(scores))


def test_a_sample_compiles_for_batches_of_any_size(case):
    structure = case.whole()
    compiled = torch.compile(lambda scores: structure.sample(scores), fullgraph=True, backend="aot_eager")
    for batch in (3, 5, 7):
        assert compiled(case.random(batch, n=4)).sum() == (4 if case.kind else 1) * batch


@pytest.mark.parametrize("operation", OPERATIONS)
def test_errors_are_raised_from_compiled_code(tree, operation):
    structure = tree.whole()
    compiled = torch.compile(lambda s: OPERATIONS[operation](structure, s), fullgraph=True, backend="aot_eager")
    scores = tree.random(3, n=4)
    scores[2, 0, 1] = torch.nan
    if operation == "sample":
        compiled = torch.compile(structure.sample, fullgraph=True, backend="aot_eager")
    with pytest.raises(ValueError, match=r"sentence 2 .* contains NaN"):
        compiled(scores)


def test_a_backend_is_forced_for_the_length_of_a_block():
    scores = torch.zeros(1)
    assert backend_of(scores) == "cpu"
    with backend("reference"):
        with backend("cuda"):
            assert backend_of(scores) == "cuda"
        assert backend_of(scores) == "reference"
    assert backend_of(scores) == "cpu"


@pytest.mark.parametrize("name", backends)
@pytest.mark.parametrize("projective", [True, False])
@each("operation", TREES.operations)
def test_every_backend_implements_every_operation(name, projective, operation):
    """Its own function, in `inference/<algorithm>/<backend>.py`, or the reference's."""
    assert callable(TREES.implementation(operation, name, (projective, True)))
