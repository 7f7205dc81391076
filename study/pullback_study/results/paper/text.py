"""Latent trees on text: the runs, the tables and the figures of the paper, for SST and SNLI."""

from __future__ import annotations

import functools
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pullback_study.published import rows
from pullback_study.results.cells import Cell
from pullback_study.results.choice import Chosen, Plan, Protocol, Runs, measured, said, settings_of, table_of
from pullback_study.results.figures import Figure, curves_against, learning_curves
from pullback_study.results.paper import reported
from pullback_study.results.registry import Group
from pullback_study.results.tables import Column, Table
from pullback_study.tasks import find_task

TASKS = {name: find_task(name) for name in ("sst", "snli")}
METHODS = TASKS["sst"].methods
ROWS = tuple(name for name, method in METHODS.items() if method.label in rows("structured"))
"""The paper's nine rows, in its order."""
STEPPED = ("spigot", "spigot-ce", "spigot-eg")
INNER_STEPS = (1, 2, 5)
FROZEN_STEPS = (1, 5)
"""Inner steps with a frozen decoder."""
NO_RUNS = "There are no runs of it yet."
"""Why a group is in the report alone, where other groups have runs."""
_SPLITS = {"validation": "Validation", "test": "Test"}


_VECTORS = ("vectors", "googlenews_mapped.300d")
_SST = Protocol("sst", (0, 1, 2), (("epochs", 40), ("data", "sst"), _VECTORS), rates=(1e-4, 5e-4, 1e-3))
_SNLI = Protocol(
    "snli",
    (0, 1),
    (("epochs", 10), ("data", "snli_1.0_train.first100k"), _VECTORS),
    rates=(3e-4, 1e-3, 3e-3),
    searched=(("epochs", 2),),
)
FULL = {"sst": _SST, "snli": _SNLI}
"""The learning rates are from the paper's grid, and the same for every row."""
MANY = {
    "sst": replace(_SST.having(epochs=20), seeds=tuple(range(20))),
    "snli": replace(_SNLI, seeds=tuple(range(5)), rates=(1e-3,), searched=()),
}
"""What verdicts rest on, where it is run: more seeds; on SST of fewer epochs, on SNLI at one learning rate for all rows."""
WIDE = replace(MANY["sst"], rates=(1e-4, 5e-4, 1e-3, 2e-3, 5e-3), sizes=(0.1, 1.0, 10.0), deciding=(0, 1, 2))
"""SST with a search that has room on both sides: in the first one, all rows chose the largest rate. Step sizes: the paper's."""
LEAST = 8
"""How many of these seeds a comparison needs, and how many make a table of that kind."""
QUICK = {
    "sst": replace(_SST.on((0,)).having(epochs=2), rates=(1e-3,)),
    "snli": replace(_SNLI.on((0,)).having(epochs=1, train_examples=5000), rates=(1e-3,)),
}


def on_data_of(runs: Runs, protocol: Protocol) -> Protocol:
    """The protocol with the training data and the vectors that most runs of its task were trained on, if there are any.

    Where there are MANY such runs, the protocol is that one.
    """
    there = Counter((run.config.get("data"), run.config.get("vectors")) for run in runs.of(protocol.task))
    if not there:
        return protocol
    data, vectors = there.most_common(1)[0][0]
    many = MANY.get(protocol.task)
    if many is not None and not protocol.warning:
        same = [run for run in runs.of(protocol.task) if run.config.get("vectors") == vectors]
        seeds = {run.seed for run in same if run.config.get("epochs") == many["epochs"]} & set(many.seeds)
        if len(seeds) >= min(LEAST, len(many.seeds)):
            protocol = many
    return protocol.having(data=str(data), vectors=str(vectors))


@functools.cache
def table_plan(estimator: str, protocol: Protocol, *, search: bool) -> Plan:
    """A row at the paper's best setting, or over the settings of the search, which the deciding seeds choose from.

    Without step sizes in the search they are the paper's best. That of STE-I only scales the gradient with one inner step.
    """
    sized = METHODS[estimator].pulled_back and estimator != "ste-i"
    return protocol.plan(estimator, *((protocol.rates, protocol.sizes if sized else ()) if search else ()))


def frozen(row: Chosen, runs: Runs, inner_steps: int) -> Chosen:
    """The same row with its decoder frozen after the epochs of the table, and its arc scorer trained anew for as many."""
    return row.replace(runs, inner_steps=inner_steps, frozen_after=row.config.epochs) if row else row


def timed(task: str, protocol: Protocol, runs: Runs) -> list[Chosen]:
    """Short runs of every row that train one after the other, with nothing beside them: for the time of an epoch alone."""
    short = replace(protocol.having(epochs=1, train_examples=2000), seeds=(2000,), whole=None)
    return choose(short, runs, search=False)


