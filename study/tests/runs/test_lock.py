"""Locks: one holder, released when it dies, and no file left behind."""

import errno
import fcntl
import multiprocessing
import os
import signal
import subprocess
import sys
import threading

import pytest

from pullback_study.runs.files import BusyError, is_locked, locked

PROGRAM = """
import sys, time
from pathlib import Path
from pullback_study.runs.files import locked
with locked([Path(sys.argv[1])]):
    print("held", flush=True)
    time.sleep(600)
"""


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    path = tmp_path / "deep" / ".lock"
    holder = subprocess.Popen([sys.executable, "-c", PROGRAM, str(path)], stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    assert is_locked(path)
    with pytest.raises(BusyError), locked([path]):
        pass
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert not is_locked(path)
    with locked([path]):
        assert is_locked(path)
    assert not path.exists()


def test_all_or_nothing(tmp_path):
    first, second, third = (tmp_path / name for name in "abc")
    with locked([second]):
        with pytest.raises(BusyError), locked([first, second, third]):
            pass
        assert not is_locked(first)
        with locked([first, third]):
            pass


def test_without_locks_every_lock_is_granted(tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(errno.ENOLCK, "no locks here")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with locked([tmp_path / "a"]), locked([tmp_path / "a"]):
        assert not is_locked(tmp_path / "a")


def _count(folder, rounds):
    """Read, add one and write, under the lock: a lost update would show."""
    for _ in range(rounds):
        while True:
            try:
                with locked([folder / ".lock"]):
                    number = int((folder / "number").read_text())
                    (folder / "number").write_text(str(number + 1))
                break
            except BusyError:
                continue


def test_removing_the_file_lets_nobody_in_twice(tmp_path):
    (tmp_path / "number").write_text("0")
    context = multiprocessing.get_context("forkserver")
    counters = [context.Process(target=_count, args=(tmp_path, 40)) for _ in range(4)]
    stop = threading.Event()
    prober = threading.Thread(target=lambda: [is_locked(tmp_path / ".lock") for _ in iter(stop.is_set, True)])
    prober.start()
    for process in counters:
        process.start()
    for process in counters:
        process.join()
    stop.set()
    prober.join()
    assert (tmp_path / "number").read_text() == "160"


@pytest.mark.parametrize("replaced", [False, True])
def test_a_lock_on_a_file_that_its_holder_has_removed_is_no_lock(replaced, tmp_path, monkeypatch):
    path, flock, calls = tmp_path / ".lock", fcntl.flock, []

    def after_the_holder_left(descriptor, kind):
        calls.append(kind)
        if len(calls) == 1:  # between the opening of the file and its lock
            path.unlink()
            if replaced:
                path.touch()
        flock(descriptor, kind)

    monkeypatch.setattr(fcntl, "flock", after_the_holder_left)
    with locked([path]):
        assert is_locked(path)
        with pytest.raises(BusyError), locked([path]):
            pass


def test_more_locks_than_open_files_are_allowed(tmp_path):
    program = (
        "import resource, sys; from pathlib import Path; from pullback_study.runs.files import locked\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
        "with locked(Path(sys.argv[1], str(i)) for i in range(200)): pass"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
