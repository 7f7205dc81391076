"""Run what touches the internals of Numba, llvmlite, NumPy and PyTorch with several releases of them: `make matrix`.

Each combination gets a virtual environment with these releases. One with the Python and the PyTorch of the environment that
runs this shares everything else with it; any other is installed from the package index, where PyTorch can be several GB.
Interpreters are found by their names on the PATH (`python3.12`), or by `--interpreter`. The tests are those of `SEAMS`: every
operation of every structure, compiled and by PyTorch's operators, records, threads, memory and derivatives; with another
PyTorch also those of `torch.func`; others can be named. The result is a table; `--write` puts each row into docs/versions.md
once it is known, beside the rows of earlier runs.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGE, MARK = ROOT / "docs" / "versions.md", "<!-- written by make matrix -->\n"
HEAD = "| Python | PyTorch | Numba | llvmlite | NumPy | tests | commit |\n|---|---|---|---|---|---|---|\n"
SEAMS = [f"tests/inference/test_{name}.py" for name in ("numba_seam", "records", "threads", "memory", "torch_seam")]
TRANSFORMS = ["tests/structures/test_transforms.py"]  # beside them, with another PyTorch than the suite's
TOOLS = ["pytest>=8", "hypothesis>=6.100"]  # what the tests need beside the releases
FOUND = """
import platform, torch, numba, llvmlite, numpy
print(platform.python_version(), *(package.__version__ for package in (torch, numba, llvmlite, numpy)))
"""


class Releases(NamedTuple):
    """What a combination consists of."""

    python: str
    torch: str
    numba: str
    llvmlite: str
    numpy: str


class NotRun(Exception):  # noqa: N818
    """Why a combination cannot be installed here."""


COMBINATIONS = [  # the oldest of all, releases between, and the newest
    Releases("3.11", "2.13.0", "0.57.1", "0.40.1", "1.24.4"),
    Releases("3.11", "2.13.0", "0.60.0", "0.43.0", "1.26.4"),
    Releases("3.11", "2.13.0", "0.61.2", "0.44.0", "2.0.2"),
    Releases("3.11", "2.13.0", "0.64.0", "0.46.0", "2.2.6"),
    Releases("3.11", "2.13.0", "0.68.1", "0.50.0", "2.4.6"),
    Releases("3.12", "2.14.1", "0.68.1", "0.50.0", "2.5.4"),
    Releases("3.13", "2.14.1", "0.68.1", "0.50.0", "2.5.4"),
]


def interpreter(release: str, named: dict[str, str]) -> str:
    """A Python of this release that starts: the one that runs this, a named one, or one on the PATH."""
    if release == running().python:
        return sys.executable
    python = shutil.which(named.get(release, f"python{release}"))
    found = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", found], capture_output=True, text=True) if python else None
    if done is None or done.returncode or done.stdout.strip() != release:
        raise NotRun(f"there is no python{release} that starts (--interpreter {release}=PATH)")
    return str(python)


def running() -> Releases:
    """The releases of the environment that runs this."""
    return public(platform.python_version(), *map(version, Releases._fields[1:]))


def public(*versions: str) -> Releases:
    """Releases without what marks a build (`+cpu`), and Python's without its last number."""
    found = [each.partition("+")[0] for each in versions]
    return Releases(found[0].rpartition(".")[0], *found[1:])


def releases_of(python: str | Path, environment: dict[str, str]) -> Releases:
    """The releases that this Python imports."""
    done = subprocess.run([python, "-c", FOUND], capture_output=True, text=True, env=environment, cwd=ROOT)
    if done.returncode:
        raise NotRun(done.stderr.strip().splitlines()[-1])
    return public(*done.stdout.split())


