"""Results pages: text by people, and between two marks what comes from run directories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pullback_study.runs.files import write_atomically

BEGIN, END = "<!-- from the runs -->", "<!-- end -->"


def update(page: Path, content: Callable[[], str]) -> None:
    """Write `content()` between the two marks of a page; the rest stays."""
    try:
        before, _, rest = page.read_text().partition(BEGIN)
    except OSError as error:
        raise ValueError(f"{page} cannot be read: {error.strerror}") from None
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"{page} has no lines {BEGIN!r} and {END!r} to write between")
    write_atomically(page, f"{before}{BEGIN}\n\n{content()}\n\n{END}{after}")
