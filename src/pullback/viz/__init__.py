"""Showing results: trees and marginals as text, SVG, LaTeX and CoNLL-U; tables; curves.

Trees are tokens and heads (0 is the root, 1 the first word), as plain sequences or arrays.
"""

from pullback.viz.heatmap_svg import heatmap_svg
from pullback.viz.heatmap_text import heatmap_text
from pullback.viz.svg import stacked
from pullback.viz.trees_conllu import tree_conllu
from pullback.viz.trees_latex import tree_latex
from pullback.viz.trees_svg import tree_svg
from pullback.viz.trees_text import tree_above, tree_beside, tree_list, tree_text

__all__ = [
    "heatmap_svg",
    "heatmap_text",
    "stacked",
    "tree_above",
    "tree_beside",
    "tree_conllu",
    "tree_latex",
    "tree_list",
    "tree_svg",
    "tree_text",
]
