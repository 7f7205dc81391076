"""Modules: a conditional random field for tagging, and structures as layers."""

from pullback.nn.constraints import Constraints, allowed_transitions
from pullback.nn.crf import CRF
from pullback.nn.layer import StructuredLayer

__all__ = ["CRF", "Constraints", "StructuredLayer", "allowed_transitions"]
