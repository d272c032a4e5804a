"""Experiments: streams, what learners do on them, the paper's tables, pictures and reports."""

from reticent.lab._study import Best, Run, Study
from reticent.lab._walk import Recorder, TooSlow, hindsight, plan_facts, stream_facts, walk

__all__ = ["Best", "Recorder", "Run", "Study", "TooSlow", "hindsight", "plan_facts", "stream_facts", "walk"]
