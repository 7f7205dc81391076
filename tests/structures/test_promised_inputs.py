"""The promises about what may be passed: padding, strides, leading dimensions, transforms, bad values; every structure on
the reference and the compiled backend.
"""

from __future__ import annotations

import pytest
import torch
from torch.autograd import forward_ad

import pullback as pb
from each import each
from oracles import mask_of

EXPECTATIONS = ["marginals", "log_partition", "entropy"]


@each("operation", ["argmax", "marginals", "log_partition", "entropy", "sparsemap", "sample"])
def test_layouts(gibbs, operation):
    """Leading dimensions, sizes that broadcast, strides, half precision, and an empty batch."""
    if operation not in gibbs.operations:
        pytest.skip(f"no {operation}")
    structure = gibbs.structure(slice(0, 2))
    run = getattr(structure, operation)
    if operation != "sample":
        scores = gibbs.scores()[:2]
        alone = run(scores)
        stacked = torch.stack([scores, scores + 1])
        torch.testing.assert_close(run(stacked)[0], alone)
        strided = torch.stack([scores, scores], -1)[..., 0]
        assert not strided.is_contiguous()
        torch.testing.assert_close(run(strided), alone)
        assert run(scores.bfloat16()).dtype == gibbs.result(torch.bfloat16)
        torch.testing.assert_close(run(scores.half()).float(), run(scores.half().float()), rtol=1e-3, atol=1e-3)
    empty = getattr(gibbs.structure(slice(0, 0)), operation)(gibbs.scores()[:0])
    assert len(empty) == 0


@each("operation", EXPECTATIONS)
def test_expanded_scores(gibbs, operation):
    """The incoming gradient of a sum is expanded, too."""
    one = gibbs.scores()[:1].requires_grad_()
    structure = gibbs.structure(slice(0, 1))
    result = getattr(structure, operation)(one.expand(3, *gibbs.parts))
    (found,) = torch.autograd.grad(result.sum(), one)
    (alone,) = torch.autograd.grad(getattr(structure, operation)(one).sum(), one)
    torch.testing.assert_close(found, 3 * alone)


def test_negative_views(entry):
    """Scores and gradients that PyTorch negates when they are read, as the imaginary part of a conjugate."""
    structure, scores, negative = entry.structure(), entry.scores(), torch._neg_view(-entry.scores())
    assert torch.equal(structure.argmax(negative), structure.argmax(scores))
    for name in (*EXPECTATIONS * entry.gibbs, *["sparsemap"] * entry.projects):
        results = []
        for x in (scores, negative):
            leaf = x.detach().requires_grad_()
            found = getattr(structure, name)(leaf)
            incoming = torch.linspace(0.5, 1.5, found.numel(), dtype=found.dtype).reshape(found.shape)
            incoming = incoming if x is scores else torch._neg_view(-incoming)
            results.append((found, *torch.autograd.grad(found, leaf, incoming)))
        assert torch.equal(results[0][0], results[1][0])
        assert torch.equal(results[0][1], results[1][1])


def test_the_default_device_is_not_read(entry):
    """Scores on a CPU stay there, whatever `torch.set_default_device` says: "meta" has no numbers."""
    structure, scores, direction = entry.structure(), entry.scores(), entry.scores(seed=3)
    leaf, z = scores.clone().requires_grad_(), structure.argmax(scores)
    names = [*EXPECTATIONS * entry.gibbs, *["sparsemap"] * entry.projects]
    expected = [getattr(structure, name)(scores) for name in names]
    with torch.device("meta"):
        assert structure.contains(z).all()
        assert torch.equal(structure.argmax(scores), z)
        assert torch.equal(structure.topk(scores, 3).structures[0], z)
        for name, right in zip(names, expected, strict=True):
            found = getattr(structure, name)(leaf)
            assert torch.equal(found, right)
            (slope,) = torch.autograd.grad(found, leaf, direction if found.dim() == scores.dim() else right)
            assert slope.is_cpu
        if entry.projects:
            assert structure.sparsemap_solution(scores).structures.is_cpu
        if entry.gibbs:
            assert structure.sample(scores).is_cpu
            assert structure.log_prob(scores, z).is_cpu


