"""Characters on a terminal: how wide a text is, and how to show what cannot be printed."""

from __future__ import annotations

import unicodedata

_JOINER, _EMOJI_STYLE = "\u200d", "\ufe0f"
_KEPT_FORMATS = {"\u200c", _JOINER}  # they shape letters and emoji; other format characters reorder or hide text


def visible(text: str) -> str:
    r"""The text with control characters, line breaks, direction marks and broken code points as escapes.

    The result can be printed on a terminal and put into XML.

    >>> print(visible("a\tb\x1b[31m"))
    a\tb\x1b[31m
    """
    return "".join(_escape(c) if _is_hidden(c) else c for c in text)


def display_width(text: str) -> int:
    """The number of terminal columns that a text takes.

    Wide characters take two, combining marks none; an emoji sequence (joined, with a skin tone, a flag) takes two.

    >>> display_width("naïve"), display_width("映画"), display_width("👩‍🚀")
    (5, 4, 2)
    """
    total, before, last, flag = 0, "", 0, False
    for c in text:
        width = _width(c)
        if before == _JOINER or "\U0001f3fb" <= c <= "\U0001f3ff":  # continues the emoji before it
            width = 0 if last == 2 else width
        elif c == _EMOJI_STYLE:
            width = 1 if last == 1 else 0
        elif flag and _is_flag_letter(c):
            width, flag = 0, False
        elif _is_flag_letter(c):
            width, flag = 2, True
        else:
            flag = False
        total += width
        before, last = c, width or last
    return total


def has_certain_width(text: str) -> bool:
    """Whether all terminals agree on `display_width`: no emoji sequences, spacing marks or right-to-left letters.

    >>> has_certain_width("映画"), has_certain_width("👩‍🚀"), has_certain_width("סרט")
    (True, False, False)
    """
    return not any(
        c in _KEPT_FORMATS
        or c == _EMOJI_STYLE
        or _is_flag_letter(c)
        or "\U0001f3fb" <= c <= "\U0001f3ff"
        or unicodedata.category(c) in ("Mc", "Cn", "Co")
        or unicodedata.bidirectional(c) in ("R", "AL", "AN")
        for c in text
    )


def padded(text: str, width: int, align: str = "<") -> str:
    """The text with spaces around it up to a display width; `align` is `<`, `>` or `^`, as in format strings.

    >>> padded("映画", 6, ">") + "|"
    '  映画|'
    """
    space = max(width - display_width(text), 0)
    left = {"<": 0, ">": space, "^": space // 2}[align]
    return " " * left + text + " " * (space - left)


def _width(c: str) -> int:
    if "\u1160" <= c <= "\u11ff" or unicodedata.category(c) in ("Mn", "Me", "Cf"):  # medial and final jamo: no column
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


def _is_flag_letter(c: str) -> bool:
    return "\U0001f1e6" <= c <= "\U0001f1ff"


def _is_hidden(c: str) -> bool:
    if c in _KEPT_FORMATS:
        return False
    point = ord(c)
    is_noncharacter = point & 0xFFFE == 0xFFFE or 0xFDD0 <= point <= 0xFDEF
    return is_noncharacter or unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escape(c: str) -> str:
    short = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}
    point = ord(c)
    return short.get(c) or (f"\\x{point:02x}" if point < 256 else f"\\u{point:04x}" if point < 65536 else f"\\U{point:08x}")
