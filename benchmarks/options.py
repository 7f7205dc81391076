"""The options of the benchmarks that train a model on text, beside their own."""

from __future__ import annotations

import argparse
from pathlib import Path


def text_parser(prog: str, about: str) -> argparse.ArgumentParser:
    """A parser whose help is a module's docstring, from its examples on as an epilogue; it knows `--data` and `--seed`."""
    description, _, examples = about.partition("\n\n    python")
    parser = argparse.ArgumentParser(
        prog=f"python -m {prog}", description=description, epilog=f"examples:\n    python{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--data", type=Path, required=True, help="the folder of the data")
    parser.add_argument("--seed", type=int, default=0)
    return parser
