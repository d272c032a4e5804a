"""Journals: learners whose every round is on disk before its effect can be seen, so that a crash loses nothing."""

from reticent.journal._journal import Journal
from reticent.journal._learner import JournaledLearner
from reticent.journal._read import Change, Reader

__all__ = ["Change", "Journal", "JournaledLearner", "Reader"]
