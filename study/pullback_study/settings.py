"""Checks of a config's fields, with errors that name the field, its value and what it may be."""

from __future__ import annotations

from typing import Any

from pullback.estimators.config import nearest

GAMMA_SCALES = ("paper", "example")


def check_estimator(config: Any, method: Any) -> None:
    """The estimator goes by its own name, and what belongs to inner steps is there when, and only when, it makes some."""
    if config.estimator != method.name:
        raise ValueError(f"estimator is {config.estimator!r}, another name of {method.name!r}; use `configure`")
    pulled = (config.step_size, config.inner_steps, config.gamma_scale)
    if method.pulled_back and None in pulled:
        raise ValueError(f"{config.estimator} needs a step size, inner steps and a scale of gamma; got {pulled}")
    if not method.pulled_back and pulled != (None, None, None):
        raise ValueError(
            f"{config.estimator} makes no inner steps: it has no step size, number of inner steps or scale of gamma; "
            f"got {pulled}"
        )
    if config.gamma_scale is not None:
        check_one_of("gamma_scale", config.gamma_scale, GAMMA_SCALES)


def check_one_of(field: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{field} is {value!r}; {nearest(value, list(choices))}")


def check_positive(config: Any, *fields: str) -> None:
    """Each of the fields is positive, or None where it may be."""
    for name in fields:
        if (value := getattr(config, name)) is not None and not value > 0:
            raise ValueError(f"{name} is {value}; it must be positive")


def check_at_least(config: Any, least: int, *fields: str) -> None:
    """Each of the fields is at least so much, or None where it may be."""
    for name in fields:
        if (value := getattr(config, name)) is not None and value < least:
            raise ValueError(f"{name} is {value}; it must be at least {least}")
