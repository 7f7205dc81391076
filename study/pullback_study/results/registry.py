"""What the report and the pages show beside every task's own tables: a line for each part of the study."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pullback_study.results.choice import Runs
from pullback_study.results.figures import Figure
from pullback_study.results.tables import Table
from pullback_study.tasks import load_attribute

if TYPE_CHECKING:
    from pullback_study.results.paper.verdicts import Claim


@dataclass(frozen=True)
class Group:
    """Tables and figures under one heading: a tab of the report, a section of a page."""

    title: str
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    prose: str = ""  # above them, in Markdown
    warning: str = ""  # why its numbers are not for a page


@dataclass(frozen=True)
class Section:
    """A part of the study: what the report and its results page show, and its claims."""

    title: str
    about: str
    groups: Callable[[Runs], Sequence[Group]]
    claims: Callable[[Runs], Sequence[Claim]] = lambda runs: ()


SECTIONS = {
    "synthetic": "pullback_study.results.paper.claims_clusters:SECTION",
    "text": "pullback_study.results.paper.claims_text:SECTION",
    "recovery": "pullback_study.results.recovery.page:SECTION",
    "listops": "pullback_study.results.listops:SECTION",
}
"""By name, where a section is found: module and attribute."""


def find_section(name: str) -> Section:
    return load_attribute(SECTIONS[name])
