"""ListOps: which runs are made, which setting each row has, the tables, and what follows.

Fixed before the runs:

1. Screening: every row with seed 0 at three learning rates, the same for all; step sizes and all else at their defaults.
   A row's learning rate is the one with the best validation accuracy (the first of equals).
2. Final: seeds 0 to 4 at that rate for the baselines, the rows of the paper's table of trees, and the five best of all
   latent rows by validation execution in the screening: the share of expressions that the best tree evaluates to the label.
3. Long: the baselines and the five best latent rows by validation execution in the screening train with seeds 0 to 4 in the
   published setting (100,000 expressions, learning rate 5e-4) for 30 epochs; up to 100 are published. Tuned: the same rows for
   20,000 steps, with scores divided by sqrt(d), an entropy bonus and noise that are annealed, a slower encoder and clipping.
   Both were changed before any such run: the first rule had two rows and one seed.
4. A run counts with its best model on the validation data, on the test data. Claims are about means over the seeds with 95%
   intervals of paired differences (`verdicts`); TIED is one point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pullback_study.published import rows as rows_of
from pullback_study.results.cells import Cell, comparable
from pullback_study.results.choice import Chosen, Plan, Protocol, Runs, said, table_of
from pullback_study.results.figures import Figure, learning_curves
from pullback_study.results.paper.verdicts import Claim, Finding, Values, decide, exceeds, level, minus, near
from pullback_study.results.registry import Group, Section
from pullback_study.results.tables import Column, Table
from pullback_study.tasks import find_task
from pullback_study.tasks.listops.task import EXTRAPOLATED, RATES
from pullback_study.tasks.own import BLENDED

TASK = find_task("listops")
METHODS = TASK.methods
ROWS = tuple(sorted(METHODS, key=lambda name: ("Baselines", "Relaxed", "Argmax").index(METHODS[name].kind)))
BASELINES = ("lstm", "gold")
PAPER = tuple(name for name, method in METHODS.items() if method.latent and method.label in rows_of("structured"))
BEST = 5
TIED = 1.0
"""A shortfall, in points, that counts as none."""
COLUMNS = {
    "test_accuracy": "Accuracy", "test_execution": "Execution", "test_attachment": "Attachment",
    "test_attachment_open": "Without brackets", "test_attachment_operators": "Inner operators",
    "test_attachment_digits": "Digits", "test_attachment_brackets": "Closing brackets",
    "test_precision": "Precision", "test_recall": "Recall", "test_sampled": "Sampled arcs",
    "depth_8_accuracy": "Accuracy, depth 8",
    "depth_8_attachment": "Attachment, depth 8", "depth_10_accuracy": "Accuracy, depth 10",
    "depth_10_attachment": "Attachment, depth 10",
}  # fmt: skip
PUBLISHED = {
    "LSTM": (92.1, None, None),
    "spanning tree, Gumbel": (91.2, 33.1, 47.9),
    "arborescence, Gumbel": (95.0, 75.5, 71.9),
    "arborescence, Gaussian": (95.0, 65.3, 60.8),
    "gold edges": (98.1, None, None),
}
"""Accuracy, edge precision and recall of Paulus et al. (2020), quoted from memory: 100,000 expressions, up to 100 epochs."""


FULL = Protocol(TASK.name, (0, 1, 2, 3, 4), rates=RATES)
BEDS = {
    "all": "every token may be a head", "open": "closing brackets are no heads", "operators": "operators alone are heads",
}  # fmt: skip
"""Without a limit, a closing bracket may relay the value of what hangs on it, so the gold tree is not identified."""
_SMALL = {"train_examples": 400, "validation_examples": 100, "test_examples": 100, "deeper_examples": 20, "steps": 20}
QUICK = replace(FULL.on((0,)).having(**_SMALL, evaluate_every=10, depth=3, batch_size=20), rates=RATES[-1:])
_LARGE = {"train_examples": 100_000, "validation_examples": 10_000, "test_examples": 10_000}
LONG = replace(FULL.having(**_LARGE, steps=30_000, evaluate_every=1000), rates=RATES[:1])
TUNED = LONG.having(
    steps=20_000, scaled=True, entropy=0.1, entropy_steps=5000, noise_steps=5000, encoder_rate=0.5, clip=1.0
)  # fmt: skip
SHORT = {3: 20, 8: 50}
"""Of the beds of other depths, the most tokens of an expression."""


def on_bed(protocol: Protocol = FULL, *, depth: int | None = None, tokens: int | None = None, **knobs: Any) -> Protocol:
    """The same on another bed: which tokens may be heads, whether there are closing brackets, how deep and how long."""
    size = {"depth": depth, "tokens": tokens or SHORT.get(depth or 0)}
    return protocol.having(**knobs, **{name: value for name, value in size.items() if value})


OTHERS = (
    on_bed(heads="open"), on_bed(heads="operators"), on_bed(brackets=False), *(on_bed(depth=depth) for depth in SHORT),
    on_bed(heads="operators", depth=8),
)  # fmt: skip


def special(protocol: Protocol) -> tuple[str, list[str]]:
    """What is special about a bed, in words and on the command line; nothing for the usual one."""
    words, given = [], []
    if (heads := protocol["heads"]) != "all":
        words, given = [BEDS[heads]], ["--heads", heads]
    if not protocol["brackets"]:
        words, given = [*words, "no closing brackets, four arguments each"], [*given, "--no-brackets"]
    size = {name: protocol[name] for name in ("depth", "tokens")}
    if size != {name: FULL[name] for name in size} and protocol["steps"] >= FULL["steps"]:
        words.append(f"depth {size['depth']}, at most {size['tokens']} tokens")
        given += [text for name, value in size.items() for text in (f"--{name}", str(value))]
    return ", ".join(words), given


def plan(name: str, protocol: Protocol = FULL) -> Plan:
    """A row: the learning rates of the search, which seed 0 chooses from."""
    return replace(protocol.plan(name, protocol.rates), deciders=protocol.deciding)


def screened(runs: Runs, protocol: Protocol = FULL) -> list[tuple[str, Chosen]]:
    """The latent rows whose screening is done, the best validation execution first; ours came after it."""
    names = [name for name in ROWS if METHODS[name].latent and name != BLENDED.name]
    found = [(name, chosen) for name in names if (chosen := plan(name, protocol).choose(runs))]
    return sorted(found, key=lambda item: -comparable(item[1].values("validation_execution")[0]))


def finalists(runs: Runs, protocol: Protocol = FULL) -> list[str]:
    """The rows that get all seeds, in the order of the table."""
    best = [name for name, _ in screened(runs, protocol)][:BEST]
    return [name for name in ROWS if name in (*BASELINES, *PAPER, *best)]


def contenders(runs: Runs, protocol: Protocol = FULL) -> list[str]:
    """The rows that train longer; the baselines alone before the screening."""
    best = [name for name, _ in screened(runs, protocol)][:BEST]
    return [name for name in ROWS if name in (*BASELINES, *best)]


def shown(runs: Runs, protocol: Protocol = FULL) -> list[str]:
    """The finalists, and other rows that were given all seeds after the screening was known."""
    rule = finalists(runs, protocol)
    return [name for name in ROWS if name in rule or (len(protocol.seeds) > 1 and plan(name, protocol).choose(runs).complete)]


def results(runs: Runs, protocol: Protocol = FULL, *, final: bool, names: Sequence[str] = ()) -> Table:
    """All rows with seed 0; or the finalists, or the rows of these names, with all seeds that are done."""
    rows = [plan(name, protocol).choose(runs) for name in ((names or shown(runs, protocol)) if final else ROWS)]
    added = set() if names else set(shown(runs, protocol)) - set(finalists(runs, protocol))
    if not final:
        rows = [replace(row, runs=row.runs[:1], configs=row.configs[:1]) for row in rows]

    def cell(row: Chosen, measure: str) -> Cell | None:
        there = row.estimator != "lstm" or measure.endswith("accuracy")
        there &= protocol["brackets"] or measure != "test_attachment_brackets"
        return row.cell(measure, digits=1) if there else None

    columns = [Column(name, label, of=partial(cell, measure=name)) for name, label in COLUMNS.items()]
    columns += [
        said("rate", "Learning rate", lambda row: f"{row.config.learning_rate:g}"),
        said("ms", "ms per step", lambda row: f"{min(row.values('step_ms')):.1f}" if row.done else ""),
        said("seeds", "Seeds", lambda row: str(len(row.done))),
    ]
    notes = [
        "Percent. *: stochastic. Execution: the share of expressions that the best tree evaluates to the label, by the exact "
        "rules. Attachment: of the best trees, all tokens but the root; without brackets: closing brackets are not counted. "
        "Precision, recall: of arcs with a weight above 1/2 in what the decoder sees. Depths 8, 10: as many rounds of "
        "messages. Sampled arcs: attachment of trees of perturbed scores, argmax(s + Gumbel noise): their precision and "
        "recall, like the published numbers. ms per step: all runs of a group together, on a shared GPU."
    ]
    if final and added:
        labels = ", ".join(METHODS[name].label for name in ROWS if name in added)
        notes.append(f"Not among the finalists by the rule, and added when the screening was known: {labels}.")
    title = f"Seeds 0 to {protocol.seeds[-1]}" if final else "Screening: seed 0, the best of three learning rates"
    bed, given = special(protocol)
    title += f"; {bed}" * bool(bed)
    about = {"warning": protocol.warning, "command": runs.command("listops", *given)}
    return table_of(title, rows, columns, notes, name="listops" if final else "listops-screening", **about)


def long_runs(runs: Runs, protocol: Protocol = FULL, *, tuned: bool = False) -> Table:
    """The baselines and the best rows of a bed in the published setting, or with the options that anneal and clip."""
    table = results(runs, longer(protocol, tuned=tuned), final=True, names=contenders(runs, protocol))
    words, given = special(protocol)
    title = "20,000 steps, annealed and clipped" if tuned else "30 epochs"
    title = f"100,000 expressions, {title}, learning rate 5e-4, seeds 0 to 4" + f"; {words}" * bool(words)
    name = "tuned" if tuned else "long"
    return replace(table, title=title, name=f"listops-{name}", command=runs.command("listops", f"--{name}", *given))


def longer(protocol: Protocol, *, tuned: bool) -> Protocol:
    """The long runs of a bed."""
    bed = {name: protocol[name] for name in ("heads", "brackets", "depth", "tokens")}
    return (TUNED if tuned else LONG).having(**bed)


def by_depth(runs: Runs, protocol: Protocol = FULL) -> Table:
    """Accuracy and attachment of the finalists on test expressions of each depth."""
    depths = sorted({*range(1, protocol["depth"] + 1), *EXTRAPOLATED})

    def pair(row: Chosen, depth: int) -> str:
        cells = [row.cell(f"depth_{depth}_{measure}") for measure in ("accuracy", "attachment")]
        return " / ".join(f"{cell.value:.1f}" for cell in cells if cell.finite)

    columns = [Column(str(depth), f"depth {depth}", of=partial(pair, depth=depth)) for depth in depths]
    rows = [plan(name, protocol).choose(runs).row(columns) for name in shown(runs, protocol)]
    rows = [replace(row, label=METHODS[row.name].label, note="") for row in rows]
    return Table("Accuracy / attachment by depth, means over the seeds", columns, rows, [], "listops-depth", protocol.warning)


def published() -> Table:
    """The numbers of Paulus et al. for comparison."""
    rows = [(label, *("" if each is None else f"{each:g}" for each in numbers)) for label, numbers in PUBLISHED.items()]
    notes = [
        "From memory, and not verified: their code was never released. 100,000 expressions, up to 100 epochs, non-projective "
        "trees for arborescences. A precision and a recall that differ cannot both be of argmax trees over the same tokens: "
        "compare them with the arcs of noisy samples."
    ]
    return Table.of_words("Published", ["Model", "accuracy", "edge precision", "edge recall"], rows, notes)


def values(runs: Runs, name: str, measure: str) -> Values:
    """Of a row with all its seeds; none before."""
    return row.values(measure) if (row := plan(name).choose(runs)).complete else []


def gold_is_best(runs: Runs) -> list[Finding]:
    """ListOps: the decoder with gold trees is the best row, or tied with it.

    Rule: for each finalist, its accuracy exceeds that of the row with gold trees by less than one point (TIED).
    """
    gold = values(runs, "gold", "test_accuracy")
    return [
        near(f"{METHODS[name].label} - gold trees, accuracy", minus(values(runs, name, "test_accuracy"), gold), TIED)
        for name in finalists(runs)
        if name != "gold"
    ] or [Finding("the finalists")]


def trees_help(runs: Runs) -> list[Finding]:
    """ListOps: the task needs its trees: gold trees are better than an LSTM without trees.

    Rule: the accuracy with gold trees exceeds the LSTM's by more than one point, on the test data and at depths 8 and 10.
    """
    found = []
    for measure in ("test_accuracy", "depth_8_accuracy", "depth_10_accuracy"):
        difference = minus(values(runs, "gold", measure), values(runs, "lstm", measure))
        found.append(exceeds(f"gold trees - LSTM, {measure.replace('_', ' ')}", difference, TIED))
    return found


def recovery_beats_published(runs: Runs) -> list[Finding]:
    """ListOps: some estimator recovers the trees better than the best published row.

    Rule: for the finalist with the highest mean validation attachment, edge precision and recall exceed those of the
    published arborescence with Gumbel noise.
    """
    names = [name for name in finalists(runs) if METHODS[name].latent]
    found = {name: values(runs, name, "validation_attachment") for name in names}
    if not found or not all(found.values()):
        return [Finding("the finalists")]
    best = max(found, key=lambda name: comparable(level(found[name])))
    _, precision, recall = PUBLISHED["arborescence, Gumbel"]
    return [
        exceeds(f"{METHODS[best].label}, edge {measure}", values(runs, best, f"test_{measure}"), threshold)
        for measure, threshold in (("precision", precision or 0.0), ("recall", recall or 0.0))
    ]


CLAIMS: dict[int, Callable[[Runs], list[Finding]]] = {101: gold_is_best, 102: trees_help, 103: recovery_beats_published}
"""Claims of our own, numbered above the paper's."""


