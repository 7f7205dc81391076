"""A CRF tagger: emissions from a network, learned transitions, padded sentences."""

import torch

import pullback as pb

torch.manual_seed(0)
TAGS, WORDS, n = 4, 12, 9
follows = torch.tensor([[0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0], [1, 1, 0, 0]]).bool()  # which tag may follow which
says = torch.randint(TAGS, (WORDS,))  # each word hints at one tag, and is wrong in one of three cases


def sentences(batch):
    lengths = torch.randint(3, n + 1, (batch,))
    tags = [torch.randint(TAGS, (batch,))]
    for _ in range(n - 1):
        tags.append(torch.multinomial(follows[tags[-1]].float(), 1).squeeze(1))
    tags = torch.stack(tags, 1)
    hints = torch.where(torch.rand(batch, n) < 1 / 3, torch.randint(TAGS, (batch, n)), tags)
    words = torch.multinomial((says == hints[..., None]).float().flatten(0, 1) + 1e-6, 1).reshape(batch, n)
    return words, tags, lengths


encoder = torch.nn.Embedding(WORDS, TAGS)
transitions = torch.nn.Parameter(torch.zeros(TAGS, TAGS))
optimizer = torch.optim.Adam([*encoder.parameters(), transitions], lr=0.1)
for _ in range(150):
    words, tags, lengths = sentences(64)
    chain = pb.LinearChain(lengths)
    scores = chain.combine(encoder(words), transitions)
    loss = -chain.log_prob(scores, chain.from_tags(tags, TAGS)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

words, tags, lengths = sentences(500)
chain = pb.LinearChain(lengths)
found = chain.tags(chain.argmax(chain.combine(encoder(words), transitions)))  # -1 for padding
real = found >= 0
by_words = (says[words] == tags)[real].float().mean()
print(f"loss {loss:.2f}, accuracy {(found == tags)[real].float().mean():.2f}, by words alone {by_words:.2f}")
