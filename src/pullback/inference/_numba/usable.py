"""Whether compiled kernels can serve on the CPU: where they cannot, PyTorch's operators (`reference.py`) take their place."""

from __future__ import annotations

import importlib
import logging
import os

OLDEST, NEWEST = (0, 57), (0, 68)  # the releases of Numba that `make matrix` has run
_works: bool | None = None  # until `works` has tried


def works() -> bool:
    """Whether Numba can be imported, and does what the kernels take it for: tried once, before the first kernel is made.

    A release between the oldest and the newest that were tested is not tried further. `PULLBACK_COMPILE=0` leaves Numba out.
    """
    global _works
    if _works is None:
        _works = True  # while trying: the trial has kernels, too
        _works = os.environ.get("PULLBACK_COMPILE", "") != "0" and _tried()
    return _works


def _tried() -> bool:
    version = "(which cannot be imported)"
    try:
        numba = importlib.import_module("numba")  # which refuses a NumPy that is too new for it
        version = numba.__version__
        if not OLDEST <= tuple(int(number) for number in version.split(".")[:2]) <= NEWEST:
            importlib.import_module("pullback.inference._numba.trial").run()
        return True
    except Exception as error:
        logging.getLogger("pullback").warning(
            "pullback's kernels do not work with Numba %s (%r): PyTorch's operators take their place on the CPU, with the same "
            "results in more time; the Numba releases that were tested are %d.%d to %d.%d",
            version, error, *OLDEST, *NEWEST,
        )  # fmt: skip
        return False
