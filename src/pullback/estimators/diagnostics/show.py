"""Diagnoses as a Markdown table and as a plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pullback.estimators.diagnostics.record import Diagnosis

_COLUMNS = (
    "cosine", "single_cosine", "bias", "scaled_bias", "variance", "scaled_error", "zeros", "decoder_calls",
    "inference_calls",
)  # fmt: skip


def markdown_table(diagnoses: Mapping[str, Diagnosis], columns: Sequence[str] = _COLUMNS) -> str:
    """Several diagnoses as a Markdown table, one row each.

    Args:
        diagnoses: the diagnoses by name.
        columns: fields of `Diagnosis` that are numbers.
    """
    headings = ["estimator", *(column.replace("_", " ") for column in columns)]
    rows = [[name, *(_shown(getattr(found, column)) for column in columns)] for name, found in diagnoses.items()]
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def plot(
    curves: Mapping[str, Sequence[Diagnosis]],
    values: Sequence[float],
    *,
    label: str,
    measures: Sequence[str] = ("bias", "variance"),
    axes: Sequence[Any] | None = None,
) -> Any:
    """Measures against a step size, a temperature or any other setting: one panel per measure, one curve per estimator.

    Args:
        curves: for each name, one diagnosis per value.
        values: the values of the setting, on a logarithmic axis.
        label: the name of the setting.
        measures: fields of `Diagnosis` that are numbers.
        axes: matplotlib axes to draw in, one per measure; a new figure by default.

    Returns:
        The matplotlib figure.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plots of diagnoses need matplotlib: pip install matplotlib") from error
    if axes is None:
        size = (4.5 * len(measures), 3.4)
        _, made = pyplot.subplots(1, len(measures), figsize=size, squeeze=False, layout="constrained")
        axes = list(made[0])
    for axis, measure in zip(axes, measures, strict=True):
        for name, found in curves.items():
            axis.plot(values, [getattr(each, measure) for each in found], marker=".", label=name)
        axis.set(xscale="log", xlabel=label, ylabel=measure.replace("_", " "))
    axes[-1].legend(fontsize="small")
    return axes[0].figure


def _shown(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3g}"
