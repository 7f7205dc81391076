"""Draw latent trees: the best tree of some scores, and the marginals of all trees.

The scores are made by hand here: adjectives and determiners like a noun, the noun likes the root. In a model they
come from an encoder, and everything below stays the same.
"""

import torch

import pullback as pb
from pullback import viz

tokens = ["A", "taut", ",", "intelligent", "psychological", "drama", "."]
tree = pb.DependencyTree()
scores = torch.zeros(7, 7)  # head x modifier, the root on the diagonal
scores[5, [0, 1, 3, 4, 6]] = 3.0  # "drama" as the head of its modifiers
scores[1, 2] = 2.0  # the comma belongs to "taut"
scores[5, 5] = 3.0  # "drama" as the root

heads = tree.heads(tree.argmax(scores))  # 0 is the root, 1 the first word
marginals = tree.marginals(scores)
print(viz.tree_text(tokens, heads))
print(viz.heatmap_text(tokens, marginals))
print(viz.tree_conllu(tokens, heads))
print(viz.tree_latex(tokens, heads))
drawings = viz.stacked([viz.tree_svg(tokens, heads), viz.heatmap_svg(tokens, marginals)])  # Path.write_text, or inline
print(f"and {len(drawings)} characters of SVG")

assert heads.tolist() == [6, 6, 2, 6, 6, 0, 6]
