"""`python -m pullback_study`, and the `pullback` command."""

from __future__ import annotations

from pullback_study.cli import app


def main() -> None:
    """The command line."""
    app(prog_name="pullback")


if __name__ == "__main__":
    main()
