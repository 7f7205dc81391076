"""A hidden Markov model, learned from what it showed by gradients instead of Baum and Welch."""

import torch

import pullback as pb

torch.manual_seed(0)
states, symbols, B, n = 3, 5, 64, 40
true = [(2 * torch.randn(shape)).softmax(-1) for shape in ((states,), (states, states), (states, symbols))]
lengths = torch.randint(20, n + 1, (B,))
state = torch.multinomial(true[0], B, replacement=True)
seen = []
for _ in range(n):
    seen.append(torch.multinomial(true[2][state], 1).squeeze(1))
    state = torch.multinomial(true[1][state], 1).squeeze(1)
seen = torch.stack(seen, 1)


def likelihood(tables, **options):
    """The log-likelihood per observation."""
    model, scores = pb.FactoredChain.hmm(*tables, seen, lengths, **options)
    return model.log_partition(scores).sum() / lengths.sum()


logits = [torch.randn_like(x).requires_grad_() for x in true]
optimizer = torch.optim.Adam(logits, lr=0.1)
for _ in range(150):
    loss = -likelihood(logits, logits=True)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

best = likelihood(true)
print(f"log-likelihood per observation: learned {-loss.item():.3f}, of the model that made them {best.item():.3f}")
model, scores = pb.FactoredChain.hmm(*logits, seen, lengths, logits=True)
print("states of the first", model.tags(model.argmax(scores))[0, : lengths[0]].tolist())
assert -loss > best - 0.05
