"""A monotone aligner, as in text to speech: which frames belong to which letter."""

import torch

import pullback as pb

torch.manual_seed(0)
LETTERS, DIM, n, m = 6, 4, 5, 14
sound = torch.randn(LETTERS, DIM) * 2


def speech(batch):
    letters = torch.randint(LETTERS, (batch, n))
    cuts = torch.rand(batch, m - 1).argsort(1)[:, : n - 1].sort(1).values + 1  # where the next letter begins
    row = (torch.arange(m)[None, :, None] >= cuts[:, None, :]).sum(-1)
    return letters, sound[letters.gather(1, row)] + torch.randn(batch, m, DIM), row


voice = torch.nn.Embedding(LETTERS, DIM)  # what each letter sounds like: to be learned
optimizer = torch.optim.Adam(voice.parameters(), lr=0.05)
aligner = pb.Alignment(moves="forward")  # each frame has one letter, no letter is skipped
for _ in range(150):
    letters, frames, _ = speech(64)
    scores = -0.5 * torch.cdist(voice(letters), frames).square()  # log-likelihood of each frame under each letter
    loss = -aligner.log_partition(scores).mean() / m  # the likelihood of the frames, whatever the alignment
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

letters, frames, row = speech(500)
best = aligner.argmax(-0.5 * torch.cdist(voice(letters), frames).square())
print(f"loss {loss:.2f}; {(best.argmax(1) == row).float().mean():.0%} of the frames of new sentences get their letter")
