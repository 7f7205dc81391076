"""All operations of a structure on the CPU from its generated module.

Sums are sums of scaled weights, in float32 or float64 as the scores are. Examples whose values leave that range are computed
again with an exponent for each number, and what leaves that one, too, in logarithms.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference.engine.rules.batch import OUT_OF_RANGE, Attempt, Batch, widening
from pullback.inference.front.modes import Mode

_NO_SEEDS = np.zeros(0, np.int64)
_LARGE = 1e4  # scores beyond which entropies from differences of sums lose digits


class Kernels:
    """The operations as methods, called as `family.py` says.

    Args:
        module: the generated module.
        longest: the largest size whose sums of weights usually stay in the range of float32; longer examples begin in float64.
        shifted: from scores and lengths to scores less what all structures have in common, zeros where there is no part, which
            makes entropies precise.
        precise: whether gradients of entropies need float64 to have the precision of float32.
    """

    def __init__(
        self, module: ModuleType, *, longest: int, shifted: Callable[[Tensor, Tensor], Tensor], precise: bool = False
    ) -> None:
        self._module, self._longest, self._shifted, self._precise = module, longest, shifted, precise
        self._rooms = {kernel: (charts, module.LINES) for kernel, charts in module.CHARTS.items()}

    def argmax(self, scores: Tensor, lengths: Tensor, *, validate: bool, **named: Any) -> Tensor:
        options, batch = tuple(map(named.__getitem__, self._module.OPTIONS)), Batch(scores, lengths)
        z, array = batch.result()
        batch.run(self._module.argmax, 3, self._rooms["argmax"], options, array)
        if batch.beyond is None and np.count_nonzero(batch.status) == 0:
            return z
        return batch.settle((z,), validate)[0]

    def log_partition(self, scores: Tensor, lengths: Tensor, *, validate: bool, **named: Any) -> Tensor:
        return self._sums(Mode.LOG_PARTITION, self._options(named), Batch(scores, lengths), validate)[0]

    def marginals(self, scores: Tensor, lengths: Tensor, *, validate: bool, **named: Any) -> Tensor:
        return self._sums(Mode.MARGINALS, self._options(named), Batch(scores, lengths), validate)[1]

    def log_partition_marginals(
        self, scores: Tensor, lengths: Tensor, *, validate: bool, **named: Any
    ) -> tuple[Tensor, Tensor]:
        log_z, mu = self._sums(Mode.MARGINALS, self._options(named), Batch(scores, lengths), validate)
        return log_z, mu

    def marginals_and_product(
        self, scores: Tensor, lengths: Tensor, *, validate: bool, **named: Any
    ) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """The marginals, and the function from a direction to their derivative along it, for the same batch."""
        options, batch = self._options(named), Batch(scores, lengths)
        return self._sums(Mode.MARGINALS, options, batch, validate)[1], functools.partial(self._along, options, batch, False)

    def marginals_vjp(self, scores: Tensor, lengths: Tensor, direction: Tensor, *, validate: bool, **named: Any) -> Tensor:
        return self._along(self._options(named), Batch(scores, lengths), validate, direction)

    def _along(self, options: tuple[Any, ...], batch: Batch, validate: bool, direction: Tensor) -> Tensor:
        direction = direction.detach() if direction.requires_grad else direction
        return self._wide(
            batch.along(direction.to(batch.scores.dtype).contiguous()), functools.partial(self._product, options),
            lambda b: self._in_logs(b, Mode.TANGENT, options)[1:], validate,
        )[0]  # fmt: skip

    def entropy(self, scores: Tensor, lengths: Tensor, *, validate: bool, **named: Any) -> Tensor:
        """In weights H = log Z - <log w, mu>, of weights in the range of float64; in logarithms from the sums' choices."""
        options = self._options(named)

        def from_weights(batch: Batch, scaled: bool) -> tuple[Tensor]:
            log_w = self._shifted(batch.scores, batch.lengths)
            batch.arrays = log_w.numpy(), *batch.arrays[1:]
            log_z, mu = self._weighed(Mode.MARGINALS, options, batch, scaled)
            if scaled:
                batch.status[((mu > 0) & (log_w.abs() > _LARGE)).any(2).any(1).numpy()] = OUT_OF_RANGE
            return ((log_z - torch.where(mu > 0, mu * log_w, 0.0).sum((1, 2))).clamp_min(0.0),)

        def in_logs(batch: Batch) -> tuple[Tensor, ...]:
            return self._in_logs(batch, Mode.ENTROPY, options)[:1]

        return self._wide(Batch(scores.double(), lengths), from_weights, in_logs, validate)[0]

    def entropy_gradient(self, scores: Tensor, lengths: Tensor, *, validate: bool, **named: Any) -> Tensor:
        """In weights -J log w."""
        options, scores = self._options(named), scores.detach()

        def from_weights(batch: Batch, scaled: bool) -> tuple[Tensor]:
            assert batch.extra is not None
            (found,) = self._product(options, batch, scaled)
            if scaled:
                batch.status[(batch.extra.abs() > _LARGE).any(2).any(1).numpy()] = OUT_OF_RANGE
            return (found.neg_(),)

        def in_logs(batch: Batch) -> tuple[Tensor, ...]:
            return self._in_logs(batch, Mode.ENTROPY_TANGENT, options)[1:]

        given = scores.double() if self._precise else scores
        batch = Batch(given, lengths, self._shifted(given, lengths))
        return self._wide(batch, from_weights, in_logs, validate, wide=True)[0].to(scores.dtype)

    def sample(self, scores: Tensor, lengths: Tensor, seeds: Tensor, *, validate: bool, **named: Any) -> Tensor:
        options = self._options(named)

        def from_weights(batch: Batch, scaled: bool) -> tuple[Tensor]:
            z = torch.empty_like(batch.scores)
            if scaled:
                rest = _exponents(batch), _extra(batch), z.numpy(), np.empty(len(z))
                batch.run(self._module.sample_scaled, 24, self._rooms["marginals_scaled"], options, *rest)
            else:
                batch.run(self._module.sample, 3, self._rooms["marginals"], options, _extra(batch), z.numpy())
            return (z,)

        def in_logs(batch: Batch) -> tuple[Tensor, ...]:
            return self._in_logs(batch, Mode.SAMPLE, options)[1:]

        batch = Batch(scores.double(), lengths, seeds.contiguous())
        return self._wide(batch, from_weights, in_logs, validate)[0].to(scores.dtype)

    def _options(self, named: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(map(named.__getitem__, self._module.OPTIONS))

    def _sums(self, mode: Mode, options: tuple[Any, ...], batch: Batch, validate: bool) -> tuple[Tensor, ...]:
        return self._wide(
            batch, functools.partial(self._weighed, mode, options), lambda b: self._in_logs(b, mode, options), validate
        )

    def _weighed(self, mode: Mode, options: tuple[Any, ...], batch: Batch, scaled: bool) -> tuple[Tensor, ...]:
        """Log-partitions, and marginals if they are wanted."""
        wanted = mode == Mode.MARGINALS
        mu, array = batch.result() if wanted else (batch.scores, batch.arrays[0][:0])
        log_z = np.empty(len(batch.arrays[0]))
        name, like = ("marginals_scaled", (_exponents(batch),)) if scaled else ("marginals", ())
        work = (9 if wanted else 3) * (8 if scaled else 1)
        batch.run(getattr(self._module, name), work, self._rooms[name], options, *like, array, log_z)
        return (torch.from_numpy(log_z), mu) if wanted else (torch.from_numpy(log_z),)

    def _product(self, options: tuple[Any, ...], batch: Batch, scaled: bool) -> tuple[Tensor]:
        """The derivative of the marginals along the batch's direction."""
        out, array = batch.result()
        name, like = ("product_scaled", (_exponents(batch),)) if scaled else ("product", ())
        assert batch.extra is not None
        rest = *like, batch.extra.numpy(), array, np.empty(len(array))
        batch.run(getattr(self._module, name), 200 if scaled else 27, self._rooms[name], options, *rest)
        return (out,)

    def _in_logs(self, batch: Batch, mode: Mode, options: tuple[Any, ...]) -> tuple[Tensor, ...]:
        """Log-partitions or entropies, and what the mode says of the parts, if anything."""
        wanted = mode not in (Mode.LOG_PARTITION, Mode.ENTROPY)
        out = torch.empty_like(batch.scores) if wanted else batch.scores[:0]
        value, direction = np.empty(len(batch.scores)), batch.scores.numpy()
        seeds = _extra(batch) if mode == Mode.SAMPLE else _NO_SEEDS
        if mode == Mode.TANGENT:
            direction = _extra(batch)
        rest = options, int(mode), direction, seeds, out.numpy(), value
        batch.run(self._module.in_logs, 60 if wanted else 20, self._rooms["logs"], *rest)
        return (torch.from_numpy(value), out) if wanted else (torch.from_numpy(value),)

    def _wide(
        self,
        batch: Batch,
        in_weights: Callable[[Batch, bool], tuple[Tensor, ...]],
        in_logs: Attempt,
        validate: bool,
        wide: bool = False,
    ) -> tuple[Tensor, ...]:
        """In weights, then in weights with exponents (in float64, if `wide`), then in logarithms.

        Examples that begin in float64 have a ladder of their own: nothing of a result depends on the rest of the batch.
        """
        dtype, double = batch.scores.dtype, torch.float64
        long = batch.arrays[1] > self._longest if batch.longest > self._longest and dtype == torch.float32 else None
        first = in_weights(batch if long is None else batch.without(long), False)
        if long is None and batch.beyond is None and np.count_nonzero(batch.status) == 0:
            return first
        further: list[tuple[torch.dtype, Attempt]] = [
            (double if wide else dtype, lambda b: in_weights(b, True)), (double, in_logs),
        ]  # fmt: skip
        found = widening(batch, [(dtype, lambda b: first), *further])
        if long is not None:
            batch.status[long] = OUT_OF_RANGE
            again = [(double, lambda b: in_weights(b, False)), (double, further[0][1]), further[1]]
            found = widening(batch, [(dtype, lambda b: found), *again])
        return batch.settle(found, validate)


def _extra(batch: Batch) -> np.ndarray:
    assert batch.extra is not None
    return batch.extra.numpy()


def _exponents(batch: Batch) -> np.ndarray:
    """Nothing, of the dtype of exponents."""
    return np.empty(0, np.int32 if batch.scores.dtype == torch.float32 else np.int64)
