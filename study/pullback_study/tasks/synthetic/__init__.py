"""Synthetic clusters: a categorical latent variable whose true value is known."""

from pullback_study.tasks.synthetic.task import TASK

__all__ = ["TASK"]
