"""Frames to symbols with CTC: trained on targets without times, and then asked when each symbol was said."""

import torch

import pullback as pb

torch.manual_seed(0)
B, T, V, S = 64, 24, 6, 4  # recordings, frames, symbols (0 is the blank), symbols of a target
voices = torch.randn(V, 16)  # how each symbol sounds


def record(targets, lengths):
    """Frames `[B, T, 16]` in which each symbol lasts as long as the others, with silence behind it."""
    each = lengths[:, None] // targets.shape[1]
    place = torch.arange(T)
    symbol = targets.gather(1, (place // each).clamp_max(targets.shape[1] - 1))
    said = torch.where(place % each < each - 2, symbol, 0)
    return voices[said] + 0.5 * torch.randn(len(targets), T, 16), said


targets = torch.randint(1, V, (B, S))
lengths = torch.randint(16, T + 1, (B,)) // S * S
frames, said = record(targets, lengths)
model = torch.nn.Linear(16, V)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
ctc = pb.CTC(targets, lengths=lengths)
for _ in range(100):
    loss = -ctc.log_partition(model(frames).log_softmax(-1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

scores = model(frames).log_softmax(-1).detach()
aligned = ctc.symbols(ctc.argmax(scores))  # the forced alignment, -1 in the padding
real = torch.arange(T) < lengths[:, None]
agree = (aligned == said)[real].float().mean()
print(f"loss {loss.item():.2f}; {agree:.0%} of the frames have the symbol that was said")
print("heard  ", aligned[0, : lengths[0]].tolist())
print("said   ", said[0, : lengths[0]].tolist())
assert agree > 0.9
