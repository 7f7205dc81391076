"""State elimination in logs on a GPU, in Triton. README.md has the maths.

Charts are `[n, n]` of float64, packed like the scores: row h and column m for the arc from h to m, the root's arcs on
the diagonal. Words are eliminated from the last to the first; what is left of a word's row and column is what they
held when its turn came. With each log may go a companion: its derivative along a direction of the scores
(SLOPE), or the entropy of the paths that it sums over (ENTROPY), which logs.py explains.

With a single root, a word that no other word leads to has to be the root's child: it is kept to the end. Where there
is none, that is the first word.
"""

from __future__ import annotations

from pullback.inference._triton.support import constant, jit, tl
from pullback.inference.eisner.cuda_layout import load_scores

ALONE, SLOPE, ENTROPY = 0, 1, 2
_SLOPE, _ENTROPY = constant(SLOPE), constant(ENTROPY)
_CUTOFF = constant(-1e7)  # arcs this far below the best are left out, if no tree that counts uses one


@jit()
def prepare(
    scores, direction, length, n, multiroot, logs, slopes, sums,
    COMPANION: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Lay out a sentence and eliminate its words: without the arcs far below the best, and if need be once more with them.

    No shifted score is above zero, so that a tree with one of these arcs weighs at most as much as the arc. Where the
    other trees weigh far more, nothing is lost; and where large masks stand for forbidden arcs, they behave as such.

    Returns:
        log Z and the last word from `eliminate`, then what `lay_out` returns, the cutoff included.
    """
    cutoff = tl.full([], _CUTOFF, tl.float64)
    shifts, levels = tl.zeros([COLUMNS], tl.float64), tl.zeros([COLUMNS], tl.float64)
    root_shift, root_level = tl.full([], 0.0, tl.float64), tl.full([], 0.0, tl.float64)
    log_z = tl.full([], 0.0, tl.float64)
    garbled, last = tl.full([], 0, tl.int32), tl.full([], -1, tl.int32)
    again = tl.full([], 1, tl.int32)
    while again > 0:
        shifts, root_shift, levels, root_level, garbled, dropped = lay_out(
            scores, direction, length, n, multiroot, cutoff, logs, slopes, COMPANION, ROWS, COLUMNS
        )  # fmt: skip
        tl.debug_barrier()
        log_z, last = eliminate(length, n, multiroot, logs, slopes, sums, COMPANION, ROWS, COLUMNS)
        again = ((dropped > float("-inf")) & ((log_z > 0.5 * dropped) == 0)).to(tl.int32)
        cutoff = tl.where(again > 0, float("-inf"), cutoff)
        tl.debug_barrier()
    return log_z, last, shifts, root_shift, levels, root_level, garbled, cutoff


@jit()
def lay_out(
    scores, direction, length, n, multiroot, cutoff, logs, slopes,
    COMPANION: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Write the logs of weights: scores, less the largest into each word, and with a single root less its largest arc.

    These shifts change no probability; neither do those that make the slopes zero where the shifted logs are. What is
    below the cutoff is forbidden.

    Returns:
        The shifts of the logs, of each word `[COLUMNS]` and of the root; those of the slopes; 1 if a score is NaN
        or +inf, else 0; and the largest finite log below the cutoff, or -inf.
    """
    word = tl.arange(0, COLUMNS)[None, :]
    real = tl.arange(0, COLUMNS) < length
    shifts = tl.full([COLUMNS], float("-inf"), tl.float64)
    at = tl.zeros([COLUMNS], tl.int32)
    worst = tl.zeros([COLUMNS], tl.int32)
    for start in range(0, length, ROWS):
        head = (start + tl.arange(0, ROWS))[:, None]
        score, _, garbled = load_scores(scores, head, word, length, n)
        top, row = tl.max(score.to(tl.float64), 0, return_indices=True)
        at = tl.where(top > shifts, start + row, at)
        shifts = tl.maximum(top, shifts)
        worst = tl.maximum(tl.max(garbled.to(tl.int32), 0), worst)
    free = real & (shifts > float("-inf"))
    shifts = tl.where(free, shifts, 0.0)
    levels = tl.zeros([COLUMNS], tl.float64)
    if COMPANION == _SLOPE:
        levels = tl.load(direction + at * n + tl.arange(0, COLUMNS), mask=free, other=0.0).to(tl.float64)
    diagonal = tl.arange(0, COLUMNS) * (n + 1)
    root = tl.load(scores + diagonal, mask=real, other=float("-inf")).to(tl.float64) - shifts
    root_shift, child = tl.max(tl.where(root < float("inf"), root, float("-inf")), 0, return_indices=True)
    root_free = tl.where((root_shift > float("-inf")) & (multiroot == 0), 1, 0)
    root_shift = tl.where(root_free > 0, root_shift, 0.0)
    root_level = root_shift
    if COMPANION == _SLOPE:
        root_slope = tl.load(direction + diagonal, mask=real, other=0.0).to(tl.float64) - levels
        root_level = tl.sum(tl.where((tl.arange(0, COLUMNS) == child) & (root_free > 0), root_slope, 0.0), 0)
    dropped = tl.full([COLUMNS], float("-inf"), tl.float64)
    for start in range(0, length, ROWS):
        head = (start + tl.arange(0, ROWS))[:, None]
        score, inside, _ = load_scores(scores, head, word, length, n)
        log = score.to(tl.float64) - shifts[None, :] - tl.where(head == word, root_shift, 0.0)
        dropped = tl.maximum(dropped, tl.max(tl.where(log < cutoff, log, float("-inf")), 0))
        log = tl.where(log < cutoff, float("-inf"), log)
        tl.store(logs + head * n + word, log, mask=inside)
        if COMPANION == _ENTROPY:
            tl.store(slopes + head * n + word, tl.zeros([ROWS, COLUMNS], tl.float64), mask=inside)
        if COMPANION == _SLOPE:
            slope = tl.load(direction + head * n + word, mask=inside & (log > float("-inf")), other=0.0).to(tl.float64)
            slope = slope - levels[None, :] - tl.where(head == word, root_level, 0.0)
            tl.store(slopes + head * n + word, slope, mask=inside)
    return shifts, root_shift, levels, root_level, tl.max(worst, 0), tl.max(dropped, 0)


@jit()
def eliminate(
    length, n, multiroot, logs, slopes, sums, COMPANION: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """Eliminate all words, in place.

    Args:
        length: the number of words.
        n: the pitch of the charts.
        multiroot: whether the root may have several children.
        logs: the chart from `lay_out`.
        slopes: its companions, looked at only where there are some.
        sums: `[2, n]`, to write: of each word the log of the sum S_k of the weights into it, and its companion.
        COMPANION: ALONE, SLOPE or ENTROPY.
        ROWS: heads looked at together.
        COLUMNS: a power of two, at least n.

    Returns:
        log Z less the shifts, -inf if there is no tree; with a single root the word that was kept to the end, else -1.
    """
    word = tl.arange(0, COLUMNS)
    last = tl.full([], -1, tl.int32)
    stuck = tl.full([], 0, tl.int32)
    for done in range(0, length):
        k = length - 1 - done
        alive = (word < k) | (word == last)
        enters = alive | ((word == k) & (multiroot != 0))
        into = tl.load(logs + word * n + k, mask=enters, other=float("-inf"))
        top = tl.max(into, 0)
        reachable = top > float("-inf")
        top = tl.where(reachable, top, 0.0)
        parts = tl.exp(into - top)
        total = tl.sum(parts, 0)
        log_sum = top + tl.log(tl.where(reachable, total, 1.0))
        tl.store(sums + k, log_sum)
        mean = total
        if COMPANION:
            tilts = tl.load(slopes + word * n + k, mask=enters, other=0.0)
            if COMPANION == _ENTROPY:
                tilts -= tl.where(parts > 0.0, into - log_sum, 0.0)
            mean = tl.sum(parts * tilts, 0) / tl.where(reachable, total, 1.0)
            tl.store(sums + n + k, mean)
        if reachable:
            for start in range(0, tl.maximum(k, last + 1), ROWS):
                _add_paths(start, k, last, n, logs, slopes, log_sum, mean, COMPANION, ROWS, COLUMNS)
        stuck += tl.where(reachable, 0, 1)
        last = tl.where(reachable | (stuck > 1), last, k)
        tl.debug_barrier()
    log_z = tl.sum(tl.load(sums + word, mask=word < length, other=0.0), 0)
    if multiroot == 0:
        log_z += tl.load(logs + last * (n + 1), mask=last >= 0, other=0.0)
    possible = (stuck == 0) | ((multiroot == 0) & (stuck == 1))
    return tl.where(possible, log_z, float("-inf")), last


@jit()
def paths(
    start, k, last, n, logs, slopes, log_sum, mean, COMPANION: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """The logs of the weights of the paths h -> k -> m for a tile of rows h, and their companions.

    Returns:
        where they stand in a chart, which of them there are, their logs, their companions.
    """
    head, word = (start + tl.arange(0, ROWS))[:, None], tl.arange(0, COLUMNS)[None, :]
    above, below = (head < k) | (head == last), (word < k) | (word == last)
    on_diagonal = head == word
    source = tl.where(on_diagonal, k, head) * n + k
    share = tl.load(logs + source, mask=above & below, other=float("-inf")) - log_sum
    path = share + tl.load(logs + k * n + word, mask=below, other=float("-inf"))
    slope = path
    if COMPANION:
        tilt = tl.load(slopes + source, mask=above & below, other=0.0) - mean
        slope = tilt + tl.load(slopes + k * n + word, mask=below, other=0.0)
    return head * n + word, path > float("-inf"), path, slope


@jit()
def _add_paths(
    start, k, last, n, logs, slopes, log_sum, mean, COMPANION: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """Add the paths h -> k -> m to the arcs h -> m of a tile of rows h."""
    at, exist, path, slope = paths(start, k, last, n, logs, slopes, log_sum, mean, COMPANION, ROWS, COLUMNS)
    arc = tl.load(logs + at, mask=exist, other=0.0)
    path = tl.where(exist, path, 0.0)
    both = tl.maximum(path, arc) + tl.log(1.0 + tl.exp(-tl.abs(path - arc)))
    tl.store(logs + at, both, mask=exist)
    if COMPANION:
        part, old = tl.exp(path - both), tl.load(slopes + at, mask=exist, other=0.0)
        new = old + part * (slope - old)
        if COMPANION == _ENTROPY:
            rest = tl.exp(arc - both)
            new -= part * tl.where(part > 0.0, path - both, 0.0) + rest * tl.where(rest > 0.0, arc - both, 0.0)
        tl.store(slopes + at, new, mask=exist)
