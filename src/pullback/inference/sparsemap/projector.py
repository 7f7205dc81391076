"""The Jacobian of SparseMAP, applied: the projection onto the directions between active structures. See README.md."""

from __future__ import annotations

from pullback.inference._numba.compile import no_alloc_kernel
from pullback.inference.sparsemap.active_set import direction
from pullback.inference.sparsemap.search import activate
from pullback.inference.sparsemap.starts import enter, suggest
from pullback.inference.sparsemap.state import COUNT, SIZE, scatter, slopes_of, state_of


@no_alloc_kernel
def apply(worker, workers, vertices, counts, vectors, states, result):
    """Project the vectors `[B, K]` of the worker's share of examples; what no active structure uses is left alone.

    The state is that of a search whose scores are the vector. It has a new inverse, because the search's own may be too old to
    tell a structure that depends on the others, and its mean becomes the projection.
    """
    state, width = state_of(states, worker), vertices.shape[2]
    for part in range(len(state.places)):
        state.places[part] = part
    for b in range(worker, len(counts), workers):
        enter(state, vectors[b])
        for i in range(counts[b]):
            parts = 0
            while parts < width and vertices[b, i, parts] >= 0:
                parts += 1
            suggest(state, vertices[b, i], parts, 1.0)
        activate(state, 0, False)
        for _ in range(2):  # the second time for what rounding has left
            for slot in range(state.numbers[COUNT]):
                state.tilt[slot] = state.scores[slot] - state.mean[slot]
            slopes_of(state.slots, state.widths, state.numbers[SIZE], state.tilt, state.slopes)
            direction(state.inverse, state.numbers[SIZE], state.slopes, False, state.step)
            scatter(state, state.step, state.mean)
        for slot in range(state.numbers[COUNT]):
            result[b, state.part_of[slot]] = state.mean[slot]
