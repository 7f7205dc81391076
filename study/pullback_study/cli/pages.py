"""`pullback reproduce claims` and `page`: what follows from existing runs, without training."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from pullback_study.cli import terminal
from pullback_study.cli.options import uses

Page = StrEnum("Page", ["synthetic", "text", "listops", "planted", "ud", "sst-wide"])


@uses("runs", "seeds", "dtype", "markdown", "json")
def claims(**given: Any) -> None:
    """Print verdicts on the paper's claims, from existing runs, without training.

    Each rule is applied to the runs, and to the paper's own numbers. Verdicts on clusters rest on 48 seeds, or as many as
    --seeds says, at the paper's settings (table1, steps) and at searched ones (table1 --grid). Verdicts on text need the runs
    of table2 --search for both tasks, and of steps --task sst.
    """
    from pullback_study.results.choice import Runs
    from pullback_study.results.paper import claims_clusters, claims_text, clusters

    with terminal.user_errors(f"read the runs in {given['runs']}"):
        found = Runs(given["runs"])
        protocol = clusters.protocol_of(**given) if given["seeds"] else clusters.MANY.having(dtype=given["dtype"])
        decided = [*claims_clusters.claims(found, protocol=protocol), *claims_text.claims(found)]
    terminal.show(*(claim.table() for claim in decided), **given)


@uses("runs")
def page(
    path: Annotated[Path | None, typer.Argument(help="The Markdown file to update, between its two marks.")] = None,
    study: Annotated[Page, typer.Option(help="The study whose page is written.")] = Page.synthetic,
    force: Annotated[
        bool, typer.Option("--force", help="Write the page even if it loses numbers, or if no clean commit made its runs.")
    ] = False,
    *,
    runs: Path,
) -> None:
    """Write a results page, its figures and the archive of its runs, from existing runs, without training.

    The page is docs/results/STUDY.md by default, and the archive runs-STUDY.tar.xz beside it. A page with numbers that the runs
    do not give is not replaced.
    """
    from pullback_study.results.archive import archive_of, pack
    from pullback_study.results.choice import Runs
    from pullback_study.results.registry import check_origins, find_section, update_page

    path = path or Path("docs/results") / f"{study}.md"
    section, found = find_section(study), Runs(runs)
    with terminal.user_errors(f"update the page {path}"):
        path.read_text()  # a page that cannot be read is named first
        groups = section.groups(found)
        if not any(table.runs for group in groups for table in group.tables):
            raise ValueError(f"there are no runs of {study} in {runs}/; choose another folder (--runs)")
        if not force:
            check_origins(groups, found)
        update_page(path, groups, section.claims(found), force=force)
        kept = pack(found, section.tasks, archive_of(path), force=force)
    terminal.err.print(f"wrote {path}, and {terminal.count(kept, 'run')} into {archive_of(path)}")
