"""Sweep files: the runs they stand for, and mistakes with their lines."""

import dataclasses

import pytest

from pullback_study.runs import sweep
from pullback_study.runs.lines import Lines
from pullback_study.tasks import TASKS, find_task
from pullback_study.tasks.schema import Option, alternatives, options

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
    ("text", "line", "said"),
    [
        ("[fields]\nestimator = 'spigot'\nstep_sise = 1", 4, "no field 'step_sise'; did you mean 'step_size'?"),
        ("[fields]\nestimator = 'spigot'\nseed = []", 4, "seed has an empty list"),
        ("[fields]\nestimator = 'spigot'\nseed = [0, 1.5]", 4, "seed is 1.5, a number; it must be an integer"),
        ("[fields]\nestimator = 'spigot'\nseed = true", 4, "seed is True, true or false; it must be an integer"),
        ("[fields]\nestimator = 'spigot'\nstep_size = [inf]", 4, "step_size is inf, which is not a finite number"),
        ("[fields]\nestimator = ['spigot', 'spigot']", 3, "'spigot' twice"),
        ("[fields]\nestimator = 'spigot-cd'", 3, "did you mean 'spigot-ce'?"),
        ("[fields]\nseed = 1", 2, "the field 'estimator' is missing"),
        ("[fields]\nestimator = 'spigot'\nclusters = [3,\n  1]", 4, "clusters is 1; it must be at least 2"),
        ("[fields]\nestimator = 'spigot'\ngamma_scale = 'papr'", 4, "did you mean 'paper'?"),
        ("[fields]\nestimator = 'softmax'\nstep_size = 1", 4, "marginals has none: leave it out"),
        ("[fields]\nestimator = 'spigot'\n[[grid]]\nseed = 1\n[[grid]]\nsteps = 'x'", 7, "steps is 'x', a string"),
        ("[field]\nestimator = 'spigot'", 2, "did you mean 'fields'?"),
        ("fields = 3", 2, "it is a table of fields"),
        ("grid = 3", 2, "grids are tables of fields"),
        (f"[fields]\nestimator = 'spigot'\nseed = {list(range(400))}\nsteps = {list(range(1, 400))}", 2, "159600 runs"),
    ],
)
def test_mistakes_name_line_and_field(read, text, line, said):
    with pytest.raises(ValueError, match=f"line {line}: ") as error:
        read(f'task = "synthetic"\n{text}\n')
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: task is None"),
        ('task = "sinthetic"', "line 1: there is no task 'sinthetic'; did you mean 'synthetic'?"),
        ('task = "synthetic"\n[fields\n', "is not TOML"),
        ('task = "synthetic"\n[fields]\nseed = 1\nseed = 2', "is not TOML"),
    ],
)
def test_mistakes_at_the_top(read, text, said):
    with pytest.raises(ValueError, match=r"sweep\.toml") as error:
        read(text)
    assert said in str(error.value)


def test_all_mistakes_are_told_at_once(read):
    with pytest.raises(ValueError, match="line 3") as error:
        read('task = "synthetic"\n[fields]\nstepz = 1\nseed = []\nclusters = "x"\n')
    assert [f"line {n}" in str(error.value) for n in (3, 4, 5)] == [True] * 3


def test_a_file_that_is_not_there(tmp_path):
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    for name in ("nothing.toml", "bytes.toml"):
        with pytest.raises(ValueError, match="cannot be read"):
            sweep.read(tmp_path / name)


def test_lines_of_odd_files():
    lines = Lines('fields = {seed = [0]}\n["fields"]  # again\n"seed" = [\n "a = b",\n]\n  steps=3 # seed = 4\n')
    assert (lines.of("fields", "seed"), lines.of("fields", "steps"), lines.of("nothing", "x")) == (3, 6, 1)


def test_lists_that_are_values():
    def field(kind):
        return Option("sizes", kind, None, "", None, None, None, False, None, False)

    assert alternatives([1, 2], field(tuple[int, ...])) == [(1, 2)]
    assert alternatives([[1, 2], [3]], field(tuple[int, ...] | None)) == [(1, 2), (3,)]


@pytest.mark.parametrize("name", TASKS)
def test_every_field_of_a_config_can_be_swept(name):
    task = find_task(name)
    for field in dataclasses.fields(task.config_type):
        if field.default is not None:
            assert alternatives(field.default, options(task.config_type)[field.name]) == [field.default]
