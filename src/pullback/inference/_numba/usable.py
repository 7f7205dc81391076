"""Whether compiled kernels can serve on the CPU: where they cannot, PyTorch's operators (`reference.py`) take their place."""

from __future__ import annotations

import importlib
import logging
import os

TESTED = ("0.57", "0.60", "0.61", "0.64", "0.68")  # the releases of Numba that `make matrix` has run
_works: bool | None = None  # until `works` has tried


def works() -> bool:
    """Whether Numba can be imported, and does what the kernels take it for: tried once, before the first kernel is made.

    Releases that `make matrix` has run are not tried further; all others run a small kernel first. `PULLBACK_COMPILE=0` leaves
    Numba out.
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
        if ".".join(version.split(".")[:2]) not in TESTED:
            importlib.import_module("pullback.inference._numba.trial").run()
        return True
    except Exception as error:
        logging.getLogger("pullback").warning(
            "pullback's kernels do not work with Numba %s (%r): PyTorch's operators take their place on the CPU, with the same "
            "results in more time; the Numba releases that were tested are %s",
            version, error, ", ".join(TESTED),
        )  # fmt: skip
        return False
