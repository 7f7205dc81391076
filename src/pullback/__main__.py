"""`python -m pullback`: the library's own command."""

from __future__ import annotations

import argparse

from pullback import __version__


def main() -> None:
    """Print the version; the experiments have a command of their own, `pullback`, in the package `pullback-study`."""
    parser = argparse.ArgumentParser(prog="python -m pullback", description="The pullback library.")
    parser.add_argument("--version", action="version", version=f"pullback {__version__}")
    parser.parse_args()
    parser.print_help()


if __name__ == "__main__":
    main()
