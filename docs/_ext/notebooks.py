"""Notebooks as pages: before MyST reads one, its cells become Markdown, code blocks and what they print."""

import json
from pathlib import Path

FENCE = "`" * 4


def markdown(notebook, name):
    """The text of a notebook, with a link to the file below its title."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            printed = "".join("".join(output.get("text", [])) for output in cell["outputs"]).rstrip()
            parts.append(f"{FENCE}python\n{source}\n{FENCE}")
            parts += [f"{FENCE}text\n{printed}\n{FENCE}"] if printed else []
        else:
            parts.append(source)
    title, _, rest = parts[0].partition("\n")
    return "\n\n".join([title, f"Download {{download}}`the notebook <{name}>`.", rest.strip(), *parts[1:]]) + "\n"


def _convert(app, docname, source):
    path = Path(app.env.doc2path(docname))
    if path.suffix == ".ipynb":
        source[0] = markdown(json.loads(source[0]), path.name)


def setup(app):
    app.connect("source-read", _convert, priority=100)  # before links are rewritten
    return {"parallel_read_safe": True}
