"""SparseMAP in plain PyTorch: the active-set method of README.md for a whole batch, on any device, on dense structures.

Nothing in an iteration depends on values on the host, so that a GPU is synchronised once in `_CHUNK` iterations only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pullback.inference import checks
from pullback.inference.sparsemap.batched import Argmax, Starts
from pullback.inference.sparsemap.solution import dense, listed
from pullback.inference.sparsemap.status import WORSE

_ROUNDING = 4 * 2.0**-52
_CLOSE, _PATIENCE, _DEPENDENT = 1e2, 5, 1e-6
Ask = Callable[[Tensor], Tensor]
_CHUNK = 8  # iterations between looks at what is left to do
_DROPS = 3  # structures dropped in one iteration; where more have to go, the next oracle call is not used
_WRONG = 1e-5


@dataclass
class _Search:
    """A batch on its way; tensors of `[B, ...]` in float64."""

    s: Tensor  # [B, K], 0 where forbidden
    forbidden: Tensor  # [B, K]
    z: Tensor  # [B, room, K]: the active structures, 0 where there is none
    active: Tensor  # [B, room]
    weights: Tensor  # [B, room]
    inverse: Tensor  # [B, room, room]: of <z_i, z_j> + 1 for active structures; the identity for others
    gap: Tensor  # [B]
    calls: Tensor
    stalls: Tensor
    settled: Tensor  # whether mu is the minimum on the hull of the active structures
    converged: Tensor
    status: Tensor

    @property
    def mean(self) -> Tensor:
        return (self.weights[:, None] @ self.z)[:, 0]

    def grow(self, room: int) -> None:
        """Make room for more structures, and compute the inverse anew."""
        more = room - self.active.shape[1]
        if more > 0:
            self.z = torch.nn.functional.pad(self.z, (0, 0, 0, more))
            self.active = torch.nn.functional.pad(self.active, (0, more))
            self.weights = torch.nn.functional.pad(self.weights, (0, more))
        pairs = self.active[:, :, None] & self.active[:, None, :]
        one = torch.eye(room, dtype=torch.float64, device=self.s.device)
        gram = torch.where(pairs, self.z @ self.z.transpose(1, 2) + 1, one)
        self.inverse = torch.linalg.inv_ex(gram, check_errors=False).inverse

    def append(self, z: Tensor, wanted: Tensor) -> Tensor:
        """Activate structures `[B, K]` with weight 0 where they are wanted and independent; whether they were."""
        free = (~self.active).long().argmax(1)
        gram = torch.where(self.active, (self.z @ z[:, :, None])[:, :, 0] + 1, 0.0)
        ratio = (self.inverse @ gram[:, :, None])[:, :, 0]
        distance = (z * z).sum(1) + 1 - (gram * ratio).sum(1)
        new = wanted & (distance > _DEPENDENT) & ~self.active.all(1)
        here = torch.nn.functional.one_hot(free, self.active.shape[1]).bool() & new[:, None]
        change = torch.where(here, -1.0, ratio)
        scale = torch.where(new, 1 / distance, 0.0)[:, None, None]
        inverse = torch.where(here[:, :, None] & here[:, None, :], 0.0, self.inverse)
        self.inverse = inverse + scale * change[:, :, None] * change[:, None, :]
        self.z = torch.where(here[..., None], z[:, None], self.z)
        self.active = self.active | here
        return new

    def remove(self, gone: Tensor) -> None:
        """Drop at most one structure of each example, `[B, room]` of bool."""
        column = torch.where(gone[:, None, :], self.inverse, 0.0).sum(-1)
        own = torch.where(gone, column, 0.0).sum(-1)[:, None, None]
        change = column[:, :, None] * column[:, None, :] / torch.where(own == 0, 1.0, own)
        cross = gone[:, :, None] | gone[:, None, :]
        one = torch.eye(gone.shape[1], dtype=torch.float64, device=gone.device)
        self.inverse = torch.where(cross, one, self.inverse - torch.where(own == 0, 0.0, change))
        self.active, self.z = self.active & ~gone, torch.where(gone[..., None], 0.0, self.z)
        self.weights = torch.where(gone, 0.0, self.weights)

    def direction(self, values: Tensor) -> Tensor:
        """M (e - tau 1) for e_i = <values, z_i>, tau such that the sum is zero."""
        slopes = (self.z @ values[:, :, None])[:, :, 0]
        slopes = torch.where(self.active, slopes - slopes.amax(1, keepdim=True), 0.0)
        both = torch.stack([slopes, self.active.double()], -1)
        step, sums = torch.where(self.active[..., None], self.inverse @ both, 0.0).unbind(-1)
        total = sums.sum(1, keepdim=True)
        return step - step.sum(1, keepdim=True) / torch.where(total == 0, 1.0, total) * sums

    def settle(self, moving: Tensor) -> None:
        """Move towards the minimum on the hull; drop the structure whose weight vanishes on the way, if there is one."""
        step = torch.where(moving[:, None], self.direction(self.s - self.mean), 0.0)
        vanishing = (self.weights + step <= 0) & (step < 0) & self.active
        ratios = torch.where(vanishing, self.weights / torch.where(vanishing, -step, 1.0), torch.inf)
        far, blocking = ratios.min(1)
        blocked = far < torch.inf
        self.weights = self.weights + torch.where(blocked, far, 1.0)[:, None] * step
        self.settled = torch.where(moving, ~blocked, self.settled)
        self.remove(torch.nn.functional.one_hot(blocking, len(self.weights[0])).bool() & blocked[:, None])
        total = self.weights.sum(1, keepdim=True)
        self.weights = torch.where(total > 0, self.weights / torch.where(total > 0, total, 1.0), self.weights)


def search(
    argmax: Argmax, scores: Tensor, starts: Starts, max_iterations: int, complete: bool
) -> tuple[tuple[Tensor, ...], Tensor]:
    """As `batched.search`, on the device of the scores."""
    batch, parts = len(scores), scores.shape[1:].numel()
    flat = scores.detach().reshape(batch, parts).double()
    forbidden, everyone = flat == -torch.inf, torch.arange(batch, device=scores.device)

    def ask(x: Tensor) -> Tensor:
        asked = torch.where(forbidden, -torch.inf, x).reshape(scores.shape)
        return argmax(asked, everyone).detach().reshape(batch, parts).double()

    state = _begin(flat, forbidden, _first(starts, flat, ask))
    for iteration in range(max_iterations if batch else 0):
        if iteration % _CHUNK == 0:
            if _done(state).all():
                break
            state.grow(int(state.active.sum(1).max()) + _CHUNK + 1)
        _advance(state, ask(state.s - state.mean), max_iterations)
    if complete and batch:
        _complete(state, ask)
    widest = int(state.z.sum(-1).max()) if state.z.numel() else 0
    return _result(state, scores, max(widest, starts[0].shape[-1])), state.status


def _first(starts: Starts, flat: Tensor, ask: Ask) -> Tensor:
    """A structure of each example to start from, `[B, K]`, zero where there is none.

    Several, which may depend on each other, are not used. One is a structure if the argmax finds it among its own parts.
    """
    if starts[1].shape[1] != 1:
        return torch.zeros_like(flat)
    z = dense(starts[0], flat.shape[1], torch.float64).to(flat.device)[:, 0]
    right = (ask(torch.where(z > 0, 1.0, -torch.inf)) == z).all(1) & (starts[1].to(flat.device)[:, 0] > 0)
    return torch.where(right[:, None], z, 0.0)


def _begin(flat: Tensor, forbidden: Tensor, z: Tensor) -> _Search:
    invalid = torch.where(flat.isnan().any(1), checks.NAN, torch.where((flat == torch.inf).any(1), checks.INFINITE, 0))
    s = torch.where(forbidden | (invalid > 0)[:, None], 0.0, flat)
    usable = (z.any(1) & ~(z * forbidden).any(1))[:, None]
    zeros = torch.zeros(len(flat), dtype=torch.float64, device=flat.device)
    return _Search(
        s, forbidden, torch.where(usable[..., None], z[:, None], 0.0), usable, usable.double(), zeros,
        torch.full_like(zeros, torch.inf), zeros.int(), zeros.int(), zeros == 0, zeros.bool(), invalid,
    )  # fmt: skip


def _done(state: _Search) -> Tensor:
    return state.converged | (state.status != checks.OK)


def _advance(state: _Search, z: Tensor, limit: int) -> None:
    """One iteration, with the structures that the oracle found."""
    going = ~_done(state)
    infeasible = z.isnan().any(1) | (z * state.forbidden).any(1)
    state.status = torch.where(going & infeasible, checks.INFEASIBLE, state.status)
    z = torch.where(infeasible[:, None], 0.0, z)
    going = going & ~infeasible
    state.calls = state.calls + going.int()
    mean = state.mean
    terms = (state.s - mean) * (z - mean)
    gap, size = terms.sum(1), terms.abs().sum(1) + z.sum(1)
    rounding = _ROUNDING * size
    judged = going & state.settled & state.active.any(1)
    close = ~(gap > _CLOSE * rounding)
    state.stalls = state.stalls + (judged & close & (gap > 0.5 * state.gap)).int()
    state.gap = torch.where(judged, gap, state.gap)
    state.converged = state.converged | (judged & (~(gap > rounding) | (state.stalls > _PATIENCE)))
    state.status = torch.where(judged & (gap < -_WRONG * size), WORSE, state.status)
    wanted = going & state.settled & ~_done(state) & (state.calls < limit)
    first = wanted & ~state.active.any(1)
    new = state.append(z, wanted)
    stuck = wanted & ~new & close  # it depends on the active ones: without rounding its gap would be zero
    state.stalls = state.stalls + stuck.int()
    state.weights = torch.where(first[:, None] & state.active, 1.0, state.weights)
    state.settled = state.settled & ~wanted
    for _ in range(_DROPS):
        state.settle(going & ~state.settled)
    state.settle(going & state.settled & close)  # refinement


def _complete(state: _Search, ask: Ask) -> None:
    """Append structures of mu's face until two random directions find none (see face.py)."""
    generator = torch.Generator(state.s.device).manual_seed(0)
    mean = state.mean
    used = mean > 0
    own = ((state.s - mean) * mean).sum(1)
    slack = torch.maximum(100 * _ROUNDING * (1 + (state.s - mean).abs().mul(used).sum(1)), 4 * state.gap)
    size = torch.full_like(slack, 100.0)
    failed = torch.where(state.converged, 0, 2)
    attempt = 0
    while True:
        if attempt % _CHUNK == 0:
            if (failed >= 2).all():
                return
            state.grow(int(state.active.sum(1).max()) + _CHUNK + 1)
        attempt += 1
        noise = torch.rand(mean.shape, generator=generator, device=mean.device, dtype=torch.float64) - 0.5
        q = torch.where(used, noise, 0.0)
        q = q - (state.direction(q)[:, None] @ state.z)[:, 0]
        q = (slack * size)[:, None] * q / q.norm(dim=1, keepdim=True).clamp_min(1e-300)
        z = ask(torch.where(used, state.s - mean + q, -torch.inf))
        z = torch.where(z.isnan(), 0.0, z)
        ties = (((state.s - mean) * z).sum(1) - own > -slack) & ~(z * ~used).any(1)
        new = state.append(z, ties & (failed < 2))
        shrinks = ~ties & (size > 2)
        size = torch.where(shrinks, size / 10, size)
        failed = torch.where(new, 0, failed + (~shrinks).int())


