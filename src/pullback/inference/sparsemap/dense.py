"""The active-set method for one example, on dense vectors: plain NumPy in float64. See README.md."""

from __future__ import annotations

import numpy as np

_ROUNDING = 4 * 2.0**-52
_CLOSE = 1e4  # gaps of fewer roundings than this are as small as errors of the weights, which are then refined
_PATIENCE = 5  # how many such gaps need not be half of the one before
_DEPENDENT = 1e-6


class Search:
    """The projection of one vector of scores, on the way: the active set, its weights and its mean.

    Args:
        scores: `[K]`, float64; `-inf` for forbidden parts.
        starts: structures to start from, `[k, K]`; those with forbidden parts are left out.
        weights: of them, `[k]`.
    """

    def __init__(self, scores: np.ndarray, starts: np.ndarray, weights: np.ndarray) -> None:
        self.forbidden = np.isneginf(scores)
        self.scores = np.where(self.forbidden, 0.0, scores)
        self.vertices = np.empty((0, len(scores)))
        self.weights = np.empty(0)
        self.inverse = np.empty((0, 0))
        self.mean = np.zeros(len(scores))
        self.changes, self.stalls, self.calls, self.gap = 0, 0, 0, np.inf
        self.done = self.converged = False
        self._noise = np.random.default_rng(0)
        self._tilt, self._opposite = np.zeros(len(scores)), False
        usable = (weights > 0) & ~(starts[:, self.forbidden] > 0).any(1)
        if usable.any():
            self._restart(starts[usable], weights[usable])

    def residual(self) -> np.ndarray:
        """What the oracle sees: s - mu, `-inf` where a part is forbidden."""
        return np.where(self.forbidden, -np.inf, self.scores - self.mean + self._tilt)

    def advance(self, vertex: np.ndarray, limit: int) -> None:
        """One iteration, with the structure z = argmax <s - mu, z> that the oracle found."""
        self.calls += 1
        if len(self.weights) == 0:
            self._restart(vertex[None], np.ones(1))
            return
        gap, rounding = self._improvement(vertex)
        if self.converged:
            self._complete(vertex, gap, rounding)
            return
        close = not gap > _CLOSE * rounding
        self.stalls += close and gap > 0.5 * self.gap
        patience = _PATIENCE if gap <= 100 * rounding else 10 * _PATIENCE
        self.gap, self.converged = gap, not gap > rounding or self.stalls > patience
        if not self.converged and self.calls < limit:
            self._improve(vertex, close)
        self.done = not self.converged and (self.done or self.calls >= limit)
        if self.converged:
            self._look_for_ties(rounding)

    def _improve(self, vertex: np.ndarray, close: bool) -> None:
        """Activate the structure and move to the minimum on the active set."""
        if self._append(vertex):
            self.weights = np.append(self.weights, 0.0)
            if self.changes > 64 + 4 * len(self.weights):
                self._restart(self.vertices, self.weights)
            else:
                self._settle(passes=3 if close else 1)
        elif self.changes > 0:
            self._restart(self.vertices, self.weights)
        else:  # it depends on the active set: without rounding its gap would be zero
            self.converged, self.done = close, True

    def _improvement(self, vertex: np.ndarray) -> tuple[float, float]:
        """`<s - mu, z - mu>` for a structure z, and how much of it may be rounding."""
        terms = (self.scores - self.mean) * (vertex - self.mean)
        return terms.sum(), _ROUNDING * (np.abs(terms).sum() + np.abs(vertex).sum())

    def _look_for_ties(self, rounding: float) -> None:
        """Tilt s - mu a little along a direction that is constant on the affine hull of the active set (see face.py)."""
        q = np.where(self.mean > 0, self._noise.standard_normal(len(self.mean)), 0.0)
        self._tilt = 100 * self._slack(rounding) * (q - self._step(self.vertices @ q) @ self.vertices)
        self._opposite = False

    def _complete(self, vertex: np.ndarray, gap: float, rounding: float) -> None:
        """Append a structure of mu's face, with weight 0, if one was found that the active set does not span."""
        ties = gap > -self._slack(rounding) and not vertex[self.mean <= 0].any()
        if ties and self._append(vertex):
            self.weights = np.append(self.weights, 0.0)
            self._look_for_ties(rounding)
        else:
            self.done, self._opposite, self._tilt = self._opposite, True, -self._tilt

    def _slack(self, rounding: float) -> float:
        """By how much less than mu structures of its face may seem to gain: as much as mu is off."""
        return max(100 * rounding, 4 * self.gap)

    def _append(self, vertex: np.ndarray) -> bool:
        """Extend the active set and the inverse M of its Gram matrix, if the structure is affinely independent.

        The matrix is of <a_i, a_j> + 1, so that it is regular for affinely independent structures.
        """
        gram = self.vertices @ vertex + 1.0
        ratio = self.inverse @ gram
        distance = vertex @ vertex + 1.0 - gram @ ratio
        if not distance > _DEPENDENT:
            return False
        k = len(gram)
        inverse = np.empty((k + 1, k + 1))
        inverse[:k, :k] = self.inverse + np.outer(ratio, ratio) / distance
        inverse[k, :k] = inverse[:k, k] = -ratio / distance
        inverse[k, k] = 1.0 / distance
        self.inverse = inverse
        self.vertices = np.vstack([self.vertices, vertex])
        self.changes += 1
        return True

    def _remove(self, index: int) -> None:
        column = self.inverse[:, index]
        smaller = self.inverse - np.outer(column, column) / column[index]
        self.inverse = np.delete(np.delete(smaller, index, 0), index, 1)
        self.vertices = np.delete(self.vertices, index, 0)
        self.weights = np.delete(self.weights, index)
        self.changes += 1

    def _step(self, slopes: np.ndarray) -> np.ndarray:
        """The step of the weights to the minimum on the affine hull: M (e - tau 1), tau such that it sums to zero."""
        step, sums = self.inverse @ (slopes - slopes[0]), self.inverse.sum(1)
        return step - step.sum() / sums.sum() * sums

    def _settle(self, passes: int) -> None:
        """Step to the minimum on the affine hull, dropping the structures whose weight vanishes on the way."""
        for _ in range(passes):
            blocked = True
            while blocked:
                step = self._step(self.vertices @ (self.scores - self.mean))
                vanishing = (self.weights + step <= 0) & (step < 0)
                blocked = bool(vanishing.any())
                ratios = np.where(vanishing, self.weights / np.where(vanishing, -step, 1.0), 1.0)
                self.weights = self.weights + ratios.min() * step
                if blocked:
                    self.weights[np.where(vanishing, ratios, np.inf).argmin()] = 0.0
                for index in np.flatnonzero(self.weights <= 0)[::-1]:
                    self._remove(index)
                self.mean = self.weights @ self.vertices

    def _restart(self, vertices: np.ndarray, weights: np.ndarray) -> None:
        """Move to the minimum on the hull of these structures, from these weights, the inverse built anew."""
        self.vertices, self.inverse = np.empty((0, len(self.scores))), np.empty((0, 0))
        kept = np.array([self._append(vertex) for vertex in vertices])
        self.weights = weights[kept] / weights[kept].sum()
        self.mean = self.weights @ self.vertices
        self._settle(passes=3)
        self.changes = 0