@each("operation", ["marginals", "log_partition", "entropy"])
def test_transforms(gibbs, operation):
    """Forward mode agrees with backward mode, vmap with a loop, and second derivatives of marginals raise."""
    structure = gibbs.structure()
    run = getattr(structure, operation)
    scores, direction = gibbs.scores(), gibbs.scores(seed=8)
    _, along = torch.func.jvp(run, (scores,), (direction,))
    leaf = scores.requires_grad_()
    result = run(leaf)
    weight = torch.linspace(0.5, 1.5, result.numel(), dtype=result.dtype).reshape(result.shape)
    (back,) = torch.autograd.grad((result * weight).sum(), leaf)
    torch.testing.assert_close((along * weight).sum(), (back * direction).sum())
    mapped = torch.vmap(run)(torch.stack([scores.detach(), direction]))
    torch.testing.assert_close(mapped[1], run(direction))
    if operation == "marginals" and not gibbs.twice:
        (slope,) = torch.autograd.grad(structure.marginals(leaf).square().sum(), leaf, create_graph=True)
        with pytest.raises(NotImplementedError, match="second derivative"):
            slope.sum().backward()


def test_second_derivatives_in_forward_mode(gibbs):
    """Of log Z they are the covariances that backward passes give, in any order of modes; those of others raise."""
    structure, scores, v, w = gibbs.structure(), gibbs.scores(), gibbs.scores(seed=8), gibbs.scores(seed=9)

    def twice(operation):
        return torch.func.jvp(lambda s: torch.func.jvp(operation, (s,), (v,))[1], (scores,), (w,))[1]

    leaf = scores.clone().requires_grad_()
    (product,) = torch.autograd.grad((structure.marginals(leaf) * v).sum(), leaf)
    z = structure.argmax(scores)
    expected = (product * w).flatten(1).sum(1)
    torch.testing.assert_close(twice(structure.log_partition), expected)
    torch.testing.assert_close(twice(lambda s: structure.log_prob(s, z)), -expected)
    padded = torch.where(mask_of(gibbs), v, torch.nan)  # of a tangent it is not read
    slope = torch.func.grad(lambda s: torch.func.jvp(structure.log_partition, (s,), (padded,))[1].sum())(scores)
    torch.testing.assert_close(slope, product)
    if gibbs.twice:
        return
    for name in ("marginals", "entropy"):
        with pytest.raises(NotImplementedError, match="second derivative"):
            twice(getattr(structure, name))
    with forward_ad.dual_level():  # whose tangents PyTorch's own logsumexp cannot differentiate
        along = forward_ad.unpack_dual(structure.log_partition(forward_ad.make_dual(leaf, v))).tangent
        torch.testing.assert_close(torch.autograd.grad(along.sum(), leaf)[0], product)


@each("operation", EXPECTATIONS)
def test_several_tangents_at_once(gibbs, operation):
    """As the vectorised Jacobians of `torch.autograd` have them."""
    run, scores = getattr(gibbs.structure(), operation), gibbs.scores()
    found = torch.autograd.functional.jacobian(run, scores, vectorize=True, strategy="forward-mode")
    torch.testing.assert_close(found, torch.autograd.functional.jacobian(run, scores))


def test_sizes_broadcast_against_the_batch(entry):
    """One size for all examples, and sizes `[B]` for scores `[samples, B, *parts]`."""
    if not entry.sizes[0]:
        pytest.skip("no sizes")
    scores, together = entry.scores(), torch.tensor(entry.sizes)
    one = entry.make(*together[0].unbind(0)).argmax(scores)
    assert torch.equal(one, entry.make(*together[:1].expand_as(together).unbind(1)).argmax(scores))
    several = entry.structure().argmax(torch.stack([scores, -scores]))
    assert torch.equal(several[1], entry.structure().argmax(-scores))
    with pytest.raises(ValueError, match=r"has shape \[2\] and scores .* of shape \[\d\]"):
        entry.make(*together[:2].unbind(1)).argmax(scores)


