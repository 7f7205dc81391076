"""The sections of the report, from the runs of a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pullback_study.report.html import badge, claim, command, esc, figure, groups, notes, sortable, table
from pullback_study.results.choice import Runs
from pullback_study.results.configurations import best_curves, configurations, describe, label_of, parts, varying
from pullback_study.results.paper.verdicts import Verdict
from pullback_study.results.registry import SECTIONS, Section, find_section
from pullback_study.runs.store import STATES, Stored

_CONFIGURATIONS = 300  # the most of a table
_CLAIMS = """<p>The paper's claims, each with a verdict from our own runs, by a rule that was committed before the runs were
made: paired differences over the seeds with 95% intervals. <em>Not decided</em> is the default. Open a claim to see its rule
and what was found.</p>"""


def render(runs: Runs) -> list[tuple[str, str, str]]:
    """For each section its id, its name in the navigation and its HTML."""
    sections = [find_section(name) for name in SECTIONS]
    parts = [("runs", "All runs", _runs(runs))]
    parts += [(name, section.title, _results(section, runs)) for name, section in zip(SECTIONS, sections, strict=True)]
    parts += [("claims", "Claims", _claims(sections, runs))]
    return [(name, title, f'<section id="{name}"><h2>{esc(title)}</h2>{body}</section>') for name, title, body in parts]


def summary(runs: Runs) -> str:
    """How many runs there are."""
    states = Counter(run.state for run in runs.all)
    return f"Runs: {', '.join(f'{states[state]} {state}' for state in STATES if states[state]) or 'none yet'}."


def _results(section: Section, runs: Runs) -> str:
    panels, found = [], section.groups(runs)
    for group in found:
        warning = f'<p class="warning">{esc(group.warning)}</p>' if group.warning else ""
        prose = notes(group.prose.split("\n")) if group.prose else ""
        panels.append((group.title, warning + prose + "".join(map(table, group.tables)) + "".join(map(figure, group.figures))))
    first = next((i for i, group in enumerate(found) if any(each.runs for each in group.tables)), 0)
    return f"<p>{esc(section.about)} Open one of our numbers to see the runs behind it.</p>{groups(panels, first)}"


def _claims(sections: Sequence[Section], runs: Runs) -> str:
    found = sorted((each for section in sections for each in section.claims(runs)), key=lambda each: each.number)
    counted = Counter(each.verdict for each in found)
    verdicts = "".join(f"<span>{badge(verdict)} {counted[verdict]}</span>" for verdict in Verdict)
    return f'{_CLAIMS}<p class="verdicts">{verdicts}</p>{"".join(map(claim, found))}'


def _runs(runs: Runs) -> str:
    """For each task its configurations, their curves, and every run."""
    if not runs.all:
        first = command("pullback reproduce table1 --quick")
        return f"<p>There are no runs in <code>{esc(runs.folder)}/</code>. This command makes some: {first}</p>"
    names = sorted({run.task for run in runs.all}, key=lambda name: (name == "?", name))
    return groups([(describe(name).title if name != "?" else "Unreadable", _task(name, runs)) for name in names])


def _task(name: str, runs: Runs) -> str:
    body = ""
    for part, done in parts(name, runs.of(name)).items():
        curves = best_curves(name, done, part)
        body += table(configurations(name, done, limit=_CONFIGURATIONS, part=part)) + (figure(curves) if curves.drawn else "")
    return body + _listing(name, [run for run in runs.all if run.task == name])


def _listing(task: str, listed: list[Stored]) -> str:
    """Every run: what differs between their configs, their states and their metrics."""
    about = describe(task, listed)
    fields = [field for field in varying([run.config for run in listed]) if field != "estimator"]
    listed.sort(key=lambda run: [_key(run.config.get(field)) for field in ("estimator", *fields, "seed")])
    columns = ["Estimator", *(field.replace("_", " ") for field in fields), "Seed", "State"]
    rows = []
    for run in listed:
        estimator = label_of(task, str(run.config.get("estimator", "?")))
        cells = [(esc(estimator), estimator), *(_value(run.config.get(field)) for field in fields)]
        cells += [_value(run.seed), _state(run)]
        cells += [_value(run.metrics.get(metric.name), f".{metric.digits}f") for metric in about.metrics]
        rows.append([*cells, (f"<code>{esc(run.id[:12])}</code>", run.id)])
    older = sum(run.older for run in listed)
    said = [f"{older} runs of an older version of this task are listed, and not used in tables."] if older else []
    filtering = '<p><label>Filter: <input class="filter" type="search"></label></p>'
    headings = [*columns, *(metric.label for metric in about.metrics), "Run"]
    return filtering + sortable(f"Every run ({len(listed)})", headings, rows) + notes(said)


def _value(value: Any, form: str = "g") -> tuple[str, object]:
    return ("" if value is None else esc(f"{value:{form}}") if isinstance(value, float) else esc(value), value)


def _state(run: Stored) -> tuple[str, object]:
    shown = f'<span data-state="{esc(run.state)}">{esc(run.state)}{" (older)" if run.older else ""}</span>'
    if run.error:
        shown += f"<details><summary>why</summary><pre>{esc(run.error[:2000])}</pre></details>"
    return shown, run.state


def _key(value: object) -> tuple[int, float, str]:
    """Numbers by their size, then everything else by its words."""
    return (0, float(value), "") if isinstance(value, int | float) else (1, 0.0, str(value))
