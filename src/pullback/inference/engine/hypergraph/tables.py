"""Tables that take longer to make than to use: those used last are kept, as many as fit into some memory.

A training loop has a shape per padded length, dozens or hundreds of them, and their tables differ in size by orders of
magnitude. So `functools.lru_cache`, which counts results, would keep too few small ones or too many large ones.
"""

from __future__ import annotations

import functools
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
ROOM = 2**28


def remembered(make: Callable[P, T]) -> Callable[P, T]:
    """`functools.cache` for functions whose results have arrays or tensors as attributes: up to 256 MiB of them together.

    The last result is kept whatever its size. Threads may make the same table twice, and get the same one afterwards.
    """
    known: OrderedDict[Any, tuple[T, int]] = OrderedDict()
    lock, total = threading.Lock(), 0

    def renew() -> None:
        """In a forked process, where no thread is left that would release the lock."""
        nonlocal lock
        lock = threading.Lock()

    if hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(after_in_child=renew)

    @functools.wraps(make)
    def get(*args: P.args, **kwargs: P.kwargs) -> T:
        nonlocal total
        key = args, *kwargs.items()
        with lock:
            if key in known:
                known.move_to_end(key)
                return known[key][0]
        made = make(*args, **kwargs)
        with lock:
            if key not in known:
                known[key] = made, sum(getattr(x, "nbytes", 0) for x in vars(made).values())
                total += known[key][1]
            while total > ROOM and len(known) > 1:
                total -= known.popitem(last=False)[1][1]
            return known[key][0] if key in known else made

    return get
