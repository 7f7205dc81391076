"""Runs: a config in, a directory out; what is done is skipped, what was interrupted resumes."""

from pullback_study.runs.files import content_hash, write_atomically
from pullback_study.runs.run import Run
from pullback_study.runs.store import Stored, list_runs, read_run

__all__ = ["Run", "Stored", "content_hash", "list_runs", "read_run", "write_atomically"]
