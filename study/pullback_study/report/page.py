"""The report and the explorer: two HTML files that need no network and no other file."""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pullback.estimators import registry
from pullback.viz import visible
from pullback_study.results.choice import Runs
from pullback_study.results.configurations import best_curves, configurations, describe, listing, parts
from pullback_study.results.registry import SECTIONS, Group, find_section
from pullback_study.results.tables import shown
from pullback_study.runs.files import is_special, write_atomically
from pullback_study.runs.store import STATES
from pullback_study.tasks import find_task

_CONFIGURATIONS = 300  # the most of a table


def _as_text(value: Any) -> Any:
    """Whatever comes from data becomes text, never markup; control characters and direction marks become visible."""
    return value if isinstance(value, Markup) else "\n".join(visible(line) for line in str(value).split("\n"))


_LOADER = PackageLoader("pullback_study.report", "assets")
_ASSETS = Environment(loader=_LOADER, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined,
                      finalize=_as_text)  # fmt: skip
_ASSETS.filters["base64"] = lambda text: base64.b64encode(text.encode()).decode()


def write(out: Path, folder: Path) -> list[Path]:
    """Write the report, and the explorer beside it; returns both files. A pipe or a device receives the report alone."""
    if not out.name or out.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(out))
    if is_special(out):
        write_atomically(out, report(Runs(folder)))
        return [out]
    beside = out.with_name("explorer.html" if out.name != "explorer.html" else "mechanics.html")
    write_atomically(out, report(Runs(folder), beside.name))
    write_atomically(beside, explorer_page())
    return [out, beside]


def report(runs: Runs, explorer: str = "explorer.html") -> str:
    """The whole report as HTML: every run, and the sections of the tasks that have some."""
    found = [(name, heading, section) for name in SECTIONS if (heading := (section := find_section(name)).heading(runs))]
    sections = [(name, heading, section.about, list(section.groups(runs))) for name, heading, section in found]
    states = Counter(run.state for run in runs.all)
    body = _ASSETS.get_template("report.html").render(
        made=f"{datetime.now(UTC):%d %B %Y at %H:%M} UTC",
        counts=", ".join(f"{states[state]} {state}" for state in STATES if states[state]) or "none yet",
        sections=[("runs", "All runs", f"Every run in {runs.folder}/.", list(_groups(runs))), *sections],
        claims=sorted((claim for *_, section in found for claim in section.claims(runs)), key=lambda each: each.number),
        explorer=explorer,
        shown=shown,
    )
    return _page("pullback: the study in one page", body, _asset("report.mjs") + "setUp();")


def _groups(runs: Runs) -> Iterator[Group]:
    """For each task its configurations, their curves, and every run."""
    for name in sorted({run.task for run in runs.all}, key=lambda name: (name == "?", name)):
        title, done = describe(name).title if name != "?" else "Unreadable", parts(name, runs.of(name))
        tables = [configurations(name, each, limit=_CONFIGURATIONS, part=part) for part, each in done.items()]
        curves = [best_curves(name, each, part) for part, each in done.items()]
        if tables:
            yield Group(title, tables, curves)
        yield Group(f"{title}, every run", [listing(name, [run for run in runs.all if run.task == name])])


def explorer_page() -> str:
    """The explorer of the mechanics as HTML."""
    given = json.dumps(presets()).replace("<", "\\u003c")
    start = f"globalThis.pullback = {{ evaluate }};explore({given});"
    return _page("pullback: the mechanics", _asset("explorer.html"), _asset("explorer.mjs") + start)


def presets() -> list[dict[str, str]]:
    """The estimators of the registry, in its order, by the classes of their parts; the explorer shows those that it knows."""
    rows, found = find_task("synthetic").methods, []
    for entry in registry.ENTRIES:
        made: Any = entry.make()
        parts = {part: type(getattr(made, part, None)).__name__ for part in ("loss", "start", "update")}
        found.append({"name": entry.name, "title": rows[entry.name].label, "kind": type(made).__name__, **parts})
    return found


def _page(title: str, body: str, script: str) -> str:
    style = _asset("style.css")
    own = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in (style, script)]
    policy = f"default-src 'none'; style-src 'sha256-{own[0]}'; script-src 'sha256-{own[1]}'; img-src data:"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}; base-uri 'none'; form-action 'none'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}\n"
        f'<script type="module">{script}</script>\n</body>\n</html>\n'
    )


def _asset(name: str) -> str:
    return _LOADER.get_source(_ASSETS, name)[0]
