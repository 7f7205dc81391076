"""Pages say which commit made their tables, and none rests on code that no commit has."""

from pathlib import Path

import pytest

environment = pytest.importorskip("benchmarks.environment")
RESULTS = Path(__file__).parents[2] / "docs" / "results"


def test_no_results_page_was_made_from_a_tree_with_changes():
    lines = [line for page in RESULTS.glob("*.md") for line in page.read_text().splitlines() if line.startswith("Made by ")]
    assert len(lines) >= 2
    assert not [line for line in lines if "with changes" in line or "commit unknown" in line]


@pytest.mark.parametrize("commit", ["c0ffee", "c0ffee with changes"])
def test_a_page_is_not_written_by_code_with_changes(commit, monkeypatch):
    monkeypatch.setattr(environment, "_commit", lambda: commit)
    if commit == "c0ffee":
        assert environment.made_by("python -m this", "commit") == "Made by `python -m this`: commit c0ffee."
    else:
        with pytest.raises(SystemExit, match="changes that no commit has"):
            environment.made_by("python -m this", "commit")
