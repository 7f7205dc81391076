"""Alignments with more rows than a band of the CPU's kernels has: 8 in float64, 16 in float32."""

from __future__ import annotations

import pytest
import torch

import pullback as pb
from pullback.inference.front.family import backend

SHAPES = [(9, 12), (16, 16), (25, 7), (17, 33)]


def structure_of(n: int, m: int, moves: str) -> pb.Alignment:
    columns = torch.tensor([m, m, m // 2 + 1, m, 0])
    rows = torch.tensor([n, n - 1, n // 2 + 1, 1, 0])
    return pb.Alignment(rows.minimum(columns) if moves == "forward" else rows, columns, moves=moves)


def results(structure: pb.Alignment, scores: torch.Tensor, on: str) -> dict[str, torch.Tensor]:
    with backend(on):
        leaf = scores.clone().requires_grad_()
        mu, nats, log_z = structure.marginals(leaf), structure.entropy(leaf), structure.log_partition(leaf)
        direction = torch.linspace(4, 6, mu.numel(), dtype=mu.dtype).reshape(mu.shape)
        found = {"argmax": structure.argmax(scores), "mu": mu, "entropy": nats, "log Z": log_z}
        (found["slope"],) = torch.autograd.grad(mu, leaf, direction)
        (found["entropy's slope"],) = torch.autograd.grad(nats.sum(), leaf)
        (found["slope of log Z"],) = torch.autograd.grad(log_z.sum(), leaf)
        return {name: x.detach() for name, x in found.items()}


@pytest.mark.parametrize("moves", ["any", "forward"])
@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_as_the_reference(n, m, moves):
    structure = structure_of(n, m, moves)
    scores = torch.randn(5, n, m, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    kept = structure.sample(torch.zeros_like(scores), torch.Generator().manual_seed(1)) > 0
    forbidden = (torch.rand(scores.shape, generator=torch.Generator().manual_seed(2)) < 0.2) & ~kept
    scores = torch.where(forbidden, torch.tensor([-torch.inf, -1e30, -1e9, 0.0, 0.0])[:, None, None], scores)
    scores = torch.where(structure.allowed(torch.zeros_like(scores)), scores, torch.nan)
    expected = results(structure, scores, "reference")
    for name, x in results(structure, scores, "cpu").items():
        torch.testing.assert_close(x, expected[name], msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("moves", ["any", "forward"])
def test_samples_are_as_frequent_as_their_marginals_say(moves):
    draws, structure = 4000, pb.Alignment(moves=moves)
    scores = torch.randn(1, 18, 20, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scores[0, 9, 4] = -torch.inf
    z = structure.sample(scores.expand(draws, -1, -1), torch.Generator().manual_seed(1))
    assert structure.log_prob(scores.expand_as(z), z).isfinite().all()
    mu = structure.marginals(scores)[0]
    error = (z.mean(0) - mu).abs() / (mu * (1 - mu) / draws + 1e-9).sqrt()
    assert error.max() < 5
    cells = z[:, 5, :].argmax(1), z[:, 12, :].argmax(1)  # two rows far apart, together
    pairs = torch.stack(cells).double()
    assert torch.corrcoef(pairs)[0, 1] > 0  # paths are monotone: a later column here makes a later one there likelier


def test_bad_examples_are_nan_in_every_operation_and_leave_the_others_alone():
    structure = pb.Alignment(torch.tensor([18, 18, 18, 0]), torch.tensor([9, 9, 9, 9]), validate=False)
    scores = torch.randn(4, 18, 9, generator=torch.Generator().manual_seed(0))
    scores[1, 17, 3], scores[2, 8, :] = torch.nan, -torch.inf
    for name, x in results(structure, scores, "cpu").items():
        assert x[0].isfinite().all(), name
        assert x[1:].isnan().flatten(1).all() if x.dim() > 1 else x[1:].isnan().all(), name


def best_score(scores: torch.Tensor, down: bool) -> float:
    """The score of the best path, cell by cell."""
    value = scores.tolist()
    for i, row in enumerate(value):
        for j in range(len(row)):
            before = [value[i - 1][j - 1]] if i and j else []
            before += [value[i - 1][j]] if i and down else []
            before += [row[j - 1]] if j else []
            row[j] += max(before, default=0.0 if i == j == 0 else -torch.inf)
    return value[-1][-1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("column", [0, 2, 4])
def test_the_best_path_from_band_to_band_through_any_column(column, dtype):
    """Integers, so that sums are exact; most is gained by going down one column through all bands."""
    scores = torch.randint(-3, 4, (3, 40, 5), generator=torch.Generator().manual_seed(column)).to(dtype)
    scores[:, 3:37, column] += 100
    z = pb.Alignment().argmax(scores)
    found = (z * scores).flatten(1).sum(1)
    assert found.tolist() == [best_score(s, down=True) for s in scores]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("moves", ["any", "forward"])
def test_the_best_path_of_tables_that_are_read_in_blocks(moves, dtype):
    """Whole bands and a band of a few rows; the end of a row is tempting for the row behind it."""
    scores = torch.randint(-3, 4, (4, 35, 83), generator=torch.Generator().manual_seed(0)).to(dtype)
    scores[:, :, -3:] += 100
    z = pb.Alignment(moves=moves).argmax(scores)
    assert pb.Alignment(moves=moves).contains(z).all()
    assert (z * scores).flatten(1).sum(1).tolist() == [best_score(s, down=moves == "any") for s in scores]


def test_log_partition_of_the_only_path_beside_many_cells_that_no_path_reaches():
    """Numbers that stand for 0 must not grow from band to band until they are infinite."""
    scores = torch.randn(1, 330, 330, generator=torch.Generator().manual_seed(0))
    found = pb.Alignment(moves="forward").log_partition(scores)
    torch.testing.assert_close(found, scores.diagonal(0, 1, 2).double().sum(1).to(found.dtype))


def test_log_partition_of_one_path_whose_diagonal_is_at_odd_steps():
    """Fractions of its scores must not pile up until they are infinite."""
    n = 601
    scores = torch.full((1, n, n - 1), -torch.inf)
    scores[0, 0, 0] = 0.3
    scores[0, range(1, n), range(n - 1)] = 0.3
    found = pb.Alignment().log_partition(scores)
    torch.testing.assert_close(found, torch.tensor([0.3 * n]))
