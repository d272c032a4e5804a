"""Saving: the state of a learner as one checked file, without pickle and without running anything on the way back."""

from reticent._saving._learner import load, pack_learner, save_learner, unpack_learner

__all__ = ["load", "pack_learner", "save_learner", "unpack_learner"]
