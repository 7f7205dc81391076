"""PyTorch's own threads: the OpenMP team that its operators run on, for kernels that release the GIL.

PyTorch's idle threads spin for about a millisecond after each of its operators, and a pool of our own would have to
share the cores with them; its own threads are awake and start at once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch

_Body = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Team:
    """The threads of the OpenMP library that PyTorch is linked with.

    Args:
        library: where the functions of that library are found.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._parallel = library.GOMP_parallel  # GCC's entry point; the libraries of LLVM and Intel have it, too
        self._parallel.argtypes, self._parallel.restype = (_Body, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint), None
        self._number, self._size = library.omp_get_thread_num, library.omp_get_num_threads

    def run(self, kernel: Callable[..., Any], units: int, *args: Any) -> None:
        """Call `kernel(worker, workers, *args)` on each thread, on no more of them than there are units."""
        ended: dict[int, BaseException | None] = {}

        def body(_: int | None) -> None:
            worker, workers = self._number(), min(self._size(), units)  # OpenMP may give fewer threads than asked for
            if worker < workers:
                try:
                    kernel(worker, workers, *args)
                    ended[worker] = None
                except BaseException as error:  # goes to the caller, not to OpenMP
                    ended[worker] = error

        # as many threads as PyTorch's operators ask for: another number would end or start some, each time
        self._parallel(_Body(body), None, torch.get_num_threads(), 0)
        for error in ended.values():
            if error is not None:
                raise error
        if 0 not in ended:
            raise KeyboardInterrupt  # it came before the caller's part began


def find() -> Team | None:
    """PyTorch's team; None where its threads are not OpenMP's."""
    try:
        return Team(ctypes.CDLL(torch._C.__file__))  # and what it is linked with
    except (OSError, AttributeError):
        return None
