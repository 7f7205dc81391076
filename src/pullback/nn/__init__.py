"""For networks: a conditional random field for tagging, structures as layers, and labels of parts."""

from pullback.nn.constraints import Constraints, allowed_transitions
from pullback.nn.crf import CRF
from pullback.nn.labels import join_labels, split_labels
from pullback.nn.layer import StructuredLayer

__all__ = ["CRF", "Constraints", "StructuredLayer", "allowed_transitions", "join_labels", "split_labels"]
