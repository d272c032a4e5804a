"""The audit of the filtered gate: an epoch reveals about what is certified, and half the noise is caught."""

from dataclasses import replace

import numpy as np

import reticent as rt
from reticent.planning import FilteredPlan

ROUNDS = 2
# The interval is so wide that decisions stay inside, and show a linear map of the releases up to weights of filters.
PLAN = FilteredPlan(rt.Interval(-1e3, 1e3), ROUNDS, 1.0, noise=1.0, clip=1.0, batch=2)
OPTIONS = {"runs": 6_000, "delta": 0.1, "jobs": 1, "progress": False}


def neighbours():
    stream = np.zeros((ROUNDS, 1))
    stream[0] = 1.0
    return stream, -stream


def first_step(decisions):
    """What the first release moved: a rising function of it."""
    return -decisions[:, 2, 0]


def audit(plan):
    return rt.privacy.audit(
        PLAN,
        rt.Linear(),
        *neighbours(),
        learner=lambda rng: rt.make(plan, rt.Linear(), rng),
        score=first_step,
        **OPTIONS,
    )


def test_one_epoch_reveals_less_than_certified_and_half_the_noise_is_caught():
    honest = audit(PLAN)
    assert not honest.violated
    assert honest.ratio > 0.3  # one release, of the eight that an epoch has
    assert audit(replace(PLAN, noise=PLAN.noise / 3)).violated
