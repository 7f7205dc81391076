"""SparseMAP in plain PyTorch: the active-set method of README.md for a whole batch, on any device, on dense structures."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from pullback.inference.front import checks
from pullback.inference.sparsemap.families import listed
from pullback.inference.sparsemap.solution import Argmax, Starts, dense

_ROUNDING = 4 * 2.0**-52
_CLOSE, _PATIENCE, _DEPENDENT, _WRONG = 1e2, 5, 1e-6, 1e-5
_CHUNK = 8
Ask = Callable[[Tensor], Tensor]


def _solve(z: Tensor, active: Tensor, right: Tensor) -> Tensor:
    """M times `[B, k, any]`, M being the inverse of <z_i, z_j> + 1 for active structures, and zero for others."""
    one = torch.eye(z.shape[1], dtype=torch.float64, device=z.device)
    gram = torch.where(active[:, :, None] & active[:, None], z @ z.mT + 1, one)
    return torch.where(active[..., None], torch.linalg.solve(gram, right), 0.0)


def _direction(z: Tensor, active: Tensor, values: Tensor) -> Tensor:
    """M (e - tau 1) for e_i = <values, z_i>, tau such that the sum is zero."""
    slopes = (z @ values[:, :, None])[:, :, 0]
    slopes = torch.where(active, slopes - slopes.amax(1, keepdim=True), 0.0)
    step, sums = _solve(z, active, torch.stack([slopes, active.double()], -1)).unbind(-1)
    total = sums.sum(1, keepdim=True)
    return step - step.sum(1, keepdim=True) / torch.where(total == 0, 1.0, total) * sums


class _Search:
    """A batch on its way; all in float64.

    Attributes:
        s: `[B, K]`, 0 where forbidden.
        z: `[B, k, K]`, structures.
        active: `[B, k]` of bool.
        weights: `[B, k]`, 0 where not active.
    """

    def __init__(self, flat: Tensor, first: Tensor) -> None:
        invalid = torch.where((flat == torch.inf).any(1), checks.INFINITE, checks.OK)
        self.status = torch.where(flat.isnan().any(1), checks.NAN, invalid)
        self.forbidden = flat == -torch.inf
        self.s = torch.where(self.forbidden | (self.status > 0)[:, None], 0.0, flat)
        self.active = (first.any(1) & ~(first * self.forbidden).any(1))[:, None]
        self.z, self.weights = torch.where(self.active[..., None], first[:, None], 0.0), self.active.double()
        self.gap = torch.full_like(self.weights[:, 0], torch.inf)
        self.calls = self.stalls = torch.zeros_like(self.status, dtype=torch.int32)
        self.converged = torch.zeros_like(self.status, dtype=torch.bool)

    @property
    def mean(self) -> Tensor:
        return (self.weights[:, None] @ self.z)[:, 0]

    @property
    def done(self) -> Tensor:
        return self.converged | (self.status != checks.OK)

    def append(self, z: Tensor, wanted: Tensor) -> Tensor:
        """Activate structures `[B, K]` with weight 0 where they are wanted and independent; whether they were."""
        gram = torch.where(self.active, (self.z @ z[:, :, None])[:, :, 0] + 1, 0.0)
        distance = (z * z).sum(1) + 1 - (gram * _solve(self.z, self.active, gram[..., None])[..., 0]).sum(1)
        new = wanted & (distance > _DEPENDENT)
        self.z, self.active = torch.cat([self.z, z[:, None]], 1), torch.cat([self.active, new[:, None]], 1)
        self.weights = pad(self.weights, (0, 1))
        self.trim()
        return new

    def trim(self) -> None:
        """Put the active structures first, and forget those that are active in no example.

        Lists have a multiple of _CHUNK places, so that the rounding of an example seldom depends on the others.
        """
        most = -(-max([1, *self.active.sum(1).tolist()]) // _CHUNK) * _CHUNK
        order = self.active.long().argsort(dim=1, descending=True, stable=True)[:, :most]
        more = most - order.shape[1]
        self.active, self.weights = (pad(each.gather(1, order), (0, more)) for each in (self.active, self.weights))
        z = self.z.gather(1, order[..., None].expand(*order.shape, self.z.shape[2]))
        self.z = torch.where(self.active[..., None], pad(z, (0, 0, 0, more)), 0.0)

    def settle(self, moving: Tensor) -> None:
        """Move to the minimum on the hull, dropping the structures whose weights vanish on the way."""
        while moving.any():
            step = torch.where(moving[:, None], _direction(self.z, self.active, self.s - self.mean), 0.0)
            vanishing = (self.weights + step <= 0) & (step < 0) & self.active
            ratios = torch.where(vanishing, self.weights / torch.where(vanishing, -step, 1.0), torch.inf)
            far, blocking = ratios.min(1)
            moving = far < torch.inf
            gone = one_hot(blocking, ratios.shape[1]).bool() & moving[:, None]
            weights = torch.where(gone, 0.0, self.weights + torch.where(moving, far, 1.0)[:, None] * step)
            total = weights.sum(1, keepdim=True)
            self.weights = torch.where(total > 0, weights / torch.where(total > 0, total, 1.0), weights)
            self.active = self.active & ~gone


def search(
    argmax: Argmax, scores: Tensor, starts: Starts, max_iterations: int, tolerance: float, complete: bool
) -> tuple[tuple[Tensor, ...], Tensor]:
    """As `batched.search`, on the device of the scores."""
    batch, parts = len(scores), scores.shape[1:].numel()
    flat = scores.detach().reshape(batch, parts).double()
    forbidden, everyone = flat == -torch.inf, torch.arange(batch, device=scores.device)

    def ask(x: Tensor) -> Tensor:
        asked = torch.where(forbidden, -torch.inf, x).reshape(scores.shape)
        return argmax(asked, everyone).detach().reshape(batch, parts).double()

    state = _Search(flat, _first(starts, flat, ask))
    for _ in range(max_iterations if batch else 0):
        if state.done.all():
            break
        _advance(state, ask(state.s - state.mean), max_iterations, tolerance)
    if complete and batch:
        _complete(state, ask)
    state.trim()
    widest = int(state.z.sum(-1).max()) if state.z.numel() else 0
    vertices, counts = listed(state.z, max(widest, starts[0].shape[-1])), state.active.sum(1).int()
    mu, gap = state.mean.reshape(scores.shape).to(scores.dtype), torch.where(state.gap == torch.inf, 0.0, state.gap)
    converged = state.converged & (state.status == checks.OK)
    return (mu, vertices, state.weights, counts, gap, state.calls, converged), state.status


def _first(starts: Starts, flat: Tensor, ask: Ask) -> Tensor:
    """A structure of each example to start from, `[B, K]`, zero where there is none.

    Several, which may depend on each other, are not used. One is a structure if the argmax finds it among its own parts.
    """
    if starts[1].shape[1] != 1:
        return torch.zeros_like(flat)
    z = dense(starts[0], flat.shape[1], torch.float64).to(flat.device)[:, 0]
    right = (ask(torch.where(z > 0, 1.0, -torch.inf)) == z).all(1) & (starts[1].to(flat.device)[:, 0] > 0)
    return torch.where(right[:, None], z, 0.0)


def _advance(state: _Search, z: Tensor, limit: int, tolerance: float) -> None:
    """One iteration, with the structures that the oracle found."""
    going = ~state.done
    infeasible = z.isnan().any(1) | (z * state.forbidden).any(1)
    state.status = torch.where(going & infeasible, checks.INFEASIBLE, state.status)
    z = torch.where(infeasible[:, None], 0.0, z)
    going = going & ~infeasible
    state.calls = state.calls + going.int()
    mean = state.mean
    terms = (state.s - mean) * (z - mean)
    gap, size = terms.sum(1), terms.abs().sum(1) + z.sum(1)
    rounding = _ROUNDING * size
    judged = going & state.active.any(1)
    noise = _ROUNDING * (state.s.abs() * (z + mean)).sum(1)  # of the sums of scores that weights come from
    close = ~(gap > torch.maximum(_CLOSE * rounding, noise))
    state.stalls = state.stalls + (judged & close & (gap > 0.5 * state.gap)).int()
    state.gap = torch.where(judged, gap, state.gap)
    state.converged = state.converged | (judged & (~(gap > rounding.clamp_min(tolerance)) | (state.stalls > _PATIENCE)))
    state.status = torch.where(judged & (gap < -_WRONG * size), checks.WORSE, state.status)
    wanted = going & ~state.done & (state.calls < limit)
    first = wanted & ~state.active.any(1)
    new = state.append(z, wanted)
    state.stalls = state.stalls + (wanted & ~new & close).int()  # dependent: without rounding its gap would be zero
    state.weights = torch.where(first[:, None] & state.active, 1.0, state.weights)
    state.settle(wanted)
    state.settle(wanted & close)  # refinement


def _complete(state: _Search, ask: Ask) -> None:
    """Append structures of mu's face until two random directions find none (see face.py)."""
    generator = torch.Generator(state.s.device).manual_seed(0)
    mean = state.mean
    used = mean > 0
    own = ((state.s - mean) * mean).sum(1)
    slack = torch.maximum(100 * _ROUNDING * (1 + (state.s - mean).abs().mul(used).sum(1)), 4 * state.gap)
    size = torch.full_like(slack, 100.0)
    failed = torch.where(state.converged, 0, 2)
    while (failed < 2).any():
        noise = torch.rand(mean.shape, generator=generator, device=mean.device, dtype=torch.float64) - 0.5
        q = torch.where(used, noise, 0.0)
        q = q - (_direction(state.z, state.active, q)[:, None] @ state.z)[:, 0]
        q = (slack * size)[:, None] * q / q.norm(dim=1, keepdim=True).clamp_min(1e-300)
        z = ask(torch.where(used, state.s - mean + q, -torch.inf))
        z = torch.where(z.isnan(), 0.0, z)
        ties = (((state.s - mean) * z).sum(1) - own > -slack) & ~(z * ~used).any(1)
        new = state.append(z, ties & (failed < 2))
        shrinks = ~ties & (size > 2)
        size = torch.where(shrinks, size / 10, size)
        failed = torch.where(new, 0, failed + (~shrinks).int())


def sparsemap_vjp(vertices: Tensor, counts: Tensor, direction: Tensor) -> Tensor:
    """The projection onto the directions between active structures: A^T M (e - tau 1), with M the inverse of A A^T + 1."""
    batch, room, _ = vertices.shape
    flat = direction.reshape(batch, direction.shape[1:].numel()).double()
    used = torch.arange(room, device=counts.device) < counts[:, None]
    z = torch.where(used[..., None], dense(vertices, flat.shape[1], torch.float64), 0.0)
    flat = torch.where(z.any(1), flat, 0.0)  # padding may be anything
    step = _direction(z, used, flat)
    return (step[:, None] @ z)[:, 0].reshape(direction.shape).to(direction.dtype)
