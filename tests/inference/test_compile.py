"""Compiled kernels are kept on disk, are compiled anew when any source changes, and work where nothing can be kept."""

import errno
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import pullback
from pullback.inference._numba import folder, messages, turns

KERNEL = """
from pullback.inference._numba.compile import kernel
from pullback.inference.callee import bonus

@kernel
def add(a, b):
    return a + b + bonus()
"""
CALLEE = """
from pullback.inference._numba.compile import inner

@inner
def bonus():
    return {bonus}
"""


@pytest.fixture
def install(tmp_path):
    """A copy of the package with a small kernel that calls a function of another file."""
    folder = tmp_path / "install" / "pullback"
    shutil.copytree(Path(pullback.__file__).parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "inference" / "caller.py").write_text(KERNEL)
    (folder / "inference" / "callee.py").write_text(CALLEE.format(bonus=0))
    return folder


def run(install, cache, *lines, **variables):
    """What a new process prints on stdout and on stderr (where the log goes)."""
    settings = {"PYTHONPATH": str(install.parent), "PULLBACK_CACHE": str(cache), "PULLBACK_QUIET": ""}
    environment = {**os.environ, **settings, **variables}
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


@pytest.fixture
def add(tmp_path, monkeypatch, caplog):
    """Calls a small kernel as a new process would, with this one's Numba: the result, and what is logged."""
    source = tmp_path / "caller.py"
    source.write_text("from pullback.inference._numba.compile import kernel\n\n@kernel\ndef add(a, b):\n    return a + b\n")
    monkeypatch.setenv("PULLBACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PULLBACK_QUIET", "")

    def call():
        folder.stamp.cache_clear()
        monkeypatch.setattr(messages, "_said", set())
        caplog.clear()
        spec = importlib.util.spec_from_file_location("caller", source)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        with caplog.at_level(logging.WARNING, logger="pullback"):
            return module.add(1, 2), caplog.text

    return call


ADD = ("from pullback.inference.caller import add", "print(add(1, 2))")


def test_a_kernel_is_compiled_once_and_again_when_a_callee_in_another_file_is_edited(install, tmp_path):
    with ThreadPoolExecutor(2) as pool:  # two processes fill the cache at once
        (first, log), (second, other) = pool.map(lambda _: run(install, tmp_path / "cache", *ADD), range(2))
    assert first == second == ["3"]
    assert (log + other).count("compiling caller.add") == 1
    third, log = run(install, tmp_path / "cache", *ADD)
    assert third == ["3"]
    assert "compiling" not in log
    (install / "inference" / "callee.py").write_text(CALLEE.format(bonus=40))
    fourth, log = run(install, tmp_path / "cache", *ADD)
    assert fourth == ["43"]
    assert "compiling" in log
    assert not list(install.rglob("*.nbi")), "kernels were kept in the install, which may be read-only"


@pytest.mark.parametrize("place", ["a file", "where nobody may write"])
def test_without_a_cache_kernels_still_work_and_say_so(add, tmp_path, monkeypatch, place):
    (tmp_path / "file").touch()
    cache = {"a file": tmp_path / "file", "where nobody may write": Path("/proc/pullback")}[place]
    monkeypatch.setenv("PULLBACK_CACHE", str(cache))
    found, log = add()
    assert found == 3
    assert log.count("set PULLBACK_CACHE") == 1


@pytest.mark.parametrize("damage", ["empty", "truncated", "one byte", "other bytes"])
def test_a_damaged_file_is_compiled_anew_and_repaired(add, tmp_path, damage):
    add()
    files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert files
    for path in files:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0x40
        path.write_bytes(
            {
                "empty": b"",
                "truncated": path.read_bytes()[: path.stat().st_size // 2],
                "one byte": bytes(content),
                "other bytes": b"\x80\x04K*." * 100,
            }[damage]
        )
    found, log = add()
    assert found == 3
    assert "compiling" in log
    assert add() == (3, "")


def test_a_full_disk(add, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        found, log = add()
    assert found == 3
    assert "No space left on device" in log
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_a_warm_cache_that_is_read_only_is_used(add, monkeypatch):
    def refuse(*args, **options):
        raise OSError(errno.EROFS, "Read-only file system")

    add()
    with monkeypatch.context() as patched:
        for name in ("write_bytes", "mkdir", "touch"):
            patched.setattr(Path, name, refuse)
        found = add()
    assert found == (3, "")


@pytest.mark.parametrize("home", ["", "/"])
def test_without_a_home_nothing_is_written_to_the_root_folder(add, monkeypatch, home):
    for name, value in (("HOME", home), ("XDG_CACHE_HOME", ""), ("PULLBACK_CACHE", "")):
        monkeypatch.setenv(name, value)
    found, log = add()
    assert found == 3
    assert folder.cache_folder() is None
    assert "set PULLBACK_CACHE" in log


def test_the_messages_can_be_silenced(add, monkeypatch):
    monkeypatch.setenv("PULLBACK_QUIET", "1")
    assert add() == (3, "")


@pytest.mark.parametrize(
    "change",
    ["del caching.CompileResultCacheImpl.rebuild, caching.CacheImpl.rebuild", "del caching.Cache._index_key",
     "caching.FunctionCache.__init__ = None"],
)  # fmt: skip
def test_another_numba_costs_time_only(install, tmp_path, change):
    """Private parts that are gone: kernels are compiled by public means, in every process."""
    other = "from numba.core import caching", f"try:\n    {change}\nexcept AttributeError: pass"
    found, _ = run(install, tmp_path / "cache", *other, *ADD)
    assert found == ["3"]
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_inner_functions_without_numbas_private_parts(install, tmp_path):
    """They are compiled by public means, in more time, and a line says so."""
    other = "from numba.core import compiler_machinery", "del compiler_machinery.LoweringPass"
    found, log = run(install, tmp_path / "cache", *other, *ADD)
    assert found == ["3"]
    assert "take longer" in log


def test_what_another_process_compiles_is_waited_for(add, tmp_path):
    add()
    (kernel,) = (tmp_path / "cache").rglob("*.kernel")
    content, other = kernel.read_bytes(), turns.Turn()
    kernel.unlink()
    other.take(kernel)

    def finish():
        kernel.write_bytes(content)
        other.end()

    threading.Timer(0.2, finish).start()
    assert add() == (3, "")
    assert list(kernel.parent.iterdir()) == [kernel]


def test_a_process_that_takes_too_long_is_not_waited_for(add, tmp_path, monkeypatch):
    monkeypatch.setattr(turns, "PATIENCE", 0.1)
    add()
    (kernel,) = (tmp_path / "cache").rglob("*.kernel")
    kernel.unlink()
    other = turns.Turn()
    other.take(kernel)
    found, log = add()
    other.end()
    assert found == 3
    assert "compiling caller.add" in log
    assert kernel.exists()
