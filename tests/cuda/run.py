"""All that a GPU has to pass, in several processes at once, as most of the time is Triton's compiler's: some minutes.

    python tests/cuda/run.py            this folder, and the suite of every backend on the `cuda` backend
    python tests/cuda/run.py --quick    this folder only, with fewer sizes
    python tests/cuda/run.py --sanitize random batches under NVIDIA's compute-sanitizer: memcheck, then racecheck

Compiled kernels are kept in Triton's cache: a second run takes a fraction of the time of the first.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

ROOT = Path(__file__).parents[2]
_SILENCE = 15  # seconds between two lines about progress
FOLDER = {  # a process each: its name, and what pytest is told
    "eisner": ["tests/cuda/test_eisner_cuda.py", "-k", "test_every_operation and multiroot and not float64"],
    "eisner singleroot": ["tests/cuda/test_eisner_cuda.py", "-k", "test_every_operation and singleroot and not float64"],
    "eisner float64": ["tests/cuda/test_eisner_cuda.py", "-k", "float64"],
    "eisner batches": ["tests/cuda/test_eisner_cuda.py", "-k", "not test_every_operation"],
    "eisner unproven": ["tests/cuda/test_eisner_cuda.py", "-k", "not float64"],
    "masks": ["tests/cuda/test_masks_cuda.py"],
    "nonprojective": ["tests/cuda/test_nonprojective_cuda.py"],
    "sparsemap": ["tests/cuda/test_sparsemap_cuda.py", "-k", "not nonprojective"],
    "sparsemap unproven": ["tests/cuda/test_sparsemap_cuda.py", "-k", "not nonprojective"],
    "sparsemap nonprojective": ["tests/cuda/test_sparsemap_cuda.py", "-k", "nonprojective"],
    "gpu": ["tests/cuda/test_gpu.py", "-k", "not nonprojective and not singleroot"],
    "gpu unproven": ["tests/cuda/test_gpu.py", "-k", "not nonprojective"],
    "gpu singleroot": ["tests/cuda/test_gpu.py", "-k", "not nonprojective and singleroot"],
    "gpu nonprojective": ["tests/cuda/test_gpu.py", "-k", "nonprojective"],
    "structures": ["tests/cuda/test_structures_cuda.py", "-k", "not alignment"],
    "alignments": ["tests/cuda/test_structures_cuda.py", "-k", "alignment"],
    "steps": ["tests/cuda/test_sparsemap_steps_cuda.py"],
    "reference": ["tests/cuda/test_reference_gpu.py", "tests/inference/test_long_gradients.py"],
    "fuzz": ["tests/test_fuzz.py", "-k", "gpu_itself"],
    "fuzz unproven": ["tests/test_fuzz.py", "-k", "gpu_itself"],
    "launches": ["tests/cuda/test_launches.py", "tests/cuda/test_triton_support.py"],
}
SUITE = {
    "suite": ["tests/structures", "tests/inference", "-k", "cuda and not nonprojective"],
    "suite nonprojective": ["tests/structures", "tests/inference", "-k", "cuda and nonprojective"],
    "estimators": ["tests/estimators/test_cuda.py", "tests/estimators/test_interior.py"],
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/cuda/run.py", description=__doc__.splitlines()[0], allow_abbrev=False)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--quick", action="store_true", help="only the tests of this folder, with fewer sizes")
    choice.add_argument("--sanitize", action="store_true", help="random batches under NVIDIA's compute-sanitizer")
    args = parser.parse_args()
    if args.sanitize:
        return sanitize()
    if not torch.cuda.is_available():
        sys.exit(f"PyTorch {torch.__version__} sees no GPU; without one, run python -m pytest tests/cuda")
    began = time.perf_counter()
    parts = FOLDER if args.quick else FOLDER | SUITE
    with tempfile.TemporaryDirectory() as folder:
        running = {name: _start(name, arguments, Path(folder, name), parts is FOLDER) for name, arguments in parts.items()}
        failed, told = [], began
        while running:
            time.sleep(0.5)
            for name in [name for name, process in running.items() if process.poll() is not None]:
                if running.pop(name).returncode:
                    failed.append(name)
                print(
                    f"=== {name}: {time.perf_counter() - began:.0f} s\n{Path(folder, name).read_text()[-4000:]}",
                    flush=True,
                )
            if time.perf_counter() - told > _SILENCE:
                told = time.perf_counter()
                tests = ", ".join(f"{name} {_passed(Path(folder, name))}" for name in running)
                print(f"{told - began:.0f} s, tests done so far: {tests}", flush=True)
    print(f"failed: {', '.join(failed)}" if failed else "all passed", f"in {time.perf_counter() - began:.0f} s")
    return bool(failed)


def sanitize() -> int:
    """Run a part of the fuzzer under each tool of compute-sanitizer, with and without the kernels that serve on request."""
    tool = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if tool is None or not torch.cuda.is_available():
        sys.exit("needs a GPU, and compute-sanitizer, which is part of the CUDA toolkit")
    failed = []
    for check in ("memcheck", "racecheck"):
        for unproven in ("0", "1"):
            command = [tool, "--tool", check, "--target-processes", "all", "--error-exitcode", "9"]
            command += [sys.executable, "-m", "tests.fuzz", "--device", "cuda", "--minutes", "20", "--batches", "96"]
            command += ["--large", "0.1", "--count", "4"]
            environment = os.environ | {"PULLBACK_UNPROVEN_KERNELS": unproven, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
            if subprocess.run(command, cwd=ROOT, env=environment).returncode:
                failed.append(f"{check} (PULLBACK_UNPROVEN_KERNELS={unproven})")
    print(f"failed: {', '.join(failed)}" if failed else "all passed")
    return bool(failed)


def _start(name: str, arguments: list[str], output: Path, quick: bool) -> subprocess.Popen[str]:
    """A process of tests; one that is named so runs the kernels that serve on request only, see docs/gpu.md."""
    environment = os.environ | {"PULLBACK_TEST_BACKENDS": "cuda", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    environment |= {"PULLBACK_TEST_QUICK": "1"} if quick else {}
    environment |= {"PULLBACK_UNPROVEN_KERNELS": str(int(name.endswith("unproven")))}
    command = [sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", "--durations=3", *arguments]
    with output.open("w") as file:
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT, text=True)


def _passed(output: Path) -> int:
    """How many tests have passed, of which pytest prints a dot each."""
    lines = [line for line in output.read_text().splitlines() if set(line.split(" ")[0]) <= set(".sxFE")]
    return sum(line.split(" ")[0].count(".") for line in lines)


if __name__ == "__main__":
    sys.exit(main())
