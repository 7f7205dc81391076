"""What the report shows beside every task's own tables, and the results pages: a line for each part of the study.

A page has text by people, and between two marks what comes from run directories. The archive beside it has what is needed to
make it again, and to continue its runs:

    docs/results/runs-<study>.tar.xz    runs/<id>/{config.json, metrics.jsonl, result.json}

of every run that is done, and of the groups that were interrupted also `runs/.work/<id>/{members.json, checkpoint.pt}`, with
which another machine continues them. The same runs make the same bytes.
"""

from __future__ import annotations

import io
import json
import lzma
import pkgutil
import re
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pullback_study.results.choice import Runs
from pullback_study.results.figures import Figure
from pullback_study.results.paper.verdicts import Claim
from pullback_study.results.tables import Table
from pullback_study.runs.files import write_atomically
from pullback_study.runs.provenance import check_tree, refuse_unfit
from pullback_study.runs.run import WORK
from pullback_study.tasks import all_tasks


@dataclass(frozen=True)
class Group:
    """Tables and figures under one heading: a tab of the report, a section of a page. Figures without points are left out."""

    title: str
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    prose: str = ""  # above them, in Markdown
    warning: str = ""  # why its numbers are not for a page

    def __post_init__(self) -> None:
        object.__setattr__(self, "figures", [figure for figure in self.figures if figure.drawn])

    def __bool__(self) -> bool:
        return bool(self.tables or self.figures or self.prose)


@dataclass(frozen=True)
class Section:
    """A part of the study: what the report and its results page show, and its claims."""

    about: str
    groups: Callable[[Runs], Sequence[Group]]
    claims: Callable[[Runs], Sequence[Claim]] = lambda runs: ()
    tasks: Sequence[str] = ()  # whose runs it rests on; none for a comparison of all tasks
    title: str = ""  # of a comparison; others are called after their tasks

    def heading(self, runs: Runs) -> str:
        """Its title, or the names of its tasks that have runs; empty if there are no runs that it could show."""
        there = [task for task in all_tasks() if (task.name in self.tasks or not self.tasks) and runs.of(task.name)]
        if there and self.title and self.tasks:  # a part of what a task's own section has
            there = [task for task in there if any(table.runs for group in self.groups(runs) for table in group.tables)]
        return self.title if there and self.title else " and ".join(task.title for task in there)


DONE = ("config.json", "metrics.jsonl", "result.json")
INTERRUPTED = ("members.json", "checkpoint.pt")
_NAMED = 5  # rows, in a message
_SEEDS = re.compile(r"over (\d+)")
BEGIN, END = "<!-- from the runs -->", "<!-- end -->"
SECTIONS = {
    "synthetic": "pullback_study.results.paper.claims_clusters:SECTION",
    "text": "pullback_study.results.paper.claims_text:SECTION",
    "sst-wide": "pullback_study.results.paper.claims_text:WIDE",
    "planted": "pullback_study.results.recovery.trees:SECTION",
    "recovery": "pullback_study.results.recovery.page:SECTION",
    "listops": "pullback_study.results.listops:SECTION",
    "ud": "pullback_study.results.ud:SECTION",
}
"""By name, where a section is found: module and attribute."""


def find_section(name: str) -> Section:
    return pkgutil.resolve_name(SECTIONS[name])


def update_page(page: Path, groups: Sequence[Group], claims: Sequence[Claim] = (), *, force: bool = False) -> None:
    """Write groups and verdicts between the marks of a page, and figures beside it; the rest of the page stays.

    On a page with several pairs of marks, each pair but the last holds one group. Without `force`, a page that would lose
    numbers or seeds is an error, and nothing is written.
    """
    before = page.read_text()
    text, *rest = before.split(BEGIN)
    if not rest or any(END not in part for part in rest):
        raise ValueError(f"{page} has no lines {BEGIN!r} and {END!r} to write between")
    shown = [group for group in groups if not group.warning]
    figures = [figure for group in shown for figure in group.figures]
    for left, part in zip(reversed(range(len(rest))), rest, strict=True):
        content = markdown(shown[:1]) if left else markdown(shown, claims)
        shown, after = shown[1:], part.partition(END)[2]
        text += f"{BEGIN}\n\n{content}\n\n{END}{after}"
    if not force and (lost := _numbers(before) - _numbers(text)):
        rows = ", ".join(sorted(lost)[:_NAMED]) + ", ..." * (len(lost) > _NAMED)
        raise ValueError(
            f"{page} has numbers that these runs do not give ({rows}); use a folder with all runs (--runs), "
            f"write another page, or replace them with --force"
        )
    for figure in figures:
        figure.write(page.parent)
    write_atomically(page, text)


