"""Where something is missing that Triton needs, an error says what and what to do."""

from __future__ import annotations

import os
import sysconfig

import pytest
import torch

import pullback as pb
from pullback.inference._triton import launcher
from pullback.inference._triton import support as triton_support
from pullback.inference.front.family import backend
from pullback.inference.trees.family import TREES

needs_triton = pytest.mark.skipif(
    triton_support.triton is None or triton_support.interpreting(), reason="needs Triton, and not its interpreter"
)


@pytest.fixture
def start(monkeypatch, tmp_path):
    """Starts a kernel as far as that goes without a device: Triton's own attempt to build its launcher."""

    class Kernel:
        def __getitem__(self, grid):
            from triton.runtime.build import _build

            source = tmp_path / "launcher.c"
            source.write_text("#include <Python.h>")
            return lambda: _build("launcher", str(source), str(tmp_path), [], [], [], ["-fsyntax-only"])

    monkeypatch.setattr(triton_support, "require", lambda device: None)
    monkeypatch.delenv("CC", raising=False)
    return lambda: triton_support.launch(Kernel(), 1, torch.device("cpu"))


@needs_triton
def test_no_compiler(start, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"Triton needs a C compiler .* found no gcc or clang: install one .* CC"):
        start()
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(RuntimeError, match="found no no-such-compiler"):
        start()


