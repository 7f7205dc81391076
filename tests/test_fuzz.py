"""Forty random examples of awkward kinds for each structure; `python -m tests.fuzz` runs for longer."""

import pytest

import fuzz


@pytest.mark.parametrize("name", fuzz.STRUCTURES)
def test_random_examples(name):
    done, wrong = fuzz.run(seed=1, seconds=600, names=[name], limit=40)
    assert done == 40
    assert not wrong, "\n".join(wrong)
