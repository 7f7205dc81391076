"""The `pullback` commands in the documentation exist, with the options that they are shown with."""

import re
import shlex
import sys
from pathlib import Path

import typer

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

from blocks import blocks  # noqa: E402

FOLDERS = ("docs", "src", "study", "benchmarks")
PAGES = [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))]
OWN_TASKS = {"pointers"}  # of docs/write-a-task.md, which has a test of its own


def shown(page):
    """The commands in the blocks of a page and between backticks, without comments."""
    text = page.read_text()
    lines = [line for block in blocks(text) if block.language in ("", "sh") for line in block.code.splitlines()]
    lines += re.findall(r"`(pullback [^`\n]+)`", text)
    for line in lines:
        if line.strip().startswith("pullback ") and "..." not in line:
            yield shlex.split(line, comments=True)[1:]


def wrong(command, words):
    """Why the command would be refused, or None."""
    while hasattr(command, "get_command") and words and not words[0].startswith("-"):
        if words[0] in OWN_TASKS:
            return None
        command, name, words = command.get_command(None, words[0]), words[0], words[1:]
        if command is None:
            return f"there is no command {name!r}"
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    unknown = {word.partition("=")[0] for word in words if word.startswith("--")} - known - {"--help"}
    return f"unknown options {sorted(unknown)}" if unknown else None


def test_commands_exist():
    from pullback_study.cli import app

    root, seen = typer.main.get_command(app), 0
    for page in PAGES:
        for words in shown(page):
            seen += 1
            if problem := wrong(root, words):
                raise AssertionError(f"{page.relative_to(ROOT)}: pullback {' '.join(words)}: {problem}")
    assert seen > 30