@needs_triton
def test_no_headers(start, monkeypatch, tmp_path):
    compiler = tmp_path / "gcc"
    compiler.write_text("#!/bin/sh\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(sysconfig, "get_paths", lambda scheme=None: {"include": "/no/include/python3"})
    with pytest.raises(RuntimeError, match=r"Python's headers .* found no /no/include/python3/Python.h: .* python3-dev"):
        start()


@needs_triton
def test_no_place_for_compiled_kernels(start, monkeypatch, tmp_path):
    for name in ("gcc", "Python.h"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(sysconfig, "get_paths", lambda scheme=None: {"include": str(tmp_path)})
    monkeypatch.setattr(triton_support.triton.knobs.cache, "dir", "/proc/no/such/folder")
    with pytest.raises(RuntimeError, match=r"/proc/no/such/folder, which cannot be written: .* TRITON_CACHE_DIR"):
        start()


def test_what_is_not_missing_is_not_blamed(monkeypatch):
    class Kernel:
        def __getitem__(self, grid):
            return lambda: 1 / 0

    monkeypatch.setattr(triton_support, "require", lambda device: None)
    monkeypatch.setattr(triton_support, "missing_tools", lambda: None)
    with pytest.raises(ZeroDivisionError):
        triton_support.launch(Kernel(), 1, torch.device("cpu"))


@needs_triton
def test_a_kernel_is_looked_up_once_for_arguments_of_a_kind(monkeypatch):
    """The same arguments start what was compiled for them; another type, alignment, constant or size of a number does not."""
    began = []

    class Kernel:
        arg_names = ("x", "count", "ROWS")

        def __getitem__(self, grid):
            return lambda *args, **options: "compiled"

    def again(compiled, programs, device, args, constants):
        began.append((compiled, programs, args[1:], constants))

    monkeypatch.setattr(launcher, "_again", again)
    monkeypatch.setattr(triton_support, "require", lambda device: None)
    monkeypatch.setattr(triton_support._NOTHING, "compiled", {})
    monkeypatch.setattr(launcher, "reuses", lambda device: True)
    kernel, device, x = Kernel(), torch.device("cpu"), torch.zeros(9)

    def starts_what_was_compiled(*args, **options):
        before = len(began)
        triton_support.launch(kernel, 5, device, *args, **options)
        return len(began) > before

    assert not starts_what_was_compiled(x, 7, ROWS=8, num_warps=2)
    assert starts_what_was_compiled(x.clone(), 2**31 - 1, ROWS=8, num_warps=2)
    assert began == [("compiled", 5, (2**31 - 1,), (8,))]
    assert not starts_what_was_compiled(x.double(), 7, ROWS=8, num_warps=2)
    assert not starts_what_was_compiled(x[1:], 7, ROWS=8, num_warps=2)
    assert not starts_what_was_compiled(x, 2**31, ROWS=8, num_warps=2)
    assert not starts_what_was_compiled(x, 7, ROWS=16, num_warps=2)
    assert not starts_what_was_compiled(x, 7, ROWS=8, num_warps=4)


@needs_triton
def test_what_launches_share_comes_last_and_is_read_once(monkeypatch):
    began = []

    class Kernel:
        arg_names = ("x", "table", "count", "ROWS", "COLUMNS")

        def __getitem__(self, grid):
            return lambda *args, **options: began.append((args, options)) or "compiled"

    monkeypatch.setattr(launcher, "_again", lambda *args: began.append(args[3:]))
    monkeypatch.setattr(triton_support, "require", lambda device: None)
    monkeypatch.setattr(launcher, "reuses", lambda device: True)
    kernel, x, table = Kernel(), torch.zeros(9), torch.zeros(3)
    fixed = triton_support.Fixed(table, 7, COLUMNS=4)
    for _ in range(2):
        triton_support.launch(kernel, 5, torch.device("cpu"), x, fixed=fixed, ROWS=8)
    (args, options), again = began
    assert args == (x, table, 7)
    assert options == {"ROWS": 8, "COLUMNS": 4}
    assert again == ((x.data_ptr(), table.data_ptr(), 7), (8, 4))


def test_without_triton_s_internals_every_launch_takes_the_public_way(monkeypatch):
    began = []

    class Kernel:
        arg_names = ("x", "count", "ROWS")

        def __getitem__(self, grid):
            return lambda *args, **options: began.append((grid, args, options))

    monkeypatch.setattr(triton_support, "require", lambda device: None)
    monkeypatch.setattr(launcher, "reuses", lambda device: False)
    for _ in range(2):
        triton_support.launch(Kernel(), 5, torch.device("cpu"), 7, ROWS=8)
    assert began == 2 * [((5,), (7,), {"ROWS": 8})]


@pytest.mark.parametrize("broken", ["raises", "wrong"])
def test_the_self_test_finds_internals_that_changed(monkeypatch, broken):
    class Probe:
        def __getitem__(self, grid):
            return lambda out, first, **options: Compiled()

    class Compiled:
        def __getitem__(self, grid):
            if broken == "raises":
                raise TypeError("takes other arguments now")
            return lambda out, first, step: out.fill_(first)

    monkeypatch.setattr(launcher, "_probe", Probe())
    assert not launcher._self_test.__wrapped__(torch.device("cpu"))


def test_the_self_test_passes_on_a_gpu(gpu, monkeypatch):
    assert launcher.reuses(torch.device("cuda", torch.cuda.current_device()))
    monkeypatch.setattr(launcher, "reuses", lambda device: False)
    monkeypatch.setattr(triton_support._NOTHING, "compiled", {})
    scores = torch.randn(4, 6, 6, device=gpu)
    slow = pb.DependencyTree().marginals(scores)
    monkeypatch.undo()
    assert torch.equal(slow, pb.DependencyTree().marginals(scores))


def test_an_older_triton_s_settings_are_read_from_the_environment(monkeypatch):
    monkeypatch.setattr(triton_support, "triton", object())
    for value, interprets in (("1", True), ("0", False)):
        monkeypatch.setenv("TRITON_INTERPRET", value)
        assert triton_support.interpreting() is interprets


def test_no_triton(monkeypatch):
    monkeypatch.setattr(triton_support, "triton", None)
    triton_support.require.cache_clear()
    with pytest.raises(RuntimeError, match=r"needs Triton, which is not installed .* or pass scores.cpu\(\)"):
        triton_support.require(torch.device("cuda", 0))


@needs_triton
def test_a_cpu_tensor_outside_of_the_interpreter():
    scores, lengths = torch.zeros(1, 2, 2), torch.tensor([2])
    with backend("cuda"), pytest.raises(RuntimeError, match=r"tensors on cpu: .* TRITON_INTERPRET=1"):
        TREES.argmax(scores, lengths, True, True, False)
