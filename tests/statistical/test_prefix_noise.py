"""The noise that learners add to prefix sums has the covariance that theory gives it, and not one that is a little off.

Significance 1e-6 for each test; every control must fail at the same sample size.
"""

from dataclasses import replace

import numpy as np
import prefix_matrices as matrices
import pytest
from laws import ALPHA
from scipy import stats

import reticent as rt
from reticent.systems.ftrl._learner import DPFTRL, AgarwalSingh
from reticent.systems.ftrl._plan import FTRLPlan, TreeLeaderPlan

N, BATCH, SIGMA, LAM = 21, 2, 0.5, 100.0  # 21 = 10101 in binary
WIDE = rt.Ball(500)  # the length of the noise, some 20, stays far below LAM: no decision is cut off
RUNS = 60


def prefix_noise(plan, kind, seed):
    """The noise of every prefix, a column for each coordinate of each run: decisions where gradients are zero."""
    rng = np.random.default_rng(seed)
    rounds = np.zeros((plan.horizon, WIDE.dim))
    batch = plan.horizon // plan.batches
    columns = []
    for _ in range(RUNS):
        trace = kind(plan, rt.Linear(), rng).observe_many(rounds)
        decisions = np.vstack([trace.decisions(), trace.final])
        assert not decisions[0].any()
        columns.append(-plan.lam * decisions[batch::batch])
    return np.hstack(columns)


def p_value(sample, law):
    """Of the likelihood-ratio test that columns are normal with mean 0 and covariance `law`."""
    n, m = sample.shape
    white = np.linalg.solve(np.linalg.cholesky(law), sample)
    S = white @ white.T / m
    statistic = m * (np.trace(S) - np.linalg.slogdet(S)[1] - n)
    return stats.chi2.sf(statistic, n * (n + 1) / 2)


def topped(law):
    return law - np.diag(np.diag(law)) + np.diag(law).max() * np.eye(N)


def ftrl(**options):
    return FTRLPlan(WIDE, N * BATCH, 1.0, lam=LAM, sigma=SIGMA, batch=BATCH, **options)


def buffers_law(plan):
    return matrices.covariance(matrices.sums(N) @ np.linalg.inv(matrices.buffers(N, plan.weights, plan.decays)))


ROOT = matrices.covariance(matrices.root(N))
REDUCED, PLAIN = (matrices.covariance(matrices.tree(N, reduced)) for reduced in (True, False))
FAR = {"weights": (0.4, 0.2), "decays": (0.3, 0.9)}
# The plan, its learner, the law, and a law that is wrong in kind.
CASES = {
    "buffers": lambda: (plan := ftrl(), DPFTRL, buffers_law(plan), ROOT + np.diag(np.full(N, 0.04))),
    "other buffers": lambda: (plan := ftrl(**FAR), DPFTRL, buffers_law(plan), buffers_law(ftrl())),
    "square root": lambda: (ftrl(noise="toeplitz-exact"), DPFTRL, ROOT, buffers_law(ftrl(**FAR))),
    "tree": lambda: (ftrl(noise="tree"), DPFTRL, REDUCED, PLAIN),
    "topped tree": lambda: (ftrl(noise="tree", linear=True), DPFTRL, topped(REDUCED), REDUCED),
    "agarwal and singh": lambda: (
        TreeLeaderPlan(WIDE, N, 1.0, lam=LAM, sigma=SIGMA),
        AgarwalSingh,
        topped(PLAIN),
        topped(REDUCED),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_noise_has_its_covariance(name):
    plan, kind, law, wrong = CASES[name]()
    sample = prefix_noise(plan, kind, seed=11)
    assert p_value(sample, SIGMA**2 * law) > ALPHA
    assert p_value(sample, SIGMA**2 * wrong) < ALPHA
    # Controls: sigma off by three percent, and one prefix whose variance is a fifth too large.
    assert p_value(prefix_noise(replace(plan, sigma=1.03 * SIGMA), kind, seed=12), SIGMA**2 * law) < ALPHA
    bent = law.copy()
    bent[3, 3] *= 1.2
    assert p_value(sample, SIGMA**2 * bent) < ALPHA


def test_every_prefix_is_normal():
    for options in ({}, {"noise": "toeplitz-exact"}, {"noise": "tree"}):
        plan = ftrl(**options)
        sample = prefix_noise(plan, DPFTRL, seed=13)
        for k in (1, 2, N - 1):
            scale = SIGMA * plan.mechanism.deviation(k + 1)
            assert stats.kstest(sample[k], "norm", args=(0, scale)).pvalue > ALPHA / 9
            assert stats.kstest(sample[k], "norm", args=(0, 1.15 * scale)).pvalue < ALPHA