def choose(protocol: Protocol, runs: Runs, *, search: bool, names: Sequence[str] = ROWS) -> list[Chosen]:
    return [table_plan(name, protocol, search=search).choose(runs) for name in names]


def with_others(protocol: Protocol, runs: Runs, *, search: bool) -> list[Chosen]:
    """The paper's rows, and those other estimators that have runs for the same table."""
    found = choose(protocol, runs, search=search, names=list(METHODS))
    return [row for row in found if row.estimator in ROWS or row.done]


def results(title: str, protocol: Protocol, found: Sequence[Chosen], runs: Runs, *words: str) -> Table:
    """The paper's table for one task, ours beside the paper's; each run at its epoch with the best validation accuracy."""
    columns = [
        *measured(
            _SPLITS, "{}_accuracy", judged=not protocol.warning,
            paper=lambda row, split: reported("structured", row.method.label, TASKS[protocol.task].title, split),
        ),
        Column("depth", "Depth", of=lambda row: row.cell("test_depth") if row.method.latent and row.done else None),
        Column("seeds", "Seeds", of=lambda row: f"{len(row.done)} of {len(row.runs)}" if row else "0"),
    ]  # fmt: skip
    notes = [
        "Accuracy in percent. *: stochastic. Depth: of the best trees on the test set; one word at the root and all others "
        "below it make 2, all words at the root 1."
    ]
    about = {"warning": protocol.warning, "command": runs.command("table2", "--task", protocol.task, *words)}
    return table_of(f"{title}. {made_with(found)}", found, columns, notes, name=protocol.task, **about)


def settings(found: Sequence[Chosen]) -> Table:
    """Which learning rate and step size each row has, and at which epoch its models were chosen: each, or median and range."""

    def best(row: Chosen) -> str:
        values = row.values("best_epoch")
        each = ", ".join(f"{value:.0f}" for value in values)
        return each if len(values) < 5 else f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"

    return settings_of([row for row in found if row], {"best epoch": best, "epochs": lambda row: row.config.epochs})


def speed(task: str, found: Sequence[Chosen]) -> Table:
    """The time of an epoch beside the paper's, and how much of it is inference over trees."""
    lines = []
    for row in found:
        epochs = [each for run in row.done for each in run.curve()]
        times, shares = ([each[name] for each in epochs if name in each] for name in ("seconds", "latent_share"))
        if times:
            seconds, share = f"{statistics.median(times):.1f}", f"{statistics.median(shares):.0%}" if shares else ""
            where = {f"{run.result.get('device')}, {run.result.get('threads')} threads" for run in row.done}
            paper = reported("structured", row.method.label, TASKS[task].title, "minutes")
            lines.append((row.label, seconds, f"{paper.value:g}" if paper else "", share, "; ".join(sorted(where))))
    notes = ["Median over all epochs and seeds, evaluation not counted. Runs that share a device are slower than alone."]
    columns = ["Model", "seconds", "paper, minutes", "latent part", "device"]
    return Table.of_words(f"{TASKS[task].title}: one epoch of training", columns, lines, notes)


def steps_table(title: str, found: Sequence[Chosen], runs: Runs) -> Table:
    """Test accuracy against the number of inner steps."""

    def at(row: Chosen, k: int) -> Chosen:
        return row.replace(runs, inner_steps=k)

    def depths(row: Chosen) -> str:
        each = [at(row, k).values("test_depth") for k in INNER_STEPS]
        return ", ".join(f"{statistics.fmean(values):.1f}" for values in each if values)

    def accuracy(k: int) -> Callable[[Chosen], Cell]:
        return lambda row: at(row, k).cell("test_accuracy")

    columns = [*(Column(f"k = {k}", f"k = {k}", of=accuracy(k)) for k in INNER_STEPS), said("depth", "Depth at each", depths)]
    table = table_of(f"{title}. {made_with(found)}", found, columns, ["k: inner steps. Test accuracy in percent."])
    return replace(table, rows=[replace(row, heading="") for row in table.rows], name="steps-text")


def curves(runs: Runs, protocol: Protocol) -> Figure:
    """Validation accuracy and depth against epochs."""
    labels = {"accuracy": "Validation: Accuracy (%)", "depth": "Validation: Depth of the trees"}
    drawn = learning_curves(choose(protocol, runs, search=True), labels, "epoch", statistics.fmean)
    note = "Learning rates of the search; mean and range of the seeds."
    return Figure(f"{TASKS[protocol.task].title}: learning curves", drawn, f"{protocol.task}-curves", note)


