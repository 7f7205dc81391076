"""Marginals and their derivative along a direction on a GPU, by elimination in reverse. README.md has the maths.

What is kept of an arc is its probability in the graph of the moment when one of its words is eliminated: a number
between 0 and 1, where derivatives of log Z in weights would leave any range. An arc h -> m that was there when word k
went contains the path h -> k -> m, and passes its share of the probability on to both of its arcs.
"""

from __future__ import annotations

from pullback.inference.eisner.cuda_layout import length_of, load_scores
from pullback.inference.matrix_tree.cuda_elimination import eliminate, lay_out, paths
from pullback.inference.triton_support import jit, tl


@jit(do_not_specialize=["batch", "n", "multiroot"])
def log_partition(
    scores, lengths, out, charts, sums, batch, n, multiroot, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """Write the log-partitions `[B]` of `[B, n, n]` scores: -inf without a tree, NaN if there is NaN or +inf.

    Args:
        scores: `[B, n, n]`.
        lengths: `[B]`.
        out: `[B]`, float64, to write.
        charts: scratch, a chart a program.
        sums: scratch, `[2, n]` a program.
        batch: B.
        n: the size of the scores.
        multiroot: whether the root may have several children.
        ROWS: heads looked at together.
        COLUMNS: a power of two, at least n.
    """
    program = tl.program_id(0).to(tl.int64)
    charts += program * n * n
    sums += program * 2 * n
    for sentence in range(tl.program_id(0), batch, tl.num_programs(0)):
        matrix = scores + tl.cast(sentence, tl.int64) * n * n
        length = length_of(lengths, sentence, n)
        shifts, root_shift, _, _, garbled = lay_out(
            matrix, matrix, length, n, multiroot, charts, charts, 0, ROWS, COLUMNS
        )  # fmt: skip
        tl.debug_barrier()
        log_z, _ = eliminate(length, n, multiroot, charts, charts, sums, 0, ROWS, COLUMNS)
        log_z += tl.sum(shifts, 0) + tl.where(length > 0, root_shift, 0.0)
        tl.store(out + sentence, tl.where(garbled == 0, log_z, float("nan")))
        tl.debug_barrier()


@jit(do_not_specialize=["batch", "n", "multiroot"])
def marginals(
    scores, lengths, direction, out, entropies, charts, sums, batch, n, multiroot,
    SLOPE: tl.constexpr, ENTROPY: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Write the marginals of `[B, n, n]` scores, or with SLOPE their derivative along a direction, or the entropies.

    Args:
        scores: `[B, n, n]`.
        lengths: `[B]`.
        direction: `[B, n, n]`, looked at only with SLOPE.
        out: `[B, n, n]`, to write unless ENTROPY; zeros for a sentence without a tree, NaN for one with NaN or +inf.
        entropies: `[B]`, float64, to write if ENTROPY.
        charts: scratch, two charts a program, or four with SLOPE.
        sums: scratch, `[2, n]` a program.
        batch: B.
        n: the size of the scores.
        multiroot: whether the root may have several children.
        SLOPE: 0 or 1.
        ENTROPY: 0 or 1.
        ROWS: heads looked at together.
        COLUMNS: a power of two, at least n.
    """
    program, size = tl.program_id(0).to(tl.int64), n * n
    logs = charts + program * (4 if SLOPE else 2) * size
    found = logs + size
    slopes, derivatives = logs, found
    if SLOPE:
        slopes, derivatives = logs + 2 * size, logs + 3 * size
    sums += program * 2 * n
    for sentence in range(tl.program_id(0), batch, tl.num_programs(0)):
        matrix = tl.cast(sentence, tl.int64) * size
        length = length_of(lengths, sentence, n)
        shifts, root_shift, levels, root_level, garbled = lay_out(
            scores + matrix, direction + matrix, length, n, multiroot, logs, slopes, SLOPE, ROWS, COLUMNS
        )  # fmt: skip
        tl.debug_barrier()
        log_z, last = eliminate(length, n, multiroot, logs, slopes, sums, SLOPE, ROWS, COLUMNS)
        if last >= 0:
            tl.store(found + last * (n + 1), 1.0)
            if SLOPE:
                tl.store(derivatives + last * (n + 1), 0.0)
        tl.debug_barrier()
        for k in range(0, length):
            if k != last:
                _restore(
                    k, last, n, multiroot, logs, slopes, found, derivatives, sums, SLOPE, ROWS, COLUMNS
                )  # fmt: skip
        exists = tl.where(log_z > float("-inf"), 1, 0)
        mean = _finish(
            scores + matrix, direction + matrix, length, n, logs, slopes, found, derivatives, out + matrix,
            shifts, root_shift, levels, root_level, garbled, exists, SLOPE, ENTROPY, ROWS, COLUMNS,
        )  # fmt: skip
        if ENTROPY:
            entropy = tl.where(exists > 0, tl.maximum(log_z - mean, 0.0), 0.0)
            tl.store(entropies + sentence, tl.where(garbled == 0, entropy, float("nan")))
        tl.debug_barrier()


@jit()
def _restore(
    k, last, n, multiroot, logs, slopes, found, derivatives, sums,
    SLOPE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The probabilities of the arcs of word k, from those of the words that were there when it went."""
    word = tl.arange(0, COLUMNS)
    log_sum = tl.load(sums + k)
    mean = log_sum
    if SLOPE:
        mean = tl.load(sums + n + k)
    gains = tl.zeros([COLUMNS], tl.float64)
    root_uses, d_gains, d_root_uses = gains, gains, gains
    for start in range(0, tl.maximum(k, last + 1), ROWS):
        at, exist, path, slope = paths(start, k, last, n, logs, slopes, log_sum, mean, SLOPE, ROWS, COLUMNS)
        head = start + tl.arange(0, ROWS)
        above = (head < k) | (head == last)
        on_diagonal = head[:, None] == word[None, :]
        part = tl.where(exist, tl.exp(path - tl.load(logs + at, mask=exist, other=0.0)), 0.0)
        p = part * tl.load(found + at, mask=exist, other=0.0)
        gains += tl.sum(p, 0)
        root_uses += tl.sum(tl.where(on_diagonal, p, 0.0), 0)
        tl.store(found + head * n + k, tl.sum(tl.where(on_diagonal, 0.0, p), 1), mask=above)
        if SLOPE:
            change = tl.where(exist, slope - tl.load(slopes + at, mask=exist, other=0.0), 0.0)
            d = part * tl.load(derivatives + at, mask=exist, other=0.0) + p * change
            d_gains += tl.sum(d, 0)
            d_root_uses += tl.sum(tl.where(on_diagonal, d, 0.0), 0)
            tl.store(derivatives + head * n + k, tl.sum(tl.where(on_diagonal, 0.0, d), 1), mask=above)
    tl.debug_barrier()
    alive = (word < k) | (word == last)
    own = word == k
    enters = alive | (own & (multiroot != 0))
    rest = 1.0 - tl.sum(gains, 0)
    share = tl.exp(tl.load(logs + word * n + k, mask=enters, other=float("-inf")) - log_sum)
    uses = tl.load(found + word * n + k, mask=alive, other=0.0) + tl.where(own, tl.sum(root_uses, 0), 0.0)
    tl.store(found + k * n + word, gains, mask=alive)
    tl.store(found + word * n + k, uses + share * rest, mask=alive | own)
    if SLOPE:
        tilts = tl.load(slopes + word * n + k, mask=enters, other=0.0) - mean
        d_rest = -tl.sum(d_gains, 0)
        d_uses = tl.load(derivatives + word * n + k, mask=alive, other=0.0) + tl.where(own, tl.sum(d_root_uses, 0), 0.0)
        tl.store(derivatives + k * n + word, d_gains, mask=alive)
        tl.store(derivatives + word * n + k, d_uses + share * (d_rest + rest * tilts), mask=alive | own)
    tl.debug_barrier()


@jit()
def _finish(
    scores, direction, length, n, logs, slopes, found, derivatives, out,
    shifts, root_shift, levels, root_level, garbled, exists,
    SLOPE: tl.constexpr, ENTROPY: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Write the marginals of the whole graph, or their derivatives; returns the mean of the shifted scores."""
    word = tl.arange(0, COLUMNS)[None, :]
    means = tl.zeros([COLUMNS], tl.float64)
    for start in range(0, n, ROWS):
        head = (start + tl.arange(0, ROWS))[:, None]
        at = head * n + word
        score, inside, _ = load_scores(scores, head, word, length, n)
        first = score.to(tl.float64) - shifts[None, :] - tl.where(head == word, root_shift, 0.0)
        used = (first > float("-inf")) & (exists > 0)
        part = tl.exp(tl.where(used, first, 0.0) - tl.load(logs + at, mask=used, other=0.0))
        p = tl.where(used, part * tl.load(found + at, mask=used, other=0.0), 0.0)
        p = tl.minimum(tl.maximum(p, 0.0), 1.0)
        result = p
        if ENTROPY:
            means += tl.sum(p * tl.where(used, first, 0.0), 0)
        else:
            if SLOPE:
                slope = tl.load(direction + at, mask=used, other=0.0).to(tl.float64)
                slope = slope - levels[None, :] - tl.where(head == word, root_level, 0.0)
                change = slope - tl.load(slopes + at, mask=used, other=0.0)
                result = part * tl.load(derivatives + at, mask=used, other=0.0) + p * change
                result = tl.where(used, result, 0.0)
            result = tl.where(inside & (garbled > 0), float("nan"), result)
            tl.store(out + at, result.to(out.dtype.element_ty), mask=(head < n) & (word < n))
    return tl.sum(means, 0)
