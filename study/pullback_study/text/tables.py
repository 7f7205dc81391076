"""The tables of text results beside the paper's, and the verdicts, from run directories alone."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from pullback.viz.tables import Table
from pullback_study.paper import Reported, reported
from pullback_study.text.methods import METHODS
from pullback_study.text.plans import INNER_STEPS, Chosen, with_steps
from pullback_study.text.tasks import find_task

Rows = Sequence[tuple[str, Chosen | None]]
"""Rows of a table: the estimator, and its runs where its setting is known."""

# Minutes of an epoch, from the paper's table of training details: SST and SNLI.
MINUTES = {
    "marginals": (3, 4), "sparsemap": (3, 25), "perturb-and-map": (5, 7), "ste-s": (4, 6), "ste-i": (2, 5),
    "spigot": (3, 15), "spigot-ce": (4, 30), "spigot-eg": (5, 7),
}  # fmt: skip


def results_table(title: str, task: str, rows: Rows) -> Table:
    """The paper's table for one task, ours beside the paper's.

    Mean and standard deviation over the seeds, each run at its epoch with the best validation accuracy. A number is
    marked with ≠ where the two means differ by more than the two standard deviations together.
    """
    table = Table(f"{title}. {_made_with(rows)}", ["Model", "Validation", "paper", "Test", "paper", "Depth", "Seeds"])
    for name, chosen in _under_headings(table, rows):
        cells = []
        for split in ("validation", "test"):
            theirs = _reported(task, name, split)
            cells += [_beside(_done(chosen, f"{split}_accuracy"), theirs), _show(*theirs) if theirs else ""]
        depths = _done(chosen, "test_depth")
        depth = _show(*_mean(depths)) if depths and METHODS[name].latent else ""
        done = len(_done(chosen, "test_accuracy"))
        table.rows.append([_name(name), *cells, depth, f"{done} of {len(chosen.runs)}" if chosen else "0"])
    table.notes.append(
        "Accuracy in percent; mean ± standard deviation over the seeds. *: stochastic. ≠: the means differ by more than both "
        "standard deviations together. Depth: of the best trees on the test set; one word at the root and all others below "
        "it make 2, all words at the root 1."
    )
    return table


def settings_table(rows: Rows) -> Table:
    """Which learning rate and step size each row has, and at which epoch its model was chosen."""
    table = Table("Settings", ["Model", "learning rate", "step size", "best epoch", "epochs"])
    for name, chosen in rows:
        if chosen is not None:
            size = "" if chosen.config.step_size is None else f"{chosen.config.step_size:g}"
            epochs = ", ".join(f"{value:.0f}" for value in _done(chosen, "best_epoch"))
            row = [METHODS[name].row, f"{chosen.config.learning_rate:g}", size, epochs, str(chosen.config.epochs)]
            table.rows.append(row)
    return table


def speed_table(task: str, rows: Rows) -> Table:
    """The time of an epoch beside the paper's, and how much of it is inference over trees."""
    column = ("sst", "snli").index(task)
    table = Table(
        f"{find_task(task).title}: one epoch of training",
        ["Model", "seconds", "paper, minutes", "latent part", "device"],
    )
    for name, chosen in rows:
        epochs = [row for run in (chosen.runs if chosen else ()) if run.done for row in run.metrics]
        if chosen is None or not epochs:
            continue
        seconds = f"{statistics.median(row['seconds'] for row in epochs):.1f}"
        share = f"{statistics.median(row['latent_share'] for row in epochs):.0%}" if METHODS[name].latent else ""
        minutes = MINUTES.get(name)
        where = {f"{run.result['device']}, {run.result['threads']} threads" for run in chosen.runs if run.done}
        theirs = "" if minutes is None else str(minutes[column])
        table.rows.append([_name(name), seconds, theirs, share, "; ".join(sorted(where))])
    table.notes.append(
        "Median over all epochs and seeds, evaluation not counted. Runs that shared a device with others are slower than "
        "by themselves."
    )
    return table


def steps_table(title: str, rows: Rows, root: Path) -> Table:
    """Test accuracy against the number of inner steps."""
    table = Table(f"{title}. {_made_with(rows)}", ["Model", *(f"k = {k}" for k in INNER_STEPS), "Depth at each"])
    for name, chosen in rows:
        found = {k: with_steps(chosen, k, root) if chosen else None for k in INNER_STEPS}
        accuracy = [_beside(_done(each, "test_accuracy"), None) for each in found.values()]
        depth = [f"{statistics.fmean(values):.1f}" for each in found.values() if (values := _done(each, "test_depth"))]
        table.rows.append([_name(name), *accuracy, ", ".join(depth)])
    table.notes.append("k: inner steps. Test accuracy in percent, mean ± standard deviation over the seeds.")
    return table



def _under_headings(table: Table, rows: Rows) -> Iterator[tuple[str, Chosen | None]]:
    kind = ""
    for name, chosen in rows:
        if METHODS[name].kind != kind:
            kind = METHODS[name].kind
            table.rows.append([kind])
        yield name, chosen


def _made_with(rows: Rows) -> str:
    """The vectors and the share of the data, as the runs recorded them."""
    found = {}
    for _, chosen in rows:
        for run in chosen.runs if chosen else ():
            if run.done:
                data = run.result["data"]
                limit = run.config.train_examples
                part = f"the first {limit}" if limit else f"{data['share']['train']:.0%}"
                words = f"Vectors {data['vectors']} ({data['coverage']:.1%} of tokens), {part} of the training data"
                found[words, data["checksums"]["train"], data["checksums"]["vectors"]] = words
    if not found:
        return "No runs yet"
    mixed = "; NOT THE SAME DATA IN ALL ROWS" if len(found) > 1 else ""
    return "; ".join(sorted(set(found.values()))) + mixed


def _done(chosen: Chosen | None, measure: str) -> list[float]:
    return chosen.values(measure) if chosen else []


def _reported(task: str, name: str, split: str) -> Reported | None:
    if METHODS[name].settings:
        return reported("structured", METHODS[name].row, find_task(task).title, split)
    return None


def _beside(values: list[float], paper: Reported | None) -> str:
    if not values:
        return "not run"
    mean, deviation = _mean(values)
    spread = 0.0 if math.isnan(deviation) else deviation
    differs = paper is not None and len(values) > 1 and abs(mean - paper.value) > spread + paper.spread
    return _show(mean, deviation) + ("≠" if differs else "")


def _mean(values: list[float]) -> tuple[float, float]:
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else math.nan


def _show(value: float, spread: float) -> str:
    return f"{value:.2f}" + ("" if math.isnan(spread) else f"±{spread:.2f}")


def _name(name: str) -> str:
    return f"{'*' * METHODS[name].stochastic}{METHODS[name].row}"
