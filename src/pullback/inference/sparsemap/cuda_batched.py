"""SparseMAP on a GPU with an oracle of its own launches: a structure's argmax kernels, or a user's argmax.

An iteration is one call of the argmax on the whole batch and one launch (cuda_step.py). The host looks at how far the search
is once in `_CHUNK` iterations; inside the capture of a CUDA graph, where it cannot, there are `_CAPTURED` iterations at most.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import torch
from torch import Tensor

from pullback.inference._triton.support import contiguous, interpreting, launch
from pullback.inference.front.checks import capturing
from pullback.inference.sparsemap import cuda_step as steps
from pullback.inference.sparsemap.cuda_state import LINES, workspace
from pullback.inference.sparsemap.solution import Argmax, Starts

_CHUNK = 8  # iterations between looks at what is left to do
_ROOM = 64  # structures, at first
_WARPS = 4
_CAPTURED = 512  # iterations in a CUDA graph
_MEMORY = 2**33  # bytes of workspaces, at most, unless the smallest ones need more


class _Memory(NamedTuple):
    """What the launches of a search share; see cuda_step.py."""

    vertices: Tensor
    weights: Tensor
    numbers: Tensor
    records: Tensor
    work: Tensor


def search(
    argmax: Argmax,
    scores: Tensor,
    starts: Starts,
    max_iterations: int,
    tolerance: float,
    complete: bool,
    most: int | None = None,
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Project scores onto the convex hull of the structures that an argmax finds.

    Args:
        argmax: as `batched.search` has it; it is always called on the whole batch.
        scores: `[B, *parts]`; `-inf` on all that is no part.
        starts: structures to start from, as in `compiled.search`, and their weights: all those of positive weight are used.
        max_iterations: of an example.
        tolerance: not used: on a GPU, searches go on to rounding.
        complete: for gradients.
        most: the largest number of parts of a structure, if it is known.

    Returns:
        As `compiled.search`.
    """
    batch, parts = len(scores), scores.shape[1:].numel()
    flat = contiguous(scores.detach()).reshape(batch, parts)
    everyone = torch.arange(batch, device=scores.device)
    captured = capturing(scores)
    width = parts if captured else min(parts, max(16, starts[0].shape[-1]))
    memory = _begin(flat, starts, min(2 * _ROOM if captured else _ROOM, parts + 2), width if most is None else most)
    limit = min(max_iterations, _CAPTURED) if captured else max_iterations
    asked = torch.empty_like(flat, dtype=torch.float64)
    z, last, iteration = asked, captured, 0
    while batch > 0 and iteration < 2 * (limit + parts) + _ROOM:  # far more than there are
        _step(flat, z, asked, memory, limit, complete, last)
        iteration += 1
        if captured and iteration > limit:
            break
        if not captured and (iteration % _CHUNK == 0 or (iteration == 2 and most is None)):
            phase, size, widest = memory.records[:, : steps.WIDTH + 1].amax(0).tolist()
            if phase == steps.DONE:
                break
            memory, last = _grow(memory, parts, size, widest)
        z = argmax(asked.reshape(scores.shape), everyone).detach().reshape(batch, parts)
        z = contiguous(z if z.dtype == torch.float64 else z.double())
    return _result(scores, memory, parts, captured)


def _step(flat: Tensor, z: Tensor, asked: Tensor, memory: _Memory, limit: int, complete: bool, last: bool) -> None:
    _, room, width = memory.vertices.shape
    batch, parts = flat.shape
    tensors = steps.Tensors(flat, z, asked, *memory)
    sizes = parts, width, room, memory.work.shape[1], limit, int(complete), int(last)
    small = interpreting()
    launch(
        steps.step, batch, flat.device, tensors, *sizes,
        BLOCK=8 if small else 32 * _WARPS, READ=16 if small else 1024, num_warps=_WARPS, num_stages=1,
    )  # fmt: skip


