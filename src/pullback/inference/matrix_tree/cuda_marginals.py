"""Marginals and their derivative along a direction on a GPU, by elimination in reverse. README.md has the maths.

What is kept of an arc is its probability in the graph of the moment when one of its words is eliminated: a number
between 0 and 1, where derivatives of log Z in weights would leave any range. An arc h -> m that was there when word k
went contains the path h -> k -> m, and passes its share of the probability on to both of its arcs.
"""

from __future__ import annotations

from pullback.inference._triton.support import constant, jit, tl
from pullback.inference.eisner.cuda_layout import beyond, length_of, load_scores
from pullback.inference.matrix_tree.cuda_elimination import ENTROPY, SLOPE, paths, prepare

_SLOPE, _ENTROPY = constant(SLOPE), constant(ENTROPY)


@jit(do_not_specialize=["batch", "n", "multiroot"])
def log_partition(
    scores, lengths, out, charts, sums, batch, n, multiroot,
    COMPANION: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Write the log-partitions `[B]` of `[B, n, n]` scores, or the entropies; NaN without a tree, or for NaN and +inf.

    The entropy is the sum of what the log S_k have as companions: of the choices of heads, one after the other.

    Args:
        scores: `[B, n, n]`.
        lengths: `[B]`.
        out: `[B]`, float64, to write.
        charts: scratch, a chart a program, or two with ENTROPY.
        sums: scratch, `[2, n]` a program.
        batch: B.
        n: the size of the scores.
        multiroot: whether the root may have several children.
        COMPANION: ALONE for log-partitions, ENTROPY for entropies.
        ROWS: heads looked at together.
        COLUMNS: a power of two, at least n.
    """
    program, size = tl.program_id(0).to(tl.int64), n * n
    charts += program * (2 if COMPANION else 1) * size
    slopes = charts + (size if COMPANION else 0)
    sums += program * 2 * n
    word = tl.arange(0, COLUMNS)
    for sentence in range(tl.program_id(0), batch, tl.num_programs(0)):
        matrix = scores + tl.cast(sentence, tl.int64) * size
        length = length_of(lengths, sentence, n)
        log_z, last, shifts, root_shift, _, _, garbled, _ = prepare(
            matrix, matrix, length, n, multiroot, charts, slopes, sums, COMPANION, ROWS, COLUMNS
        )  # fmt: skip
        sound = (garbled == 0) & (log_z > float("-inf")) & (beyond(lengths, sentence, n) == 0)
        result = log_z + tl.sum(shifts, 0) + tl.where(length > 0, root_shift, 0.0)
        if COMPANION:
            tl.debug_barrier()
            result = tl.sum(tl.load(sums + n + word, mask=word < length, other=0.0), 0)
            result += tl.load(slopes + last * (n + 1), mask=last >= 0, other=0.0)
            result = tl.maximum(result, 0.0)
        tl.store(out + sentence, tl.where(sound, result, float("nan")))
        tl.debug_barrier()


@jit(do_not_specialize=["batch", "n", "multiroot"])
def marginals(
    scores, lengths, direction, out, charts, sums, batch, n, multiroot,
    COMPANION: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Write the marginals of `[B, n, n]` scores, or their derivative along a direction, or the gradient of the entropy.

    Args:
        scores: `[B, n, n]`.
        lengths: `[B]`.
        direction: `[B, n, n]`, looked at only with the companion SLOPE.
        out: `[B, n, n]`, to write; NaN for a sentence with NaN, +inf or no tree.
        charts: scratch, two charts a program, or four with a companion.
        sums: scratch, `[2, n]` a program.
        batch: B.
        n: the size of the scores.
        multiroot: whether the root may have several children.
        COMPANION: ALONE for marginals, SLOPE for their derivative, ENTROPY for the gradient of the entropy.
        ROWS: heads looked at together.
        COLUMNS: a power of two, at least n.
    """
    program, size = tl.program_id(0).to(tl.int64), n * n
    logs = charts + program * (4 if COMPANION else 2) * size
    found = logs + size
    slopes, derivatives = logs, found
    if COMPANION:
        slopes, derivatives = logs + 2 * size, logs + 3 * size
    sums += program * 2 * n
    for sentence in range(tl.program_id(0), batch, tl.num_programs(0)):
        matrix = tl.cast(sentence, tl.int64) * size
        length = length_of(lengths, sentence, n)
        log_z, last, shifts, root_shift, levels, root_level, garbled, cutoff = prepare(
            scores + matrix, direction + matrix, length, n, multiroot, logs, slopes, sums, COMPANION, ROWS, COLUMNS
        )  # fmt: skip
        if last >= 0:
            tl.store(found + last * (n + 1), 1.0)
            if COMPANION:
                tl.store(derivatives + last * (n + 1), 0.0)
        tl.debug_barrier()
        for k in range(0, length):
            if k != last:
                _restore(
                    k, last, n, multiroot, logs, slopes, found, derivatives, sums, COMPANION, ROWS, COLUMNS
                )  # fmt: skip
        sound = (garbled == 0) & (log_z > float("-inf")) & (beyond(lengths, sentence, n) == 0)
        _finish(
            scores + matrix, direction + matrix, length, n, logs, slopes, found, derivatives, out + matrix, cutoff,
            shifts, root_shift, levels, root_level, tl.where(sound, 1, 0), COMPANION, ROWS, COLUMNS,
        )  # fmt: skip
        tl.debug_barrier()


@jit()
def _restore(
    k, last, n, multiroot, logs, slopes, found, derivatives, sums,
    COMPANION: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The probabilities of the arcs of word k, from those of the words that were there when it went."""
    word = tl.arange(0, COLUMNS)
    log_sum = tl.load(sums + k)
    mean = log_sum
    if COMPANION:
        mean = tl.load(sums + n + k)
    gains = tl.zeros([COLUMNS], tl.float64)
    root_uses, d_gains, d_root_uses = gains, gains, gains
    for start in range(0, tl.maximum(k, last + 1), ROWS):
        at, exist, path, slope = paths(start, k, last, n, logs, slopes, log_sum, mean, COMPANION, ROWS, COLUMNS)
        head = start + tl.arange(0, ROWS)
        above = (head < k) | (head == last)
        on_diagonal = head[:, None] == word[None, :]
        share = tl.where(exist, path - tl.load(logs + at, mask=exist, other=0.0), 0.0)
        part = tl.where(exist, tl.exp(share), 0.0)
        p = part * tl.load(found + at, mask=exist, other=0.0)
        gains += tl.sum(p, 0)
        root_uses += tl.sum(tl.where(on_diagonal, p, 0.0), 0)
        tl.store(found + head * n + k, tl.sum(tl.where(on_diagonal, 0.0, p), 1), mask=above)
        if COMPANION:
            change = tl.where(exist, slope - tl.load(slopes + at, mask=exist, other=0.0), 0.0)
            if COMPANION == _ENTROPY:
                change -= tl.where(part > 0.0, share, 0.0)
            d = part * tl.load(derivatives + at, mask=exist, other=0.0) + p * change
            d_gains += tl.sum(d, 0)
            d_root_uses += tl.sum(tl.where(on_diagonal, d, 0.0), 0)
            tl.store(derivatives + head * n + k, tl.sum(tl.where(on_diagonal, 0.0, d), 1), mask=above)
    tl.debug_barrier()
    alive = (word < k) | (word == last)
    own = word == k
    enters = alive | (own & (multiroot != 0))
    rest = 1.0 - tl.sum(gains, 0)
    log_share = tl.load(logs + word * n + k, mask=enters, other=float("-inf")) - log_sum
    share = tl.exp(log_share)
    uses = tl.load(found + word * n + k, mask=alive, other=0.0) + tl.where(own, tl.sum(root_uses, 0), 0.0)
    tl.store(found + k * n + word, gains, mask=alive)
    tl.store(found + word * n + k, uses + share * rest, mask=alive | own)
    if COMPANION:
        tilts = tl.load(slopes + word * n + k, mask=enters, other=0.0) - mean
        if COMPANION == _ENTROPY:
            tilts -= tl.where(share > 0.0, log_share, 0.0)
        d_rest = -tl.sum(d_gains, 0)
        d_uses = tl.load(derivatives + word * n + k, mask=alive, other=0.0) + tl.where(own, tl.sum(d_root_uses, 0), 0.0)
        tl.store(derivatives + k * n + word, d_gains, mask=alive)
        tl.store(derivatives + word * n + k, d_uses + share * (d_rest + rest * tilts), mask=alive | own)
    tl.debug_barrier()


@jit()
def _finish(
    scores, direction, length, n, logs, slopes, found, derivatives, out, cutoff,
    shifts, root_shift, levels, root_level, sound,
    COMPANION: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Write the marginals of the whole graph, or their derivatives."""
    word = tl.arange(0, COLUMNS)[None, :]
    for start in range(0, n, ROWS):
        head = (start + tl.arange(0, ROWS))[:, None]
        at = head * n + word
        score, _, _ = load_scores(scores, head, word, length, n)
        first = score.to(tl.float64) - shifts[None, :] - tl.where(head == word, root_shift, 0.0)
        used = (first > float("-inf")) & (first >= cutoff) & (sound > 0)
        share = tl.where(used, first - tl.load(logs + at, mask=used, other=0.0), 0.0)
        part = tl.exp(share)
        p = tl.where(used, part * tl.load(found + at, mask=used, other=0.0), 0.0)
        result = tl.minimum(tl.maximum(p, 0.0), 1.0)
        if COMPANION:
            change = 0.0 - tl.load(slopes + at, mask=used, other=0.0)
            if COMPANION == _SLOPE:
                change += tl.load(direction + at, mask=used, other=0.0).to(tl.float64)
                change -= levels[None, :] + tl.where(head == word, root_level, 0.0)
            if COMPANION == _ENTROPY:
                change -= tl.where(part > 0.0, share, 0.0)
            result = part * tl.load(derivatives + at, mask=used, other=0.0) + result * change
            result = tl.where(used, result, 0.0)
        result = tl.where(sound > 0, result, float("nan"))
        tl.store(out + at, result.to(out.dtype.element_ty), mask=(head < n) & (word < n))
