"""Latent trees on text: the runs, the tables and the figures of the paper, for SST and SNLI."""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pullback_study.results.cells import MEAN, Cell
from pullback_study.results.choice import Chosen, Plan, Runs
from pullback_study.results.choice import over_seeds as with_seeds
from pullback_study.results.commands import command
from pullback_study.results.figures import Curve, Figure, over_seeds, panels
from pullback_study.results.paper.numbers import reported, rows
from pullback_study.results.tables import Column, Row, Table
from pullback_study.tasks import find_task

TASKS = {name: find_task(name) for name in ("sst", "snli")}
METHODS = TASKS["sst"].methods
ROWS = tuple(name for name, method in METHODS.items() if method.label in rows("structured"))
"""The paper's nine rows, in its order."""
STEPPED = ("spigot", "spigot-ce", "spigot-eg")
INNER_STEPS = (1, 2, 5)
DECIDING_SEED = 0
MANY = 20
"""The number of seeds that verdicts rest on, where they are run."""
_SPLITS = {"validation": "Validation", "test": "Test"}
_PANELS = {"accuracy": "Accuracy (%)", "depth": "Depth of the trees"}
# Minutes of an epoch, from the paper's table of training details: SST and SNLI.
MINUTES = {
    "marginals": (3, 4), "sparsemap": (3, 25), "perturb-and-map": (5, 7), "ste-s": (4, 6), "ste-i": (2, 5),
    "spigot": (3, 15), "spigot-ce": (4, 30), "spigot-eg": (5, 7),
}  # fmt: skip

Found = dict[str, Chosen | None]
"""The rows of a table: by estimator its setting and runs, where its setting is known."""


@dataclass(frozen=True)
class Scope:
    """How much is run: the full version, or less."""

    task: str
    seeds: tuple[int, ...]
    epochs: int
    rates: tuple[float, ...]  # of the search, from the paper's grid and the same for every row
    data: str  # the name of the training data
    vectors: str = "googlenews_mapped.300d"
    train_examples: int | None = None  # only the first so many; None: all

    @property
    def options(self) -> dict[str, Any]:
        names = ("epochs", "data", "vectors", "train_examples")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    @property
    def title(self) -> str:
        plural = "s" * (self.epochs != 1)
        return f"{TASKS[self.task].title}, {self.epochs} epoch{plural}"

    @property
    def warning(self) -> str:
        full = FULL[self.task]
        if len(self.seeds) >= len(full.seeds) and self.epochs >= full.epochs and self.train_examples is None:
            return ""
        part = f", the first {self.train_examples} training examples" if self.train_examples else ""
        return (
            f"Reduced: {len(self.seeds)} of {len(full.seeds)} seeds, {self.epochs} of {full.epochs} epochs{part}. These "
            "numbers are not comparable with the paper's."
        )


FULL = {
    "sst": Scope("sst", (0, 1, 2), 40, (1e-4, 5e-4, 1e-3), "sst"),
    "snli": Scope("snli", (0, 1), 5, (1e-4, 3e-4, 1e-3), "snli_1.0_train.first100k"),
}
QUICK = {
    "sst": dataclasses.replace(FULL["sst"], seeds=(0,), epochs=2, rates=(1e-3,)),
    "snli": dataclasses.replace(FULL["snli"], seeds=(0,), epochs=1, rates=(1e-3,), train_examples=5000),
}


def on_data_of(runs: Runs, scope: Scope) -> Scope:
    """The scope with the training data and the vectors that most runs of its task were trained on, if there are any.

    Where these runs have MANY seeds, so has the scope.
    """
    there = Counter((run.config.get("data"), run.config.get("vectors")) for run in runs.of(scope.task))
    if not there:
        return scope
    data, vectors = there.most_common(1)[0][0]
    seeds = {run.seed for run in runs.of(scope.task) if run.config.get("vectors") == vectors}
    many = seeds >= set(range(MANY)) and not scope.warning
    chosen = tuple(range(MANY)) if many else scope.seeds
    return dataclasses.replace(scope, data=str(data), vectors=str(vectors), seeds=chosen)