def _begin(flat: Tensor, starts: Starts, room: int, width: int) -> _Memory:
    """Memory for a search that has not begun, with the structures to start from."""
    batch, parts = flat.shape
    given, weights = starts
    room = max(room, given.shape[1] + _CHUNK)
    memory = _Memory(
        flat.new_empty((batch, room, width), dtype=torch.int32),
        flat.new_empty((batch, room), dtype=torch.float64),
        flat.new_zeros((batch, steps.NUMBERS), dtype=torch.float64),
        flat.new_zeros((batch, steps.RECORDS), dtype=torch.int32),
        flat.new_empty((batch, workspace(parts, width, room, 0)), dtype=torch.float64),
    )
    memory.records[:, steps.PHASE] = steps.NEW
    if given.shape[1] > 0:
        own = flat.gather(1, given.clamp_min(0).flatten(1).long()).reshape(given.shape).masked_fill(given < 0, 0.0)
        used, order = ((weights > 0) & (own.double().sum(-1) > -torch.inf)).long().sort(dim=1, descending=True, stable=True)
        lists = given.gather(1, order[..., None].expand_as(given))[..., :width]
        memory.vertices[:, : given.shape[1]] = torch.nn.functional.pad(lists, (0, width - lists.shape[2]), value=-1)
        memory.weights[:, : given.shape[1]] = weights.gather(1, order)
        memory.records[:, steps.SIZE] = used.sum(1).int()
    return memory


def _grow(memory: _Memory, parts: int, size: int, widest: int) -> tuple[_Memory, bool]:
    """Make room for the next iterations; and whether there will never be more."""
    batch, room, width = memory.vertices.shape
    if size + _CHUNK < room and widest <= width:
        return memory, False
    most = max(int((_MEMORY / 8 / batch) ** 0.5), room)
    new_room = min(2 * room, most) if size + _CHUNK >= room else room
    new_width = min(parts, max(2 * width, widest)) if widest > width else width
    vertices = memory.vertices.new_full((batch, new_room, new_width), -1)
    vertices[:, :room, :width] = memory.vertices
    weights = torch.nn.functional.pad(memory.weights, (0, new_room - room))
    work = memory.work.new_empty((batch, workspace(parts, new_width, new_room, 0)))
    for old, new in zip(_regions(memory.work, parts, room), _regions(work, parts, new_room), strict=True):
        new[tuple(map(slice, old.shape))] = old
    return memory._replace(vertices=vertices, weights=weights, work=work), new_room == most and size + _CHUNK >= room


def _regions(work: Tensor, parts: int, room: int) -> list[Tensor]:
    """The workspaces taken apart, as `cuda_state.active_of` lays them out, with the scores and s - mu at the end."""
    bits = ((room + 31) // 32 * parts + 1) // 2
    shapes = (room, room), (16,), (LINES, room), (2 * parts,), (bits,), (2 * parts,)
    ends = list(itertools.accumulate(map(math.prod, shapes)))
    begins = [0, *ends]
    return [work[:, i:j].unflatten(1, shape) for i, j, shape in zip(begins, ends, shapes, strict=False)]


def _result(scores: Tensor, memory: _Memory, parts: int, captured: bool) -> tuple[tuple[Tensor, ...], Tensor]:
    """What `compiled.search` returns."""
    batch, room, _ = memory.vertices.shape
    mu, records = torch.empty_like(scores, memory_format=torch.contiguous_format), memory.records
    if mu.numel() > 0:
        launch(
            steps.finish, batch, scores.device, mu, records, memory.work, parts, room, memory.work.shape[1],
            BLOCK=8 if interpreting() else 128, num_warps=4, num_stages=1,
        )  # fmt: skip
    counts, calls = records[:, steps.SIZE].contiguous(), records[:, steps.CALLS].contiguous()
    largest = room if captured else int(counts.max()) if batch else 1
    vertices, weights = memory.vertices[:, :largest].contiguous(), memory.weights[:, :largest].contiguous()
    gap, sure = memory.numbers[:, 0].contiguous(), records[:, steps.SURE] > 0
    return (mu, vertices, weights, counts, gap, calls, sure), records[:, steps.STATUS].long()
