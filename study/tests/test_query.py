import json
import os
import shutil
import time

import pytest

from pullback_study import index, listing, query
from pullback_study.groups import Group
from pullback_study.status import list_runs
from pullback_study.synthetic.study import Synthetic
from small import small

STUDY = Synthetic()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    for estimator, accuracy in (("spigot", 70.0), ("spigot-ce", 90.0), ("marginals", None)):
        for clusters in (3, 10):
            run = STUDY.run(small(estimator, clusters=clusters), root)
            run.start()
            run.publish({"test_accuracy": accuracy, "threads": 2})
    return root


@pytest.fixture
def root(made, tmp_path):
    """Six runs that are a minute old: the index trusts no directory that has just changed."""
    root = shutil.copytree(made, tmp_path / "runs")
    for path in root.iterdir():
        os.utime(path, ns=(0, time.time_ns() - 60 * 10**9))
    return root


def names(runs):
    return [(run.config["estimator"], run.config["clusters"]) for run in runs]


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ([], 6), (["clusters=10"], 3), (["clusters>=3", "clusters<10"], 3), (["estimator=spigot"], 2),
        (["estimator!=spigot"], 4), (["test_accuracy>80"], 2), (["test-accuracy > 8e1"], 2), (["test_accuracy<80"], 2),
        (["step_size=none"], 2), (["step_size!=none"], 4), (["status=done", "clusters==3"], 3), (["estimator<n"], 2),
    ],
)  # fmt: skip
def test_where(root, where, count):
    assert len(query.select(list(list_runs(root)), where)) == count


@pytest.mark.parametrize("text", ["clusters", "=3", "", "clusters ~ 3"])
def test_what_is_not_a_condition(root, text):
    with pytest.raises(ValueError, match="is not a condition"):
        query.select(list(list_runs(root)), [text])


def test_unknown_fields_get_a_hint(root):
    for ask in ({"where": ["test_acuracy>1"]}, {"sort": "-test_acuracy"}):
        with pytest.raises(ValueError, match="did you mean 'test_accuracy'"):
            query.select(list(list_runs(root)), **ask)


def test_sorted_with_missing_values_last(root):
    best = names(query.select(list(list_runs(root)), ["clusters=3"], sort="-test_accuracy"))
    assert best == [("spigot-ce", 3), ("spigot", 3), ("marginals", 3)]
    worst = names(query.select(list(list_runs(root)), ["clusters=3"], sort="test_accuracy"))
    assert worst == [("spigot", 3), ("spigot-ce", 3), ("marginals", 3)]


def test_csv(root):
    lines = query.as_csv(query.select(list(list_runs(root)), ["clusters=10"], sort="-test_accuracy")).splitlines()
    heading = lines[0].split(",")
    first = dict(zip(heading, lines[1].split(","), strict=True))
    assert len(lines) == 4
    assert (first["estimator"], first["clusters"], first["test_accuracy"], first["status"]) == (
        "spigot-ce", "10", "90.0", "done",
    )  # fmt: skip


def test_the_index_answers_without_opening_what_has_not_changed(root, monkeypatch):
    before = list(list_runs(root))
    with monkeypatch.context() as patch:
        patch.setattr(index, "_read", lambda path: pytest.fail(f"{path} was read again"))
        assert list(list_runs(root)) == before
    assert list(list_runs(root, rebuild=True)) == before


def test_the_index_sees_what_changes(root):
    list(list_runs(root))
    run = STUDY.run(small("sparsemap"), root)
    run.start()
    assert [found.status for found in list_runs(root) if found.hash == run.hash] == ["killed"]
    run.fail("out of luck")
    assert [found.status for found in list_runs(root) if found.hash == run.hash] == ["failed"]
    with Group((run,)).claim():
        assert [found.status for found in list_runs(root) if found.hash == run.hash] == ["running"]
    run.publish({"test_accuracy": 1.0})
    assert [found.result for found in list_runs(root) if found.hash == run.hash] == [{"test_accuracy": 1.0}]
    for path in run.path.iterdir():
        path.unlink()
    run.path.rmdir()
    assert len(list(list_runs(root))) == 6


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"format": 0, "runs": {}}', '{"format": 1}', '{"format": 1, "runs": {"a": {"modified": 3}}}', "\0"],
)
def test_a_damaged_index_is_made_again(root, content):
    before = list(list_runs(root))
    (root / ".index.json").write_text(content)
    assert list(list_runs(root)) == before
    assert json.loads((root / ".index.json").read_text())["runs"].keys() == {run.hash for run in before}


def test_what_cannot_be_read_is_listed_as_such_and_the_others_too(root):
    damaged, odd, old = (root / run.hash for run in list(list_runs(root))[:3])
    (damaged / "result.json").write_text("{half")
    (odd / "config.json").write_text("[1, 2]")
    identity = json.loads((old / "config.json").read_text())
    config = {"estimator": identity["config"]["estimator"], "gone": 1}
    (old / "config.json").write_text(json.dumps({"study": "synthetic", "version": 0, "config": config}))
    (root / "notes").mkdir()
    found = {run.hash: run for run in list_runs(root, rebuild=True)}
    assert len(found) == 6
    assert [found[path.name].status for path in (damaged, odd, old)] == ["unreadable", "unreadable", "done"]
    shown = listing.table(root, rebuild=True)
    assert any("result.json" in note for note in shown.notes)
    assert any("an older version of the study: 0" in row[0] for row in shown.rows)


def test_a_folder_without_runs(tmp_path):
    assert list(list_runs(tmp_path / "nothing")) == []
    assert query.select([], ["clusters=3"], sort="-accuracy") == []
    assert not (tmp_path / "nothing").exists()
