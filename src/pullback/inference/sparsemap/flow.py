"""SparseMAP on the CPU of structures that are the paths of a graph whose edges are their parts. See README.md."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.compile import called, no_alloc_kernel
from pullback.inference._numba.records import Memory, Record
from pullback.inference._numba.scratch import take
from pullback.inference._numba.threads import spread
from pullback.inference.front.checks import OK
from pullback.inference.sparsemap import compiled
from pullback.inference.sparsemap.compiled import Sizes
from pullback.inference.sparsemap.flow_newton import descend, reduce
from pullback.inference.sparsemap.flow_state import assemble, balance, flow_plan, flow_state_of, lift
from pullback.inference.sparsemap.oracle import Fixed, Oracle, call_ends
from pullback.inference.sparsemap.search import AMPLIFIED
from pullback.inference.sparsemap.solution import Starts

_CALLS = 5  # of the oracle for each part of a structure, before Newton's method takes over
_PARTS = 100_000  # that the structures of these calls have, at most
_WORK = 100  # operations of half a nanosecond for each part, about
_NOTHING = 1e-13  # flows that rounding may have made


def search(
    oracle: Oracle, scores: Tensor, sizes: Sizes, starts: Starts, limit: int, tolerance: float, options: tuple[int, ...]
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Project scores `[B, *parts]` onto the convex hull of the paths of a graph, `oracle.paths`.

    The active-set method solves what needs few structures, and Newton's method on the flows the rest. Arguments and results
    are those of `compiled.search`, but instead of vertices there are the edges that have a flow, `[B, k, 3]`, int64: their
    parts, tails and heads, in ascending order; and instead of weights, their flows.
    """
    assert oracle.paths is not None
    shape, (values, limits) = tuple(scores.shape[1:]), sizes
    batch, parts, longest = scores.shape[0], scores.shape[1:].numel(), starts[0].shape[-1]
    s = scores.detach().double()
    few = min(limit, _CALLS * longest, 1 + _PARTS // max(longest, 1))
    (mu, _, _, _, gap, calls, converged), status = compiled.search(oracle, s, sizes, starts, few, tolerance, False, options)
    edges = torch.empty((batch, parts, 3), dtype=torch.int64, device="cpu")
    flows = torch.empty((batch, parts), dtype=torch.float64, device="cpu")
    counts = torch.zeros(batch, dtype=torch.int32, device="cpu")
    if batch > 0:
        threads = min(torch.get_num_threads(), batch)
        states = Memory.kept(flow_plan(parts, oracle.paths.nodes(shape), oracle.paths.reach(shape)), threads)
        fixed, _kept = oracle.fixed(shape, limits, options)
        problem = {
            "fixed": fixed, "scores": s.reshape(batch, parts).contiguous(), "sizes": torch.stack(values, 1),
            "longest": longest, "limit": max(limit - few, 0), "tolerance": torch.tensor([tolerance]).double(),
            "status": status, "taken": torch.zeros(1, dtype=torch.int64), "mu": mu.reshape(batch, parts),
            "edges": edges, "flows": flows, "counts": counts, "gap": gap, "calls": calls, "converged": converged,
        }  # fmt: skip
        spread(project, threads, float(_WORK * parts * batch), Problem.table(problem), states.table)
        states.keep()
    most = max([1, *counts.tolist()])
    mu = mu.reshape(scores.shape).to(scores.dtype)
    return (mu, edges[:, :most].clone(), flows[:, :most].clone(), counts, gap, calls, converged), status


Problem = Record(
    "FlowProblem",
    fixed=Fixed,
    scores=(np.float64, 2),  # [B, K]
    sizes=(np.int64, 2),  # [B, number of sizes]
    longest=int,  # how many parts a structure has at most
    limit=int,  # of steps
    tolerance=(np.float64, 1),  # [1]
    status=(np.int64, 1),  # [B], as all others that have no other shape
    taken=(np.int64, 1),  # [1]: how many examples workers have taken
    mu=(np.float64, 2),  # [B, K]
    edges=(np.int64, 3),  # [B, K, 3]: only what is used is written
    flows=(np.float64, 2),  # [B, K]: likewise
    counts=(np.int32, 1),
    gap=(np.float64, 1),
    calls=(np.int32, 1),
    converged=(np.bool_, 1),
)
problem_of = Problem.reader


@no_alloc_kernel
def project(worker, workers, problems, states):
    """Solve what has not converged, and list the edges of all examples, until none is left."""
    problem, state = problem_of(problems, 0), flow_state_of(states, worker)
    while True:
        b = take(problem.taken)
        if b >= len(problem.counts):
            return
        if problem.status[b] != OK:
            continue
        nodes = _read(problem.fixed, problem.scores[b], problem.sizes[b], state)
        if nodes > 1 and problem.limit > 0 and not problem.converged[b]:
            _improve(problem, state, b, nodes)
            nodes = _read(problem.fixed, problem.scores[b], problem.sizes[b], state)
        if nodes > 1:
            problem.counts[b] = _list(state, problem.mu[b], problem.edges[b], problem.flows[b])


@called
def _improve(problem, state, b, nodes):
    count = reduce(state, nodes, problem.longest)
    steps, gap, rounding = descend(state, count, nodes, problem.limit, problem.tolerance[0])
    problem.calls[b] += steps
    problem.gap[b], problem.converged[b] = gap, gap <= max(problem.tolerance[0], AMPLIFIED * rounding)
    for part in range(problem.mu.shape[1]):
        problem.mu[b, part] = 0.0
    for e in range(count):
        problem.mu[b, state.parts[e]] = state.flows[e]


@called
def _list(state, mu, edges, flows):
    """List the edges that have a flow; returns how many there are."""
    count = 0
    for part in range(len(mu)):
        if mu[part] > _NOTHING:
            edges[count, 0], edges[count, 1], edges[count, 2] = part, state.tails[part], state.heads[part]
            flows[count] = mu[part]
            count += 1
    return count


@called
def _read(fixed, scores, sizes, state):
    """The graph of an example and its scores; returns how many nodes there are.

    The best score of each group of parts is taken off, which saves digits.
    """
    tails, own, tops, groups = state.tails, state.scores, state.flows, fixed.groups
    nodes = call_ends(fixed.addresses[4], (fixed.shape, sizes, fixed.options, tails, state.heads))
    tops[:] = -np.inf
    for part in range(len(groups)):
        if tails[part] >= 0:
            tops[groups[part]] = max(tops[groups[part]], scores[part])
    for part in range(len(scores)):
        own[part] = scores[part]
        if part < len(groups) and tails[part] >= 0 and tops[groups[part]] > -np.inf:
            own[part] -= tops[groups[part]]
    return nodes


def sparsemap_vjp(edges: Tensor, counts: Tensor, direction: Tensor) -> Tensor:
    """The Jacobian of SparseMAP, which is symmetric, times a direction `[B, *parts]`: its part that is a circulation."""
    result = torch.zeros(direction.shape, dtype=torch.float64, device="cpu")
    if direction.numel() > 0 and (counts > 0).any():
        batch, parts = len(direction), edges.shape[1]
        inside = edges.masked_fill((torch.arange(parts) >= counts[:, None])[..., None], 0)
        nodes, reach = int(inside[..., 2].max()) + 1, int((inside[..., 2] - inside[..., 1]).max())
        states = Memory(flow_plan(parts, nodes, reach), min(torch.get_num_threads(), batch))
        arrays = (x.contiguous().numpy() for x in (edges, counts, direction.double().reshape(batch, -1)))
        spread(circulate, batch, float(_WORK * parts * batch), *arrays, states.table, result.reshape(batch, -1).numpy())
    return result.to(direction.dtype)


@no_alloc_kernel
def circulate(worker, workers, edges, counts, vectors, states, result):
    """Project vectors `[B, K]` onto the circulations of the edges with a flow: less the differences of potentials."""
    state = flow_state_of(states, worker)
    own = state
    for b in range(worker, len(counts), workers):
        count, nodes = counts[b], 1
        for e in range(count):
            own.tails[e], own.heads[e], own.flows[e] = edges[b, e, 1], edges[b, e, 2], 1.0
            own.scores[e] = vectors[b, edges[b, e, 0]]
            nodes = max(nodes, own.heads[e] + 1)
        state.excess[:nodes] = 0.0
        size = assemble(state, count, nodes, 0.0)
        for _ in range(2):  # the second time for what rounding has left
            for e in range(count):
                own.flows[e] = own.scores[e]
            balance(state, count, nodes, 0.0)
            lift(state, nodes, size)
            for e in range(count):
                own.scores[e] += state.step[own.tails[e]] - state.step[own.heads[e]]
        for e in range(count):
            result[b, edges[b, e, 0]] = own.scores[e]
