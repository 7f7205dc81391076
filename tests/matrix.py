"""Run what touches the internals of Numba, llvmlite, NumPy and PyTorch with several releases of them: `make matrix`.

Each combination gets a virtual environment with these releases, which shares everything else, PyTorch included, with the
environment that runs this. The tests are those of `SEAMS`: every operation of every structure, compiled and by PyTorch's
operators, records, threads, memory and derivatives; more can be named. The result is a table, `--write` puts it into
docs/versions.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGE, MARK = ROOT / "docs" / "versions.md", "<!-- written by make matrix -->\n"
SEAMS = [f"tests/inference/test_{name}.py" for name in ("numba_seam", "records", "threads", "memory", "torch_seam")]


class Releases(NamedTuple):
    """What a combination installs; packages that it does not name stay as they are."""

    numba: str
    llvmlite: str
    numpy: str


COMBINATIONS = [  # the oldest of all, releases between, and the newest
    Releases("0.57.1", "0.40.1", "1.24.4"),
    Releases("0.60.0", "0.43.0", "1.26.4"),
    Releases("0.61.2", "0.44.0", "2.0.2"),
    Releases("0.64.0", "0.46.0", "2.2.6"),
    Releases("0.68.1", "0.50.0", "2.4.6"),
]


def environment(folder: Path, releases: Releases) -> Path:
    """A virtual environment with these releases, and all else from the one that runs this: its Python."""
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    own = Path(
        subprocess.check_output([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True).strip()
    )
    wanted = [f"{name}=={release}" for name, release in releases._asdict().items()]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
    subprocess.run([*pip, "--target", str(own), *wanted], check=True)
    paths = [ROOT / "src", ROOT / "study", sysconfig.get_path("purelib")]  # behind its own packages
    (own / "shared.pth").write_text("".join(f"{path}\n" for path in paths))
    return python


def run(folder: Path, releases: Releases, tests: list[str]) -> tuple[str, float]:
    """The last line that the tests print, and their seconds."""
    python = environment(folder, releases)
    variables = {**os.environ, "PULLBACK_CACHE": str(folder / "cache"), "PULLBACK_QUIET": "1"}
    found = "import llvmlite, numba, numpy; print(numba.__version__, llvmlite.__version__, numpy.__version__)"
    versions = subprocess.check_output([python, "-c", found], text=True, env=variables, cwd=ROOT).split()
    assert tuple(versions) == releases, f"the environment has {versions}"
    started = time.monotonic()
    command = [python, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", "--tb=short", *tests]
    done = subprocess.run(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True)
    passed = re.search(r"^\d+ passed.*|^.*\d+ (failed|error).*", done.stdout, re.MULTILINE)
    result = "all passed" if done.returncode == 0 else (passed[0].strip("= ") if passed else f"exit status {done.returncode}")
    if done.returncode:
        print(done.stdout[-6000:], file=sys.stderr)
    return result, time.monotonic() - started


def table(rows: list[tuple[Releases, str, float]]) -> Iterator[str]:
    """The report, as Markdown."""
    import torch

    yield f"Python {platform.python_version()}, PyTorch {torch.__version__}, {platform.system()} on {platform.machine()}:\n"
    yield "| Numba | llvmlite | NumPy | tests | seconds, kernels compiled |"
    yield "|---|---|---|---|---|"
    for releases, result, seconds in rows:
        yield f"| {' | '.join(releases)} | {result} | {seconds:.0f} |"


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the tests of the seams with several releases of Numba and NumPy.")
    parser.add_argument("tests", nargs="*", default=SEAMS, help="tests to run; by default those of the seams")
    parser.add_argument("--numba", action="append", help="only these releases of Numba")
    parser.add_argument("--write", action="store_true", help=f"write the table to {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    rows = []
    for releases in COMBINATIONS:
        if options.numba is None or releases.numba in options.numba:
            with tempfile.TemporaryDirectory() as folder:
                rows.append((releases, *run(Path(folder), releases, options.tests)))
            print(f"numba {releases.numba}: {rows[-1][1]} in {rows[-1][2]:.0f} s", file=sys.stderr)
    report = "\n".join(table(rows)) + "\n"
    print(report)
    if options.write:
        PAGE.write_text(PAGE.read_text().partition(MARK)[0] + MARK + "\n" + report)
    return int(any(result != "all passed" for _, result, _ in rows))


if __name__ == "__main__":
    sys.exit(main())
