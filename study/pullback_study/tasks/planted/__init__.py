"""Planted structures: a hidden scorer, its best structure as gold, and a label that needs it."""

from pullback_study.tasks.planted.task import TASK

__all__ = ["TASK"]
