"""Drawings of structures and results: text, SVG, LaTeX and CoNLL-U; tables.

Trees are tokens and heads (0 is the root, 1 the first word). Tags, spans, segments, paths and chosen items count from 0.
All are plain sequences or arrays.
"""

from pullback.viz.alignment import alignment_svg, alignment_text
from pullback.viz.characters import visible
from pullback.viz.heatmap_svg import heatmap_svg
from pullback.viz.heatmap_text import heatmap_text
from pullback.viz.spans_text import segments_text, spans_text
from pullback.viz.svg import stacked
from pullback.viz.tables import Table
from pullback.viz.tags_text import subset_text, tags_text
from pullback.viz.trees_conllu import tree_conllu
from pullback.viz.trees_latex import tree_latex
from pullback.viz.trees_svg import tree_svg
from pullback.viz.trees_text import tree_above, tree_beside, tree_list, tree_text
from pullback.viz.words_svg import segments_svg, spans_svg, subset_svg, tags_svg

__all__ = [
    "Table",
    "alignment_svg",
    "alignment_text",
    "heatmap_svg",
    "heatmap_text",
    "segments_svg",
    "segments_text",
    "spans_svg",
    "spans_text",
    "stacked",
    "subset_svg",
    "subset_text",
    "tags_svg",
    "tags_text",
    "tree_above",
    "tree_beside",
    "tree_conllu",
    "tree_latex",
    "tree_list",
    "tree_svg",
    "tree_text",
    "visible",
]
