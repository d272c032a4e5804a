"""Audits of the private counts inside prior systems: below their certificates, near them, broken ones caught."""

from dataclasses import replace

import numpy as np
import pytest
from prefix_matrices import buffers, covariance, sums, tree

import reticent as rt
from reticent.planning import DoublingPlan, FTRLPlan, ImplicitPlan, LazyToPrivatePlan, PrivateDartboardPlan

ROUNDS, LINE = 4, rt.Interval(-1.0, 1.0)
# lam is so large that decisions stay inside: each then shows the noisy prefix sum.
PLANS = {
    "tree": FTRLPlan(LINE, ROUNDS, 1.0, lam=60.0, sigma=2.0, batch=1, noise="tree"),
    "toeplitz": FTRLPlan(LINE, ROUNDS, 1.0, lam=60.0, sigma=2.0, batch=1, noise="toeplitz"),
}


def one_round_apart(rounds=ROUNDS, dim=1):
    stream = np.zeros((rounds, dim))
    stream[0, 0] = 1.0
    return stream, -np.eye(rounds, dim) * (np.arange(rounds) == 0)[:, None]


class Likelihood:
    """The best test of a Gaussian release: prefix sums, weighed by the noise's inverse covariance."""

    def __init__(self, plan):
        A = sums(ROUNDS)
        if plan.noise == "tree":
            rows = tree(ROUNDS, True)
        else:
            rows = A @ np.linalg.inv(buffers(ROUNDS, plan.weights, plan.decays))
        self.weights, self.lam = np.linalg.solve(covariance(rows), A[:, 0]), plan.lam

    def __call__(self, decisions):
        return -self.lam * decisions[:, 1:, 0] @ self.weights


@pytest.mark.parametrize("name", [pytest.param("tree", marks=pytest.mark.slow), "toeplitz"])
def test_private_sums_reveal_about_as_much_as_certified_and_half_the_noise_is_caught(name):
    plan = PLANS[name]
    options = {"runs": 12_000, "delta": 0.01, "jobs": 1, "score": Likelihood(plan), "progress": False}
    honest = rt.privacy.audit(plan, rt.Linear(), *one_round_apart(), **options)
    assert not honest.violated
    assert honest.ratio > 0.6
    weak = replace(plan, sigma=plan.sigma / 2)
    broken = rt.privacy.audit(
        plan, rt.Linear(), *one_round_apart(), learner=lambda rng: rt.make(weak, rt.Linear(), rng), **options
    )
    assert broken.violated


@pytest.mark.parametrize(
    ("plan", "fault"),
    [
        (LazyToPrivatePlan(LINE, ROUNDS, 1.0, beta=0.5, lam=8.0, p=1.0, budget=4, anchor="centre"), {"beta": 8.0}),
        (ImplicitPlan(LINE, ROUNDS, 1.0, alpha=2.0, noise=1.5), {"noise": 0.15}),
    ],
    ids=["l2p", "implicit"],
)
def test_other_decisions_stay_below_their_certificate_and_too_little_noise_is_caught(plan, fault):
    options = {"runs": 4000, "delta": 0.01, "jobs": 1, "progress": False}
    found = rt.privacy.audit(plan, rt.Linear(), *one_round_apart(), **options)
    assert not found.violated
    weak = replace(plan, **fault)
    broken = rt.privacy.audit(
        plan, rt.Linear(), *one_round_apart(), learner=lambda rng: rt.make(weak, rt.Linear(), rng), **options
    )
    assert broken.violated


@pytest.mark.slow
def test_counts_of_experts_stay_below_their_certificate():
    plan = PrivateDartboardPlan(rt.Experts(2), ROUNDS, 1.0, beta=1.5, p=0.4, budget=4)
    stream = np.zeros((ROUNDS, 2))
    neighbour = stream.copy()
    stream[0], neighbour[0] = (1.0, 0.0), (0.0, 1.0)

    def followed(decisions):
        return decisions[:, 1:, 1].sum(axis=1)

    options = {"runs": 12_000, "delta": 0.01, "jobs": 1, "score": followed, "progress": False}
    honest = rt.privacy.audit(plan, rt.Linear(), stream, neighbour, **options)
    assert not honest.violated
    assert honest.epsilon_lower > 0.5
    weak = replace(plan, beta=6.0)
    broken = rt.privacy.audit(
        plan, rt.Linear(), stream, neighbour, learner=lambda rng: rt.make(weak, rt.Linear(), rng), **options
    )
    assert broken.epsilon_lower > 1.5 * honest.epsilon_lower


def test_doubling_experts_reveal_as_much_as_certified_and_a_higher_rate_is_caught():
    plan = DoublingPlan(rt.Experts(2), ROUNDS, 1.0, rate=1.0, epsilon=2.0, delta=0.0)
    stream = np.zeros((ROUNDS, 2))
    neighbour = stream.copy()
    stream[0], neighbour[0] = (1.0, 0.0), (0.0, 1.0)

    def followed(decisions):
        return decisions[:, 1, 1]  # the second expert, in the block that is drawn from the changed round

    options = {"runs": 4000, "delta": 0.01, "jobs": 1, "score": followed, "progress": False}
    found = rt.privacy.audit(plan, rt.Linear(), stream, neighbour, **options)
    assert not found.violated
    assert found.ratio > 0.6
    weak = replace(plan, rate=4.0, epsilon=8.0)
    broken = rt.privacy.audit(
        plan, rt.Linear(), stream, neighbour, learner=lambda rng: rt.make(weak, rt.Linear(), rng), **options
    )
    assert broken.violated
