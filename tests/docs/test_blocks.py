"""Every Python block of the documentation runs, and sessions print what they show."""

import contextlib
import doctest
import io
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

from blocks import blocks, missing, run  # noqa: E402

FOLDERS = ("docs", "src", "study", "benchmarks")
PAGES = [
    page
    for page in [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))]
    if "_build" not in page.parts
]
RUN = ("python", "{drawing}")
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
with_code = [page for page in PAGES if any(block.language in RUN for block in blocks(page.read_text()))]


@pytest.mark.parametrize("page", sorted(with_code), ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    namespace, skipped = {"__name__": "page"}, []
    for block in blocks(page.read_text()):
        if block.language not in RUN or block.not_run:
            continue
        if lacking := missing(block):
            skipped.append(f"line {block.line} needs {', '.join(lacking)}")
        elif ">>>" in block.code:
            _session(block, namespace, page)
        else:
            with contextlib.redirect_stdout(io.StringIO()):
                run(block.code, namespace, f"{page.name}, line {block.line}")
    if skipped:
        pytest.skip("; ".join(skipped))


def _session(block, namespace, page):
    test = doctest.DocTestParser().get_doctest(block.code, namespace, page.name, str(page), block.line)
    test.globs = namespace
    said = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    runner.run(test, out=said.write, clear_globs=False)
    assert not runner.failures, said.getvalue()


def test_prompts_are_in_blocks():
    """A session outside of a fence would not be run."""
    for page in PAGES:
        inside = sum(block.code.count(">>>") for block in blocks(page.read_text()) if block.language in RUN)
        assert page.read_text().count(">>>") == inside, page.relative_to(ROOT)


def test_the_home_page_has_code():
    home = blocks((ROOT / "docs" / "index.md").read_text())
    assert "CRF" in " ".join(block.code for block in home if block.language == "python")


def test_pages_have_the_titles_that_people_search():
    titles = [page.read_text().partition("\n")[0] for page in (ROOT / "docs" / "how").glob("*.md")]
    for question in (
        "CRF on BERT", "Differentiable top-k", "Hungarian matching on a GPU", "Monotonic alignment for TTS", "Soft-DTW",
        "Shortest paths and SPO+", "Confidence of spans",
    ):  # fmt: skip
        assert any(title.startswith(f"# {question}") for title in titles), question
