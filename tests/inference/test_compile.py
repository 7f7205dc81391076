"""Compiled kernels are kept on disk, are compiled anew when any source changes, and work where nothing can be kept."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import pullback

KERNEL = """
from pullback.inference.compile import kernel
from pullback.inference.callee import bonus

@kernel
def add(a, b):
    return a + b + bonus()
"""
CALLEE = """
from pullback.inference.compile import inner

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


def run(install, cache, *lines):
    """What a new process prints on stdout and on stderr (where the log goes)."""
    environment = {**os.environ, "PYTHONPATH": str(install.parent), "PULLBACK_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


ADD = ("from pullback.inference.caller import add", "print(add(1, 2))")


def test_a_kernel_is_compiled_once_and_again_when_a_callee_in_another_file_is_edited(install, tmp_path):
    first, log = run(install, tmp_path / "cache", *ADD)
    assert first == ["3"]
    assert "compiling pullback.inference.caller.add" in log
    second, log = run(install, tmp_path / "cache", *ADD)
    assert second == ["3"]
    assert "compiling" not in log
    (install / "inference" / "callee.py").write_text(CALLEE.format(bonus=40))
    third, log = run(install, tmp_path / "cache", *ADD)
    assert third == ["43"]
    assert "compiling" in log
    assert not list(install.rglob("*.nbi")), "kernels were kept in the install, which may be read-only"


@pytest.mark.parametrize("place", ["a file", "where nobody may write"])
def test_without_a_cache_kernels_still_work_and_say_that_they_compile(install, tmp_path, place):
    (tmp_path / "file").touch()
    cache = {"a file": tmp_path / "file", "where nobody may write": Path("/proc/pullback")}[place]
    found, log = run(install, cache, *ADD)
    assert found == ["3"]
    assert "compiling pullback.inference.caller.add" in log
    assert "set PULLBACK_CACHE" in log


def test_several_processes_may_fill_the_cache_at_once(install, tmp_path):
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: run(install, tmp_path / "cache", *ADD)[0], range(2)))
    assert found == [["3"], ["3"]]
    assert "compiling" not in run(install, tmp_path / "cache", *ADD)[1]
