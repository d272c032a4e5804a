"""The quartic bound and its envelope lie below the potential, at random points of random problems."""

import numpy as np
import pytest

import reticent as rt
from reticent.gibbs._kinked import _polynomial
from reticent.gibbs._quartic import lower_bound, pairs, quartic_norm


@pytest.mark.parametrize("loss", [rt.Absolute(), rt.Pinball(0.2), rt.Hinge(0.3)], ids=repr)
@pytest.mark.parametrize("d", [2, 4])
def test_the_polynomial_is_a_lower_bound(loss, d):
    rng = np.random.default_rng(d)
    n, beta, lam = 3000, 0.1, 50.0
    features = rng.normal(size=(n, d))
    targets = features @ np.full(d, 0.3) + 0.5 * rng.normal(size=n)
    if isinstance(loss, rt.Hinge):
        targets = np.sign(targets)
    m = rt.Gibbs(rt.Ball(d, 3.0), loss, beta, lam)
    m.observe_many(features, targets)
    sampler = m._sampler("quartic")
    sampler._build()
    bound, _, core = sampler.built
    z = m._history.summary.z
    at_z = m.log_density(z)
    slack = []
    for _ in range(400):
        w = rng.normal(size=d) * rng.choice([0.1, 1.0, 3.0])
        x = z + bound.unwhiten @ w
        if not m.domain.contains(x):
            continue
        potential = at_z - m.log_density(x)
        below = _polynomial(bound, w)
        assert below <= potential + 1e-9
        if not core.gaussian:
            assert lower_bound(core.radial, float(np.linalg.norm(w))) <= potential + 1e-9
        slack.append(potential - below)
    assert min(slack) < 3.0  # and a useful one


def test_the_form_is_bounded_by_its_eigenvalue():
    rng = np.random.default_rng(0)
    for d in (2, 3, 6):
        a = rng.normal(size=(50, d))
        i, j, factor = pairs(d)
        aa = a[:, i] * a[:, j] * factor
        bound = quartic_norm(aa.T @ aa, d)
        w = rng.normal(size=(20_000, d))
        w /= np.linalg.norm(w, axis=1, keepdims=True)
        largest = ((w @ a.T) ** 4).sum(axis=1).max()
        assert largest <= bound
        assert bound < 2.0 * largest
