"""The words of the code, which are those of the documentation: no private dialect in docstrings, comments and names.

GPU kernels are left out: a kernel that has run on a GPU keeps the text that ran.
"""

import re
from pathlib import Path

import pytest

import pullback

ROOT = Path(pullback.__file__).parent
FILES = sorted(
    path
    for path in ROOT.rglob("*.py")
    if not re.search(r"^cuda|_cuda\.py$", path.name) and path.parent.name != "_triton"
)  # fmt: skip
WORDS = {
    "so many": "name the number",
    "nobody": "say which program or thread",
    "one program a sentence": "one program per sentence",
    "garbled": "NaN or +inf",
    r"\blean(_kernel)?\b": "subroutine or no_alloc_kernel",
    r"ENTROPY_SLOPE|\bslopes\.py|companion": "tangent, for a derivative along a direction",
    r"\blevels\[\d\]": "a name for the index",
    "trouble": "a status that is not OK, or a bad score",
}


def test_there_are_files_to_read():
    assert len(FILES) > 200


@pytest.mark.parametrize("word", WORDS)
def test_plain_words(word):
    found = [str(path.relative_to(ROOT)) for path in FILES if re.search(word, path.read_text(), re.IGNORECASE)]
    assert not found, f"{word!r} in {', '.join(found)}: write instead: {WORDS[word]}"


def test_docstrings_have_a_subject():
    """A docstring that begins with "What" is a clause without a sentence."""
    found = [str(path.relative_to(ROOT)) for path in FILES if re.search(r'^ *r?"""What\b', path.read_text(), re.MULTILINE)]
    assert not found, f"a docstring begins with 'What' in {', '.join(found)}: begin with the thing, or with 'Returns'"
