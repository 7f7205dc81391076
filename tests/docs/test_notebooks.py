"""The notebooks run, in this process, and print what they show: nothing of Jupyter is needed.

`python tests/docs/test_notebooks.py` writes what their cells print into them. Numbers may differ by 0.05, and what a cell
with the tag `varies` prints may be anything: the drawing of a trained tree whose arcs are free, for example.
"""

import ast
import contextlib
import io
import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NUMBER = re.compile(r"-?\d+\.\d+")  # integers are compared as text


def run(notebook):
    """What each cell with code prints, in order."""
    namespace, printed = {"__name__": "notebook"}, []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            ast.parse(source)  # no magic commands
            with contextlib.redirect_stdout(io.StringIO()) as said:
                exec(compile(source, f"<cell {len(printed)}>", "exec"), namespace)
            printed.append(said.getvalue())
    return printed


def assert_shows(shown, printed):
    """What is shown is what was printed, but for spaces at the end of lines and the last digits of numbers."""
    shown, printed = ("\n".join(line.rstrip() for line in text.rstrip().splitlines()) for text in (shown, printed))
    spaces = re.compile(r" *NUMBER")  # a number may be a character longer than the one that is shown
    assert spaces.sub("#", NUMBER.sub("NUMBER", printed)) == spaces.sub("#", NUMBER.sub("NUMBER", shown))
    numbers = [float(number) for number in NUMBER.findall(printed)]
    assert numbers == pytest.approx([float(number) for number in NUMBER.findall(shown)], abs=0.05)


def with_outputs(notebook):
    """The notebook as Jupyter would save it."""
    printed = iter(run(notebook))
    for number, cell in enumerate((cell for cell in notebook["cells"] if cell["cell_type"] == "code"), 1):
        text = next(printed).splitlines(keepends=True)
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": text}] if text else []
        cell["execution_count"] = number
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_prints(path):
    notebook = json.loads(path.read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell, printed in zip(cells, run(notebook), strict=True):
        shown = "".join("".join(output["text"]) for output in cell["outputs"])
        if "varies" in cell["metadata"].get("tags", []):
            assert shown
            assert printed
        else:
            assert_shows(shown, printed)


def test_what_is_shown_is_compared():
    assert_shows("a tree  \n  0.931 1", "a tree\n 0.90 1\n")
    for printed in ("a tree\n0.83 1", "a bush\n0.931 1", "a tree\n0.931 2", "a tree\n0.931 1\nmore", ""):
        with pytest.raises(AssertionError):
            assert_shows("a tree\n0.931 1", printed)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_a_notebook_links_to_exists(path):
    text = "".join(line for cell in json.loads(path.read_text())["cells"] for line in cell["source"])
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (FOLDER / target).exists(), target


def test_there_are_few_and_all_are_listed():
    assert 1 <= len(NOTEBOOKS) <= 6
    listed = (FOLDER / "index.md").read_text()
    assert not [path.name for path in NOTEBOOKS if f"({path.name})" not in listed]


if __name__ == "__main__":
    for each in NOTEBOOKS:
        each.write_text(with_outputs(json.loads(each.read_text())))
