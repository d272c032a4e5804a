"""What would have been best: the trace of a run, and the best fixed decision in hindsight, to a certified gap."""

from reticent.hindsight._comparator import best_fixed
from reticent.hindsight._trace import Trace

__all__ = ["Trace", "best_fixed"]
