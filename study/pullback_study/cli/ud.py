"""`pullback reproduce ud`: latent trees over a treebank."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pullback_study.cli import terminal
from pullback_study.cli.options import uses


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
    from pullback_study.results.choice import Runs
    from pullback_study.tasks import find_task

    with terminal.user_errors():
        task = find_task("ud", find_data(given["data"]))
        wanted = {task.find_method(name).name for name in given["only"] or bed.ROWS}
        protocol = bed.QUICK if given["quick"] else bed.FULL
        protocol = protocol.on(range(given["seeds"])) if given["seeds"] else protocol
        shares = share or bed.SHARES
        plans = [bed.plan(name, each, protocol) for each in shares for name in bed.rows(each) if name in wanted]
    terminal.train_or_exit(task, [config for plan in plans for config in plan.first], **given)
    chosen = [plan.choose(Runs(given["runs"])) for plan in plans]
    terminal.train_or_exit(task, [config for row in chosen for config in row.configs], **given)
    terminal.show(*(bed.table(Runs(given["runs"]), each, protocol) for each in shares), **given)
