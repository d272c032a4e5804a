"""The audit of the gate: what it reveals is close to what is certified, and half the noise is caught."""

from dataclasses import replace

import numpy as np
import pytest

import reticent as rt
from reticent.planning import NoisyDescentPlan

ROUNDS = 6
# lam is so large that decisions stay inside: differences of neighbouring ones show the releases.
PLAN = NoisyDescentPlan(rt.Interval(-1.0, 1.0), ROUNDS, 1.0, sigma=2.0, batch=2, lam=60.0)
OPTIONS = {"runs": 12_000, "delta": 0.1, "jobs": 1, "progress": False}


def second_release(decisions):
    """The best test: what block 2 released, from the decisions of blocks 2 and 3."""
    return -PLAN.lam * (decisions[:, 4, 0] - decisions[:, 2, 0])


def neighbours():
    stream = np.zeros((ROUNDS, 1))
    stream[2] = 1.0
    return stream, -stream


@pytest.mark.slow
def test_one_block_reveals_about_as_much_as_certified_and_half_the_noise_is_caught():
    honest = rt.privacy.audit(PLAN, rt.Linear(), *neighbours(), score=second_release, **OPTIONS)
    assert not honest.violated
    assert honest.ratio > 0.6
    weak = replace(PLAN, sigma=PLAN.sigma / 2)
    broken = rt.privacy.audit(
        PLAN,
        rt.Linear(),
        *neighbours(),
        learner=lambda rng: rt.make(weak, rt.Linear(), rng),
        score=second_release,
        **OPTIONS,
    )
    assert broken.violated
