"""`python -m pullback_study`, and the `pullback` command."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """The command line."""
    from pullback_study.listed import VariableError

    try:
        from pullback_study.cli import app

        try:
            app(prog_name="pullback")
        finally:
            sys.stdout.flush()
    except VariableError as error:
        sys.exit(str(error))
    except OSError as error:  # a full disk, a closed pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the rest of the output cannot be written, either
        what = error.filename or "cannot write the output"
        sys.exit(1 if isinstance(error, BrokenPipeError) else f"{what}: {error.strerror}")


if __name__ == "__main__":
    main()
