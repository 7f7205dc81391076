"""The operations of a family whose kernels have modes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pullback.inference.front.modes import Mode

_RESULTS = (
    (Mode.LOG_PARTITION, 0), (Mode.MARGINALS, 1), (Mode.MARGINALS, slice(2)), (Mode.TANGENT, 1), (Mode.ENTROPY, 0),
    (Mode.ENTROPY_TANGENT, 1), (Mode.SAMPLE, 1),
)  # fmt: skip


def by_mode(run: Callable[..., Any]) -> tuple[Callable[..., Any], ...]:
    """The functions `log_partition, marginals, log_partition_marginals, marginals_vjp, entropy, entropy_gradient` and `sample`.

    `run(mode, which, scores, *sizes, *given, validate=..., <options by name>)` finds a number for each example and one for each
    part, and returns `(of_examples, of_parts)[which]`. `given` are the direction of TANGENT and the seeds of SAMPLE.
    """
    return tuple(functools.partial(run, mode, which) for mode, which in _RESULTS)
