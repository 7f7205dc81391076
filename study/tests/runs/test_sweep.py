"""Sweep files: the runs they stand for, and mistakes with their places."""

import dataclasses
from pathlib import Path

import pytest

from pullback_study.runs import sweep
from pullback_study.tasks import TASKS, find_task
from pullback_study.tasks.schema import options

TASK = find_task("synthetic")


@pytest.fixture
def read(tmp_path):
    def from_text(text):
        path = tmp_path / "sweep.toml"
        path.write_text(text)
        return sweep.read(path)

    return from_text


def configure(estimator, **fields):
    return TASK.configure(estimator=estimator, **fields)


def test_the_runs_are_the_product_of_the_lists(read):
    found = read('task = "synthetic"\n[fields]\nestimator = "softmax"\nseed = [0, 1]\nclusters = [3, 10]\n')
    assert set(found.configs) == {configure("softmax", seed=seed, clusters=k) for seed in (0, 1) for k in (3, 10)}


def test_grids_are_united_and_replace_what_they_share(read):
    found = read(
        'task = "synthetic"\n[fields]\nseed = [0, 1]\nclusters = 3\n'
        '[[grid]]\nestimator = ["spigot", "spigot-ce"]\nstep_size = [1, 2]\n'
        '[[grid]]\nestimator = "softmax"\nseed = 5\n'
        '[[grid]]\nestimator = "marginals"\nseed = [5]\n'
    )
    assert len(found.configs) == 2 * 2 * 2 + 1
    assert configure("softmax", seed=5, clusters=3) in found.configs


def test_an_integer_is_a_number_and_the_same_run(read, tmp_path):
    one, same = (read(f'task = "synthetic"\n[fields]\nestimator = "spigot"\nstep_size = {x}\n') for x in ("1", "1.0"))
    assert len({TASK.run(found.configs[0], tmp_path).id for found in (one, same)}) == 1


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("[fields]\nestimator = 'spigot'\nstep_sise = 1", "[fields]: ", "no field 'step_sise'; did you mean 'step_size'?"),
        ("[fields]\nestimator = 'spigot'\nseed = []", "[fields]: ", "seed has an empty list"),
        ("[fields]\nestimator = 'spigot'\nseed = [0, 1.5]", "[fields]: ", "seed is 1.5, a number; it must be an integer"),
        ("[fields]\nestimator = 'spigot'\nseed = true", "[fields]: ", "seed is True, true or false; it must be an integer"),
        ("[fields]\nestimator = 'spigot'\nstep_size = [inf]", "[fields]: ", "step_size is inf, which is not a finite number"),
        ("[fields]\nestimator = ['spigot', 'spigot']", "[fields]: ", "'spigot' twice"),
        ("[fields]\nestimator = 'spigot-cd'", "[fields]: ", "did you mean 'spigot-ce'?"),
        ("[fields]\nseed = 1", "[fields]: ", "the field 'estimator' is missing"),
        ("[fields]\nestimator = 'spigot'\nclusters = [3,\n  1]", "[fields]: ", "clusters is 1; it must be at least 2"),
        ("[fields]\nestimator = 'spigot'\ngamma_scale = 'papr'", "[fields]: ", "did you mean 'paper'?"),
        ("[fields]\nestimator = 'softmax'\nstep_size = 1", "[fields]: ", "marginals has none: leave it out"),
        ("[fields]\nestimator = 'spigot'\n[[grid]]\nseed = 1\n[[grid]]\nsteps = 'x'", "[[grid]] 2: ", "steps is 'x', a string"),
        ("[field]\nestimator = 'spigot'", "", "did you mean 'fields'?"),
        ("fields = 3", "", "are tables"),
        ("grid = 3", "", "are tables"),
        (f"[fields]\nestimator = 'spigot'\nseed = {list(range(400))}\nsteps = {list(range(1, 400))}", "", "159600 runs"),
    ],
)
def test_mistakes_name_table_and_field(read, text, place, said):
    with pytest.raises(ValueError, match=r"sweep\.toml: ") as error:
        read(f'task = "synthetic"\n{text}\n')
    assert place in str(error.value)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "task is None"),
        ('task = "sinthetic"', "there is no task 'sinthetic'; did you mean 'synthetic'?"),
        ('task = "synthetic"\n[fields\n', "is not TOML"),
        ('task = "synthetic"\n[fields]\nseed = 1\nseed = 2', "is not TOML"),
    ],
)
def test_mistakes_at_the_top(read, text, said):
    with pytest.raises(ValueError, match=r"sweep\.toml") as error:
        read(text)
    assert said in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"nothing.toml cannot be read: No such file"):
        sweep.read(tmp_path / "nothing.toml")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe", "is not TOML: 'utf-8' codec"),
        (b"a = " + b"[" * 100_000, "is not TOML: "),
        (b"a = " + b"9" * 5000, "is not TOML: Exceeds the limit"),
        (b'task = "synthetic"\n[fields]\nestimator = "spigot"\nlearning_rate = 0x' + b"f" * 500,
         "learning_rate is an integer of more than 64 bits"),
        (b'task = "synthetic"\n[fields]\nestimator = "spigot"\nseed = 9223372036854775808', "seed is an integer"),
    ],
    ids=["bytes", "deep", "long", "huge rate", "huge seed"],
)  # fmt: skip
def test_what_no_sweep_file_should_be(content, said, tmp_path):
    (tmp_path / "bad.toml").write_bytes(content)
    with pytest.raises(ValueError, match=f"bad.toml.*{said}"):
        sweep.read(tmp_path / "bad.toml")


def test_a_file_without_an_end():
    with pytest.raises(ValueError, match=r"/dev/zero is no sweep file: it has more than 1 MiB"):
        sweep.read(Path("/dev/zero"))


@pytest.mark.parametrize("name", TASKS)
def test_every_field_of_a_config_can_be_swept(name):
    task = find_task(name)
    for field in dataclasses.fields(task.config_type):
        if field.default is not None:
            assert options(task.config_type)[field.name].convert(field.default) == field.default
