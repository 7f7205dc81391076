"""The active-set method for one example, on dense vectors: plain NumPy in float64. See README.md."""

from __future__ import annotations

import numpy as np

_ROUNDING = 4 * 2.0**-52
_DEPENDENT = 1e-9


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
        self.changes, self.calls, self.gap = 0, 0, np.inf
        self.done = self.converged = False
        usable = (weights > 0) & ~(starts[:, self.forbidden] > 0).any(1)
        if usable.any():
            self._restart(starts[usable], weights[usable])

    def residual(self) -> np.ndarray:
        """What the oracle sees: s - mu, `-inf` where a part is forbidden."""
        return np.where(self.forbidden, -np.inf, self.scores - self.mean)

    def advance(self, vertex: np.ndarray, limit: int) -> None:
        """One iteration, with the structure z = argmax <s - mu, z> that the oracle found."""
        self.calls += 1
        if len(self.weights) == 0:
            self._restart(vertex[None], np.ones(1))
            return
        gap, rounding = self._improvement(vertex)
        self.gap, self.converged = gap, not gap > rounding
        self.done = self.converged or self.calls >= limit
        if self.done:
            return
        fresh = self.changes == 0
        if self._append(vertex):
            self.weights = np.append(self.weights, 0.0)
            slopes = np.zeros(len(self.weights))
            slopes[-1] = gap
            self._settle(slopes)
            if self.changes > 64 + 4 * len(self.weights):
                self._restart(self.vertices, self.weights)
        elif fresh:
            # The structure is active, so its gap is the error of the weights: with a fresh inverse, rounding.
            self.done, self.converged = True, not gap > 1e4 * rounding
        else:
            self._restart(self.vertices, self.weights)

    def _improvement(self, vertex: np.ndarray) -> tuple[float, float]:
        """`<s - mu, z - mu>` for a structure z, and how much of it may be rounding."""
        terms = (self.scores - self.mean) * (vertex - self.mean)
        return terms.sum(), _ROUNDING * (np.abs(terms).sum() + np.abs(vertex).sum())

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
        self.changes += 1

    def _settle(self, slopes: np.ndarray) -> None:
        """Step towards the minimum on the affine hull, dropping the structures whose weight vanishes on the way."""
        while True:
            step, sums = self.inverse @ slopes, self.inverse.sum(1)
            step -= step.sum() / sums.sum() * sums
            vanishing = (self.weights + step <= 0) & (step < 0)
            if not vanishing.any():
                self.weights = self.weights + step
                break
            ratios = np.where(vanishing, self.weights / np.where(vanishing, -step, 1.0), np.inf)
            blocking = int(ratios.argmin())
            self.weights = self.weights + ratios[blocking] * step
            self.weights[blocking] = 0.0
            slopes = (1.0 - ratios[blocking]) * slopes  # up to a constant, which does not matter
            for index in np.flatnonzero(self.weights <= 0)[::-1]:
                self._remove(index)
            slopes, self.weights = slopes[self.weights > 0], self.weights[self.weights > 0]
        self.mean = self.weights @ self.vertices

    def _restart(self, vertices: np.ndarray, weights: np.ndarray) -> None:
        """Move to the minimum on the hull of these structures, from these weights, the inverse built anew."""
        self.vertices, self.inverse = np.empty((0, len(self.scores))), np.empty((0, 0))
        kept = np.array([self._append(vertex) for vertex in vertices])
        self.weights = weights[kept] / weights[kept].sum()
        self.mean = self.weights @ self.vertices
        slopes = self.vertices @ (self.scores - self.mean)
        self._settle(slopes - slopes[0])
        self.changes = 0
