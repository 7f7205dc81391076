"""One holder at a time, and what a superseded one wants to publish is refused."""

import contextlib
import errno
import os
import subprocess
import sys
import threading
import time

import pytest

from fake import Config, Fake
from pullback_study import leases, processes
from pullback_study.groups import Group, plan
from pullback_study.leases import BusyError, State, SupersededError, Terms, Watch
from pullback_study.study import Study

SILENT = Terms(heartbeat=1000.0, expiry=0.05)
STUDY: Study = Fake()


@pytest.fixture
def folder(tmp_path):
    leases.prepare(tmp_path / "group", {"members.json": "[]"})
    return tmp_path / "group"


def superseded(folder):
    """A holder that fell silent, and the one that took over."""
    watch = Watch(SILENT)
    old = leases.claim(folder, watch)
    with pytest.raises(BusyError):
        leases.claim(folder, watch)
    time.sleep(2 * SILENT.expiry)
    return old, leases.claim(folder, watch)


def test_a_folder_appears_with_its_files_and_a_free_lease(folder):
    assert sorted(os.listdir(folder)) == ["free.0", "members.json"]
    leases.prepare(folder, {"members.json": "[1]"})
    assert (folder / "members.json").read_text() == "[]"
    assert os.listdir(folder.parent) == ["group"]


