"""The page: template, style, scripts and data in one file that needs no network and no other file."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import resources
from typing import Any

_SCRIPTS = (
    "dom", "format", "mechanics", "plane", "axes", "tips", "sorting", "chart", "figure", "results", "claims", "arcs",
    "treedrawing", "trees", "drawing", "handles", "notes", "controls", "explorer", "performance", "runs", "live", "main",
)  # fmt: skip
"""The modules in the order in which they need each other."""
_EXPORT = re.compile(r"^export (?=(?:async )?(?:const|function|class) (\w+))", re.MULTILINE)
_IMPORT = re.compile(r"^import (\{[^}]*\}) from \"\./(\w+)\.mjs\";$", re.MULTILINE)
# In JSON these characters occur inside of strings alone, where an escape means the same; in HTML they could end the script.
_UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&"}


def render(data: dict[str, Any], *, live: bool = False) -> str:
    """The whole report as HTML.

    Args:
        data: from `collect`, with `made`, when it was made in words.
        live: whether the page asks the server that sent it for newer data.
    """
    style, script = _asset("style.css"), bundle()
    parts = {
        "policy": policy(style, script, live=live),
        "style": style,
        "live": "true" if live else "false",
        "data": embedded(data),
        "script": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("template.html"))


def embedded(data: Any) -> str:
    """JSON that can stand inside a script element: no character of it can end the element or start another.

    >>> print(embedded({"name": "</script>"}).count("<"))
    0
    """
    return json.dumps(data, allow_nan=False, separators=(",", ":")).translate(_UNSAFE)


def bundle() -> str:
    """All modules as one script: each a function that returns its exports, imports taken from those before it."""
    return '(() => {\n"use strict";\n' + "".join(map(_as_function, _SCRIPTS)) + "})();\n"


def _as_function(name: str) -> str:
    source = _asset(f"{name}.mjs")
    exports = ", ".join(_EXPORT.findall(source))
    body = _IMPORT.sub(r"const \1 = $\2;", _EXPORT.sub("", source))
    return f"const ${name} = (() => {{\n{body}return {{ {exports} }};\n}})();\n"


def policy(style: str, script: str, *, live: bool) -> str:
    """The content security policy: this style and this script alone, and no network but, if live, the page's own server."""
    network = "'self'" if live else "'none'"
    return "; ".join([
        "default-src 'none'",
        f"style-src '{_digest(style)}'",
        f"script-src '{_digest(script)}'",
        f"connect-src {network}",
        "base-uri 'none'",
        "form-action 'none'",
    ])  # fmt: skip


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
