"""Random inputs of every kind that found defects, for every structure, operation and gradient.

    python -m tests.fuzz --device cpu --minutes 30 --seed 0
    python -m tests.fuzz --device cuda

Small sizes are compared with enumeration in extended precision, sizes at the switches of kernels with another backend in
float64. `__main__.py` has the command, `inputs.py` the kinds of input, `checks.py` what is compared.
"""

from .checks import check
from .compare import Problem
from .every_mask import TURNS
from .inputs import Batch, draw
from .subjects import STRUCTURES

__all__ = ["STRUCTURES", "TURNS", "Batch", "Problem", "check", "draw"]
