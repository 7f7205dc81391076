"""The code blocks of a page: what the tests run, and what a drawing may refer to.

A `python` block is a session (with prompts and outputs, compared as doctests are) or plain code. The blocks of a page share one
namespace. A comment before a block says what it needs or that it is not run:

    <!-- needs: torch_struct -->        modules that must be importable, or `cuda`
    <!-- not run: why -->
"""

import ast
import doctest
import importlib.util
import re
from dataclasses import dataclass

FENCE = re.compile(
    r"(?:^[ ]*<!-- (?P<note>needs|not run): (?P<what>[^>]+?) -->\n\s*)?"
    r"^(?P<indent>[ ]*)(?P<ticks>```+)(?P<language>\{?[\w-]*\}?)[^\n]*\n(?P<code>.*?)^(?P=indent)(?P=ticks)[ ]*$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    line: int
    language: str
    code: str
    needs: tuple[str, ...]
    not_run: str


def blocks(page):
    """All code blocks of a page's text, in order."""
    for found in FENCE.finditer(page):
        code = re.sub(rf"^{found['indent']}", "", found["code"], flags=re.MULTILINE)
        if found["language"] == "{drawing}":
            code = re.sub(r"\A(:\w+:.*\n)+", "", code)
        needs = tuple(found["what"].replace(",", " ").split()) if found["note"] == "needs" else ()
        reason = found["what"] if found["note"] == "not run" else ""
        yield Block(page.count("\n", 0, found.start("code")), found["language"], code, needs, reason)


def missing(block):
    """What the block needs and this machine lacks."""
    import torch

    return [
        name for name in block.needs if not (torch.cuda.is_available() if name == "cuda" else importlib.util.find_spec(name))
    ]


def statements(code):
    """The source of a block, without prompts and expected output if it is a session."""
    if ">>>" not in code:
        return code
    return "".join(example.source for example in doctest.DocTestParser().get_examples(code))


def run(code, namespace, name="<page>"):
    """Execute a block; the value of its last expression, or None."""
    body = ast.parse(statements(code))
    last = body.body.pop() if body.body and isinstance(body.body[-1], ast.Expr) else None
    exec(compile(body, name, "exec"), namespace)
    return None if last is None else eval(compile(ast.Expression(last.value), name, "eval"), namespace)
