"""Log-likelihoods on a GPU: from log-partitions, marginals and structures to values and their gradients, in one launch."""

from __future__ import annotations

from torch import Tensor

from pullback.inference._triton.support import contiguous, jit, launch, next_power_of_2, tl


@jit(do_not_specialize=["parts"])
def _likelihood(scores, z, log_z, first, last, least, slope, out, parts, PARTS: tl.constexpr):
    """Write <s, z> - log Z to `out`, and z - mu over the marginals mu in `slope`.

    Args:
        scores: `[B, parts]`.
        z: likewise; of examples too small for a part, anything.
        log_z: `[B]`.
        first: the first size of each example, `[B]`.
        last: the last one, which may be the same.
        least: `[2, parts]`: the smallest first and last size with which there is a part.
        slope: `[B, parts]`.
        out: `[B]`.
        parts: how many there are.
        PARTS: how many are taken at once.
    """
    b = tl.program_id(0).to(tl.int64)
    rows, columns = tl.load(first + b), tl.load(last + b)
    score = tl.zeros([PARTS], tl.float64)
    for start in range(0, parts, PARTS):
        at = start + tl.arange(0, PARTS)
        inside = at < parts
        exists = inside & (tl.load(least + at, inside, 0) <= rows) & (tl.load(least + parts + at, inside, 0) <= columns)
        at += b * parts
        x = tl.load(z + at, exists, 0.0)
        s = tl.load(scores + at, exists & (x != 0.0), 0.0)
        mu = tl.load(slope + at, inside, 0.0)
        score += s.to(tl.float64) * x.to(tl.float64)
        tl.store(slope + at, x - mu, inside)
    tl.store(out + b, (tl.sum(score, 0) - tl.load(log_z + b)).to(out.dtype.element_ty))


def likelihood(
    scores: Tensor, z: Tensor, log_z: Tensor, mu: Tensor, sizes: tuple[Tensor, ...], least: Tensor
) -> tuple[Tensor, Tensor]:
    """<s, z> - log Z, `[B]`, and its gradient z - mu, which is written over the marginals.

    Args:
        scores: `[B, *parts]`, contiguous like the marginals.
        z: structures, `[B, *parts]`; their padding may hold anything.
        log_z: `[B]`, float64.
        mu: the marginals, `[B, *parts]`.
        sizes: `[B]` each.
        least: `[2, parts]` of int32: the smallest first and last size with which there is a part.
    """
    if scores.numel() == 0:
        return -log_z.to(scores.dtype), mu
    value, parts = scores.new_empty(len(scores)), least.shape[1]
    given, block = contiguous(z.detach().to(scores.dtype)), min(next_power_of_2(parts), 2048)
    tensors = scores, given, log_z, contiguous(sizes[0]), contiguous(sizes[-1]), least, mu, value
    launch(_likelihood, len(scores), scores.device, *tensors, parts, PARTS=block)
    return value, mu
