"""`pullback reproduce planted`: the control variate on planted trees."""

from __future__ import annotations

from typing import Any

from pullback_study.cli import terminal
from pullback_study.cli.options import uses


@uses("quick", "only", "seeds", "workers", "runs", "device", "markdown")
def planted(**given: Any) -> None:
    r"""Recovery of planted trees of 6 and 10 words by the control variate and other estimators.

    First a search of learning rates and step sizes on separate seeds, with 6 words, and then 32 seeds at the chosen setting,
    row by row. Finished runs are skipped, and interrupted runs resume.

    \b
    pullback reproduce planted --quick
    pullback reproduce planted --only sfe-control-variate --only sfe-leave-one-out-4
    """
    from pullback_study.results.choice import Runs
    from pullback_study.results.recovery import plans, trees

    protocol = plans.QUICK if given["quick"] else plans.FULL
    if given["seeds"]:
        protocol = protocol.on(protocol.seeds[: given["seeds"]])
    with terminal.user_errors():
        wanted = {plans.TASK.find_method(name).name for name in given["only"] or trees.ROWS}
    for name in (name for name in trees.ROWS if name in wanted):
        terminal.train_or_exit(plans.TASK, plans.search(name, "tree", protocol), **given)
        for n in trees.SIZES:
            row = trees.row(Runs(given["runs"]), name, n, protocol)
            terminal.train_or_exit(plans.TASK, list(row.configs), **given)
    found = Runs(given["runs"])
    terminal.show(*(table for group in trees.groups(found, protocol) for table in group.tables), **given)
