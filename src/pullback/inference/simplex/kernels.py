"""The kernels of sparsemax: Newton's method for tau, on the few classes that can be in the support."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import kernel


@kernel
def project(worker, workers, unit, scores, mu):
    """Each row of mu is max(s - tau, 0).

    tau lies between the largest score less one and the largest score, so only classes above the former count. From
    there Newton's steps on sum(max(s - tau, 0)) = 1, convex and falling in tau, rise to the solution and end after
    finitely many, when no class drops out any more.
    """
    rows, classes = scores.shape
    near = np.empty(classes)
    for first in range(worker * unit, rows, workers * unit):
        for row in range(first, min(first + unit, rows)):
            best = scores[row, 0]
            for i in range(1, classes):
                best = max(best, scores[row, i])
            top = float(best)
            count, total, sound = 0, 0.0, True
            for i in range(classes):
                s = float(scores[row, i]) - top
                if s > -1.0:
                    near[count] = s
                    count += 1
                    total += s
                elif s != s:
                    sound = False
            if not sound:  # never a plausible answer to NaN or +inf
                mu[row] = np.nan
                continue
            kept = count + 1
            while kept > count:
                kept = count
                tau = (total - 1.0) / kept
                count, total = 0, 0.0
                for i in range(kept):
                    s = near[i]
                    if s > tau:
                        near[count] = s
                        count += 1
                        total += s
            for i in range(classes):
                mu[row, i] = max((float(scores[row, i]) - top) - tau, 0.0)


@kernel
def project_vjp(worker, workers, unit, mu, direction, out):
    """J v: v less its mean over the support of mu, zero elsewhere."""
    rows, classes = mu.shape
    for first in range(worker * unit, rows, workers * unit):
        for row in range(first, min(first + unit, rows)):
            count, total = 0, 0.0
            for i in range(classes):
                if mu[row, i] > 0:
                    count += 1
                    total += direction[row, i]
            mean = total / count
            for i in range(classes):
                out[row, i] = direction[row, i] - mean if mu[row, i] > 0 else 0.0
