"""R5: kept minimisers have the law of fresh ones, reflected sums and lazy leaders that of their perturbed leaders."""

import math

import numpy as np
import pytest
from laws import ALPHA
from scipy import stats

import reticent as rt
from reticent.losses import Rows
from reticent.systems._decider import Changes
from reticent.systems.lazy_leader._lazy_leader import LazyLeaderPlan, _Cells
from reticent.systems.perturbed import _kernel
from reticent.systems.perturbed._learner import CustomWalk, PerturbedWalk, ReflectedWalk
from reticent.systems.perturbed._objective import ObjectivePlan

LAM, SIGMA, COUNT = 1.0, 4.0, 20_000
LINE = (np.array([[0.7], [0.7], [-0.7], [0.7]]), np.array([0.3, -0.2, 0.1, 0.4]))
PLANE = (np.array([[0.6, 0.3], [-0.2, 0.7], [0.5, 0.5], [0.7, -0.1]]), np.array([0.5, -0.4, 0.1, 0.2]))
LOSSES = {"squared": rt.Squared(), "logistic": rt.Logistic(), "huber": rt.Huber(0.5)}
SLOPES = {
    "squared": lambda m: m,
    "logistic": lambda m: -1 / (1 + np.exp(m)),
    "huber": lambda m: np.clip(m, -0.5, 0.5),
}


def kept(domain, kind, rows, count, seed, phi=3.2, sigma=SIGMA, batch=1):
    """Decisions and noise after all rows, in runs in which every coin for the last two said 'keep'."""
    rng = np.random.default_rng(seed)
    vectors, offsets = rows
    points, noises = [], []
    values = {"sigma": sigma, "lam": LAM, "p": 0.0, "phi": phi, "budget": 10, "smoothness": 1.0, "batch": batch}
    plan = ObjectivePlan(domain, 10, 1.0, **values)
    for _ in range(count):
        walk = PerturbedWalk(plan, LOSSES[kind], rng)
        walk.take(Rows(vectors[:2], offsets[:2]), Changes())
        draws = walk.counts[2]  # on the boundary a fresh draw may be the same point
        walk.take(Rows(vectors[2:], offsets[2:]), Changes())
        if walk.counts[2] == draws:
            points.append(walk.u)
            noises.append(walk.Z.copy())
    return np.array(points), np.array(noises)


def fresh(domain, kind, rows, count, seed, sigma=SIGMA):
    """Minimisers for independent noise, by projected gradient steps."""
    rng = np.random.default_rng(seed)
    vectors, offsets = rows
    Z = sigma * rng.normal(size=(count, vectors.shape[1]))
    x = np.zeros_like(Z)
    step = 1 / (LAM + (vectors**2).sum())
    for _ in range(400):
        gradient = SLOPES[kind](x @ vectors.T + offsets) @ vectors + LAM * x + Z
        x = x - step * gradient
        if domain.body.ball:
            x = x / np.maximum(1.0, np.linalg.norm(x, axis=1) / domain.radius)[:, None]
        else:
            x = np.clip(x, domain.body.lo, domain.body.hi)
    return x


def looks(points):
    """Numbers to compare: the coordinates and the distance from the centre."""
    return [*points.T, np.linalg.norm(points, axis=1)]


def worst(domain, kind, rows, count, seed, **options):
    sigma = options.get("sigma", SIGMA)
    points, noises = kept(domain, kind, rows, count, seed, **options)
    assert len(points) > 0.02 * count
    found = [stats.kstest(z, "norm", args=(0, sigma)).pvalue for z in noises.T]
    found.append(stats.kstest(np.linalg.norm(noises, axis=1) / sigma, "chi", args=(noises.shape[1],)).pvalue)
    others = looks(fresh(domain, kind, rows, 20_000, seed + 1, sigma))
    # Rounded, so that points on the boundary are equal where rounding alone tells them apart.
    found += [stats.ks_2samp(a.round(7), b.round(7)).pvalue for a, b in zip(looks(points), others, strict=True)]
    return min(found)


CASES = [
    (rt.Interval(-1.5, 1.5), "squared", LINE),
    (rt.Interval(-2.0, 2.0), "huber", LINE),
    (rt.Ball(2, 4.0), "logistic", PLANE),
    (rt.Ball(2, 2.0), "squared", PLANE),
    (rt.Box([-1.5, -4.0], [1.5, 4.0]), "squared", PLANE),
]


@pytest.mark.parametrize(("domain", "kind", "rows"), CASES)
def test_kept_minimisers_have_the_law_of_fresh_ones(domain, kind, rows):
    assert worst(domain, kind, rows, COUNT, 5) > ALPHA


@pytest.mark.parametrize(("domain", "kind", "rows"), [CASES[0], CASES[3], CASES[4]])
def test_so_they_have_where_a_coin_is_about_several_rounds(domain, kind, rows):
    assert worst(domain, kind, rows, COUNT, 6, batch=2) > ALPHA


def around(x, c):
    """A loss whose gradient points away from c, wherever x is: no direction is fixed."""
    return math.sqrt(0.1 + float((x - c) @ (x - c)))


def away(x, c):
    return (x - c) / around(x, c)


def bowl(x, c):
    out = away(x, c)
    return (np.eye(x.size) - np.outer(out, out)) / around(x, c)


CENTRES = [np.array([0.3, 0.0]), np.array([-0.2, 0.2])]
ROUND = rt.Custom(around, away, 1.0, bowl)
FLAT = rt.Custom(around, away, 1.0, lambda x, c: np.zeros((2, 2)))  # the negative control: no determinant


