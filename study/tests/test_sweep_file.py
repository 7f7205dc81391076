import dataclasses

import pytest

from pullback_study.sweep import file, summary
from pullback_study.sweep.lines import Lines
from pullback_study.sweep.values import alternatives
from pullback_study.synthetic.config import configure
from pullback_study.synthetic.study import Synthetic


@pytest.fixture
def read(tmp_path):
    def from_text(text):
        path = tmp_path / "sweep.toml"
        path.write_text(text)
        return file.read(path)

    return from_text


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


def test_an_integer_is_a_number_and_the_same_run(read):
    one, same = (read(f'task = "synthetic"\n[fields]\nestimator = "spigot"\nstep_size = {x}\n') for x in ("1", "1.0"))
    hashes = {Synthetic().run(found.configs[0], "runs").hash for found in (one, same)}
    assert len(hashes) == 1


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("[fields]\nestimator = 'spigot'\nstep_sise = 1", 4, "no field 'step_sise'; did you mean 'step_size'?"),
        ("[fields]\nestimator = 'spigot'\nseed = []", 4, "seed: the list is empty"),
        ("[fields]\nestimator = 'spigot'\nseed = [0, 1.5]", 4, "seed: 1.5 is a number; it must be an integer"),
        ("[fields]\nestimator = 'spigot'\nseed = true", 4, "seed: True is true or false; it must be an integer"),
        ("[fields]\nestimator = 'spigot'\nstep_size = [inf]", 4, "step_size: inf is not a finite number"),
        ("[fields]\nestimator = ['spigot', 'spigot']", 3, "'spigot' is listed twice"),
        ("[fields]\nestimator = 'spigot-cd'", 3, "did you mean 'spigot-ce'?"),
        ("[fields]\nseed = 1", 2, "the field 'estimator' is missing"),
        ("[fields]\nestimator = 'spigot'\nclusters = [3,\n  1]", 4, "clusters is 1; it must be at least 2"),
        ("[fields]\nestimator = 'spigot'\n[[grid]]\nseed = 1\n[[grid]]\nsteps = 'x'", 7, "steps: 'x' is a string"),
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
    with pytest.raises(ValueError, match="cannot be read"):
        file.read(tmp_path / "nothing.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="cannot be read"):
        file.read(tmp_path / "bytes.toml")


def test_lines_of_odd_files():
    lines = Lines('fields = {seed = [0]}\n["fields"]  # again\n"seed" = [\n "a = b",\n]\n  steps=3 # seed = 4\n')
    assert (lines.of("fields", "seed"), lines.of("fields", "steps"), lines.of("nothing", "x")) == (3, 6, 1)


def test_lists_that_are_values():
    assert alternatives([1, 2], tuple[int, ...]) == [(1, 2)]
    assert alternatives([[1, 2], [3]], tuple[int, ...] | None) == [(1, 2), (3,)]


def publish(study, config, root, validation, test):
    run = study.run(config, root)
    run.start()
    run.publish({"validation_accuracy": validation, "test_accuracy": test, "test_v_measure": 50.0})


def test_the_best_configuration_is_that_of_the_best_mean_validation_metric(tmp_path):
    study = Synthetic()
    configs = [configure("spigot", seed=seed, step_size=size) for size in (0.1, 1.0, 2.0) for seed in (0, 1)]
    numbers = {0.1: [(60.0, 1.0), (70.0, 3.0)], 1.0: [(90.0, 5.0), (30.0, 5.0)], 2.0: [(99.0, 9.0), (None, 9.0)]}
    for config in configs:
        publish(study, config, tmp_path, *numbers[config.step_size][config.seed])
    table = summary.table(study, configs, tmp_path)
    assert [row[0] for row in table.rows] == ["step size 0.1", "step size 1", "step size 2"]
    assert table.rows[0][1:4] == ["2", "65.00±5.00", "2.00±1.00"]
    assert table.rows[2][2] == "diverged"


def test_incomplete_configurations_are_left_out_and_each_field_has_its_best(tmp_path):
    study = Synthetic()
    configs = [configure(name, learning_rate=rate) for name in ("softmax", "sparsemap") for rate in (0.001, 0.002)]
    for config, validation in zip(configs, (50.0, 60.0, 90.0), strict=False):
        publish(study, config, tmp_path, validation, 1.0)
    table = summary.table(study, configs, tmp_path, by=["estimator"])
    assert [row[2] for row in table.rows] == ["90.00", "60.00"]
    assert "1 configurations are left out" in table.notes[0]
    with pytest.raises(ValueError, match="did you mean 'estimator'"):
        summary.check(study, ["estimater"])


def test_every_field_of_a_config_can_be_swept():
    kinds = file.find_task("synthetic").fields
    for field in dataclasses.fields(Synthetic.config_type):
        default = getattr(configure("spigot"), field.name)
        assert alternatives(default, kinds[field.name]) == [default]
