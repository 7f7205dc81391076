"""Subsets on a GPU: kernels.py in Triton, one program per example, a row of the table at a time.

A row's neighbours are exchanged through memory: two lines of scratch in turn, so that one barrier per item is enough.
"""

from __future__ import annotations

from pullback.inference._triton.support import constant, jit, tl

LOG_PARTITION, MARGINALS, SAMPLE, ENTROPY, SLOPE, ENTROPY_SLOPE = (constant(i) for i in range(6))


@jit(do_not_specialize=["n", "most"])
def run(
    scores, lengths, ks, seeds, direction, weights, rates, scratch, out, value, n, most,
    MODE: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Log Z or the entropy into `value`; marginals, a sample or a derivative into `out`; NaN for bad examples."""
    b = tl.program_id(0).to(tl.int64)
    scores += b * n
    direction += b * n
    out += b * n
    weights += b * n * (most + 1)
    rates += b * (n + 1) * (most + 1)
    scratch += b * (4 * (K + 1) if 4 * (K + 1) > 2 * N else 2 * N)
    length, k = tl.load(lengths + b), tl.load(ks + b)
    items = tl.arange(0, N)
    s, allowed, fine = look(scores, length, k, n, items)
    tl.store(out + items, tl.where(fine, 0.0, float("nan")).to(out.dtype.element_ty), items < n)
    tl.store(value + b, float("nan"))
    tl.debug_barrier()
    if fine:
        c = _shift(s, k, allowed)
        if MODE <= MARGINALS:
            chance = _chances(s, c, weights, rates, scratch, out, length, k, most, items, MODE, N, K)
            above = tl.sum((s >= c).to(tl.int64), 0)
            added = tl.sum(tl.where(s >= c, s, 0.0) + _remainder(s - c), 0)
            tl.store(value + b, tl.log(chance) + added + tl.where(above == k, 0.0, (k - above) * c))
        else:
            _upward(scores, direction, weights, rates, scratch, length, k, c, most, MODE, K)
            tl.debug_barrier()
        if MODE == ENTROPY:
            tl.store(value + b, tl.load(rates + length * (most + 1) + k))
        if MODE == SLOPE or MODE == ENTROPY_SLOPE:  # noqa: SIM109 (Triton)
            _downward(direction, weights, rates, scratch, out, length, k, most, MODE, K)
        if MODE == SAMPLE:
            _draw(weights, out, tl.load(seeds + b), length, k, most)


@jit()
def look(scores, length, k, n, items):
    """The scores, -inf on padding; how many items are allowed, and whether the example is a good one."""
    sized = (length >= 0) & (length <= n) & (k >= 0) & (k <= length)
    s = tl.load(scores + items, sized & (items < length), -float("inf")).to(tl.float64)
    bad = tl.max(((s != s) | (s == float("inf"))).to(tl.int32), 0)
    allowed = tl.sum((s > -float("inf")).to(tl.int64), 0)
    return s, allowed, sized & (bad == 0) & (allowed >= k)


@jit()
def _chances(
    s, c, first, last, scratch, out, length, k, most, items, MODE: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):  # fmt: skip
    """The chance of k heads; marginals go to `out`, by the formula of sums.py, from both ends of the items at once."""
    x = tl.exp(-tl.abs(s - c))
    tl.store(scratch + items, tl.where(s < c, x, 1.0) / (1.0 + x))
    tl.store(scratch + N + items, tl.where(s < c, 1.0, x) / (1.0 + x))
    tl.debug_barrier()
    j = tl.arange(0, K)
    before, some = tl.maximum(j - 1, 0), (j > 0).to(tl.float64)
    heads = (j == 0).to(tl.float64)  # of the items so far: the chances of j heads; `tails` is the same from the other end
    tails = heads
    for i in range(length):
        p, q = tl.load(scratch + i), tl.load(scratch + N + i)
        if MODE == MARGINALS:
            back = length - 1 - i
            r, t = tl.load(scratch + back), tl.load(scratch + N + back)
            tl.store(first + i * (most + 1) + j, heads, j <= most)
            tl.store(last + back * (most + 1) + j, tails, j <= most)
            tails = tails * t + tl.gather(tails, before, 0) * some * r
        heads = heads * q + tl.gather(heads, before, 0) * some * p
    chance = tl.sum(tl.where(j == k, heads, 0.0), 0)
    if MODE == MARGINALS:
        tl.debug_barrier()
        for start in range(0, length, 16):
            item = start + tl.arange(0, 16)
            real = (item < length)[:, None] & (j < k)[None, :]
            ways = tl.load(first + item[:, None] * (most + 1) + j[None, :], real, 0.0)
            ways *= tl.load(last + item[:, None] * (most + 1) + (k - 1 - j)[None, :], real, 0.0)
            found = tl.sum(ways, 1) * tl.load(scratch + item, item < length, 0.0) / chance
            tl.store(out + item, found.to(out.dtype.element_ty), item < length)
    return chance


@jit()
def _remainder(x):
    """Log(1 + exp(-|x|)), 0 at -inf."""
    small = tl.exp(-tl.abs(x))
    return tl.where(small < 1e-8, small, tl.log(1.0 + small))


@jit()
def largest(s, place):
    """The score of which `place` are at least as large: by halving the range of its bits, ordered as the numbers are."""
    raw = s.to(tl.int64, bitcast=True)
    key = tl.where(raw < 0, raw ^ 0x7FFFFFFFFFFFFFFF, raw)
    low, high = tl.min(key, 0), tl.max(key, 0)
    while low < high:
        middle = (low >> 1) + (high >> 1) + ((low & 1) + (high & 1) + 1) // 2
        enough = tl.sum((key >= middle).to(tl.int64), 0) >= place
        low = tl.where(enough, middle, low)
        high = tl.where(enough, high, middle - 1)
    return tl.max(tl.where(key == low, s, -float("inf")), 0)


@jit()
def _shift(s, k, allowed):
    """The shift for which the expected number of heads is near k (kernels.py)."""
    margin = tl.log(allowed.to(tl.float64) + 1.0) + 1.0
    last = largest(s, tl.maximum(k, 1))
    following = largest(s, tl.minimum(k + 1, allowed))
    low, high = following - margin, last + margin
    c = 0.5 * (low + high)
    certain = last - following > 2.0 * (margin + 40.0)  # which items to take: c stays near them
    going, step = (k > 0) & (k < allowed) & (certain == 0), 0
    while going:
        x = tl.exp(-tl.abs(s - c))
        small = x / (1.0 + x)
        mean = tl.sum(tl.where(s < c, small, 1.0 - small), 0)
        variance = tl.sum(small * (1.0 - small), 0)
        low, high = tl.where(mean > k, c, low), tl.where(mean > k, high, c)
        near = tl.abs(mean - k) <= 0.5 * tl.sqrt(variance) + 0.5
        newton = c + (mean - k) / tl.maximum(variance, 1e-3)
        middle = tl.where((newton > low) & (newton < high), newton, 0.5 * (low + high))
        c = tl.where(near, c, middle)
        step += 1
        going = (near == 0) & (step < 100)
    c = tl.where(k == 0, tl.max(s, 0) + 40.0 + margin, c)
    c = tl.where((k > 0) & ((k == allowed) | certain), last - 40.0 - margin, c)
    return tl.where(allowed == 0, 0.0, c)


@jit()
def _choices(w, along, MODE: tl.constexpr):
    """What taking the item and leaving it add to the rate: the direction and nothing, or their surprises."""
    own, other = w * 0.0 + along, w * 0.0
    if MODE != SLOPE:
        own = -tl.log(tl.where(w > 0, w, 1.0))
        other = -tl.log(tl.where(w < 1, 1.0 - w, 1.0))
    return own, other


@jit()
def _upward(scores, direction, weights, rates, scratch, length, k, c, most, MODE: tl.constexpr, K: tl.constexpr):
    """`weights[i, j]`, and rates."""
    j = tl.arange(0, K)
    row, rate = (j == 0).to(tl.float64), tl.zeros([K], tl.float64)
    if MODE >= ENTROPY:
        tl.store(rates + j, rate, j <= k)
    for i in range(length):
        line = scratch + (i % 2) * 2 * (K + 1)
        tl.store(line + 1 + j, row)
        tl.store(line, 0.0)
        if MODE >= ENTROPY:
            tl.store(line + K + 2 + j, rate)
            tl.store(line + K + 1, 0.0)
        s = tl.load(scores + i).to(tl.float64)
        x = tl.exp(-tl.abs(s - c))
        heads = tl.where(s < c, x, 1.0) / (1.0 + x)
        tails = tl.where(s < c, 1.0, x) / (1.0 + x)
        tl.debug_barrier()
        taken, left = tl.load(line + j) * heads, row * tails
        row = taken + left
        w = tl.where(row > 0, taken / row, 0.0)
        tl.store(weights + i * (most + 1) + j, w, j <= k)
        if MODE >= ENTROPY:
            own, other = _choices(w, tl.load(direction + i).to(tl.float64), MODE)
            up = tl.where(w > 0, w * (tl.load(line + K + 1 + j) + own), 0.0)
            rate = up + tl.where(w < 1, (1.0 - w) * (rate + other), 0.0)
            tl.store(rates + (i + 1) * (most + 1) + j, rate, j <= k)


@jit()
def _downward(direction, weights, rates, scratch, out, length, k, most, MODE: tl.constexpr, K: tl.constexpr):
    """The derivative of the chance that item i is taken: from the goal back."""
    j = tl.arange(0, K)
    reached, moved = (j == k).to(tl.float64), tl.zeros([K], tl.float64)
    for back in range(1, length + 1):
        i = length - back
        line = scratch + (i % 2) * 2 * (K + 1)
        w = tl.load(weights + i * (most + 1) + j, (j <= k) & (j <= i + 1), 0.0)
        q, rest = reached * w, reached * (1.0 - w)
        tl.store(line + j, q)
        tl.store(line + K, 0.0)
        own, other = _choices(w, tl.load(direction + i).to(tl.float64), MODE)
        here = tl.load(rates + (i + 1) * (most + 1) + j, j <= k, 0.0)
        below = tl.load(rates + i * (most + 1) + j, j <= k, 0.0)
        before = tl.load(rates + i * (most + 1) + j - 1, (j <= k) & (j > 0), 0.0)
        dq = tl.where(w > 0, w * (moved + reached * (before + own - here)), 0.0)
        drest = tl.where(w < 1, (1.0 - w) * (moved + reached * (below + other - here)), 0.0)
        tl.store(line + K + 1 + j, dq)
        tl.store(line + 2 * K + 1, 0.0)
        tl.store(out + i, tl.sum(dq, 0).to(out.dtype.element_ty))
        tl.debug_barrier()
        reached = rest + tl.load(line + j + 1)
        moved = drest + tl.load(line + K + 2 + j)


@jit()
def _draw(weights, out, seed, length, k, most):
    """A sample: items from the last to the first, each taken with its chance."""
    j = k
    for back in range(1, length + 1):
        i = length - back
        x = seed.to(tl.uint64, bitcast=True) + (length - i).to(tl.uint64) * 0x9E3779B97F4A7C15
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB
        u = ((x ^ (x >> 31)) >> 11).to(tl.float64) * 1.1102230246251565e-16
        w = tl.load(weights + i * (most + 1) + j)
        take = (j > 0) & (u < w)
        tl.store(out + i, take.to(out.dtype.element_ty))
        j -= take.to(tl.int64)
