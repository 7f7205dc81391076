import math

import pytest
import torch

from pullback_study.tasks.synthetic.train import v_measure


def by_hand(counts):
    """Homogeneity and completeness from conditional entropies, in plain Python."""
    total = sum(map(sum, counts))
    columns = list(zip(*counts, strict=True))

    def entropy(sizes):
        return -sum(s / total * math.log(s / total) for s in sizes if s)

    def conditional(rows):  # H(column | row)
        return -sum(c / total * math.log(c / sum(row)) for row in rows for c in row if c)

    true, predicted = entropy([sum(row) for row in counts]), entropy([sum(column) for column in columns])
    h = 1 - conditional(columns) / true if true else 1.0
    c = 1 - conditional(counts) / predicted if predicted else 1.0
    return 2 * h * c / (h + c) if h + c else 0.0


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([[5, 0], [0, 5]], 1.0),
        ([[0, 5], [5, 0]], 1.0),
        ([[5, 5], [5, 5]], 0.0),
        ([[10], [10]], 0.0),
        ([[7, 3]], 0.0),
        ([[7]], 1.0),
        ([[1, 1, 0], [0, 0, 2]], 0.8),
    ],
)
def test_known_cases(counts, expected):
    assert v_measure(torch.tensor(counts)).item() == pytest.approx(expected, abs=1e-12)


def test_against_conditional_entropies_and_batched():
    counts = torch.randint(0, 20, (8, 4, 5), generator=torch.Generator().manual_seed(0))
    expected = [by_hand(each) for each in counts.tolist()]
    torch.testing.assert_close(v_measure(counts), torch.tensor(expected, dtype=torch.float64))


def test_against_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    true, predicted = torch.randint(0, 4, (2, 300), generator=torch.Generator().manual_seed(0))
    counts = torch.zeros(4, 4).index_put_((true, predicted), torch.ones(300), accumulate=True)
    assert v_measure(counts).item() == pytest.approx(metrics.v_measure_score(true, predicted))


def test_counts_with_a_nan_have_no_v_measure():
    counts = torch.tensor([[[math.nan, 1.0], [1.0, 1.0]], [[math.nan] * 2] * 2, [[5.0, 0.0], [0.0, 5.0]]])
    found = v_measure(counts)
    assert found.isnan().tolist() == [True, True, False]
    assert found[2] == 1
