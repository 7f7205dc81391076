"""`python -m pullback`, and the `pullback` command."""

from __future__ import annotations

import sys


def main() -> None:
    """The command line; without its dependencies, how to get them."""
    try:
        from pullback.cli import app
    except ModuleNotFoundError as error:
        sys.exit(f"the command line needs {error.name}: pip install 'pullback[experiments]'")
    app(prog_name="pullback")


if __name__ == "__main__":
    main()
