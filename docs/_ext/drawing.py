"""A Python block whose last expression is a drawing in SVG: the page shows the code and what it draws.

    ```{drawing}
    :hide:
    viz.tree_svg(["Fun", "film"], [2, 0])
    ```

A figure of Matplotlib will do, too. A drawing sees the variables of the `python` blocks and of the drawings before it.
`:hide:` leaves out the code.
"""

import io
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from blocks import blocks, missing, run


class Drawing(SphinxDirective):
    has_content = True
    option_spec = {"hide": directives.flag}  # noqa: RUF012

    def run(self):
        code = "\n".join(self.content)
        page = Path(self.env.doc2path(self.env.docname)).read_text(encoding="utf-8")
        state = self.env.temp_data.setdefault("drawing", {"namespace": {}, "line": 0})
        for block in blocks(page):
            if state["line"] < block.line < self.lineno and block.language == "python":
                state["line"] = block.line
                if not block.not_run and not missing(block):
                    run(block.code, state["namespace"], f"{self.env.docname}, line {block.line}")
        svg = _svg(run(code, state["namespace"], f"{self.env.docname}, a drawing"))
        drawn = nodes.raw("", f'<div class="drawing">{svg}</div>', format="html")
        if "hide" in self.options:
            return [drawn]
        return [nodes.literal_block(code, code, language="python"), drawn]


def _svg(drawn):
    if isinstance(drawn, str):
        return drawn
    file = io.StringIO()
    drawn.savefig(file, format="svg")
    return file.getvalue()[file.getvalue().index("<svg") :]


def setup(app):
    app.add_directive("drawing", Drawing)
    return {"parallel_read_safe": True}
