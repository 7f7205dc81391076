"""The inside sweep on a GPU: sums over projective trees in logarithms, in Triton, one program a sentence.

Logs are to base 2 and in float64, so that they hold scores of any size; exponentials are in the scores' own precision,
and a sum of them is at least 1, so that float32 loses nothing but its last bits. README.md names the items, cuda_layout.py
the charts.

With each item may go a companion, a mean over the item's derivations. With the probability p_t of each of its splits,

    slope of the item's log:   sum_t p_t (slope of the two parts),             the mean of the direction over the arcs;
    entropy of the item:       sum_t p_t (entropy of the two parts - log p_t).

Both are sums without cancellation, whatever the size of the scores.
"""

from __future__ import annotations

from pullback.inference.eisner.cuda_layout import clear, lay_out_logs, length_of
from pullback.inference.triton_support import jit, tl

ALONE, SLOPE, ENTROPY = 0, 1, 2


@jit(do_not_specialize=["batch", "n", "multiroot"])
def log_partition(
    scores, lengths, out, charts, companions, batch, n, multiroot,
    COMPANION: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Write the log-partitions of `[B, n, n]` scores, or, with the companion ENTROPY, the entropies.

    Args:
        scores: `[B, n, n]`.
        lengths: `[B]`.
        out: `[B]`, float64, to write; NaN for a sentence with NaN or +inf.
        charts: scratch, 5 charts of float64 a program.
        companions: the same for companions, if there are any.
        batch: B.
        n: the size of the scores.
        multiroot: whether several words may attach to the root.
        COMPANION: ALONE or ENTROPY.
        ROWS: splits looked at together.
        COLUMNS: spans looked at together.
    """
    pitch = n + 1
    size = pitch * pitch
    program = tl.program_id(0)
    charts += program.to(tl.int64) * 5 * size
    companions += program.to(tl.int64) * 5 * size
    for sentence in range(program, batch, tl.num_programs(0)):
        matrix = scores + tl.cast(sentence, tl.int64) * n * n
        length = length_of(lengths, sentence, n)
        shift, garbled = lay_out_logs(matrix, length, n, charts, ROWS, COLUMNS)
        if COMPANION:
            clear(companions, 5 * size, ROWS * COLUMNS)
        tl.debug_barrier()
        for width in range(1, length + 1):
            inside(
                width, length, pitch, multiroot, charts, companions,
                COMPANION, scores.dtype.element_ty, ROWS, COLUMNS,
            )  # fmt: skip
            tl.debug_barrier()
        if COMPANION:
            result = tl.load(companions + length * pitch)
        else:
            result = shift + tl.load(charts + length * pitch) * 0.6931471805599453  # log(2)
        tl.store(out + sentence, tl.where(garbled == 0, result, float("nan")))
        tl.debug_barrier()


@jit()
def inside(
    width, length, pitch, multiroot, charts, companions,
    COMPANION: tl.constexpr, SOFT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The items of all spans of a width: right, left, right_arc, left_arc and, in a fifth chart, between."""
    size = pitch * pitch
    for first in range(0, length + 1 - width, COLUMNS):
        start = first + tl.arange(0, COLUMNS)
        real = start + width <= length
        nothing = tl.full([COLUMNS], float("-inf"), tl.float64)
        none = tl.zeros([COLUMNS], SOFT)
        zero = tl.zeros([COLUMNS], tl.float64)
        between_top, right_top, left_top = nothing, nothing, nothing
        between_total, right_total, left_total = none, none, none
        between_mass, right_mass, left_mass = zero, zero, zero
        for first_split in range(0, width, ROWS):
            split = (first_split + tl.arange(0, ROWS))[:, None]
            near = split * pitch + start[None, :]
            far = (width - 1 - split) * pitch + start[None, :] + split + 1
            used = (split < width) & real[None, :]
            one_root = used & ((split == 0) | (start[None, :] > 0) | (multiroot != 0))
            # the arc of the span itself is not there yet
            older = (split < width - 1) & real[None, :]
            between_top, between_total, between_mass = _add_pairs(
                charts, companions, near, size + far, one_root,
                between_top, between_total, between_mass, COMPANION, SOFT,
            )  # fmt: skip
            right_top, right_total, right_mass = _add_pairs(
                charts, companions, 2 * size + near + pitch, far, older,
                right_top, right_total, right_mass, COMPANION, SOFT,
            )  # fmt: skip
            left_top, left_total, left_mass = _add_pairs(
                charts, companions, size + near + pitch, 3 * size + far, older,
                left_top, left_total, left_mass, COMPANION, SOFT,
            )  # fmt: skip
        at = width * pitch + start
        between, mean = _finish(between_top, between_total, between_mass, COMPANION)
        _put(charts, companions, 4 * size + at, real, between, mean, COMPANION)
        _close(
            charts, companions, 2 * size + at, at, real, between, mean,
            right_top, right_total, right_mass, COMPANION, SOFT,
        )  # fmt: skip
        _close(
            charts, companions, 3 * size + at, size + at, real, between, mean,
            left_top, left_total, left_mass, COMPANION, SOFT,
        )  # fmt: skip


@jit()
def _add_pairs(
    charts, companions, a, b, mask, top, total, mass, COMPANION: tl.constexpr, SOFT: tl.constexpr
):  # fmt: skip
    """Add the products of a tile of pairs of items to a running sum."""
    terms = tl.load(charts + a, mask=mask, other=float("-inf")) + tl.load(charts + b, mask=mask, other=float("-inf"))
    means = terms
    if COMPANION:
        means = tl.load(companions + a, mask=mask, other=0.0) + tl.load(companions + b, mask=mask, other=0.0)
    return _add(terms, means, top, total, mass, COMPANION, SOFT)


@jit()
def _add(terms, means, top, total, mass, COMPANION: tl.constexpr, SOFT: tl.constexpr):
    """Add a tile of items to a running sum.

    The sum is total * 2^top, and the sum of companions weighted by their items mass * 2^top, with `top` the largest term.
    """
    largest = tl.maximum(top, tl.max(terms, 0))
    base = tl.where(largest > float("-inf"), largest, 0.0)
    less = terms - base[None, :]
    weights = tl.exp2(less.to(SOFT))
    scale = tl.exp2((top - base).to(SOFT))
    if COMPANION == 2:
        means -= tl.where(less > float("-inf"), less, 0.0) * 0.6931471805599453
        mass += total.to(tl.float64) * tl.where(top > float("-inf"), base - top, 0.0) * 0.6931471805599453
    if COMPANION:
        mass = mass * scale.to(tl.float64) + tl.sum(weights.to(tl.float64) * means, 0)
    return largest, total * scale + tl.sum(weights, 0), mass


@jit()
def _finish(top, total, mass, COMPANION: tl.constexpr):
    """The log of a running sum, and its companion."""
    total = total.to(tl.float64)
    log_total = tl.log2(total)
    if COMPANION:
        mass = tl.where(total > 0.0, mass / total, 0.0)
    if COMPANION == 2:
        mass += tl.where(total > 0.0, log_total, 0.0) * 0.6931471805599453
    return top + log_total, mass


@jit()
def _close(
    charts, companions, arc_at, at, real, between, mean, top, total, mass,
    COMPANION: tl.constexpr, SOFT: tl.constexpr,
):  # fmt: skip
    """Give a span its arc, and add it to the sum of the span's complete item as the last term."""
    arc = between + tl.load(charts + arc_at, mask=real, other=float("-inf"))
    if COMPANION == 1:
        mean += tl.load(companions + arc_at, mask=real, other=0.0)
    _put(charts, companions, arc_at, real, arc, mean, COMPANION)
    top, total, mass = _add(arc[None, :], mean[None, :], top, total, mass, COMPANION, SOFT)
    complete, mean = _finish(top, total, mass, COMPANION)
    _put(charts, companions, at, real, complete, mean, COMPANION)


@jit()
def _put(charts, companions, at, mask, value, mean, COMPANION: tl.constexpr):
    tl.store(charts + at, value, mask=mask)
    if COMPANION:
        tl.store(companions + at, mean, mask=mask)
