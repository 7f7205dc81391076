import re

from hypothesis import given
from hypothesis import strategies as st

from pullback.viz import tree_latex
from pullback.viz.characters import visible
from pullback.viz.trees_latex import latex_escaped
from viz.drawn import trees

COMMANDS = {
    r"\textbackslash{}": "\\", r"\textasciicircum{}": "^", r"\textasciitilde{}": "~", r"\textless{}": "<",
    r"\textgreater{}": ">", r"\textbar{}": "|", r"\textquotedbl{}": '"', r"\symbol{38}": "&",
    "{[}": "[", "{]}": "]", r"\{": "{", r"\}": "}",
    r"\$": "$", r"\#": "#", r"\%": "%", r"\_": "_", "{}": "",
}  # fmt: skip
PIECE = re.compile("|".join(re.escape(command) for command in COMMANDS) + r"|[^\\{}$#%_^~<>|\"&\[\]]", re.DOTALL)


def typeset(source):
    """What LaTeX would show; fails on anything special that is not one of the commands."""
    shown, at = "", 0
    while at < len(source):
        match = PIECE.match(source, at)
        assert match, source[at:]
        shown += COMMANDS.get(match[0], match[0])
        at = match.end()
    return shown


@given(st.text() | st.text('\\{}$#%_^~<>|"&[]-,?!`', max_size=12))
def test_what_is_typeset_is_the_token(token):
    assert typeset(latex_escaped(token)) == visible(token)


def test_no_ligatures():
    assert latex_escaped("---,,?`!`") == "-{}-{}-,{},?{}`!{}`"


@given(trees())
def test_braces_balance_and_every_word_has_one_arc_and_one_cell(tree):
    tokens, heads = tree
    source = tree_latex(tokens, heads)
    depth = 0
    for piece in re.findall(r"\\[\\{}]|[{}]", source):
        depth += {"{": 1, "}": -1}.get(piece, 0)
        assert depth >= 0
    assert depth == 0
    words = source.split("\n")[2]
    assert words.endswith(r" \\")
    assert words.count(r"\&") == len(tokens) - 1
    found = {int(m): int(h) for h, m in re.findall(r"\\depedge\{(\d+)\}\{(\d+)\}\{\}", source)}
    roots = {int(m): 0 for m in re.findall(r"\\deproot\[[^]]*\]\{(\d+)\}\{\}", source)}
    assert [(found | roots)[word] for word in range(1, len(heads) + 1)] == heads
