"""What the report and the pages show beside every task's own tables: a line for each part of the study."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pullback_study.results.choice import Runs
from pullback_study.results.figures import Figure
from pullback_study.results.tables import Table

if TYPE_CHECKING:
    from pullback_study.results.paper.verdicts import Claim


@dataclass(frozen=True)
class Group:
    """Tables or figures that stand under one tab."""

    title: str
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    warning: str = ""


@dataclass(frozen=True)
class Section:
    """A part of the study.

    Args:
        title: its heading.
        about: one sentence below it.
        groups: from the runs to tables and figures, by tab.
        claims: from the runs to claims with their verdicts.
        page: from the runs and a folder for figures to the Markdown of its results page.
        needs: the commands, as words, that make the runs of its claims.
    """

    title: str
    about: str
    groups: Callable[[Runs], Sequence[Group]]
    claims: Callable[[Runs], Sequence[Claim]] = lambda runs: ()
    page: Callable[..., str] | None = None
    needs: Sequence[tuple[str, ...]] = ()


SECTIONS = {
    "synthetic": "pullback_study.results.paper.page_clusters:SECTION",
    "text": "pullback_study.results.paper.page_text:SECTION",
}
"""By name, where a section is found: module and attribute."""


def find_section(name: str) -> Section:
    module, _, attribute = SECTIONS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)