class Once(CustomWalk):
    """A walk whose runs are looked at up to the first switch only: nothing is solved after it."""

    def _renew(self):
        if not self.done:
            super()._renew()


def custom_noises(loss, domain, count, seed):
    """How long the noise is where a coin for two rounds said 'keep'."""
    values = {"sigma": 4.0, "lam": 4.0, "p": 0.0, "phi": 12.0, "budget": 10, "smoothness": 3.2, "batch": 2}
    plan, rng, noises = ObjectivePlan(domain, 10, 1.0, general=True, **values), np.random.default_rng(seed), []
    rows = loss.prepare(domain, CENTRES)
    for _ in range(count):
        walk = Once(plan, loss, rng)
        walk.take(rows, Changes())
        if walk.counts[2] == 0:
            noises.append(np.linalg.norm(walk.Z) / 4.0)
    return noises


@pytest.mark.parametrize("domain", [rt.Ball(2, 1.2), rt.Box([-0.8, -2.0], [0.8, 2.0])], ids=["ball", "box"])
def test_kept_minimisers_of_custom_losses_have_noise_of_the_right_law(domain):
    found = custom_noises(ROUND, domain, 8_000, 8)
    assert len(found) > 400
    assert stats.kstest(found, "chi", args=(2,)).pvalue > ALPHA


def test_custom_losses_without_their_determinant_have_not():
    assert stats.kstest(custom_noises(FLAT, rt.Ball(2, 1.2), 8_000, 8), "chi", args=(2,)).pvalue < ALPHA


def test_without_the_determinant_the_law_is_another():
    domain, kind, rows = CASES[0]
    vectors, offsets = rows

    def broken(count, seed):
        """The same walk in plain Python with the density of Z alone."""
        rng = np.random.default_rng(seed)
        out = []
        body, free = domain.body, np.ones(1, dtype=bool)
        while len(out) < count:
            Z, x, H, b = SIGMA * rng.normal(size=1), np.zeros(1), np.zeros((1, 1)), np.zeros(1)
            for i in range(2):
                H += np.outer(vectors[i], vectors[i])
                b += offsets[i] * vectors[i]
            _kernel.minimise(body, 5, 0.0, LAM, vectors, offsets, 2, b, Z, x, H, free)
            for i in range(2, 4):
                g = (vectors[i] @ x + offsets[i]) * vectors[i]
                ratio = math.exp((2 * g @ Z - g @ g) / (2 * SIGMA**2))
                if rng.random() > ratio / 3.2:
                    break
                Z = Z - g
            else:
                out.append(Z[0])
        return out

    kept_count = len(kept(domain, kind, rows, COUNT, 5)[0])
    assert stats.kstest(np.abs(broken(kept_count, 5)) / SIGMA, "chi", args=(1,)).pvalue < ALPHA


def test_a_small_phi_clips_and_shows():
    domain, kind, rows = CASES[0]
    assert worst(domain, kind, rows, 4_000, 5, phi=1.05) < ALPHA


def reflected(count, seed, broken=False):
    rng = np.random.default_rng(seed)
    domain, sigma = rt.Ball(2), 1.5
    vectors = np.array([[0.6, 0.8], [0.0, 1.0], [0.8, -0.6], [0.3, 0.1]])
    noises, switches = [], 0
    for _ in range(count):
        walk = ReflectedWalk(domain, rt.Linear(), rng, sigma, 1e3)
        changes = Changes()
        walk.take(Rows(vectors, np.zeros(4)), changes)
        switches += len(changes)
        noises.append(walk.Z - (0.3 * vectors[-1] if broken else 0.0))
    chance = sum(math.erf(np.linalg.norm(g) / (math.sqrt(8) * sigma)) for g in vectors)
    return np.array(noises) / sigma, switches, chance


def test_reflected_sums_are_normal_and_change_as_rarely_as_can_be():
    count = 20_000
    noises, switches, chance = reflected(count, 3)
    for z in (*noises.T, (noises[:, 0] + noises[:, 1]) / math.sqrt(2)):
        assert stats.kstest(z, "norm").pvalue > ALPHA
    # Four indicators per run, whatever their dependence, have a variance of at most 4 times the sum of theirs.
    assert abs(switches - count * chance) < 5 * math.sqrt(4 * count * chance)
    moved, _, _ = reflected(count, 3, broken=True)
    assert min(stats.kstest(z, "norm").pvalue for z in moved.T) < ALPHA


def test_the_lazy_leader_sees_uniform_noise_around_the_sum():
    rng = np.random.default_rng(11)
    scale = 0.4
    plan = LazyLeaderPlan(rt.Ball(2), 10, 1.0, scale=scale)
    vectors = np.array([[0.6, 0.8], [0.0, -1.0], [0.8, -0.6], [0.3, 0.1]])
    noises, floors, switches = [], [], 0
    for _ in range(10_000):
        walk, changes = _Cells(plan, rng), Changes()
        walk.take(Rows(vectors, np.zeros(4)), changes)
        switches += len(changes)
        noises.append((walk.shift + walk.cells / scale - walk.total) * scale)
        # The negative control: cells of the sum itself, with the noise added afterwards.
        floors.append((walk.shift + np.ceil(walk.total * scale) / scale - walk.total) * scale)
        direction = walk.shift + (walk.cells - 0.5) / scale
        assert np.allclose(walk.u, -direction / np.linalg.norm(direction))
    for u in np.array(noises).T:
        assert stats.kstest(u, "uniform").pvalue > ALPHA
    assert min(stats.kstest(u, "uniform").pvalue for u in np.array(floors).T) < ALPHA
    assert switches <= 10_000 * scale * np.abs(vectors).sum()
