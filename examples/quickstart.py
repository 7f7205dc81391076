"""Learn a latent dependency tree from the sentence's label alone.

Five words have a key and a value each; the sixth asks for a key, and the label is that key's value. The
decoder sees the sixth word's head and nothing else: the tree must learn to attach it to the right word.
"""

import torch
from torch.nn import Linear
from torch.nn.functional import cross_entropy, one_hot

import pullback as pb


def sentences(batch):
    keys, values = torch.rand(batch, 5).argsort(-1), torch.randint(2, (batch, 5))
    asked = torch.randint(5, (batch, 1))
    words = torch.cat([one_hot(keys, 5), one_hot(values, 2)], -1)
    question = torch.cat([one_hot(keys.gather(1, asked), 5), torch.zeros(batch, 1, 2)], -1)
    return torch.cat([words, question], 1).float(), values.gather(1, asked)[:, 0]


torch.manual_seed(0)
tree, estimator = pb.DependencyTree(), pb.SPIGOTCE(step_size=1.0)  # or any other estimator
encoder, decoder = Linear(7, 7), Linear(7, 2)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.05)
for step in range(301):
    x, y = sentences(64)
    scores = x @ encoder(x).mT  # [batch, head, modifier], the root on the diagonal

    def downstream(z, x=x, y=y):  # one loss for each sentence, [batch]
        return cross_entropy(decoder((z.mT @ x)[:, -1]), y, reduction="none")

    loss = estimator.objective(tree, scores, downstream).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        right = decoder((estimator.predict(tree, scores).mT @ x)[:, -1]).argmax(-1) == y
        print(f"step {step:3}  loss {loss:.3f}  accuracy {right.float().mean():.2f}")
