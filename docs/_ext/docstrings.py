"""Docstrings are plain text with Google's sections; here they become valid reStructuredText for autodoc.

Outside of sections an indented block is a formula and shown as it is. `name` is code. Characters with a meaning in
reStructuredText lose it.
"""

import re

SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields|Example|Examples|Note):\s*$")
INLINE = re.compile(r"`+([^`]+)`+")


EMPHASIS = re.compile(r"(?<![\w*])\*(\w[^*]*\w)\*(?![\w*])")


def escaped(text):
    """Without markup, *emphasis* apart."""
    pieces = EMPHASIS.split(text)  # text, emphasis, text, ...
    pieces[::2] = [re.sub(r"([*|_\\])", r"\\\1", piece) for piece in pieces[::2]]
    return "".join(f"*{piece}*" if i % 2 else piece for i, piece in enumerate(pieces))


def inline(text):
    """One line of prose: code in double backticks, everything else without markup."""
    out, at = [], 0
    for found in INLINE.finditer(text):
        out += [escaped(text[at : found.start()]), f"``{found[1]}``"]
        at = found.end()
    return "".join([*out, escaped(text[at:])])


def rewrite(lines):
    """The lines of a docstring as reStructuredText that napoleon understands."""
    out, section, literal, session = [], False, False, False
    for position, line in enumerate(lines):
        before = lines[position - 1] if position else ""
        if SECTION.match(line):
            section, literal, session = True, False, False
            out.append(line)
        elif line.startswith(">>>") or session:
            session = bool(line.strip())
            section = False
            out.append(line)
        elif line[:1] not in (" ", "") or not line.strip():
            if line.strip():
                section, literal = False, False
            out.append(inline(line))
        elif section or literal:
            out.append(inline(line) if section else line)
        elif not before.strip():  # an indented block: a formula
            literal = True
            out += ["::", "", line]
        else:
            out.append(inline(line.strip()))  # a list's continuation
    return out


def _before_napoleon(app, what, name, obj, options, lines):
    if what in ("attribute", "data", "property"):  # napoleon would take "a: b" for a type and its text
        app.env.temp_data["attribute"] = inline(" ".join(lines).strip())
        lines.clear()
    else:
        lines[:] = rewrite(lines)


def _after_napoleon(app, what, name, obj, options, lines):
    if what in ("attribute", "data", "property"):
        lines[:] = [app.env.temp_data.pop("attribute"), ""]


def setup(app):
    app.connect("autodoc-process-docstring", _before_napoleon, priority=400)
    app.connect("autodoc-process-docstring", _after_napoleon, priority=600)
    return {"parallel_read_safe": True}