def test_changes_by_numpy_are_seen(entry):
    """PyTorch does not notice them: neither those of scores, nor those of sizes, which are copied where they broadcast."""
    scores, structure = torch.from_numpy(entry.scores().numpy().copy()), entry.structure(validate=True)
    structure.argmax(scores)
    scores.numpy()[0] = torch.nan
    with pytest.raises(ValueError, match="contains NaN"):
        structure.argmax(scores)
    scores, sizes = entry.scores(), torch.tensor(entry.sizes).numpy()
    mine = [size[:1] for size in sizes.T.copy()]
    structure = entry.make(*map(torch.from_numpy, mine))
    structure.argmax(scores)
    for size, value in zip(mine, sizes[1], strict=True):
        size[:] = value
    assert torch.equal(structure.argmax(scores), entry.make(*map(int, sizes[1])).argmax(scores))


def test_scores_have_a_shape_and_a_dtype(entry):
    with pytest.raises(ValueError, match=r"scores has shape \[.*\]; an? \w+ needs \[\.\.\., "):
        entry.structure().argmax(torch.zeros(entry.parts[1:]))
    with pytest.raises(TypeError, match=r"scores have dtype torch.int64; .*scores\.float\(\)"):
        entry.structure().argmax(torch.zeros(len(entry.sizes), *entry.parts, dtype=torch.long))
    with pytest.raises(TypeError, match=r"scores have dtype torch.float8_e5m2; .*scores\.float\(\)"):
        entry.structure().argmax(entry.scores().to(torch.float8_e5m2))


@each("dtype", [torch.uint8, torch.int32, torch.uint16, torch.uint32, torch.uint64])
def test_sizes_of_any_integer_dtype(entry, dtype):
    scores, sizes = entry.scores(), torch.tensor(entry.sizes).to(dtype).unbind(1)
    assert torch.equal(entry.make(*sizes).argmax(scores), entry.structure().argmax(scores))


def test_one_example_of_scores_for_structures_of_several_sizes(entry):
    """The scores are read once for each size, as `kl` reads them."""
    scores, structure = entry.scores()[:1], entry.structure()
    expanded = scores.expand(len(entry.sizes), *entry.parts)
    z = structure.argmax(expanded)
    for name in ("score", "log_prob") if entry.gibbs else ("score",):
        run = getattr(structure, name)
        torch.testing.assert_close(run(scores[0], z), run(expanded, z))
        torch.testing.assert_close(run(scores, z), run(expanded, z))


@each("operation", ["marginals", "sparsemap"])
def test_incoming_gradients_outside_of_the_parts_are_ignored(gibbs, operation):
    if operation not in gibbs.operations:
        pytest.skip(f"no {operation}")
    leaf = torch.where(mask_of(gibbs), gibbs.scores(), 0.0).requires_grad_()
    result, incoming = getattr(gibbs.structure(), operation)(leaf), gibbs.scores(seed=3)
    (clean,) = torch.autograd.grad(result, leaf, incoming, retain_graph=True)
    (found,) = torch.autograd.grad(result, leaf, torch.where(mask_of(gibbs), incoming, torch.nan))
    assert torch.equal(found, clean)
    assert not found[~mask_of(gibbs)].any()


@each("value", [torch.nan, torch.inf, -torch.inf])
def test_bad_examples_are_named_or_nan(entry, value):
    if value == -torch.inf and not entry.infeasible:
        pytest.skip("a structure without parts is left")
    scores = torch.where(mask_of(entry), entry.scores(), 0.0)
    bad = scores.clone()
    bad[0] = torch.where(mask_of(entry)[0], value, 0.0)
    for operation in ["argmax", *(EXPECTATIONS if entry.gibbs else []), *(["sample"] if entry.gibbs else [])]:
        with pytest.raises(ValueError, match=r"0 of the batch|scores\[0\]"):
            _seeded(entry.structure(validate=True), operation, bad)
        found = _seeded(entry.structure(validate=False), operation, bad)
        assert found[0].isnan().all()
        torch.testing.assert_close(found[1:], _seeded(entry.structure(), operation, scores)[1:])


