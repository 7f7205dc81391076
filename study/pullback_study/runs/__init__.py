"""Runs: a config in, a directory out; what is done is skipped, what was interrupted resumes."""

from pullback_study.runs.files import content_hash, write_atomically
from pullback_study.runs.run import Run
from pullback_study.runs.store import Stored, list_runs, read_run
from pullback_study.runs.train import Outcome, train

__all__ = ["Outcome", "Run", "Stored", "content_hash", "list_runs", "read_run", "train", "write_atomically"]
