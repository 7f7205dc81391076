"""`pullback reproduce listops`: nested operations with gold dependency heads."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from pullback_study.cli import terminal
from pullback_study.cli.options import uses

Heads = StrEnum("Heads", ["all", "open", "operators"])


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
        usual = bed.QUICK if given["quick"] else bed.FULL.on(range(given["seeds"] or 5))
        protocol = bed.on_bed(usual, heads=str(heads), brackets=brackets, depth=depth, tokens=tokens)
        wanted = {bed.TASK.find_method(name).name for name in given["only"] or bed.ROWS}
        plans = {name: bed.plan(name, protocol) for name in bed.ROWS if name in wanted}
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
    figure = bed.curves(found, protocol)
    terminal.write_figures([figure] if figure.drawn else [], given["figures"])
