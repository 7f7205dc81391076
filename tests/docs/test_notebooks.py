"""The notebooks run, in this process: nothing of Jupyter is needed.

`python tests/docs/test_notebooks.py` writes what their cells print into them.
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
    shown = [bool(cell["outputs"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [bool(text) for text in run(notebook)] == shown


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