def steps(runs: Runs, protocol: Protocol) -> Figure:
    """Test accuracy and depth with 1, 2 and 5 inner steps, at the setting that the search chose."""
    found = choose(protocol, runs, search=True, names=STEPPED)
    at = {k: [row.replace(runs, inner_steps=k) for row in found] for k in INNER_STEPS}
    labels = {"test_accuracy": "Test: Accuracy (%)", "test_depth": "Test: Depth of the trees"}
    drawn = curves_against("Inner steps", at, labels, statistics.fmean)
    note = "Learning rates of the search with one step; mean and range of the seeds."
    return Figure("SST: the number of inner steps", drawn, "sst-steps", note)


def made_with(found: Sequence[Chosen]) -> str:
    """The vectors and the share of the data, as the runs recorded them."""
    words: dict[tuple[Any, ...], str] = {}
    for run in (run for row in found for run in row.done):
        data: Any = run.result.get("data")
        limit = run.config.get("train_examples")
        try:
            part = f"the first {limit}" if limit else f"{data['share']['train']:.0%}"
            text = f"Vectors {data['vectors']} ({data['coverage']:.1%} of tokens), {part} of the training data"
            words[text, data["checksums"]["train"], data["checksums"]["vectors"]] = text
        except (TypeError, KeyError, ValueError):
            words["unknown",] = "data not recorded"
    mixed = "; NOT THE SAME DATA IN ALL ROWS" if len(words) > 1 else ""
    return "; ".join(sorted(set(words.values()))) + mixed if words else "No runs at these settings yet"


def titled(protocol: Protocol) -> str:
    """The task and the number of epochs."""
    epochs = protocol["epochs"]
    return f"{TASKS[protocol.task].title}, {epochs} epoch{'s' * (epochs != 1)}"


def _with_seeds(protocol: Protocol) -> str:
    return f"{titled(protocol)}, {len(protocol.seeds)} seeds"


def groups(runs: Runs) -> list[Group]:
    """The tables in every way they were run; times and figures. On the data of most of the runs."""
    protocols = {task: on_data_of(runs, protocol) for task, protocol in FULL.items()}
    titles = {task: _with_seeds(protocol) for task, protocol in protocols.items()}
    found, missing = [], NO_RUNS if any(map(runs.of, TASKS)) else ""  # without any run, the page shows what there would be
    for task, search in (("sst", True), ("snli", True), ("sst", False), ("snli", False)):
        rows = with_others(protocols[task], runs, search=search)
        table = results(titles[task], protocols[task], rows, runs, *["--search"] * search)
        how = "the learning rate that the search chose for each row" if search else "the paper's best settings"
        many = (
            protocols[task]["epochs"] != FULL[task]["epochs"]
        )  # of which some runs of the search are at the paper's settings, too
        if search or (all(row.done for row in rows) if many else table.runs):
            tables = [table, settings(rows)] if search else [table]
            found.append(Group(f"{TASKS[task].title}, at {how}", tables, warning="" if table.runs else missing))
    sst = choose(protocols["sst"], runs, search=True, names=STEPPED)
    stepped = any(row.replace(runs, inner_steps=k).done for row in sst for k in INNER_STEPS[1:])
    table = steps_table(titles["sst"], sst, runs)
    found.append(Group("SST, the number of inner steps", [table], warning="" if stepped else missing))
    times = [speed(task, choose(protocols[task], runs, search=True)) for task in protocols]
    found.append(Group("Time", [table for table in times if table.rows] or times))
    for task, protocol in QUICK.items():
        protocol = on_data_of(runs, protocol)
        table = results(titled(protocol), protocol, with_others(protocol, runs, search=False), runs, "--quick")
        found += [Group(f"Quick runs, {TASKS[task].title}", [table], warning=protocol.warning)] if table.runs else []
    drawn = [curves(runs, each) for each in protocols.values()] + [steps(runs, protocols["sst"])] * stepped
    return [group for group in (*found, Group("Figures", figures=drawn)) if group]


def wide_on(runs: Runs) -> Protocol:
    """The wider search on the data, and on as much of it, as most runs on SST."""
    usual = on_data_of(runs, FULL["sst"])
    parts = Counter(run.config.get("train_examples") for run in runs.of("sst"))
    part = parts.most_common(1)[0][0] if parts else None
    return WIDE.having(data=usual["data"], vectors=usual["vectors"], **({"train_examples": part} if part else {}))


def wide_groups(runs: Runs) -> list[Group]:
    wide = wide_on(runs)
    rows = choose(wide, runs, search=True)
    table = results(_with_seeds(wide), wide, rows, runs, "--search", "--wide", "--seeds", "20")
    return [Group("SST, a wider search", [table, *([settings(rows)] if any(rows) else [])])]
