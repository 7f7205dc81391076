"""A folder of runs as it is found: what cannot be read is listed as such, and no escape reaches the terminal raw."""

import json
import os
import unicodedata

import pytest
from typer.testing import CliRunner

from pullback_study.cli import app
from pullback_study.runs import list_runs
from pullback_study.runs.run import Group
from pullback_study.runs.store import as_csv, select
from pullback_study.tasks import find_task
from tasks.small import small

TASK = find_task("synthetic")
NUMBERS = {"validation_accuracy": 2.0, "test_accuracy": 1.0}
ESCAPES = "\x1b[31m\x00\x9b1m\u202e\u2066\ud800"


def stored(folder, name="a1", *, config=None, result=None, error=None, curve=None):
    """A run directory with these contents: text, or a value as JSON."""
    path = folder / name
    path.mkdir(parents=True)
    files = {"config.json": config, "result.json": result, "error.json": error, "metrics.jsonl": curve}
    for file, content in files.items():
        if content is not None:
            text = content if isinstance(content, str) else json.dumps(content)
            (path / file).write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


GOOD = {"task": "synthetic", "version": 2, "config": {"estimator": "spigot", "seed": 0}}
HOSTILE = {
    "deep config": {"config": "[" * 200_000},
    "deep result": {"config": GOOD, "result": '{"a":' * 200_000},
    "deep error": {"config": GOOD, "error": '{"error":' * 200_000},
    "deep curve": {"config": GOOD, "curve": '{"step":' * 200_000},
    "version text": {"config": {**GOOD, "version": "1"}},
    "version true": {"config": {**GOOD, "version": True}},
    "no version": {"config": {"task": "synthetic", "config": {}}},
    "config is a list": {"config": {**GOOD, "config": [1]}},
    "task is a number": {"config": {**GOOD, "task": 3}},
    "not JSON": {"config": "{half"},
    "a list": {"config": "[]"},
    "result is null": {"config": GOOD, "result": "null"},
    "result is text": {"config": GOOD, "result": '"[/nope]"'},
    "a thousand digits": {"config": GOOD, "result": '{"test_accuracy": ' + "9" * 5000 + "}"},
    "not UTF-8": {"config": GOOD, "result": "\ud800"},
    "an estimator that is a list": {"config": {**GOOD, "config": {"estimator": ["spigot"]}}},
    "an estimator of another task that is a list": {"config": {"task": "x", "version": 1, "config": {"estimator": [1]}}},
    "a rate that is a list": {"config": {**GOOD, "config": {"estimator": "spigot", "learning_rate": [1]}}},
    "a negative seed": {"config": {**GOOD, "config": {"estimator": "spigot", "seed": -1}}},
    "vectors that are a table": {"config": {"task": "sst", "version": 3, "config": {"estimator": "spigot", "vectors": {}}}},
    "a metric that is a list": {"config": GOOD, "result": {"validation_accuracy": 1.0, "test_accuracy": [1]}},
    "a metric that is a word": {"config": GOOD, "result": {"validation_accuracy": 1.0, "test_accuracy": "[/nope]"}},
    "a metric that is true": {"config": GOOD, "result": {"validation_accuracy": True}},
    "a metric that is absent": {"config": GOOD, "result": {"test_accuracy": 1.0}},
}
ODD = {
    "markup": {"config": GOOD, "error": {"error": "[/nope] [bold]"}},
    "escapes": {"config": {**GOOD, "config": {"estimator": ESCAPES, "seed": 0, ESCAPES: 1}}, "error": {"error": ESCAPES}},
    "surrogates": {"config": {**GOOD, "config": {"estimator": "\ud800"}}, "result": {"\udfff": 1, "validation_accuracy": 1.0}},
    "diverged": {"config": GOOD, "result": {"validation_accuracy": None, "loss": None, "test_v_measure": 1e308}},
    "huge": {"config": GOOD, "result": '{"validation_accuracy": 1e999, "loss": ' + "9" * 400 + "}"},
    "other task": {"config": {"task": "\x1b[2J", "version": 1, "config": {"seed": "x"}}, "result": {}},
    "other types": {"config": {**GOOD, "config": {"estimator": [1], "seed": {}, "clusters": None}}, "result": {}},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_read_is_listed_as_such(name, tmp_path):
    stored(tmp_path, "bad", **HOSTILE[name])
    stored(tmp_path, "good", config=GOOD, result=NUMBERS)
    bad, good = list_runs(tmp_path)
    assert (bad.state, good.state) == ("unreadable", "done")
    assert bad.error
    assert bad.curve() == []


def test_the_bad_line_of_a_curve_is_named(tmp_path):
    stored(tmp_path, config=GOOD, curve='{"step": 1}\n{"step": 2}\n{half\n')
    assert "metrics.jsonl is not JSON: " in list_runs(tmp_path)[0].error
    assert "line 3 column 2" in list_runs(tmp_path)[0].error


def test_what_is_no_file(tmp_path):
    for kind in ("fifo", "folder", "loop", "device"):
        path = stored(tmp_path, kind, config=GOOD) / "result.json"
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        else:
            path.symlink_to(path if kind == "loop" else "/dev/zero")
    assert {run.id: run.state for run in list_runs(tmp_path)} == {
        "fifo": "unreadable", "folder": "unreadable", "loop": "stopped", "device": "unreadable",
    }  # fmt: skip


def is_plain(text):
    return all(c == "\n" or unicodedata.category(c) not in ("Cc", "Cf", "Cs") for c in text)


@pytest.mark.parametrize("name", [*HOSTILE, *ODD])
def test_runs_shows_it_without_raw_escapes(name, tmp_path):
    stored(tmp_path, "bad\x1b[31m" if name == "escapes" else "bad", **{**HOSTILE, **ODD}[name])
    stored(tmp_path, "good", config=GOOD, result={"validation_accuracy": 2.0, "test_accuracy": 12.5})
    result = CliRunner().invoke(app, ["runs", "--runs", str(tmp_path)], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    assert "12.50" in result.output
    assert is_plain(result.output)
    table = as_csv(list_runs(tmp_path))
    assert is_plain(table)
    table.encode()
    if name == "markup":
        assert "[/nope] [bold]" in result.output


def test_states(tmp_path):
    run = TASK.run(small("sparsemap"), tmp_path)
    run.start()
    assert [found.state for found in list_runs(tmp_path)] == ["stopped"]
    run.write_curve([{"step": 10, "accuracy": 61.0, "v_measure": 5.0, "loss": None}])
    (stopped,) = list_runs(tmp_path)
    assert stopped.metrics == {"step": 10, "validation_accuracy": 61.0, "validation_v_measure": 5.0}
    run.fail("out of luck")
    assert [(found.state, found.error) for found in list_runs(tmp_path)] == [("failed", "out of luck")]
    with Group((run,)).claimed():
        assert [found.state for found in list_runs(tmp_path)] == ["running"]
    run.publish(NUMBERS)
    (done,) = list_runs(tmp_path)
    assert (done.state, done.result, done.seed, done.task) == ("done", NUMBERS, 0, "synthetic")
    assert done.config["clusters"] == 4


def test_runs_made_before_tasks_had_names_are_listed_and_not_reused(tmp_path):
    old = {"study": "text", "version": 2, "config": {"task": "sst", "estimator": "spigot", "seed": 1}}
    stored(tmp_path, config=old, result=NUMBERS)
    (run,) = list_runs(tmp_path)
    assert (run.task, run.state, run.older, run.metrics) == ("sst", "done", True, NUMBERS)


def test_a_folder_that_is_none(tmp_path):
    assert list_runs(tmp_path / "nothing") == []
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="--runs needs a folder"):
        list_runs(tmp_path / "file")
    result = CliRunner().invoke(app, ["runs", "--runs", str(tmp_path / "file")])
    assert result.exit_code == 2
    assert "Traceback" not in result.output


@pytest.fixture(scope="module")
def six(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for estimator, accuracy in (("spigot", 70.0), ("spigot-ce", 90.0), ("marginals", None)):
        for clusters in (3, 10):
            run = TASK.run(small(estimator, clusters=clusters), folder)
            run.start()
            run.publish({"validation_accuracy": accuracy, "test_accuracy": accuracy, "threads": 2})
    return list_runs(folder)


def names(runs):
    return [(run.config["estimator"], run.config["clusters"]) for run in runs]


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ([], 6), (["clusters=10"], 3), (["clusters>=3", "clusters<10"], 3), (["estimator=spigot"], 2),
        (["estimator!=spigot"], 4), (["test_accuracy>80"], 2), (["test-accuracy > 8e1"], 2), (["test_accuracy<80"], 2),
        (["step_size=none"], 2), (["step_size!=none"], 4), (["state=done", "clusters==3"], 3), 
        (["estimator=softmax"], 2), (["estimator!=softmax"], 4),
    ],
)  # fmt: skip
def test_where(six, where, count):
    assert len(select(six, where)) == count


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("clusters", "is not a condition"), ("=3", "is not a condition"), ("", "is not a condition"),
        ("test_accuracy>abc", "'abc' is not"), ("clusters<none", "'none' is not"),
        ("test_acuracy>1", "did you mean 'test_accuracy'"),
    ],
)  # fmt: skip
def test_conditions_that_are_mistakes(six, where, said):
    with pytest.raises(ValueError, match=said):
        select(six, [where])


def test_sorted_with_missing_values_last(six):
    best = names(select(six, ["clusters=3"], sort="-test_accuracy"))
    assert best == [("spigot-ce", 3), ("spigot", 3), ("marginals", 3)]
    assert names(select(six, ["clusters=3"], sort="test_accuracy"))[-1] == ("marginals", 3)
    with pytest.raises(ValueError, match="did you mean 'test_accuracy'"):
        select(six, sort="-test_acuracy")
