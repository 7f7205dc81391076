"""`pullback reproduce planted`: the control variate on planted trees."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pullback_study.cli import terminal
from pullback_study.cli.options import uses


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

    protocol = plans.QUICK if given["quick"] else plans.FULL
    if given["seeds"]:
        protocol = protocol.on(protocol.seeds[: given["seeds"]])
    with terminal.user_errors():
        wanted = {plans.TASK.find_method(name).name for name in given["only"] or trees.ROWS}
        if wrong := [n for n in words or () if n not in (*trees.SIZES, *plans.LONGER)]:
            raise ValueError(f"--words is {wrong[0]}; planted trees have 6, 10, 20 or 40 words")
    sizes, make = words or trees.SIZES, plans.wide if wide else plans.plan
    for name in (name for name in (plans.WIDE_ROWS if wide else trees.ROWS) if name in wanted):
        for row in (make(name, plans.Setting("tree", n), protocol) for n in sizes):
            terminal.train_or_exit(plans.TASK, row.first, **given)
            terminal.train_or_exit(plans.TASK, list(row.choose(Runs(given["runs"])).configs), **given)
    found = Runs(given["runs"])
    terminal.show(*(trees.table(found, n, protocol, searched=wide) for n in sizes), **given)
