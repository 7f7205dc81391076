"""The leaderboard, the beds and their figures: the report's section and the results page."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from pullback_study.results.cells import Cell
from pullback_study.results.choice import Chosen, Protocol, Runs
from pullback_study.results.figures import Figure, curves_against, learning_curves
from pullback_study.results.recovery import bias
from pullback_study.results.recovery.beds import RECOVERY, Bed, all_beds, best_and_tied, missing, planted
from pullback_study.results.recovery.boards import combined, grid_tables, leaderboard, mean_ranks, summary, times

from pullback_study.results.recovery.plans import (  # isort: skip
    BASELINES, BASES, FULL, GRID, METHODS, NOISES, SHARES, Setting, chosen, settings,
)  # fmt: skip
from pullback_study.results.registry import Group, Section
from pullback_study.results.tables import Column, Row, Table
from pullback_study.tasks.planted.task import SELECTIONS

_MEASURES = {"recovery": "recovery (%)", "accuracy": "accuracy (%)"}
_DRAWN = 8  # curves in a figure


def needs_structure(runs: Runs, protocol: Protocol = FULL) -> Table:
    """Whether each planted bed needs its structure: a bag of parts at chance, the gold structure above 95%."""
    columns = [Column(name, METHODS[name].label) for name in BASELINES]
    columns.insert(2, Column("ceiling", "its recovery"))
    columns.append(Column("needs", "Needs its structure"))
    rows = []
    for setting in settings():
        bed = planted(runs, setting, protocol, BASELINES)
        cells = bed.accuracy | ({"ceiling": bed.recovery["planted-scorer"]} if "planted-scorer" in bed.rows else {})
        verdict = "not run"
        if {"bag", "gold"} <= cells.keys():
            needed = abs(cells["bag"].value - 50) <= 5 and cells["gold"].value > 95
            verdict = "yes" if needed else "partly, by its share" if setting.share < 1 else "no"
            verdict = "labels are drawn" if setting.structure in SELECTIONS else verdict
        rows.append(Row(setting.title, cells, {"needs": verdict}))
    notes = [
        "Test accuracy in percent. Bag of parts: the decoder with a learned weight per part in place of a structure; it must "
        "stay within 5 points of 50%. Gold structure: must be above 95%. Planted scorer: its best structure on the noisy "
        "features; its recovery is the most that an estimator can expect."
    ]
    return Table("Does the label need the structure?", columns, rows, notes, "planted-needs", protocol.warning, first="Bed")


def bed_table(bed: Bed) -> Table:
    """One bed in full: recovery, accuracy, time and seeds, the best first."""
    recovery, accuracy = bed.recovery, bed.accuracy
    main = recovery or accuracy
    best, ranks = best_and_tied(main), mean_ranks({bed.title: main})
    columns = [Column("recovery", "Recovery", show=_with_interval)] * bool(recovery)
    columns += [Column("accuracy", "Accuracy", show=_with_interval), Column("best", ""), Column("rank", "Rank")]
    columns += [Column("ms", "ms per step"), Column("seeds", "Seeds"), Column("setting", "Setting")]
    rows = []
    for name in sorted(bed.rows, key=lambda name: ranks[name].mean if name in ranks else math.inf):
        run = bed.rows[name][0]
        rate, size = run.config.get("learning_rate"), run.config.get("step_size")
        texts = {
            "rank": ranks[name].show(0) if name in ranks else "",
            "ms": bed.milliseconds(name),
            "seeds": str(len(bed.rows[name])),
            "setting": (f"rate {rate:g}" if rate else "") + (f", step {size:g}" if size else ""),
        }
        cells = {"accuracy": accuracy[name]} | ({"recovery": recovery[name]} if recovery else {})
        texts["best"] = "best" if name in best[:1] else "tied" if name in best else ""
        rows.append(Row(name, cells, texts, name=name))
    notes = [
        "Tied: with the best, by rule 3. In brackets: 95% bootstrap intervals over the seeds. Time: of a step of all runs that "
        "trained together, on a machine that other processes used too; compare orders of magnitude only."
    ]
    return Table(bed.title, columns, rows, notes, "recovery-" + bed.title.replace(" ", "-").replace(",", ""), first="Estimator")


def boards(beds: Sequence[Bed]) -> list[Table]:
    """Recovery over the beds that have gold structures, over the planted ones alone, and accuracy over all."""
    recovery = {bed.title: bed.recovery for bed in beds if bed.measure}
    planted_beds = {bed.title: bed.recovery for bed in beds if bed.measure == RECOVERY[0]}
    unranked = {bed.title for bed in beds if not bed.identified}
    found = [leaderboard("Recovery", recovery, "leaderboard-recovery", unranked & recovery.keys())] if recovery else []
    if planted_beds and planted_beds != recovery:
        others = unranked & planted_beds.keys()
        found.append(leaderboard("Recovery, planted beds alone", planted_beds, "leaderboard-planted", others))
    return [*found, leaderboard("Accuracy", {bed.title: bed.accuracy for bed in beds}, "leaderboard-accuracy")]


def verdict(beds: Sequence[Bed]) -> str:
    """The recommendation by rules 5 to 8, in words."""
    recovery = {bed.title: bed.recovery for bed in beds if bed.measure and bed.identified}
    scored = {title: cells for title, cells in recovery.items() if best_and_tied(cells)}
    unranked = [f"- {bed.title}: not ranked (rule 8)" for bed in beds if bed.measure and not bed.identified]
    if not scored:
        none = (
            "No bed that identifies its structure has two seeds of an estimator that did not diverge: nothing is recommended."
        )
        return "\n".join([*unranked, none])
    ranks, tied = mean_ranks(scored), {title: best_and_tied(cells) for title, cells in scored.items()}
    everywhere = [name for name in ranks if all(name in names for names in tied.values())]
    counted = {name: sum(name in names for names in tied.values()) for name in ranks}
    lines = [f"- {title}: best `{names[0]}`" + _list("; tied: ", names[1:]) for title, names in tied.items()]
    lines += [f"- {title}: every run diverged, or one seed" for title in recovery if title not in scored] + unranked
    if everywhere:
        lines.append(_list("\nBest or tied on every bed: ", sorted(everywhere, key=lambda name: ranks[name].mean)) + ".")
        return "\n".join(lines)
    complete = [name for name in ranks if all(cells.get(name, Cell()).values for cells in scored.values())] or list(ranks)
    first, *rest = sorted(complete, key=lambda name: ranks[name].mean)
    equal = [name for name in rest if ranks[name].low <= ranks[first].high]
    lines.append(
        f"\nNo estimator is best or tied on every bed. The best mean rank has `{first}` ({ranks[first].mean:.1f}, best or tied "
        f"on {counted[first]} of {len(scored)} beds)" + _list("; not told apart from it (rule 6): ", equal) + "."
    )
    return "\n".join(lines)


def grid_figures(runs: Runs, protocol: Protocol = FULL) -> list[Figure]:
    """Trees: recovery and accuracy against steps, noise and the share of the label; the best estimators of the base setting."""
    base = BASES["tree"]
    cells = planted(runs, base, protocol).recovery
    names = sorted((name for name in cells if cells[name].finite), key=lambda name: -cells[name].value)
    drawn = [*names[: _DRAWN - 2], *names[_DRAWN - 2 :][-2:]]
    note = f"The {len(drawn) - 2} best estimators at the base setting and the last two; median and range of the seeds."
    tests, valid = ({f"{prefix}{key}": f"{split}: {label}" for key, label in _MEASURES.items()}
                    for prefix, split in (("test_", "Test"), ("", "Validation")))  # fmt: skip

    def rows(setting: Setting) -> list[Chosen]:
        return [chosen(runs, name, setting, protocol) for name in drawn]

    figures = []
    for n in sorted({setting.n for setting in GRID}):
        shown = {
            "noise": curves_against("Noise", {noise: rows(Setting("tree", n, noise, 1.0)) for noise in NOISES}, tests),
            "share": curves_against("Share", {share: rows(Setting("tree", n, 0.0, share)) for share in SHARES}, tests),
            "steps": learning_curves(rows(Setting("tree", n)), valid),
        }
        figures += [Figure(f"Trees, n = {n}, against {axis}", drawings, f"planted-trees-{n}-{axis}", note)
                    for axis, drawings in shown.items()]  # fmt: skip
    return figures


def groups(runs: Runs, protocol: Protocol = FULL, *, gradients: bool = False) -> list[Group]:
    """Everything from the runs that are there; with gradients, which take a minute to measure, what separates good from bad."""
    beds, lacking, base = all_beds(runs, protocol), missing(runs, protocol), planted(runs, BASES["tree"], protocol)
    note = f"\n\nBeds without runs, which are missing from everything below: {'; '.join(lacking)}." if lacking else ""
    found = [Group("Leaderboard", [summary(beds, times(runs, protocol))])] if beds else []
    found.append(Group("Recommendation by the rules", prose=verdict(beds) + note))
    if beds:
        found.append(Group("All beds side by side", boards(beds)))
        longer = planted(runs, Setting("tree", max(setting.n for setting in GRID)), protocol)
        found.append(Group("A combination", [combined([*beds, longer])]))
    if base.rows and gradients:
        found.append(Group("What separates the good from the bad", [_relation(base, beds)]))
    found.append(Group("Do the planted beds need their structure?", [needs_structure(runs, protocol)]))
    if base.rows:
        found.append(Group("Planted trees, the grid", list(grid_tables(runs, protocol)), grid_figures(runs, protocol)))
    return [*found, *([Group("Every bed", [bed_table(bed) for bed in beds])] if beds else [])]


def _relation(base: Bed, beds: Sequence[Bed]) -> Table:
    sizes = {name: rows[0].config.get("step_size") for name, rows in base.rows.items()}
    own = {name: statistics.fmean(cell.finite) for name, cell in base.recovery.items() if cell.finite}
    every = [bed.recovery for bed in beds if bed.measure == RECOVERY[0] and bed.identified]
    means = {
        name: statistics.fmean(cells[name].value for cells in every)
        for name in own
        if all(name in cells and cells[name].finite for cells in every)
    }
    columns = {"recovery": own, "mean over planted beds": means}
    return bias.relation(bias.gradients(sizes), columns, f"{base.title}: recovery and the gradient at the first step")


def _with_interval(cell: Cell) -> str:
    if not cell.finite:
        return cell.show()
    return cell.interval.show(1) + f" ({cell.diverged} diverged)" * bool(cell.diverged)


def _list(before: str, names: Sequence[str]) -> str:
    return before + ", ".join(f"`{name}`" for name in names) if names else ""


SECTION = Section(
    "Which estimator recovers the structure: a leaderboard over test beds with gold structures.", groups, title="Recovery"
)
