"""`pullback reproduce recovery`: which estimator recovers the structure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_study.cli import terminal
from pullback_study.cli.options import uses

if TYPE_CHECKING:
    from pullback_study.results.protocol import Protocol

_PUBLISHED = Path("docs/results/recovery.md")
_EMPTY = "# Which estimator recovers the structure?\n\n<!-- from the runs -->\n<!-- end -->\n"


@uses("quick", "only", "seeds", "workers", "runs", "device", "markdown")
def recovery(
    structure: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this structure; repeatable.")] = None,
    train: Annotated[bool, typer.Option("--train/--no-train", help="Train missing runs of the planted beds.")] = True,
    page: Annotated[
        Path | None, typer.Option(help="The results page to write.  [default: docs/results/recovery.md; none for fewer runs]")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write the page even if it loses numbers, or if no clean commit made its runs.")
    ] = False,
    **given: Any,
) -> None:
    r"""A leaderboard of estimators over test beds with gold structures, and its page.

    Trains the planted beds: first a search of learning rates and step sizes on separate seeds, then all settings with 32
    seeds, then short runs alone for the time per step. The other beds (clusters, SST, SNLI, ListOps) use existing runs.
    Finished runs are skipped, and interrupted runs resume. A page with numbers that the runs do not give is not replaced.

    \b
    pullback reproduce recovery --quick --structure tree
    pullback reproduce recovery --device cuda --workers 4
    pullback reproduce recovery --no-train
    """
    from pullback_study.results.choice import Runs
    from pullback_study.results.recovery import page as recovered
    from pullback_study.results.recovery import plans
    from pullback_study.results.recovery.beds import all_beds
    from pullback_study.results.registry import check_origins, update_page
    from pullback_study.tasks.schema import nearest

    protocol, complete = plans.QUICK if given["quick"] else plans.FULL, True
    if given["seeds"]:
        protocol = protocol.on(range(protocol.seeds[0], protocol.seeds[0] + given["seeds"]))
    with terminal.user_errors():
        for name in structure or ():
            if name not in plans.BASES:
                raise ValueError(f"there is no structure {name!r}; {nearest(name, plans.BASES)}")
        names = [plans.TASK.find_method(name).name for name in given["only"] or plans.METHODS]
    if train:
        complete = _train(protocol, structure or [], names, given)
    found = Runs(given["runs"])
    beds = all_beds(found, protocol)
    with terminal.user_errors(f"update the page {page or _PUBLISHED}"):
        if not beds and not train:
            raise ValueError(f"{given['runs']} has no runs to show; choose another folder (--runs), or leave out --no-train")
        terminal.show(recovered.needs_structure(found, protocol), *recovered.boards(beds), markdown=given["markdown"])
        if path := page or (None if protocol.warning else _PUBLISHED):
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(_EMPTY)
            groups = recovered.groups(found, protocol, gradients=True)
            if not force:
                check_origins(groups, found)
            update_page(path, groups, force=force)
            terminal.err.print(f"wrote {path}")
    if not complete:
        raise typer.Exit(1)


def _train(protocol: Protocol, structures: Sequence[str], names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """The search, each bed at the settings it chose, the times; True if every run is done. What fails stops nothing else."""
    from pullback_study.results.choice import Runs
    from pullback_study.results.recovery import plans

    beds, complete = plans.settings(structures, grid=protocol["steps"] >= plans.FULL["steps"]), True
    for phase in ("search", "results", "times"):
        found, how = Runs(given["runs"]), given
        if phase == "search":
            once = dict.fromkeys(bed.structure for bed in beds)
            configs = [config for each in once for name in names for config in plans.search(name, each, protocol)]
        elif phase == "results":
            wanted = [(name, bed) for bed in beds for name in names if plans.runs_on(name, bed)]
            configs = [config for name, bed in wanted for config in plans.chosen(found, name, bed, protocol).configs]
        else:  # alone: nothing trains beside them
            timed, how = names if plans.BASES["tree"] in beds else (), {**given, "workers": None}
            configs = [config for name in timed for config in plans.timed(found, name, protocol).configs]
        try:
            terminal.train_or_exit(plans.TASK, configs, **how)
        except typer.Exit as ended:
            if ended.exit_code != 1:  # stopped by the user, or a mistake
                raise
            complete = False
    return complete
