"""`pullback reproduce recovery`, `listops`, `planted` and `ud`: test beds whose gold structures are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_study.cli import terminal
from pullback_study.cli.options import uses

if TYPE_CHECKING:
    from pullback_study.results.choice import Protocol

Heads = StrEnum("Heads", ["all", "open", "operators"])
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
    from pullback_study.tasks.schema import check_known

    protocol, complete = (plans.QUICK if given["quick"] else plans.FULL).first(given["seeds"]), True
    with terminal.user_errors():
        for name in structure or ():
            check_known(f"there is no structure {name!r}", name, plans.BASES)
        names = terminal.rows(plans.TASK, plans.METHODS, given["only"])
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
    wanted = [plans.plan(name, bed, protocol) for bed in beds for name in names if plans.runs_on(name, bed)]
    timed = names if plans.BASES["tree"] in beds else ()
    phases: dict[str, Callable[[Runs], list[Any]]] = {
        "search": lambda runs: [config for plan in wanted for config in plan.first],
        "results": lambda runs: [config for plan in wanted for config in plan.choose(runs).configs],
        "times": lambda runs: [config for name in timed for config in plans.timed(runs, name, protocol).configs],
    }
    for phase, configs in phases.items():
        how = {**given, "workers": None} if phase == "times" else given  # alone: nothing trains beside them
        try:
            terminal.train_or_exit(plans.TASK, configs(Runs(given["runs"])), **how)
        except typer.Exit as ended:
            if ended.exit_code != 1:  # stopped by the user, or a mistake
                raise
            complete = False
    return complete


@uses("quick", "only", "seeds", "workers", "runs", "figures", "device", "tensorboard", "markdown", "json")
def listops(
    screening: Annotated[bool, typer.Option("--screening", help="Only seed 0 at each learning rate.")] = False,
    long: Annotated[bool, typer.Option("--long", help="The baselines and the best five, in the published setting.")] = False,
    tuned: Annotated[bool, typer.Option("--tuned", help="The same rows for 20,000 steps, annealed and clipped.")] = False,
    heads: Annotated[Heads, typer.Option(help="Tokens that may be heads; open: all but closing brackets.")] = Heads.all,
    brackets: Annotated[bool, typer.Option("--brackets/--no-brackets", help="Whether brackets are closed.")] = True,
    depth: Annotated[int | None, typer.Option(min=1, help="The deepest expressions; 3 and 8 are shorter beds.")] = None,
    tokens: Annotated[
        int | None, typer.Option(min=4, help="The longest expressions.  [default: 20 for depth 3, else 50]")
    ] = None,
    **given: Any,
) -> None:
    r"""ListOps: accuracy and recovery of the gold trees, for every estimator.

    All rows are screened with one seed at three learning rates; then the baselines, the paper's rows and the best five train
    with five seeds at the best rate. Finished runs are skipped, and interrupted runs resume.

    \b
    pullback reproduce listops --quick
    pullback reproduce listops --heads operators --device cuda
    pullback reproduce listops --depth 3 --only gold --only sampled-ste
    pullback reproduce listops --screening --only spigot --only marginals --device cuda
    """
    from pullback_study.results import listops as bed
    from pullback_study.results.choice import Runs

    folder = given["runs"]
    with terminal.user_errors():
        usual = bed.QUICK if given["quick"] else bed.FULL
        protocol = bed.on_bed(usual.first(given["seeds"]), heads=str(heads), brackets=brackets, depth=depth, tokens=tokens)
        wanted = terminal.rows(bed.TASK, bed.ROWS, given["only"])
        plans = {name: bed.plan(name, protocol) for name in wanted}
    if long or tuned:
        names = [name for name in bed.contenders(Runs(folder), protocol) if name in wanted]
        rows = [bed.plan(name, bed.longer(protocol, tuned=tuned)) for name in names]
        terminal.train_or_exit(bed.TASK, [config for row in rows for config in row.configs], **given)
        return terminal.show(bed.long_runs(Runs(folder), protocol, tuned=tuned), **given)
    if not screening:
        terminal.check_figures(given["figures"])
    terminal.train_or_exit(bed.TASK, [config for plan in plans.values() for config in plan.first], **given)
    if screening:
        return terminal.show(bed.results(Runs(folder), protocol, final=False), **given)
    found = Runs(folder)
    chosen = [plans[name].choose(found) for name in (wanted if given["only"] else bed.finalists(found, protocol))]
    terminal.train_or_exit(bed.TASK, [config for row in chosen for config in row.configs], **given)
    found = Runs(folder)
    tables = [bed.results(found, protocol, final=final) for final in (False, True)]
    terminal.show(*tables, bed.by_depth(found, protocol), bed.published(), **given)
    terminal.write_figures([bed.curves(found, protocol)], given["figures"])


@uses("quick", "only", "seeds", "workers", "runs", "device", "markdown")
def planted(
    words: Annotated[list[int] | None, typer.Option(metavar="N", help="Of a tree; repeatable. [default: 6 and 10]")] = None,
    wide: Annotated[bool, typer.Option("--wide", help="Search 16 random settings, with equal decoder calls.")] = False,
    **given: Any,
) -> None:
    r"""Recovery of planted trees by the control variate and other estimators.

    First a search of learning rates and step sizes on separate seeds, with 6 words, and then 32 seeds at the chosen setting,
    row by row. Finished runs are skipped, and interrupted runs resume.

    \b
    pullback reproduce planted --quick
    pullback reproduce planted --only sfe-control-variate --only sfe-leave-one-out-4
    pullback reproduce planted --words 20 --words 40 --device cuda
    """
    from pullback_study.results.choice import Runs
    from pullback_study.results.recovery import plans, trees

    protocol = (plans.QUICK if given["quick"] else plans.FULL).first(given["seeds"])
    with terminal.user_errors():
        wanted = terminal.rows(plans.TASK, plans.WIDE_ROWS if wide else trees.ROWS, given["only"])
        if wrong := [n for n in words or () if n not in (*trees.SIZES, *plans.LONGER)]:
            raise ValueError(f"--words is {wrong[0]}; planted trees have 6, 10, 20 or 40 words")
    sizes, make = words or trees.SIZES, plans.wide if wide else plans.plan
    for row in (make(name, plans.Setting("tree", n), protocol) for name in wanted for n in sizes):
        terminal.train_plans(plans.TASK, [row], given)
    found = Runs(given["runs"])
    terminal.show(*(trees.table(found, n, protocol, searched=wide) for n in sizes), **given)


@uses("quick", "only", "seeds", "data", "workers", "runs", "device", "tensorboard", "markdown", "json")
def ud(
    share: Annotated[
        list[float] | None, typer.Option(metavar="X", help="Of gold trees; repeatable. [default: 0, 0.01, 0.05 and 0.1]")
    ] = None,
    **given: Any,
) -> None:
    r"""Latent trees over the sentences of UD-EWT: attachment to the treebank's trees, with and without some of them shown.

    Finished runs are skipped, and interrupted runs resume.

    \b
    pullback reproduce ud --data DATA --quick
    pullback reproduce ud --share 0 --only marginals --device cuda
    """
    from pullback_study.corpora import find_data
    from pullback_study.results import ud as bed
    from pullback_study.tasks import find_task

    with terminal.user_errors():
        task = find_task("ud", find_data(given["data"]))
        wanted = terminal.rows(task, bed.ROWS, given["only"])
        protocol = (bed.QUICK if given["quick"] else bed.FULL).first(given["seeds"])
        shares = share or bed.SHARES
        plans = [bed.plan(name, each, protocol) for each in shares for name in bed.rows(each) if name in wanted]
    found, _ = terminal.train_plans(task, plans, given)
    terminal.show(*(bed.table(found, each, protocol) for each in shares), **given)