def check_origins(groups: Sequence[Group], runs: Runs) -> None:
    """Raises `ValueError` unless every run behind the tables was trained by one version of the code, that of a commit.

    The code that writes the page must be that of a commit, too.
    """
    check_tree()
    rows = [row for group in groups if not group.warning for table in group.tables for row in table.rows]
    behind = {name for row in rows for cell in row.cells.values() for name in cell.runs}
    refuse_unfit((run for run in runs.all if run.id in behind), "pages rest on runs of one clean commit each")


def _numbers(page: str) -> Counter[str]:
    """How many numbers the rows of each name have in all tables of a page, and how many seeds the tables rest on."""
    found: Counter[str] = Counter()
    headings: list[str] = []
    for line in page.splitlines():
        if not line.startswith("|"):
            headings = []
            found["seeds"] += sum(int(least) for least in _SEEDS.findall(line)) if line.startswith("±") else 0
            continue
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        headings = headings or cells
        found[name] += sum(any(letter.isdigit() for letter in cell) for cell in cells)
        if "Seeds" in headings and (seeds := cells[headings.index("Seeds")]).isdecimal():
            found["seeds"] += int(seeds)
    return found


def markdown(groups: Sequence[Group], claims: Sequence[Claim] = ()) -> str:
    """All tables, figures and verdicts; groups with a warning are left out."""
    parts = []
    for group in (group for group in groups if not group.warning):
        parts += [f"## {group.title}", *([group.prose] if group.prose else []), *(table.markdown() for table in group.tables)]
        for figure in group.figures:
            parts.append(f"![{figure.title}]({figure.name}.svg)\n\n" + f"{figure.note} [data]({figure.name}.csv)".strip())
    if claims:
        parts += ["## Verdicts", *(claim.table().markdown() for claim in claims)]
    return "\n\n".join(parts)


def archive_of(page: Path) -> Path:
    """The archive beside a page."""
    return page.with_name(f"runs-{page.stem}.tar.xz")


def pack(runs: Runs, tasks: Sequence[str], archive: Path, *, force: bool = False) -> int:
    """Write the runs of some tasks into an archive, those that are done and the checkpoints of others; how many are done.

    Raises `ValueError` for runs that nobody can make again, unless `force` is given.
    """
    done = [run for run in runs.all if run.task in tasks and run.state == "done"]
    if not force:
        refuse_unfit(done, "archives hold runs of clean commits")
    started = {run.id for run in runs.all if run.task in tasks}
    paths = {run.path / name for run in done for name in DONE}
    for members in (runs.folder / WORK).glob("*/members.json"):
        if not started.isdisjoint(names := json.loads(members.read_text())):
            paths |= {members.with_name(name) for name in INTERRUPTED}
            paths |= {runs.folder / run / name for run in names for name in DONE}
    write_atomically(archive, _packed(runs.folder, (path for path in paths if path.is_file())))
    return len(done)


def unpack(archive: Path, folder: Path) -> Runs:
    """The runs of an archive, in a folder."""
    with tarfile.open(archive) as members:
        members.extractall(folder, filter="data")
    return Runs(folder / "runs")


def _packed(folder: Path, paths: Iterable[Path]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(paths):
            content = path.read_bytes()
            member = tarfile.TarInfo(str(Path("runs") / path.relative_to(folder)))
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME)
