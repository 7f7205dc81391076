"""An edit distance with costs: the best ways to turn one word into another, and the probability of each edit.

Parts `[n + 1, m + 1, 3]`: behind i and j letters, [.., 0] has inserted the j-th, [.., 1] deleted the i-th, and [.., 2]
replaced one by the other, or kept it. Scores are minus costs.
"""

import torch

import pullback as pb


class Edits(pb.DynamicProgram):
    """Insertions, deletions and replacements that turn one word into another."""

    event_dims = 3

    def value(self, scores, combine):
        n, m = scores.shape[1] - 1, scores.shape[2] - 1
        cell = {(0, 0): scores.new_zeros(len(scores))}
        for i in range(n + 1):
            for j in range(m + 1):
                ways = [(i, j - 1, 0), (i - 1, j, 1), (i - 1, j - 1, 2)]
                terms = [cell[a, b] + scores[:, i, j, edit] for a, b, edit in ways if a >= 0 and b >= 0]
                if terms:
                    cell[i, j] = combine(torch.stack(terms, 1), 1)
        return cell[n, m]


edits = Edits()
edits.check(3, 3, 3)
first, second = "kitten", "sitting"
costs = torch.ones(len(first) + 1, len(second) + 1, 3)
costs[1:, 1:, 2] = torch.tensor([[float(a != b) for b in second] for a in first])
best = edits.argmax(-costs)
print("distance:", (best * costs).sum().item(), "the ten best ways:", (-edits.topk(-costs, 10).scores).tolist())
assert (best * costs).sum() == 3
