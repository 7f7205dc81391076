"""ListOps: nested operations on digits, with gold dependency heads."""

from pullback_study.tasks.listops.task import TASK

__all__ = ["TASK"]
