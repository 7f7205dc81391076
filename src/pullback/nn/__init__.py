"""For networks: a CRF for tagging, alignment search for speech, structures as layers, and labels of parts."""

from pullback.nn.constraints import Constraints, allowed_transitions
from pullback.nn.crf import CRF
from pullback.nn.labels import join_labels, split_labels
from pullback.nn.layer import StructuredLayer
from pullback.nn.monotonic import maximum_path

__all__ = ["CRF", "Constraints", "StructuredLayer", "allowed_transitions", "join_labels", "maximum_path", "split_labels"]
