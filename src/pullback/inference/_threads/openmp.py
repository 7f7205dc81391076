"""PyTorch's own threads: the OpenMP team that its operators run on, for kernels that release the GIL.

PyTorch's idle threads spin for about a millisecond after each of its operators, and a pool of our own would have to
share the cores with them; its own threads are awake and start at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch

_Part = ctypes.CFUNCTYPE(None, ctypes.c_int64)


class Team:
    """The threads of the OpenMP library that PyTorch is linked with.

    Args:
        library: where the functions of that library are found.
    """

    def __init__(self, library: Any) -> None:
        self._parallel = library.GOMP_parallel  # GCC's entry point; the libraries of LLVM and Intel have it, too
        self._parallel.argtypes = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint
        self._parallel.restype = None

    def run(self, kernel: Callable[..., Any], workers: int, *args: Any) -> None:
        """Call `kernel(worker, workers, *args)` for every worker, on as many threads as there are, and wait for all."""
        ended: dict[int, BaseException | None] = {}

        def part(worker: int) -> None:
            try:
                kernel(worker, workers, *args)
                ended[worker] = None
            except BaseException as error:
                ended[worker] = error  # for the caller: OpenMP knows no exceptions

        call = _Part(part)
        job = (ctypes.c_int64 * 3)(0, workers, ctypes.cast(call, ctypes.c_void_p).value or 0)
        with _signals() as lost:
            # as many threads as PyTorch's operators ask for: another number would end or start some, each time
            self._parallel(_body(), job, torch.get_num_threads(), 0)
        for error in [*lost, *ended.values()]:
            if error is not None:
                raise error
        if len(ended) < workers:
            raise RuntimeError(f"{workers - len(ended)} of {workers} workers did not do their part")


def find() -> Team | None:
    """PyTorch's team; None where its threads are not OpenMP's."""
    try:
        return Team(ctypes.CDLL(torch._C.__file__))  # and what it is linked with
    except (OSError, AttributeError):
        return None


def _body() -> int:
    """The address of what each thread does: call the next worker's part, until there is none.

    In machine code, so that a thread that comes too late does not wait for the GIL, and a team may be smaller than asked
    for. Its argument is three int64: how many workers have been taken, how many there are, and the address of their part.
    """
    if not _compiled:
        _compile_body()
    return _compiled[0][1]


_NAME = "pullback_take_parts"
_compiled: list[tuple[Any, int]] = []  # the body's library and address, once they are needed


def _compile_body() -> None:
    from llvmlite import ir
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    int64 = ir.IntType(64)
    module = ir.Module(_NAME)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [int64.as_pointer()]), _NAME)
    blocks = [function.append_basic_block(name) for name in ("enter", "take", "work", "leave")]
    enter, take, work, leave = (ir.IRBuilder(block) for block in blocks)
    (job,) = function.args
    enter.branch(blocks[1])
    worker = take.atomic_rmw("add", job, ir.Constant(int64, 1), "monotonic")
    count = take.load(take.gep(job, [ir.Constant(int64, 1)]))
    take.cbranch(take.icmp_signed("<", worker, count), blocks[2], blocks[3])
    part = work.load(work.gep(job, [ir.Constant(int64, 2)]))
    work.call(work.inttoptr(part, ir.FunctionType(ir.VoidType(), [int64]).as_pointer()), [worker])
    work.branch(blocks[1])
    leave.ret_void()
    with global_compiler_lock:
        if not _compiled:
            library = cpu_target.target_context.codegen().create_library(_NAME)
            library.add_ir_module(module)
            library.finalize()
            _compiled.append((library, library.get_pointer_to_function(_NAME)))


@contextlib.contextmanager
def _signals() -> Iterator[list[BaseException]]:
    """Collects what the handlers of signals raise before a part has begun, which ctypes would only print.

    Signals are handled on the main thread, so elsewhere there is nothing to collect.
    """
    lost: list[BaseException] = []
    if threading.get_ident() != threading.main_thread().ident:
        yield lost
        return
    before = sys.unraisablehook

    def collect(problem: Any) -> None:
        if "ctypes callback" in (problem.err_msg or "") and problem.exc_value is not None:
            lost.append(problem.exc_value)
        else:
            before(problem)

    sys.unraisablehook = collect
    try:
        yield lost
    finally:
        sys.unraisablehook = before
