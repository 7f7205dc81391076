"""Non-projective argmax on a GPU: one program a sentence, in Triton, no synchronisation with the host."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference._triton.support import constant, contiguous, jit, launch, next_power_of_2, program_count, tl
from pullback.inference.chu_liu_edmonds.cuda_contraction import best_heads
from pullback.inference.eisner.cuda_layout import beyond, length_of, load_scores
from pullback.inference.front import checks
from pullback.inference.trees.family import TREES

_OK, _INFEASIBLE = constant(checks.OK), constant(checks.INFEASIBLE)


def argmax(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch, n, _ = scores.shape
    z = torch.empty_like(scores, memory_format=torch.contiguous_format)
    status = torch.zeros(batch, dtype=torch.int64, device=scores.device)
    if scores.numel() > 0:
        programs = program_count(batch, n * (6 * n + 32))
        history = scores.new_empty((programs, n, 3, n), dtype=torch.int16)
        nodes = scores.new_empty((programs, 4, n), dtype=torch.float64)
        tensors = contiguous(scores), contiguous(lengths), z, status, history, nodes
        launch(_argmax, programs, scores.device, *tensors, batch, n, int(multiroot), **tile(n))
    if validate:
        wrong = TREES.layout.status(scores, (lengths,))
        checks.raise_for(torch.where(wrong == checks.OK, status, wrong))
    return z


def tile(n: int) -> dict[str, int]:
    """How `best_heads` cuts sentences of up to n words into tiles."""
    columns = max(16, next_power_of_2(n))
    warps = 4 if columns <= 32 else 8
    rows = min(max(256 * warps // columns, 1), columns)  # 8 numbers a thread
    return {"ROWS": rows, "COLUMNS": columns, "LEVELS": columns.bit_length() - 1, "num_warps": warps, "num_stages": 1}


@jit(do_not_specialize=["batch", "n", "multiroot"])
def _argmax(
    scores, lengths, z, status, history, nodes, batch, n, multiroot,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, LEVELS: tl.constexpr,
):  # fmt: skip
    """Write the best trees of `[B, n, n]` scores as 0/1 matrices, NaN where there is none, and a status."""
    program = tl.program_id(0)
    history += program.to(tl.int64) * 3 * n * n
    nodes += program.to(tl.int64) * 4 * n
    word = tl.arange(0, COLUMNS)
    for sentence in range(program, batch, tl.num_programs(0)):
        matrix = tl.cast(sentence, tl.int64) * n * n
        length = length_of(lengths, sentence, n)
        heads, feasible = best_heads(
            scores + matrix, length, n, multiroot, history, nodes, ROWS, COLUMNS, LEVELS
        )  # fmt: skip
        tl.store(status + sentence, tl.where(feasible > 0, _OK, _INFEASIBLE).to(tl.int64))
        unsound = _garbled(scores + matrix, length, n, ROWS, COLUMNS) + beyond(lengths, sentence, n)
        feasible = tl.where(unsound > 0, 0, feasible)
        for start in range(0, n, ROWS):
            head = (start + tl.arange(0, ROWS))[:, None]
            one = tl.where(feasible > 0, (heads[None, :] == head).to(tl.float32), float("nan")).to(z.dtype.element_ty)
            tl.store(z + matrix + head * n + word[None, :], one, mask=(head < n) & (word < n)[None, :])
        tl.debug_barrier()


@jit()
def _garbled(scores, length, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """1 if a score is NaN or +inf, else 0."""
    worst = tl.zeros([COLUMNS], tl.int32)
    for start in range(0, length, ROWS):
        head = (start + tl.arange(0, ROWS))[:, None]
        _, _, garbled = load_scores(scores, head, tl.arange(0, COLUMNS)[None, :], length, n)
        worst = tl.maximum(worst, tl.max(garbled.to(tl.int32), 0))
    return tl.max(worst, 0)