def claims(runs: Runs) -> list[Claim]:
    """None without runs."""
    return decide(CLAIMS, runs) if runs.of(TASK.name) else []


def curves(runs: Runs, protocol: Protocol = FULL) -> Figure:
    """Validation accuracy and attachment against steps."""
    measures = {"accuracy": "Validation: accuracy (%)", "attachment": "Validation: attachment (%)"}
    drawn = learning_curves([plan(name, protocol).choose(runs) for name in shown(runs, protocol)], measures)
    return Figure("ListOps: learning curves", drawn, "listops-curves", "Median and range of the seeds.")


def groups(runs: Runs) -> list[Group]:
    found = [
        Group("Five seeds", [results(runs, final=True), published()]),
        Group("By depth", [by_depth(runs)]),
        Group("Learning curves", figures=[curves(runs)]),
        Group("Screening of all estimators", [results(runs, final=False)]),
        Group("Long runs", [long_runs(runs, tuned=tuned) for tuned in (False, True)]),
        *(Group(f"Five seeds, {special(bed)[0]}", [results(runs, bed, final=True)]) for bed in OTHERS),
        Group("Long runs, operators alone are heads", [long_runs(runs, OTHERS[1], tuned=tuned) for tuned in (False, True)]),
    ]
    return [group for group in found if group]


SECTION = Section(
    "Nested operations on digits: accuracy, and recovery of the gold dependency trees.", groups, claims, (TASK.name,)
)
