"""Where there is no GPU: this folder and a part of the suite of every backend, in Triton's interpreter.

By hand, with everything that a backend has to pass (hours):

    TRITON_INTERPRET=1 PULLBACK_TEST_BACKENDS=cuda python -m pytest tests/cuda tests/structures
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pullback.inference import triton_support

ROOT = Path(__file__).parents[2]
KINDS = ["projective-multiroot", "projective-singleroot", "nonprojective-multiroot", "nonprojective-singleroot"]
SHARED = [
    *(
        f"test_brute_force.py::{test}[{kind}-cuda-float32-{operation}-some-forbidden-3]"
        for test, operation in [("test_expectations", "marginals"), ("test_gradients_of_expectations", "entropy")]
        for kind in KINDS
    ),
    *(f"test_errors.py::test_a_cycle_that_cannot_be_left_is_infeasible[{kind}-cuda-float32-sample]" for kind in KINDS),
    *(f"test_padding.py::test_a_sentence_of_one_word_has_one_tree[{kind}-cuda-float32-sparsemap]" for kind in KINDS),
    *(f"test_precision.py::test_half_precision_under_autocast_stays_float32[{kind}-cuda-marginals]" for kind in KINDS),
    *(f"test_layouts.py::test_leading_dimensions[{kind}-cuda-(2, 1, 3)-argmax]" for kind in KINDS),
    *(f"test_transforms.py::test_transforms_compose[{kind}-cuda-sparsemap]" for kind in KINDS[::3]),
    "test_gradients.py::test_a_second_derivative_is_an_error_never_zero[projective-multiroot-cuda-marginals]",
]


def test_in_the_interpreter():
    if triton_support.triton is None:
        pytest.skip("needs Triton: pip install triton")
    if torch.cuda.is_available() or triton_support.interpreting():
        pytest.skip("the kernels run in this process")
    chosen = {"TRITON_INTERPRET": "1", "PULLBACK_TEST_BACKENDS": "cuda", "PULLBACK_TEST_DTYPES": "float32"}
    command = [sys.executable, "-W", "ignore", "-m", "pytest", "-x", "-rs", "-p", "no:cacheprovider", "tests/cuda"]
    command += [f"tests/structures/{name}" for name in SHARED]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | chosen, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    passed = sum(map(int, re.findall(r"(\d+) passed", done.stdout)))
    assert passed > 40 + len(SHARED), f"too few tests ran: {done.stdout[-2000:]}"