def test_one_of_many_gets_it(folder):
    barrier, got = threading.Barrier(16), []

    def contend():
        barrier.wait()
        with contextlib.suppress(BusyError):
            got.append(leases.claim(folder, Watch()))

    threads = [threading.Thread(target=contend) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 1
    got[0].release()


def test_tokens_rise(folder):
    tokens = []
    for _ in range(3):
        lease = leases.claim(folder, Watch())
        tokens.append(lease.token)
        lease.release()
    assert tokens == [1, 2, 3]


def test_a_heartbeat_keeps_it(folder):
    lease = leases.claim(folder, Watch(Terms(heartbeat=0.02, expiry=1000.0)))
    watch = Watch(Terms(expiry=0.3))
    until = time.monotonic() + 0.8
    while time.monotonic() < until:
        with pytest.raises(BusyError):
            leases.claim(folder, watch)
        time.sleep(0.02)
    lease.release()


def test_a_superseded_holder_publishes_nothing(folder, tmp_path):
    metrics, result = tmp_path / "metrics.jsonl", tmp_path / "result.json"
    old, new = superseded(folder)
    assert new.token == old.token + 1
    new.replace(metrics, "new")
    for publish, path in ((old.replace, metrics), (old.create, result), (old.replace, tmp_path / "no folder" / "x")):
        with pytest.raises(SupersededError):
            publish(path, "old")
    assert old.lost
    assert metrics.read_text() == "new"
    assert not result.exists()
    old.release()
    new.create(result, "new")
    assert result.read_text() == "new"
    new.release()
    assert sorted(os.listdir(tmp_path)) == ["group", "metrics.jsonl", "result.json"]


def test_refused_at_any_point_of_publishing(folder, tmp_path, monkeypatch):
    """The holder is superseded after it has written its file to the disk, and before it moves it to its place."""
    old, path, taken = leases.claim(folder, Watch(SILENT)), tmp_path / "result.json", []
    sync = os.fsync

    def slow(file):
        sync(file)
        if not taken:
            taken.append(None)
            time.sleep(2 * SILENT.expiry)
            taken[0] = leases.claim(folder, watch)

    watch = Watch(SILENT)
    watch.state(old.path)
    monkeypatch.setattr("os.fsync", slow)
    with pytest.raises(SupersededError):
        old.create(path, "old")
    assert not path.exists()
    taken[0].create(path, "new")
    assert path.read_text() == "new"


def test_the_thread_of_a_superseded_holder_notices(folder):
    lease = leases.claim(folder, Watch(Terms(heartbeat=0.02)))
    os.rename(lease.path, folder / f"free.{lease.token + 1}")
    deadline = time.monotonic() + 10
    while not lease.lost and time.monotonic() < deadline:
        time.sleep(0.01)
    assert lease.lost


def test_a_result_is_created_once(folder, tmp_path, monkeypatch):
    lease = leases.claim(folder, Watch())

    def no_links(*args):
        raise OSError(errno.EPERM, "no hard links here")

    for name, link in (("a", os.link), ("b", no_links)):
        monkeypatch.setattr("os.link", link)
        lease.create(tmp_path / name, "first")
        with pytest.raises(FileExistsError):
            lease.create(tmp_path / name, "second")
        assert (tmp_path / name).read_text() == "first"
    assert os.listdir(lease.path) == ["heartbeat"]
    lease.release()


def test_a_full_disk_leaves_nothing_half_written_and_keeps_the_lease(folder, tmp_path, monkeypatch):
    lease = leases.claim(folder, Watch())
    lease.replace(tmp_path / "metrics", "old")

    def full(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space left"):
            lease.replace(tmp_path / "metrics", "new")
    assert (tmp_path / "metrics").read_text() == "old"
    assert os.listdir(lease.path) == ["heartbeat"]
    lease.replace(tmp_path / "metrics", "new")
    lease.release()


def test_the_lease_of_a_dead_process_of_this_machine_is_taken_at_once(folder):
    program = (
        "import sys, os, pathlib\n"
        "from pullback_study import leases\n"
        "leases.claim(pathlib.Path(sys.argv[1]), leases.Watch())\n"
        "os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(folder)]).returncode == -9
    lease = leases.claim(folder, Watch())
    assert lease.token == 2
    lease.release()


def test_another_machines_holder_is_watched_by_our_own_clock(folder):
    held = folder / "held.7.elsewhere.1.1.abcd"
    os.rename(folder / "free.0", held)
    (held / "heartbeat").write_text("its clock says 1970")
    watch = Watch(Terms(expiry=0.2))
    assert watch.state(held) is State.UNKNOWN
    with pytest.raises(BusyError) as busy:
        leases.claim(folder, watch)
    assert not busy.value.certain
    (held / "heartbeat").write_text("its clock says 1971")
    assert watch.state(held) is State.LIVE
    time.sleep(0.25)
    assert watch.state(held) is State.DEAD
    assert leases.claim(folder, watch).token == 8


def test_processes_are_told_apart_by_when_they_began():
    mine = processes.start_of(os.getpid())
    assert processes.lives(os.getpid(), mine)
    assert not processes.lives(os.getpid(), mine + 1)


def test_groups_that_share_a_run_exclude_each_other(tmp_path):
    runs = [STUDY.run(Config("a", seed=seed), tmp_path) for seed in range(3)]
    one, other, apart = Group(tuple(runs[:2])), Group(tuple(runs[1:])), Group((runs[2],))
    with one.claim():
        with pytest.raises(BusyError), other.claim():
            pass
        with apart.claim():
            pass
    with other.claim():
        pass


def test_a_dead_group_that_shares_a_run_is_superseded_too(tmp_path):
    runs = [STUDY.run(Config("a", seed=seed), tmp_path) for seed in range(3)]
    one, other, watch = Group(tuple(runs[:2])), Group(tuple(runs[1:])), Watch(SILENT)
    with one.claim(watch) as old:
        with pytest.raises(BusyError), other.claim(watch):
            pass
        time.sleep(2 * SILENT.expiry)
        with other.claim(watch), pytest.raises(SupersededError):
            runs[1].publish({}, old)
    assert not runs[1].done


def test_what_killed_processes_leave_is_swept_up(tmp_path):
    folder = tmp_path / "groups"
    for name in (".removed-1", ".new-1", ".new-2"):
        (folder / name).mkdir(parents=True)
    os.utime(folder / ".new-1", (0, 0))
    plan(STUDY, [Config("a")], tmp_path)
    assert os.listdir(folder) == [".new-2"], "one that is being made right now stays"
