"""Times several calls in turn, so that what disturbs the machine disturbs all of them alike."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Timing:
    """Seconds of one call: a sample is the mean of enough calls in a row for the clock to resolve them."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def spread(self) -> float:
        """Half of the interquartile range."""
        if len(self.samples) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.samples, n=4, method="inclusive")
        return (high - low) / 2

    def __str__(self) -> str:
        return f"{milliseconds(self.median)} ± {milliseconds(self.spread)}"


def milliseconds(seconds: float) -> str:
    """Three digits are more than the noise leaves."""
    value = 1e3 * seconds
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.3f}" if value < 1 else f"{value:.3g}"


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Args:
        rounds: samples of each call, at most.
        sample: seconds a sample should take.
        budget: seconds after which a slow call has been sampled enough.
        clock: the time of day, or the processor's time, which a busy machine does not disturb so much but which
            adds up that of all threads.
    """

    rounds: int
    sample: float
    budget: float
    clock: Callable[[], float] = time.perf_counter


def measure(calls: dict[str, Callable[[], Any]], *, device: str, effort: Effort) -> dict[str, Timing]:
    """Time each call, a sample of one after a sample of the other.

    Each is called before, so that neither compilation nor the first touch of memory is counted.
    """
    repeats = {}
    for name, call in calls.items():
        call()
        seconds = _sample(call, 1, device, effort.clock)
        if seconds < effort.sample:
            seconds = _sample(call, 2, device, effort.clock) / 2
        repeats[name] = max(1, math.ceil(effort.sample / seconds))
    samples: dict[str, list[float]] = {name: [] for name in calls}
    spent = dict.fromkeys(calls, 0.0)
    for done in range(effort.rounds):
        for name, call in calls.items():
            if done >= 3 and spent[name] > effort.budget:
                continue
            seconds = _sample(call, repeats[name], device, effort.clock)
            samples[name].append(seconds / repeats[name])
            spent[name] += seconds
    return {name: Timing(tuple(values)) for name, values in samples.items()}


def _sample(call: Callable[[], Any], repeats: int, device: str, clock: Callable[[], float]) -> float:
    gc.collect()
    gc.disable()
    try:
        if repeats > 1:
            call()  # collecting garbage leaves the processor's caches cold, which a short call would pay for
        _synchronize(device)
        start = clock()
        for _ in range(repeats):
            call()
        _synchronize(device)
        return clock() - start
    finally:
        gc.enable()


def _synchronize(device: str) -> None:
    """A GPU works on after the call that asked it to has returned."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()
