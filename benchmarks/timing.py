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
        warm_up: seconds of calls before each sample, at least one call. A GPU, PyTorch's thread for backward passes and the
            processor's caches need some of them until calls take as long as in a loop.
        clock: the time of day, or the processor's time, which a busy machine does not disturb so much but which
            adds up that of all threads.
    """

    rounds: int
    sample: float
    budget: float
    warm_up: float
    clock: Callable[[], float] = time.perf_counter


def measure(calls: dict[str, Callable[[], Any]], *, device: str, effort: Effort) -> dict[str, Timing]:
    """Time each call, a sample of one after a sample of the other.

    Each is called before, so that neither compilation nor the first touch of memory is counted.
    """
    samplers = {name: _sampler(call, device, effort) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    spent = dict.fromkeys(calls, 0.0)
    gc.collect()
    gc.freeze()  # a sample collects only the garbage of calls: looking at all objects would empty the processor's caches
    try:
        for done in range(effort.rounds):
            for name, sampler in samplers.items():
                if done >= 3 and spent[name] > effort.budget:
                    continue
                seconds = sampler.seconds()
                samples[name].append(seconds / sampler.repeats)
                spent[name] += seconds
    finally:
        gc.unfreeze()
    return {name: Timing(tuple(values)) for name, values in samples.items()}


def _sampler(call: Callable[[], Any], device: str, effort: Effort) -> _Sampler:
    call()
    seconds = _Sampler(call, device, effort.clock).seconds()
    if seconds < effort.sample:
        seconds = _Sampler(call, device, effort.clock, repeats=2, before=1).seconds() / 2
    repeats = max(1, math.ceil(effort.sample / seconds))
    before = max(1, math.ceil(effort.warm_up / seconds)) if repeats > 1 else 0
    return _Sampler(call, device, effort.clock, repeats, before)


@dataclass(frozen=True)
class _Sampler:
    """Times `repeats` calls in a row, after `before` calls that are not counted."""

    call: Callable[[], Any]
    device: str
    clock: Callable[[], float]
    repeats: int = 1
    before: int = 0

    def seconds(self) -> float:
        gc.collect()
        gc.disable()
        try:
            for _ in range(self.before):
                self.call()
            _synchronize(self.device)
            start = self.clock()
            for _ in range(self.repeats):
                self.call()
            _synchronize(self.device)
            return self.clock() - start
        finally:
            gc.enable()


def _synchronize(device: str) -> None:
    """A GPU works on after the call that asked it to has returned."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()
