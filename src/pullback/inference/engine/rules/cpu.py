"""All operations of a structure on the CPU from its generated module.

Sums are sums of scaled weights, in float32 or float64 as the scores are. Examples whose values leave that range are computed
again with an exponent for each number, and what leaves that one, too, with exponents of any size.
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

    def argmax(self, scores: Tensor, lengths: Tensor, *, validate: bool, **named: Any) -> Tensor:
        options, batch = tuple(map(named.__getitem__, self._module.OPTIONS)), Batch(scores, lengths)
        z, array = batch.result()
        batch.run(self._module, "argmax", 3, options, array)
        if batch.beyond is None and np.count_nonzero(batch.status) == 0:
            return z
        return batch.settle((z,), validate)[0]

    def log_partition(self, scores: Tensor, lengths: Tensor, *, validate: bool, **named: Any) -> Tensor:
        attempt = functools.partial(self._sums, Mode.LOG_PARTITION, tuple(map(named.__getitem__, self._module.OPTIONS)))
        return self._wide(Batch(scores, lengths), attempt, validate)[0]

    def marginals(self, scores: Tensor, lengths: Tensor, *, validate: bool, **named: Any) -> Tensor:
        attempt = functools.partial(self._means, tuple(map(named.__getitem__, self._module.OPTIONS)))
        return self._wide(Batch(scores, lengths), attempt, validate)[0]

    def log_partition_marginals(
        self, scores: Tensor, lengths: Tensor, *, validate: bool, **named: Any
    ) -> tuple[Tensor, Tensor]:
        attempt = functools.partial(self._sums, Mode.MARGINALS, tuple(map(named.__getitem__, self._module.OPTIONS)))
        log_z, mu = self._wide(Batch(scores, lengths), attempt, validate)
        return log_z, mu

    def marginals_vjp(self, scores: Tensor, lengths: Tensor, direction: Tensor, *, validate: bool, **named: Any) -> Tensor:
        options = tuple(map(named.__getitem__, self._module.OPTIONS))
        return self._along(options, Batch(scores, lengths), validate, direction)

    def marginals_and_product(
        self, scores: Tensor, lengths: Tensor, *, validate: bool, **named: Any
    ) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """The marginals, and the function from a direction to their derivative along it, which uses the same batch."""
        options, batch = tuple(map(named.__getitem__, self._module.OPTIONS)), Batch(scores, lengths)
        mu = self._wide(batch, functools.partial(self._means, options), validate)[0]
        return mu, functools.partial(self._along, options, batch, False)

    def _along(self, options: tuple[Any, ...], batch: Batch, validate: bool, direction: Tensor) -> Tensor:
        """The derivative of the marginals along a direction."""
        direction = (direction.detach() if direction.requires_grad else direction).to(batch.scores.dtype).contiguous()
        return self._wide(batch.along(direction), functools.partial(self._product, options), validate)[0]

    def entropy(self, scores: Tensor, lengths: Tensor, *, validate: bool, **named: Any) -> Tensor:
        """In weights H = log Z - <log w, mu>, of weights in the range of float64; beyond from the sums' choices."""
        options = tuple(map(named.__getitem__, self._module.OPTIONS))

        def attempt(batch: Batch, kind: str) -> tuple[Tensor]:
            if kind == "_far":
                return (self._entropies(options, batch, batch.arrays[0][:0]),)
            log_w = self._shifted(batch.scores, batch.lengths)
            batch.arrays = log_w.numpy(), *batch.arrays[1:]
            log_z, mu = self._sums(Mode.MARGINALS, options, batch, kind)
            if kind:
                batch.status[((mu > 0) & (log_w.abs() > _LARGE)).any(2).any(1).numpy()] = OUT_OF_RANGE
            return ((log_z - torch.where(mu > 0, mu * log_w, 0.0).sum((1, 2))).clamp_min(0.0),)

        return self._wide(Batch(scores.double(), lengths), attempt, validate)[0]

    def entropy_gradient(self, scores: Tensor, lengths: Tensor, *, validate: bool, **named: Any) -> Tensor:
        """In weights -J log w."""
        options, scores = tuple(map(named.__getitem__, self._module.OPTIONS)), scores.detach()

        def attempt(batch: Batch, kind: str) -> tuple[Tensor]:
            if kind == "_far":
                out, array = batch.result()
                self._entropies(options, batch, array)
                return (out,)
            (found,) = self._product(options, batch, kind)
            if kind:
                batch.status[(np.abs(batch.extra.numpy()) > _LARGE).any(2).any(1)] = OUT_OF_RANGE
            return (found.neg_(),)

        given = scores.double() if self._precise else scores
        batch = Batch(given, lengths, self._shifted(given, lengths))
        return self._wide(batch, attempt, validate, wide=True)[0].to(scores.dtype)

    def sample(self, scores: Tensor, lengths: Tensor, seeds: Tensor, *, validate: bool, **named: Any) -> Tensor:
        options = tuple(map(named.__getitem__, self._module.OPTIONS))

        def attempt(batch: Batch, kind: str) -> tuple[Tensor]:
            z = torch.empty_like(batch.scores)
            batch.run(
                self._module, "sample" + kind, 24 if kind else 3, options, batch.extra.numpy(), z.numpy(), np.empty(len(z))
            )
            return (z,)

        return self._wide(Batch(scores.double(), lengths, seeds.contiguous()), attempt, validate)[0].to(scores.dtype)

    def _sums(self, mode: Mode, options: tuple[Any, ...], batch: Batch, kind: str) -> tuple[Tensor, ...]:
        """Log-partitions, and marginals if they are wanted."""
        wanted = mode == Mode.MARGINALS
        mu, array = batch.result() if wanted else (batch.scores, batch.arrays[0][:0])
        log_z = np.empty(len(batch.arrays[0]))
        batch.run(self._module, "marginals" + kind, (9 if wanted else 3) * (8 if kind else 1), options, array, log_z)
        return (torch.from_numpy(log_z), mu) if wanted else (torch.from_numpy(log_z),)

    def _means(self, options: tuple[Any, ...], batch: Batch, kind: str) -> tuple[Tensor]:
        """Marginals alone."""
        mu, array = batch.result()
        batch.run(self._module, "marginals" + kind, 72 if kind else 9, options, array, np.empty(len(array)))
        return (mu,)

    def _product(self, options: tuple[Any, ...], batch: Batch, kind: str) -> tuple[Tensor]:
        """The derivative of the marginals along the batch's direction."""
        out, array = batch.result()
        batch.run(
            self._module, "product" + kind, 200 if kind else 27, options, batch.extra.numpy(), array, np.empty(len(array))
        )
        return (out,)

    def _entropies(self, options: tuple[Any, ...], batch: Batch, out: np.ndarray) -> Tensor:
        """Entropies, and their gradients if there is room for them."""
        value = np.empty(len(batch.scores))
        batch.run(self._module, "entropies_far", 400 if out.size else 100, options, out, value)
        return torch.from_numpy(value)

    def _wide(
        self, batch: Batch, attempt: Callable[[Batch, str], tuple[Tensor, ...]], validate: bool, wide: bool = False
    ) -> tuple[Tensor, ...]:
        """In weights, then in weights with exponents (in float64, if `wide`), then with exponents of any size.

        Examples that begin in float64 have a ladder of their own: nothing of a result depends on the rest of the batch.
        """
        dtype, double = batch.scores.dtype, torch.float64
        long = batch.arrays[1] > self._longest if batch.longest > self._longest and dtype == torch.float32 else None
        first = attempt(batch if long is None else batch.without(long), "")
        if long is None and batch.beyond is None and np.count_nonzero(batch.status) == 0:
            return first
        scaled: tuple[torch.dtype, Attempt] = double if wide else dtype, lambda b: attempt(b, "_scaled")
        far: tuple[torch.dtype, Attempt] = double, lambda b: attempt(b, "_far")
        found = widening(batch, [(dtype, lambda b: first), scaled, far])
        if long is not None:
            batch.status[long] = OUT_OF_RANGE
            again: list[tuple[torch.dtype, Attempt]] = [(double, lambda b: attempt(b, "")), (double, scaled[1]), far]
            found = widening(batch, [(dtype, lambda b: found), *again])
        return batch.settle(found, validate)
