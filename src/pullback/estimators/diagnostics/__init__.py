"""Measures of an estimator against the exact gradient: bias, variance, direction, zeros and calls."""

from pullback.estimators.diagnostics.diagnose import diagnose
from pullback.estimators.diagnostics.record import Diagnosis
from pullback.estimators.diagnostics.show import markdown_table, plot

__all__ = ["Diagnosis", "diagnose", "markdown_table", "plot"]
