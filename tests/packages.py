"""Build the packages and use them in new environments, without make and without this checkout: `make packages`.

The library alone, then the library with the study: each installs from its wheel with all its dependencies, at the versions of
constraints.txt, imports, computes, and runs its command. With `--sdist`, from the source distributions instead.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY = """
import importlib.util, sys
from importlib import metadata
import torch, pullback as pb
assert pb.__file__.startswith(sys.prefix), pb.__file__
assert metadata.version("pullback") == pb.__version__
assert importlib.util.find_spec("pullback_study") is None, "the study is there, too"
tree, scores = pb.DependencyTree(), torch.randn(2, 4, 4, requires_grad=True)
assert bool(tree.contains(tree.argmax(scores)).all())
pb.SPIGOT(step_size=0.1).objective(tree, scores, lambda z: z[:, 0, 1]).sum().backward()
assert bool(scores.grad.isfinite().all())
assert len(pb.nn.CRF(3, batch_first=True).decode(torch.randn(2, 5, 3))) == 2
print("the library", pb.__version__, "works")
"""


def environment(folder: Path) -> Path:
    """A new environment with nothing but pip: its Python."""
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


def run(*command: str | Path, cwd: Path) -> str:
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(command, cwd=cwd, env=clean, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the packages and use them in new environments.")
    parser.add_argument("--sdist", action="store_true", help="install the source distributions instead of the wheels")
    parser.add_argument("--out", type=Path, help="keep the packages in this folder, which must be empty")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        away, started = Path(name), time.monotonic()
        out = (options.out or away / "dist").absolute()
        if out.exists() and any(out.iterdir()):
            parser.error(f"{out} has files already")
        for project in (ROOT, ROOT / "study"):
            run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, project, cwd=ROOT)
        library, study = (
            next(out.glob(f"{package}-*{'.tar.gz' if options.sdist else '.whl'}")) for package in ("pullback", "pullback_study")
        )
        python = environment(away / "venv")
        install = (python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-c", ROOT / "constraints.txt")
        run(*install, library, cwd=away)
        print(run(python, "-c", LIBRARY, cwd=away))
        run(*install, study, cwd=away)
        print(run(away / "venv" / "bin" / "pullback", "--version", cwd=away), "works")
        run(python, "-m", "pip", "check", cwd=away)
        print(f"{library.name} and {study.name}: {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
