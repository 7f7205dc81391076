"""The sections of the report, from the runs of a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pullback_study.report import performance
from pullback_study.report.forest import forest
from pullback_study.report.html import badge, claim, command, esc, figure, notes, sortable, table, tabs
from pullback_study.results.choice import Runs, history
from pullback_study.results.commands import command as make
from pullback_study.results.configurations import best_curves, configurations, describe, label_of, varying
from pullback_study.results.paper.verdicts import Verdict
from pullback_study.results.registry import SECTIONS, Section, find_section
from pullback_study.results.svg import spark

if TYPE_CHECKING:
    from pullback_study.runs.store import Stored

_STATES = ("done", "running", "stopped", "failed", "unreadable")
_CONFIGURATIONS, _SPARKS, _POINTS = 300, 3000, 24


def render(runs: Runs, benchmarks: Sequence[Path]) -> list[tuple[str, str, str]]:
    """For each section its id, its name in the navigation and its HTML."""
    sections = [find_section(name) for name in SECTIONS]
    parts = [("runs", "All runs", _runs(runs))]
    parts += [(name, section.title, _results(section, runs)) for name, section in zip(SECTIONS, sections, strict=True)]
    parts += [("claims", "Claims", _claims(sections, runs)), ("trees", "Trees", forest(runs))]
    if benchmarks:
        parts.append(("performance", "Performance", performance.render(benchmarks)))
    return [(name, title, f'<section id="{name}"><h2>{esc(title)}</h2>{body}</section>') for name, title, body in parts]


def summary(runs: Runs) -> str:
    """How many runs there are, and where they were made."""
    states = Counter(run.state for run in runs.all)
    counted = ", ".join(f"{states[state]} {state}" for state in _STATES if states[state]) or "none yet"
    made = Counter(str(run.result["device"]) for run in runs.all if run.result.get("device"))
    where = ", ".join(f"{esc(name)} ({count})" for name, count in made.most_common(3))
    return f"Runs: {counted}." + (f" Devices: {where}." if where else "")


def _results(section: Section, runs: Runs) -> str:
    panels, first = [], 0
    for i, group in enumerate(found := section.groups(runs)):
        first = first if any(each.runs for each in found[first].tables) else i
        warning = f'<p class="warning">{esc(group.warning)}</p>' if group.warning else ""
        panels.append((group.title, warning + "".join(map(table, group.tables)) + "".join(map(figure, group.figures))))
    about = f"<p>{esc(section.about)} Focus or tap one of our numbers to see the runs behind it.</p>"
    return about + tabs(section.title, panels, first)


def _claims(sections: Sequence[Section], runs: Runs) -> str:
    found = sorted((each for section in sections for each in section.claims(runs)), key=lambda each: each.number)
    counted = Counter(each.verdict for each in found)
    verdicts = "".join(f"<span>{badge(verdict)} {counted[verdict]}</span>" for verdict in Verdict)
    todo = sorted({words for section in sections for words in section.needs}) if any(
        each.evidence == "runs missing" for claim in found for each in claim.findings
    ) else []  # fmt: skip
    making = "".join(f"<p>{command(make(*words, runs=runs.folder))}</p>" for words in todo)
    missing = f'<details class="missing"><summary>Some runs are missing; these commands make them</summary>{making}</details>'
    return (
        "<p>The paper's claims, each with a verdict from our own runs, by a rule that was committed before the runs were made: "
        "paired differences over the seeds with 95% intervals. <em>Not decided</em> is the default. Open a claim to see its "
        f'rule and what was found.</p><p class="verdicts">{verdicts}</p>' + (missing if todo else "") + "".join(map(claim, found))
    )


def _runs(runs: Runs) -> str:
    """For each task its configurations, their curves, and every run."""
    if not runs.all:
        first = command("pullback reproduce table1 --quick")
        return f"<p>There are no runs in <code>{esc(runs.folder)}/</code>. This command makes some: {first}</p>"
    names = dict.fromkeys(sorted((run.task for run in runs.all), key=lambda name: (name == "?", name)))
    return tabs("Task", [(describe(name).title if name != "?" else "Unreadable", _task(name, runs)) for name in names])


def _task(name: str, runs: Runs) -> str:
    done = runs.of(name)
    body = ""
    if done:
        body += table(configurations(name, done, limit=_CONFIGURATIONS))
        curves = best_curves(name, done)
        body += figure(curves) if curves.drawn else ""
    fields = ["estimator", *(name for name in varying([run.config for run in runs.all]) if name != "estimator"), "seed"]
    listed = [run for run in runs.all if run.task == name]
    listed.sort(key=lambda run: [_key(run.config.get(field)) for field in fields])
    return body + _listing(name, listed)


def _key(value: object) -> tuple[int, float, str]:
    """Numbers by their size, then everything else by its words."""
    return (0, float(value), "") if isinstance(value, int | float) else (1, 0.0, str(value))


def _listing(name: str, listed: Sequence[Stored]) -> str:
    """Every run: what differs between their configs, their metrics and their curves."""
    about = describe(name, listed)
    fields = [field for field in varying([run.config for run in listed]) if field != "estimator"]
    curves = [metric for metric in about.metrics if metric.curve][:2]
    columns = ["Estimator", *(field.replace("_", " ") for field in fields), "Seed", "State"]
    columns += [*(metric.label for metric in about.metrics), *(f"Curve: {metric.label}" for metric in curves), "Run"]
    rows = [_run(name, run, fields, about.metrics, curves if i < _SPARKS else ()) for i, run in enumerate(listed)]
    left = max(0, len(listed) - _SPARKS)
    said = [f"Curves are drawn for the first {_SPARKS} runs, to keep this page small."] if left and curves else []
    older = sum(run.older for run in listed)
    said += [f"{older} runs of an older version of this task are listed, and not used in tables."] if older else []
    filtering = '<p><label>Filter: <input class="filter" type="search"></label></p>'
    return filtering + sortable(f"Every run ({len(listed)})", columns, rows) + notes(said)


def _run(
    task: str, run: Stored, fields: Sequence[str], metrics: Sequence[Any], curves: Sequence[Any]
) -> list[tuple[str, object]]:
    estimator = label_of(task, str(run.config.get("estimator", "?")))
    values = [run.config.get(field) for field in fields]
    cells: list[tuple[str, object]] = [(esc(estimator), estimator)]
    cells += [("" if value is None else esc(f"{value:g}" if isinstance(value, float) else value), value) for value in values]
    state = f'<span data-state="{esc(run.state)}">{esc(run.state)}{" (older)" if run.older else ""}</span>'
    if run.error:
        state += f"<details><summary>why</summary><pre>{esc(run.error[:2000])}</pre></details>"
    cells += [("" if run.seed is None else esc(run.seed), run.seed), (state, run.state)]
    for metric in metrics:
        value = run.metrics.get(metric.name)
        good = isinstance(value, int | float) and value == value
        cells.append((esc(f"{value:.{metric.digits}f}") if good else "", value if good else None))
    rows = run.curve() if curves else []
    for metric in curves:
        found = list(history(rows, metric.curve).values())
        thin = found[:: max(1, len(found) // _POINTS)]
        words = f"{len(found)} evaluations, from {found[0]:.4g} to {found[-1]:.4g}, at most {max(found):.4g}" if found else ""
        cells.append((f'<span title="{words}">{spark(thin)}</span>' if found else "", found[-1] if found else None))
    return [*cells, (f"<code>{esc(run.id[:12])}</code>", run.id)]
