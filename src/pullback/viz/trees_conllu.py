"""Dependency trees as CoNLL-U, the format of Universal Dependencies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pullback.viz.characters import visible
from pullback.viz.checks import checked_heads

_BREAKS = re.compile("[ \t\n\v\f\r\x1c-\x1f\x85\u2028\u2029]+")  # not the no-break space, which words may hold


def tree_conllu(tokens: Sequence[str], heads: Sequence[int] | Any, *, comments: Mapping[str, str] | None = None) -> str:
    r"""A tree as a CoNLL-U sentence, with the blank line that ends it: join several with "".

    Ten columns: the number, the word, its head, and the relation `root` or `dep`; columns that a latent tree does not have
    are `_`. The word `_` stays `_`, which readers take for an underscore as the lemma is `_` too. Line breaks, tabs and
    repeated spaces in a word become a single space, as the format requires, and an empty word becomes `_`.

    Args:
        tokens: the n words; at least one, since the format has no empty sentence.
        heads: the head of each word, `[n]`: 0 is the root, 1 the first word. There may be several roots, which
            the format allows and Universal Dependencies do not.
        comments: lines before the words, for example `{"sent_id": "sst-test-12"}`; `text` is added.

    >>> print(tree_conllu(["fun", "film"], [2, 0], comments={"sent_id": "1"}).replace("\t", " "))
    # sent_id = 1
    # text = fun film
    1 fun _ _ _ _ 2 dep _ _
    2 film _ _ _ _ 0 root _ _
    <BLANKLINE>
    <BLANKLINE>
    """
    listed = checked_heads(tokens, heads)
    if not listed:
        raise ValueError("the sentence has no words; CoNLL-U has no empty sentence")
    forms = [_form(token) for token in tokens]
    notes = {**(comments or {}), "text": " ".join(forms)}
    lines = [f"# {_form(key)} = {_form(value)}" for key, value in notes.items()]
    for word, (form, head) in enumerate(zip(forms, listed, strict=True), 1):
        lines.append("\t".join([str(word), form, *"____", str(head), "dep" if head else "root", "_", "_"]))
    return "\n".join(lines) + "\n\n"


def _form(text: str) -> str:
    return visible(_BREAKS.sub(" ", text).strip(" ")) or "_"
