"""A chain with a skip: events of a sequence, each one or two positions after the last, with a score for the pair.

Parts `[n, 2]`: [i, 0] is a step from position i - 1 to i, [i, 1] one from i - 2 to i. A batch has sequences of several lengths.
"""

import torch

import pullback as pb


class SkipChain(pb.DynamicProgram):
    """Steps of one or two positions from before the first position to the last."""

    event_dims = 2

    def value(self, scores, combine):
        at = [scores.new_zeros(len(scores))]  # at[i]: everything up to position i - 1
        for i in range(scores.shape[1]):
            steps = [at[i] + scores[:, i, 0]] + ([at[i - 1] + scores[:, i, 1]] if i > 0 else [])
            at.append(combine(torch.stack(steps, 1), 1))
        return torch.stack(at, 1)  # a value for each length


torch.manual_seed(0)
lengths = torch.tensor([6, 3, 1])
chain = SkipChain(lengths)
chain.check(6, 2)
scores = torch.randn(3, 6, 2, requires_grad=True)
print("best steps:", [[(i, s + 1) for i, s in z.nonzero().tolist()] for z in chain.argmax(scores)])
print("probabilities of skips:", chain.marginals(scores)[..., 1])
estimator = pb.SPIGOT(0.1)
loss = estimator.objective(chain, scores, lambda z: (z[..., 1].sum(1) - 1.0).square()).mean()
loss.backward()
print("two best of the first:", chain.topk(scores, 2).scores[:, 0].tolist())
assert scores.grad[1, 3:].abs().sum() == 0  # padding
