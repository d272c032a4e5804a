"""The likelihood ratio of a transcript against plain quadrature, and against what a ratio has to satisfy."""

import numpy as np
import pytest
from scipy import integrate, stats

import reticent as rt
from reticent.audit._audit import Likelihood, known
from reticent.audit._runs import Honest, play

ALPHA = 1e-6  # significance of every single test


def plan_of(low=-1.0, high=2.0, horizon=4, **changes):
    given = {"beta": 2.0, "lam": 1.5, "p": 0.2, "phi": 1.6, "distance": 0.0}
    return rt.Plan(rt.Interval(low, high), horizon, 1.0, **(given | changes))


def law(plan, total):
    """The density of a fresh decision after gradients that add up to `total`, by quadrature, in user coordinates."""
    low, high, middle = plan.domain.low[0], plan.domain.high[0], plan.domain.center[0]

    def weight(y):
        return np.exp(-plan.beta * (total * y + plan.lam / 2 * (y - middle) ** 2))

    mass = integrate.quad(weight, low, high, epsabs=1e-13)[0]
    return lambda y: weight(y) / mass


def log_likelihood(plan, gradients, decisions):
    """The log-likelihood of the decisions after the first, coin by coin, from the definition of the learner."""
    phi, low, high = plan.phi, plan.domain.low[0], plan.domain.high[0]
    value, switches = 0.0, 0
    for end in range(plan.batch, len(gradients) + 1, plan.batch):
        if plan.budget is not None and switches >= plan.budget:
            break
        x, after = decisions[end - 1], decisions[end]
        density, slope = law(plan, gradients[:end].sum()), gradients[end - plan.batch : end].sum()

        def kept(y, x=x, density=density, slope=slope):
            return density(y) * np.clip(np.exp(plan.beta * slope * (y - x)) / phi, phi**-2, 1)

        cuts = [] if slope == 0 else sorted(x + np.array([-1, 1]) * np.log(phi) / abs(plan.beta * slope))
        inner = [cut for cut in cuts if low < cut < high]
        keep = (1 - plan.p) * integrate.quad(kept, low, high, points=inner or None, epsabs=1e-13)[0]
        value += np.log(keep) if after == x else np.log1p(-keep) + np.log(density(after))
        switches += after != x
    return value


STREAMS = (
    (np.array([0.9, 0.3, -1.0, 0.5]), 0),
    (np.array([-0.2, 0.8, 0.0, 1.0]), 1),
    (np.array([0.4, -0.9, 0.6, 0.1]), 3),
)
DECISIONS = np.array(
    [[0.5, 0.5, 0.5, 0.5, 0.5], [1.9, -0.9, -0.9, 0.2, 0.2], [0.0, 1.0, -0.5, 0.7, 1.2], [-1.0, -1.0, 2.0, 2.0, 0.1]]
)


@pytest.mark.parametrize("changes", [{}, {"phi": 30.0}, {"budget": 1}, {"p": 1.0}, {"phi": 1.01, "beta": 6.0}], ids=str)
@pytest.mark.parametrize(("stream", "changed"), STREAMS)
def test_the_ratio_is_that_of_quadrature(stream, changed, changes):
    plan = plan_of(**changes)
    other = stream.copy()
    other[changed] = -0.7
    found = Likelihood(plan, stream[:, None], other[:, None], changed)(DECISIONS[:, :, None])
    rows = DECISIONS if plan.p < 1 else DECISIONS[2:3]  # the others would have a keep that cannot be
    for value, row in zip(found[-len(rows) :] if plan.p < 1 else found[2:3], rows, strict=True):
        expected = log_likelihood(plan, stream, row) - log_likelihood(plan, other, row)
        assert value == pytest.approx(expected, abs=1e-8)


def test_batches():
    plan = plan_of(horizon=5, batch=2)
    stream = np.array([0.9, 0.3, -1.0, 0.5, 1.0])
    other = stream.copy()
    other[3] = -0.7
    rows = np.array([[0.5, 0.5, 0.1, 0.1, 0.1, 0.1], [0.5, 0.5, 0.5, 0.5, 1.3, 1.3]])
    found = Likelihood(plan, stream[:, None], other[:, None], 3)(rows[:, :, None])
    for value, row in zip(found, rows, strict=True):
        assert value == pytest.approx(log_likelihood(plan, stream, row) - log_likelihood(plan, other, row), abs=1e-8)


def test_a_change_that_no_coin_follows_tells_nothing():
    plan = plan_of(horizon=5, batch=2)
    stream = np.zeros((5, 1))
    other = stream.copy()
    other[4] = 1.0
    assert (Likelihood(plan, stream, other, 4)(np.zeros((3, 6, 1))) == 0).all()


@pytest.mark.parametrize("draws", [1, 3])
def test_runs_of_the_learner_have_this_ratio(draws):
    # E exp(-ratio) over the first world is 1; with another temperature it is not.
    plan = plan_of(-3.0, 3.0, 6, budget=4, phi=6.0, beta=0.5, draws=draws)
    stream = np.array([0.8, 0.4, -0.6, 0.3, 0.9, -0.5])[:, None]
    other = stream.copy()
    other[1] = -0.5
    decisions = play(Honest(plan, rt.Linear()), plan.domain, (stream,), 4000, np.random.default_rng(1))
    weights = np.exp(-Likelihood(plan, stream, other, 1)(decisions))
    assert abs(weights.mean() - 1) / (weights.std() / 4000**0.5) < -stats.norm.ppf(ALPHA / 2)
    wrong = plan_of(-3.0, 3.0, 6, budget=4, phi=6.0, beta=0.8, draws=draws)
    weights = np.exp(-Likelihood(wrong, stream, other, 1)(decisions))
    assert abs(weights.mean() - 1) / (weights.std() / 4000**0.5) > -stats.norm.ppf(ALPHA / 2)


def test_far_out_the_ratio_is_finite():
    plan = plan_of(-1.0, 1.0, 200, beta=50.0, lam=0.1)
    stream = np.ones((200, 1))
    other = stream.copy()
    other[0] = -1.0
    decisions = play(Honest(plan, rt.Linear()), plan.domain, (stream,), 20, np.random.default_rng(1))
    assert np.isfinite(Likelihood(plan, stream, other, 0)(decisions)).all()


def test_where_it_is_known():
    plan = plan_of()
    assert known(plan, rt.Linear())
    assert not known(plan, rt.Absolute())
    assert not known(rt.Plan(rt.Ball(2), 4, 1.0, beta=1.0, lam=1.0, p=0.1, phi=2.0), rt.Linear())
