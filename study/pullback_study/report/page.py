"""A page: its body, a style and scripts in one file that needs no network and no other file."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

from pullback_study.report import explorer
from pullback_study.report.html import esc
from pullback_study.report.render import render, summary
from pullback_study.results.choice import Runs
from pullback_study.runs.files import write_atomically

_MODULE = re.compile(r'^(?:export (?=const|function)|import \{[^}]*\} from "\./\w+\.mjs";$)', re.MULTILINE)
_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)


def write(out: Path, folder: Path) -> list[Path]:
    """Write the report, and the explorer beside it; returns both files."""
    if out.is_dir():
        raise ValueError(f"--out {out} is a folder; name a file, such as {out / 'report.html'}")
    beside = out.with_name("explorer.html" if out.name != "explorer.html" else "mechanics.html")
    try:
        write_atomically(out, report(Runs(folder), beside.name))
        write_atomically(beside, explorer_page())
    except OSError as error:
        raise ValueError(f"{out} cannot be written: {error.strerror or error}") from error
    return [out, beside]


def report(runs: Runs, explorer: str = "explorer.html") -> str:
    """The whole report as HTML."""
    sections = render(runs)
    time = datetime.now(UTC)
    parts = {
        "summary": summary(runs), "made": f"{time.day} {time:%B %Y at %H:%M} UTC", "explorer": esc(explorer),
        "links": "".join(f'<a href="#{name}">{esc(title)}</a>' for name, title, _ in sections),
        "sections": "".join(body for *_, body in sections),
    }  # fmt: skip
    body = _filled("report.html", parts)
    return _page("pullback: the study in one page", body, ("report",), "setUp();")


def explorer_page() -> str:
    """The explorer of the mechanics as HTML."""
    given = json.dumps(explorer.presets()).replace("<", "\\u003c")
    start = f"globalThis.pullback = {{ evaluate, reachOf, view, toPlane }};explore({given});"
    return _page("pullback: the mechanics", _asset("explorer.html"), ("mechanics", "explorer"), start)


def _page(title: str, body: str, modules: Sequence[str], start: str) -> str:
    style = _asset("style.css")
    code = "".join(_MODULE.sub("", _asset(f"{name}.mjs")) for name in modules)
    script = f'(() => {{\n"use strict";\n{code}{start}}})();\n'
    # Drawings bring styles of their own: a handful of different ones.
    styles = " ".join(f"'{_digest(each)}'" for each in dict.fromkeys([style, *_STYLE.findall(body)]))
    scripts = f"script-src '{_digest(script)}'"
    policy = f"default-src 'none'; style-src {styles}; {scripts}; img-src data:; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{esc(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _filled(template: str, parts: Mapping[str, Any]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset(template))


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
