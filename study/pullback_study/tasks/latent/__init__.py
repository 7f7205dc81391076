"""Models with a latent structure, trained in batches: what a task of this kind has to say is a `Problem`."""

from pullback_study.tasks.latent.config import LatentConfig
from pullback_study.tasks.latent.problem import Examples, Problem
from pullback_study.tasks.latent.task import LatentTask

__all__ = ["Examples", "LatentConfig", "LatentTask", "Problem"]