@functools.cache
def table_plan(estimator: str, scope: Scope, *, search: bool, **options: Any) -> Plan:
    """A row at the paper's best setting, or over the learning rates of the search, which the deciding seed chooses from.

    Step sizes are always the paper's; `options` are other fields of the configs.
    """
    task = TASKS[scope.task]
    rates: Sequence[dict[str, float]] = [{"learning_rate": rate} for rate in scope.rates] if search else [{}]
    given = {name: value for name, value in options.items() if value is not None}
    configs = [task.configure(estimator=estimator, **rate, **scope.options, **given) for rate in rates]
    candidates = tuple(with_seeds(config, scope.seeds) for config in configs)
    deciding = tuple(with_seeds(config, [DECIDING_SEED]) for config in configs) if len(configs) > 1 else ()
    return Plan(task, estimator, candidates, deciding)


def choose(scope: Scope, runs: Runs, *, search: bool, names: Sequence[str] = ROWS) -> Found:
    return {name: table_plan(name, scope, search=search).choose(runs) for name in names}


def with_others(scope: Scope, runs: Runs, *, search: bool) -> Found:
    """The paper's rows, and those other estimators that have runs for the same table."""
    found = choose(scope, runs, search=search, names=list(METHODS))
    return {name: row for name, row in found.items() if name in ROWS or (row and row.done)}


def seed_by_seed(found: Sequence[Chosen | None]) -> list[Any]:
    """All configs of the rows, seed by seed: an interrupted table has its first seeds complete."""
    return [config for seed in zip(*(row.configs for row in found if row), strict=True) for config in seed]


def results(title: str, scope: Scope, found: Found, runs: Runs, *words: str) -> Table:
    """The paper's table for one task, ours beside the paper's; each run at its epoch with the best validation accuracy."""
    columns = [Column(name, label, reference=True) for name, label in _SPLITS.items()]
    columns += [Column("depth", "Depth"), Column("seeds", "Seeds")]
    making = ("reproduce", "table2", "--task", scope.task, *words)
    lines = []
    for name, chosen in found.items():
        cells = {split: _cell(scope, name, chosen, split) for split in _SPLITS}
        if METHODS[name].latent and chosen and chosen.done:
            cells["depth"] = chosen.cell("test_depth", MEAN)
        seeds = f"{len(chosen.done)} of {len(chosen.runs)}" if chosen else "0"
        todo = "" if chosen and chosen.complete else command(*making, "--only", name, runs=runs.folder)
        note = chosen.setting if chosen else ""
        lines.append(Row(_label(name), cells, {"seeds": seeds}, METHODS[name].kind, name, note, todo))
    notes = [
        "Accuracy in percent. *: stochastic. Depth: of the best trees on the test set; one word at the root and all others "
        "below it make 2, all words at the root 1."
    ]
    title = f"{title}. {made_with(found)}"
    return Table(title, columns, lines, notes, scope.task, scope.warning, command(*making, runs=runs.folder))


def settings(found: Found) -> Table:
    """Which learning rate and step size each row has, and at which epoch its model was chosen."""
    rows = []
    for name, chosen in found.items():
        if chosen is not None:
            config, size = chosen.config, "" if chosen.config.step_size is None else f"{chosen.config.step_size:g}"
            best = ", ".join(f"{value:.0f}" for value in chosen.values("best_epoch"))
            rows.append((METHODS[name].label, f"{config.learning_rate:g}", size, best, str(config.epochs)))
    return Table.of_words("Settings", ["Model", "learning rate", "step size", "best epoch", "epochs"], rows)