def environment(folder: Path, wanted: Releases, named: dict[str, str]) -> Path:
    """The Python of a virtual environment with these releases; an environment that is complete already is used again."""
    python, complete = folder / "bin" / "python", folder / "complete"
    if not complete.exists():
        shutil.rmtree(folder, ignore_errors=True)
        own = running()
        shares = (wanted.python, wanted.torch) == (own.python, own.torch)
        subprocess.run([interpreter(wanted.python, named), "-m", "venv", *["--without-pip"] * shares, folder], check=True)
        packages = [f"{name}=={release}" for name, release in wanted._asdict().items() if name != "python"]
        purelib = "import sysconfig; print(sysconfig.get_path('purelib'))"
        site = Path(subprocess.check_output([python, "-c", purelib], text=True).strip())
        paths = [str(ROOT / "src"), str(ROOT / "study")]
        if shares:  # PyTorch and all tools, behind the environment's own packages
            paths.append(sysconfig.get_path("purelib"))
            options = ["--no-deps", "--only-binary=:all:", "--target", site, *packages[1:]]
            install = [sys.executable, "-m", "pip", "install"]
        else:
            options = ["--only-binary=:all:", "--no-compile", *packages, *TOOLS]
            install = [python, "-m", "pip", "install"]
        (site / "shared.pth").write_text("".join(f"{path}\n" for path in paths))
        done = subprocess.run([*install, "-q", "--disable-pip-version-check", *options], stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise NotRun(f"pip: {done.stderr.strip().splitlines()[-1]}")
        complete.touch()
    return python


def run(folder: Path, wanted: Releases, named: dict[str, str], tests: list[str]) -> tuple[bool, str]:
    """Whether the tests passed, and what they say: how many did."""
    variables = {**os.environ, "PULLBACK_CACHE": str(folder / "cache"), "PULLBACK_QUIET": "1"}
    try:
        python = environment(folder, wanted, named)
        if (found := releases_of(python, variables)) != wanted:
            raise NotRun(f"the environment has {', '.join(found)}")
    except NotRun as reason:
        return False, f"not run: {reason}"
    command = [python, "-m", "pytest", "-p", "no:cacheprovider", "--tb=short", *tests]
    done = subprocess.run(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print(done.stdout[-6000:], file=sys.stderr)
    counts = re.findall(r"\d+ (?:passed|failed|skipped|errors?)", done.stdout)
    return done.returncode == 0, ", ".join(counts) or f"exit status {done.returncode}"


def rows(text: str) -> dict[Releases, str]:
    """The rows of a report, by their releases."""
    lines = [line for line in text.splitlines() if re.match(r"\| \d", line)]
    return {Releases(*(cell.strip() for cell in line.split("|")[1:6])): line for line in lines}


def report(found: dict[Releases, str]) -> str:
    """The rows that belong to a combination, in the order of the combinations, as a table."""
    return HEAD + "".join(f"{found[releases]}\n" for releases in COMBINATIONS if releases in found)


def write(found: dict[Releases, str]) -> None:
    """Put rows into the page, beside those that are there."""
    before, _, there = PAGE.read_text().partition(MARK)
    system = f"{platform.system()} on {platform.machine()}:\n\n"
    PAGE.write_text(before + MARK + "\n" + system + report(rows(there) | found))


def commit() -> str:
    """The commit of the code, marked if the code has changed since."""
    found = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip()
    changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "src", "tests"], cwd=ROOT).returncode
    return f"{found}-dirty" if changed else found


def named_path(given: str) -> tuple[str, str]:
    release, separator, path = given.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{given!r} has no '='; expected RELEASE=PATH, such as 3.12=/usr/bin/python3.12")
    return release, path


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the tests of the seams with several releases of what they touch.")
    add = parser.add_argument
    add("tests", nargs="*", help="tests to run; by default those of the seams")
    add("--numba", action="append", help="only these releases of Numba")
    add("--python", action="append", help="only these releases of Python")
    add("--interpreter", action="append", default=[], type=named_path, metavar="RELEASE=PATH", help="where a Python is")
    add("--keep", type=Path, help="keep the environments in this folder, and use those that are there")
    add("--write", action="store_true", help=f"write the rows to {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    named = dict(options.interpreter)
    found, right = {}, True
    for wanted in COMBINATIONS:
        if wanted.numba in (options.numba or [wanted.numba]) and wanted.python in (options.python or [wanted.python]):
            tests = options.tests or SEAMS + TRANSFORMS * (wanted.torch != running().torch)
            before = commit()
            with tempfile.TemporaryDirectory() as folder:
                passed, said = run(Path(options.keep or folder).absolute() / "-".join(wanted), wanted, named, tests)
            found[wanted] = f"| {' | '.join(wanted)} | {said} | {before} |"
            right &= passed
            print(found[wanted], file=sys.stderr, flush=True)
            if options.write:
                write(found)
    print(report(found))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
