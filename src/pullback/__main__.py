"""`python -m pullback`: the library's own command. The experiments have one of their own, `pullback`, in `pullback-study`."""

from __future__ import annotations

import argparse
import sys


def main() -> None:
    """Compile kernels, or print the version."""
    from pullback import __version__
    from pullback._warmup import DTYPES, OPERATIONS, STRUCTURES, warmup

    parser = argparse.ArgumentParser(prog="python -m pullback", description="The pullback library.")
    parser.add_argument("--version", action="version", version=f"pullback {__version__}")
    commands = parser.add_subparsers(dest="command", title="commands")
    command = commands.add_parser(
        "warmup",
        help="compile kernels ahead of time, in parallel",
        description="Compile the kernels of operations and their gradients, in parallel. Everything by default.",
    )
    command.add_argument("structures", nargs="*", metavar="STRUCTURE", help=f"from: {', '.join(STRUCTURES)}")
    command.add_argument("--operations", nargs="+", default=OPERATIONS, metavar="NAME", help=f"from: {', '.join(OPERATIONS)}")
    command.add_argument("--dtypes", nargs="+", default=DTYPES, metavar="DTYPE", help=f"from: {', '.join(DTYPES)}")
    command.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    command.add_argument("--processes", type=int, help="how many to use; one per core by default")
    command.add_argument("--quiet", action="store_true", help="show no progress")
    args = parser.parse_args()
    if args.command is None:
        parser.print_help()
        return
    try:
        warmup(
            args.structures or tuple(STRUCTURES),
            args.operations,
            args.dtypes,
            device=args.device,
            processes=args.processes,
            progress=not args.quiet,
        )
    except (ValueError, RuntimeError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
