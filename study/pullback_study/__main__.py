"""`python -m pullback_study`, and the `pullback` command."""

from __future__ import annotations

import sys


def main() -> None:
    """The command line."""
    try:
        from pullback_study.cli import app
    except ValueError as error:  # in PULLBACK_TASKS, which is read when the tasks are imported
        sys.exit(str(error))
    app(prog_name="pullback")


if __name__ == "__main__":
    main()