def _result(state: _Search, scores: Tensor, width: int) -> tuple[Tensor, ...]:
    order = state.active.long().argsort(dim=1, descending=True, stable=True)
    z = state.z.gather(1, order[..., None].expand_as(state.z))
    weights, counts = state.weights.gather(1, order), state.active.sum(1).int()
    mu = state.mean.reshape(scores.shape).to(scores.dtype)
    converged = state.converged & (state.status == checks.OK)
    gap = torch.where(state.gap == torch.inf, 0.0, state.gap)
    return mu, listed(z, width), weights, counts, gap, state.calls, converged


def sparsemap_vjp(vertices: Tensor, counts: Tensor, direction: Tensor) -> Tensor:
    """The projection onto the directions between active structures: A^T M (e - tau 1), with M the inverse of A A^T + 1."""
    batch, room, _ = vertices.shape
    flat = direction.reshape(batch, direction.shape[1:].numel()).double()
    used = torch.arange(room, device=counts.device) < counts[:, None]
    z = torch.where(used[..., None], dense(vertices, flat.shape[1], torch.float64), 0.0)
    one = torch.eye(room, dtype=torch.float64, device=z.device)
    gram = torch.where(used[:, :, None] & used[:, None, :], z @ z.transpose(1, 2) + 1, one)
    flat = torch.where(z.any(1), flat, 0.0)  # padding may be anything
    slopes = torch.where(used, (z @ flat[..., None])[..., 0], 0.0)
    step, sums = torch.linalg.solve(gram, torch.stack([slopes, used.double()], -1)).unbind(-1)
    total = sums.sum(1, keepdim=True)
    step = torch.where(used, step - step.sum(1, keepdim=True) / torch.where(total == 0, 1.0, total) * sums, 0.0)
    return (step[:, None] @ z)[:, 0].reshape(direction.shape).to(direction.dtype)