def speed(task: str, found: Found) -> Table:
    """The time of an epoch beside the paper's, and how much of it is inference over trees."""
    rows = []
    for name, chosen in found.items():
        epochs = [row for run in (chosen.done if chosen else ()) for row in run.curve() if "seconds" in row]
        if chosen is None or not epochs:
            continue
        seconds = f"{statistics.median(row['seconds'] for row in epochs):.1f}"
        share = f"{statistics.median(row['latent_share'] for row in epochs):.0%}" if METHODS[name].latent else ""
        where = {f"{run.result.get('device')}, {run.result.get('threads')} threads" for run in chosen.done}
        minutes = str(MINUTES[name][list(TASKS).index(task)]) if name in MINUTES else ""
        rows.append((_label(name), seconds, minutes, share, "; ".join(sorted(where))))
    notes = ["Median over all epochs and seeds, evaluation not counted. Runs that share a device are slower than alone."]
    columns = ["Model", "seconds", "paper, minutes", "latent part", "device"]
    return Table.of_words(f"{TASKS[task].title}: one epoch of training", columns, rows, notes)


def steps_table(title: str, found: Found, runs: Runs) -> Table:
    """Test accuracy against the number of inner steps."""
    columns = [Column(f"k = {k}", f"k = {k}") for k in INNER_STEPS] + [Column("depth", "Depth at each")]
    lines = []
    for name, chosen in found.items():
        at = {k: chosen.replace(runs, inner_steps=k) if chosen else None for k in INNER_STEPS}
        cells = {f"k = {k}": row.cell("test_accuracy") if row else Cell() for k, row in at.items()}
        depths = [f"{statistics.fmean(values):.1f}" for row in at.values() if row and (values := row.values("test_depth"))]
        lines.append(Row(_label(name), cells, {"depth": ", ".join(depths)}, name=name))
    return Table(f"{title}. {made_with(found)}", columns, lines, ["k: inner steps. Test accuracy in percent."], "steps-text")


def curves(runs: Runs, scope: Scope, *, search: bool) -> Figure:
    """Validation accuracy and depth against epochs."""
    found = choose(scope, runs, search=search)

    def curve(name: str, measure: str) -> Curve | None:
        chosen = found[name]
        return over_seeds(METHODS[name].label, chosen.histories(measure, "epoch"), statistics.fmean) if chosen else None

    drawn = panels(curve, ROWS, {name: f"Validation: {label}" for name, label in _PANELS.items()}, "Epochs")
    note = f"{'Learning rates of the search' if search else 'The paper’s best settings'}; mean and range of the seeds."
    making = command("reproduce", "table2", "--task", scope.task, *["--search"] * search, runs=runs.folder)
    return Figure(f"{TASKS[scope.task].title}: learning curves", drawn, f"{scope.task}-curves", note, making)


def steps(runs: Runs, scope: Scope) -> Figure:
    """Test accuracy and depth with 1, 2 and 5 inner steps, at the setting that the search chose."""
    found = choose(scope, runs, search=True, names=STEPPED)

    def curve(name: str, measure: str) -> Curve | None:
        if (chosen := found[name]) is None:
            return None
        at = {k: chosen.replace(runs, inner_steps=k).values(f"test_{measure}") for k in INNER_STEPS}
        histories = [{k: values[i] for k, values in at.items() if i < len(values)} for i in range(len(chosen.configs))]
        return over_seeds(METHODS[name].label, histories, statistics.fmean)

    drawn = panels(curve, STEPPED, {name: f"Test: {label}" for name, label in _PANELS.items()}, "Inner steps")
    note = "Learning rates of the search with one step; mean and range of the seeds."
    making = command("reproduce", "steps", "--task", "sst", runs=runs.folder)
    return Figure("SST: the number of inner steps", drawn, "sst-steps", note, making)


def made_with(found: Found) -> str:
    """The vectors and the share of the data, as the runs recorded them."""
    words: dict[tuple[Any, ...], str] = {}
    for run in (run for chosen in found.values() if chosen for run in chosen.done):
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


def _cell(scope: Scope, name: str, chosen: Chosen | None, split: str) -> Cell:
    paper = reported("structured", METHODS[name].label, TASKS[scope.task].title, split)
    return chosen.cell(f"{split}_accuracy", MEAN, paper) if chosen else Cell(reference=paper)


def _label(name: str) -> str:
    return f"{'*' * METHODS[name].stochastic}{METHODS[name].label}"
