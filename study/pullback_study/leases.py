"""Leases: which process may work in a folder and publish from it, on one machine or on many that share the storage.

    <folder>/free.<token>/                                     nobody holds it
    <folder>/held.<token>.<machine>.<pid>.<start>.<nonce>/     this process does
        heartbeat                                              changes every few seconds while the holder lives
        ...                                                    what the holder is about to publish

A folder has exactly one such directory. To claim it is to rename it: to a name with the next token and the claimant's
identity. Of several claimants the file system lets one rename succeed; for the others the source is gone.

**Fencing.** All that a holder publishes is written into its lease directory first and then moved out, by a rename or a link
whose source is the lease directory's own name. A takeover renames that directory, so every later move of the superseded
holder fails with "no such file", however long it slept and wherever it stood: there is no check that could be
outdated by the time of the write. (What remains is a takeover between the path lookup and the move inside one system
call; `create` links, so that even then a file that exists is never replaced: there is exactly one result.)

**Staleness.** A lease is dead when its holder was on this machine and its process is gone, at once; else when a contender has
watched it for `expiry` seconds of its own monotonic clock and saw no heartbeat: no clocks of two machines are compared. A
holder that was only slow is then superseded: that costs its work since the last checkpoint, never a wrong file.

The storage needs atomic renames of directories (local disks, NFS, Lustre, CephFS). Where it has no hard links, `create` looks
and then renames: the lease alone guards the result.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from pullback_study import processes
from pullback_study.runs import sync_folder, write_file

_NAME = re.compile(r"free\.(?P<free>\d+)|held\.(?P<held>\d+)\.(?P<machine>\w+)\.(?P<pid>\d+)\.(?P<start>\d+)\.\w+")
STAGED = ".new-"
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


@dataclass(frozen=True)
class Terms:
    """How often a holder shows that it lives, and how long a contender waits for a sign of it, in seconds."""

    heartbeat: float = 5.0
    expiry: float = 60.0


class BusyError(Exception):
    """Another process holds the lease. `certain`: it surely lives; else it takes up to `expiry` seconds to know."""

    def __init__(self, what: object, *, certain: bool = True) -> None:
        super().__init__(what)
        self.certain = certain


class SupersededError(Exception):
    """Another process has taken the lease over: what this one wanted to publish is refused."""


class State(Enum):
    FREE = "free"
    LIVE = "live"
    UNKNOWN = "unknown"
    DEAD = "dead"


class Watch:
    """Tells live leases from dead ones, by what this process has seen of them."""

    def __init__(self, terms: Terms | None = None) -> None:
        self.terms = terms or Terms()
        self._seen: dict[Path, _Sign] = {}

    def state(self, lease: Path) -> State:
        name = _NAME.fullmatch(lease.name)
        if name is None or name["free"]:
            return State.FREE
        here = name["machine"] == processes.machine()
        if here and not processes.lives(int(name["pid"]), int(name["start"])):
            return State.DEAD
        before = time.monotonic()  # a pause after the heartbeat is read must not count as silence
        pulse = _pulse(lease)
        last = self._seen.get(lease)
        if last is None or last.pulse != pulse:
            last = self._seen[lease] = _Sign(pulse, time.monotonic(), renewed=last is not None)
        if before - last.since > self.terms.expiry:
            return State.DEAD
        return State.LIVE if here or last.renewed else State.UNKNOWN


class _Sign(NamedTuple):
    pulse: bytes
    since: float
    renewed: bool


class Lease:
    """A held lease; a thread renews it until `release`. Made by `claim`."""

    def __init__(self, path: Path, token: int, terms: Terms) -> None:
        self.path = path
        self.token = token
        self._names = itertools.count()
        self._lost, self._ended = threading.Event(), threading.Event()
        for leftover in path.iterdir():  # of a predecessor that was killed while it wrote
            leftover.unlink(missing_ok=True)
        self._renew()
        self._thread = threading.Thread(target=self._keep, args=(terms.heartbeat,), name="lease", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> bool:
        """Whether the holder knows that it was superseded; publishing finds out for certain."""
        return self._lost.is_set()

    def replace(self, path: Path, content: bytes | str) -> None:
        """Publish a file, in the place of an older one if there is one."""
        self._publish(path, content, os.replace)

    def create(self, path: Path, content: bytes | str) -> None:
        """Publish a file that must not exist yet; raises `FileExistsError` if it does."""
        self._publish(path, content, _link)

    def release(self) -> None:
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(FileNotFoundError):
            os.rename(self.path, self.path.with_name(f"free.{self.token}"))

    def _publish(self, path: Path, content: bytes | str, move: Callable[[Path, Path], None]) -> None:
        staged = self.path / f"{next(self._names)}.{path.name}"
        try:
            write_file(staged, content)
            try:
                move(staged, path)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)  # someone has removed the folder; else the lease is lost
                move(staged, path)
            staged.unlink(missing_ok=True)
            sync_folder(path.parent)
        except OSError as error:
            if not self.path.exists():
                self._lost.set()
                raise SupersededError(f"another process has taken over {self.path.parent}") from error
            with contextlib.suppress(OSError):
                staged.unlink(missing_ok=True)
            raise

    def _keep(self, seconds: float) -> None:
        while not self._ended.wait(seconds):
            try:
                self._renew()
            except FileNotFoundError:
                self._lost.set()
                return
            except OSError:  # a full disk, a server that does not answer: the next one may get through
                continue

    def _renew(self) -> None:
        file = os.open(self.path / "heartbeat", os.O_WRONLY | os.O_CREAT, 0o666)
        try:
            os.pwrite(file, b"%020d" % time.time_ns(), 0)  # in place: a full disk does not stop it
        finally:
            os.close(file)


def prepare(folder: Path, files: Mapping[str, str]) -> None:
    """Make a folder with these files and a free lease, all at once; does nothing if it is there."""
    if folder.is_dir():
        return
    staged = folder.with_name(STAGED + secrets.token_hex(8))
    try:
        (staged / "free.0").mkdir(parents=True)
        for name, content in files.items():
            write_file(staged / name, content)
        os.rename(staged, folder)
    except OSError as error:
        shutil.rmtree(staged, ignore_errors=True)
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def claim(folder: Path, watch: Watch) -> Lease:
    """Take the folder's lease if it is free or dead; raises `BusyError` if it is not."""
    lease = current(folder)
    if lease is None:
        raise BusyError(folder)
    state = watch.state(lease)
    if state in (State.LIVE, State.UNKNOWN):
        raise BusyError(folder, certain=state is State.LIVE)
    token, pid = _token(lease) + 1, os.getpid()
    mine = folder / f"held.{token}.{processes.machine()}.{pid}.{processes.start_of(pid)}.{secrets.token_hex(4)}"
    try:
        os.rename(lease, mine)
    except FileNotFoundError:
        if not mine.exists():  # it may: a network file system repeats a request whose answer was lost
            raise BusyError(folder) from None
    try:
        return Lease(mine, token, watch.terms)
    except FileNotFoundError:
        raise BusyError(folder) from None


