"""Where there is no GPU: this folder in Triton's interpreter. `tests/test_fuzz.py` runs every kernel and operation there, too.

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

from pullback.inference._triton import support as triton_support

ROOT = Path(__file__).parents[2]


def test_in_the_interpreter():
    if triton_support.triton is None:
        pytest.skip("needs Triton: pip install triton")
    if torch.cuda.is_available() or triton_support.interpreting():
        pytest.skip("the kernels run in this process")
    chosen = {"TRITON_INTERPRET": "1", "PULLBACK_TEST_BACKENDS": "cuda", "PULLBACK_TEST_DTYPES": "float32"}
    command = [sys.executable, "-W", "ignore", "-m", "pytest", "-x", "-rs", "-p", "no:cacheprovider", "tests/cuda"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | chosen, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    passed = sum(map(int, re.findall(r"(\d+) passed", done.stdout)))
    assert passed > 40, f"too few tests ran: {done.stdout[-2000:]}"