@each("value", [torch.nan, torch.inf, -torch.inf])
def test_a_bad_example_that_a_loss_leaves_out_has_no_gradient(entry, value):
    """0 times NaN would be NaN in weights that all examples share. The other gradients are as without it, second ones too."""
    if value == -torch.inf and not entry.infeasible:
        pytest.skip("a structure without parts is left")
    scores, structure = torch.where(mask_of(entry), entry.scores(), 0.0), entry.structure(validate=False)
    bad, z = scores.clone(), structure.argmax(scores)
    bad[0] = torch.where(mask_of(entry)[0], value, 0.0)
    for name in entry.differentiable:
        slopes = []
        for x in (scores, bad):
            leaf = x.clone().requires_grad_()
            found = structure._log_prob(leaf, z) if name == "log_prob" else getattr(structure, name)(leaf)
            assert found[0].isnan().all() == (x is bad)
            loss = found[1:].square().sum()
            slopes.append(torch.autograd.grad(loss, leaf, retain_graph=True)[0])
            if name == "log_partition":
                (slope,) = torch.autograd.grad(loss, leaf, create_graph=True)
                slopes[-1] = slopes[-1] + torch.autograd.grad(slope[1:].square().sum(), leaf)[0]
        assert not slopes[1][0].any(), name
        torch.testing.assert_close(slopes[1][1:], slopes[0][1:])


def test_an_upstream_gradient_of_zero_has_a_derivative(gibbs):
    """Forward mode by two backward passes starts from zeros."""
    scores, direction = torch.where(mask_of(gibbs), gibbs.scores(), 0.0), gibbs.scores(seed=3)
    leaf, structure = scores.clone().requires_grad_(), gibbs.structure(validate=False)
    found = structure.log_partition(leaf)
    zeros = torch.zeros_like(found, requires_grad=True)
    (slope,) = torch.autograd.grad(found, leaf, zeros, create_graph=True)
    (along,) = torch.autograd.grad(slope, zeros, torch.where(mask_of(gibbs), direction, 0.0))
    expected = (structure.marginals(scores) * torch.where(mask_of(gibbs), direction, 0.0)).flatten(1).sum(1)
    torch.testing.assert_close(along, expected)


def test_one_infinite_score_ends_no_sample_in_a_loop(gibbs):
    scores = torch.where(mask_of(gibbs), gibbs.scores(), 0.0)
    scores[0].view(-1)[mask_of(gibbs)[0].view(-1).nonzero()[0]] = torch.inf
    with pytest.raises(ValueError, match=r"contains \+inf"):
        _seeded(gibbs.structure(validate=True), "sample", scores)


def _seeded(structure, operation, scores):
    torch.manual_seed(0)
    return getattr(structure, operation)(scores)


def test_sparsemap_takes_a_limit_and_a_start(projected):
    scores = torch.where(mask_of(projected), projected.scores(), 0.0)
    structure = projected.structure()
    z = structure.argmax(scores)
    found = structure.sparsemap(scores, warm_start=z, max_iterations=10_000)
    torch.testing.assert_close(found, structure.sparsemap(scores), rtol=0, atol=1e-7)
    assert structure.sparsemap_solution(scores, warm_start=z, max_iterations=10_000).converged.all()
    for limit in (-1, 0, 1.5, "many"):
        for operation in (structure.sparsemap, structure.sparsemap_solution):
            with pytest.raises(ValueError, match=f"max_iterations is {limit!r}; .* integer of at least 1"):
                operation(scores, max_iterations=limit)


def test_an_operation_that_cannot_be_says_so():
    for operation in ("marginals", "log_partition", "entropy", "sample"):
        with pytest.raises(NotImplementedError, match=r"#P-hard|permanent|matching"):
            getattr(pb.Matching(), operation)(torch.zeros(2, 3))


@each("dtype", [torch.bool, torch.long, torch.float16, torch.float64])
def test_structures_of_any_dtype(entry, dtype):
    """The result has the scores' dtype, in half precision too, unless another that takes part is wider."""
    scores, structure = entry.scores().half(), entry.structure()
    z = structure.argmax(scores)
    found = structure.score(scores, z.to(dtype))
    assert found.dtype == (torch.float64 if dtype == torch.float64 else entry.result(torch.float16))
    torch.testing.assert_close(found.half(), structure.score(scores, z).half())