def current(folder: Path) -> Path | None:
    """The lease directory of a folder; None if the folder is gone."""
    for _ in range(20):
        try:
            found = [folder / name for name in os.listdir(folder) if _NAME.fullmatch(name)]
        except FileNotFoundError:
            return None
        if found:
            return max(found, key=_token)
        time.sleep(0.01)  # a listing that runs while the directory is renamed may miss it
    raise OSError(f"{folder} has no lease in it; delete it and run again")


def seems_held(folder: Path, minutes: float = 5.0) -> bool:
    """Whether a process seems to work in the folder: at one glance and for display only, as it trusts clocks."""
    try:
        lease = current(folder)
        name = _NAME.fullmatch(lease.name) if lease else None
        if lease is None or name is None or name["free"]:
            return False
        if name["machine"] == processes.machine():
            return processes.lives(int(name["pid"]), int(name["start"]))
        return abs(time.time_ns() - int(_pulse(lease) or 0)) < minutes * 60e9
    except (OSError, ValueError):
        return False


def _token(lease: Path) -> int:
    name = _NAME.fullmatch(lease.name)
    assert name is not None
    return int(name["free"] or name["held"])


def _pulse(lease: Path) -> bytes:
    """The last heartbeat. It is opened anew each time, so that a network file system asks the server."""
    try:
        return (lease / "heartbeat").read_bytes()
    except OSError:
        return b""


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if target.exists():
            raise FileExistsError(target) from None
        os.replace(source, target)
