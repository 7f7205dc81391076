from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pullback_study.corpora import Split, batches, gather


def gathered(split, *arguments, **options):
    return [gather(split, *each) for each in batches(split, *arguments, **options)]


def plan(*arguments, **options):
    return [examples for examples, _ in batches(*arguments, **options)]


@st.composite
def splits(draw):
    """Sentences of random lengths, empty ones included; every word is a number of its own."""
    sides = draw(st.integers(1, 2))
    lengths = draw(st.lists(st.integers(0, 9), min_size=1, max_size=60))
    lengths = torch.tensor(lengths[: len(lengths) // sides * sides] or [1] * sides)
    if not lengths.any():
        lengths[0] = 1
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    labels = torch.arange(len(lengths) // sides)
    return Split(torch.arange(2, 2 + int(offsets[-1]), dtype=torch.int32), offsets, labels, sides)


seeds = st.none() | st.integers(0, 2**32)


@given(splits(), st.integers(1, 7), seeds, st.integers(0, 5), st.integers(1, 5))
def test_every_example_comes_once_with_its_words_and_label(split, size, seed, epoch, multiple):
    options = {"seed": seed, "epoch": epoch, "multiple": multiple}
    found, examples = gathered(split, size, **options), [rows for rows, _ in batches(split, size, **options)]
    for batch, rows in zip(found, examples, strict=True):
        words = batch.words.view(len(batch.labels), split.sides, -1)
        lengths = batch.lengths.view(len(batch.labels), split.sides)
        n = words.shape[-1]
        assert n % multiple == 0
        assert n - multiple < max(int(lengths.max()), 1) <= n
        assert batch.words.dtype == batch.lengths.dtype == torch.int64
        for row, example in enumerate(rows.tolist()):
            for side in range(split.sides):
                start, end = split.offsets[example * split.sides + side :][:2].tolist()
                assert words[row, side].tolist() == [*range(2 + start, 2 + end), *[0] * (n - (end - start))]
                assert lengths[row, side] == end - start
        assert batch.labels.equal(split.labels[rows])
    assert sorted(torch.cat(examples).tolist()) == list(range(len(split)))
    assert len(found) == -(-len(split) // size)
    assert max(len(batch.labels) for batch in found) <= size


@given(splits(), st.integers(1, 7), seeds, st.integers(0, 5))
def test_the_order_depends_on_seed_and_epoch_only(split, size, seed, epoch):
    first = plan(split, size, seed=seed, epoch=epoch)
    torch.manual_seed(epoch)
    torch.rand(3)
    batches(split, size, seed=seed, epoch=epoch + 1)
    again = plan(split, size, seed=seed, epoch=epoch, multiple=3)
    assert [each.tolist() for each in first] == [each.tolist() for each in again]


def split_of(lengths):
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    return Split(torch.ones(int(offsets[-1]), dtype=torch.int32), offsets, torch.zeros(len(lengths)).long(), 1)


def many(examples=3000):
    return split_of(torch.randint(1, 40, (examples,), generator=torch.Generator().manual_seed(0)))


def test_other_seeds_and_epochs_give_other_orders_and_other_batches():
    split = split_of(torch.arange(1, 1600))  # no two of the same length: ties cannot be what makes batches differ
    plans = [plan(split, 8, seed=seed, epoch=epoch) for seed in (0, 1) for epoch in (0, 1)]
    assert len({tuple(torch.cat(each).tolist()) for each in plans}) == 4
    contents = [{frozenset(each.tolist()) for each in epoch} for epoch in plans]
    assert len(contents[0] & contents[1]) < 5


@pytest.mark.parametrize("seed", [None, 0])
def test_batches_have_little_padding(seed):
    split = many()
    padded = sum(batch.words.numel() for batch in gathered(split, 32, seed=seed))
    assert padded < 1.05 * len(split.words)


def test_training_does_not_see_sentences_in_the_order_of_their_lengths():
    lengths = [float(batch.lengths.float().mean()) for batch in gathered(many(), 32, seed=0)]
    rises = sum(first < second for first, second in pairwise(lengths))
    assert 0.35 < rises / len(lengths) < 0.65


def test_two_sides_have_a_dimension_of_their_own():
    split = Split(torch.arange(2, 8), torch.tensor([0, 1, 3, 6, 6]), torch.tensor([2, 0]), 2)
    (batch,) = gathered(split, 4, seed=None)
    assert batch.words.tolist() == [[[2, 0, 0], [3, 4, 0]], [[5, 6, 7], [0, 0, 0]]]
    assert batch.lengths.tolist() == [[1, 2], [3, 0]]


def test_an_empty_split_has_no_batches():
    empty = Split(torch.zeros(0, dtype=torch.int32), torch.zeros(1).long(), torch.zeros(0).long(), 1)
    assert [len(batches(empty, 4, seed=seed)) for seed in (None, 0)] == [0, 0]


def test_sizes_below_one_are_refused():
    with pytest.raises(ValueError, match="both must be at least 1"):
        batches(many(3), 0, seed=None)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_split_on_a_gpu_is_gathered_there():
    split = many(200)
    for batch, other in zip(gathered(split.to("cuda"), 32, seed=0), gathered(split, 32, seed=0), strict=True):
        assert batch.words.device.type == batch.lengths.device.type == "cuda"
        assert batch.words.cpu().equal(other.words)
