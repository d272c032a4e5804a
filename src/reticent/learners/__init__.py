"""Learners: play a decision, observe a loss, rarely change."""

from reticent.learners._pcomw import PCOMW
from reticent.learners._trace import Trace

__all__ = ["PCOMW", "Trace"]
