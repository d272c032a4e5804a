"""The face of the measure: what it accepts, refuses and records."""

import pickle

import numpy as np
import pytest

import reticent as rt
from reticent.gibbs import _kinked

rng = np.random.default_rng(5)
X = rng.normal(size=(400, 3))
Y = X @ [0.3, -0.2, 0.1] + 0.3 * rng.normal(size=400)
LABELS = np.where(Y > 0, 1.0, -1.0)
LOSSES = [rt.Linear(), rt.Absolute(), rt.Pinball(0.3), rt.Hinge(0.5), rt.Huber(0.4), rt.Logistic(), rt.Squared()]


def block(loss: object) -> tuple[np.ndarray, ...]:
    if isinstance(loss, rt.Linear):
        return (X,)
    return (X, LABELS) if isinstance(loss, rt.Hinge | rt.Logistic) else (X, Y)


def measure(loss, domain=None, **options) -> rt.Gibbs:
    return rt.Gibbs(domain or rt.Ball(3), loss, beta=0.1, lam=20.0, **options)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize(
    "domain", [rt.Ball(3), rt.Box([0.0, -1.0, 2.0], [1.0, 3.0, 5.0]), rt.Simplex(3), rt.Ball(3, 2.0, [5.0, 1.0, 0.3])]
)
def test_rows_and_blocks_give_the_same_draws_to_the_last_bit(loss, domain):
    data = block(loss)
    one, many, uneven = measure(loss, domain), measure(loss, domain), measure(loss, domain)
    for i in range(400):
        one.observe(*(part[i] for part in data))
    many.observe_many(*data)
    for start, stop in ((0, 1), (1, 130), (130, 131), (131, 400)):
        uneven.observe_many(*(part[start:stop] for part in data))
    draws = [[m.draw(g).point for _ in range(5)] for m in (one, many, uneven) for g in [np.random.default_rng(3)]]
    np.testing.assert_array_equal(draws[0], draws[1])
    np.testing.assert_array_equal(draws[0], draws[2])
    assert one.rounds == many.rounds == 400


def test_memory_mapped_blocks_work_in_parts(tmp_path):
    n = 70_001  # more than two parts
    features = np.random.default_rng(0).normal(size=(n, 2))
    targets = np.sign(features[:, 0])
    np.save(tmp_path / "x.npy", features)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    a, b = (rt.Gibbs(rt.Ball(2), rt.Logistic(), 0.01, 100.0) for _ in range(2))
    a.observe_many(mapped, targets)
    for i in range(0, n, 999):
        b.observe_many(features[i : i + 999], targets[i : i + 999])
    np.testing.assert_array_equal(a.draw(1).point, b.draw(1).point)


@pytest.mark.parametrize("loss", [rt.Linear(), rt.Absolute(), rt.Logistic(), rt.Squared()], ids=repr)
def test_a_refused_block_leaves_nothing_behind(loss):
    bad = [part.copy() for part in block(loss)]
    bad[0][399, 1] = np.nan
    m, fresh = measure(loss), measure(loss)
    for part in (m, fresh):
        part.observe_many(*(p[:200] for p in block(loss)))
    with pytest.raises(ValueError, match="nan"):
        m.observe_many(*bad)
    assert m.rounds == 200
    np.testing.assert_array_equal(m.draw(2).point, fresh.draw(2).point)


def test_a_bad_row_in_a_late_part_undoes_the_early_parts():
    features = np.random.default_rng(0).normal(size=(70_000, 2))
    features[69_999, 0] = np.inf
    m = rt.Gibbs(rt.Ball(2), rt.Absolute(), 0.1, 1.0)
    with pytest.raises(ValueError, match="inf"):
        m.observe_many(features, np.zeros(70_000))
    assert m.rounds == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beta": -1.0}, "beta must be greater than 0, got -1.0"),
        ({"beta": np.nan}, "beta must be finite"),
        ({"lam": -2.0}, "lam must be at least 0, got -2.0"),
        ({"distance": -1.0}, "distance must be at least 0"),
        ({"limit": 0}, "limit must be a whole number"),
        ({"on_steep": "ignore"}, "on_steep"),
        ({"lipschitz": 0.0}, "lipschitz"),
        ({"domain": "ball"}, "domain must be one of the convex bodies"),
        ({"loss": "logistic"}, "loss must be one of the losses"),
    ],
)
def test_bad_parameters_are_named(change, message):
    good = {"domain": rt.Ball(2), "loss": rt.Logistic(), "beta": 1.0, "lam": 1.0}
    with pytest.raises(ValueError, match=message):
        rt.Gibbs(**{**good, **change})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((np.zeros((3, 2)), np.zeros(3)), "3 numbers"),
        ((np.zeros((3, 3)), np.zeros(2)), "length 3"),
        ((np.zeros((0, 3)), np.zeros(0)), "at least one row"),
        ((np.full((1, 3), np.inf), np.zeros(1)), "inf"),
        ((np.zeros((1, 3)), [np.nan]), "nan"),
        ((np.zeros((1, 3)), ["a"]), "real numbers"),
    ],
)
def test_bad_rounds_are_named(data, message):
    m = measure(rt.Absolute())
    with pytest.raises(ValueError, match=message):
        m.observe_many(*data)
    assert m.rounds == 0


def test_observe_takes_one_round_only():
    with pytest.raises(ValueError, match="use observe_many"):
        measure(rt.Absolute()).observe(X, Y)
    with pytest.raises(ValueError, match="use observe_many"):
        rt.Gibbs(rt.Interval(0, 1), rt.Absolute(), 1.0, 1.0).observe([1.0, 2.0], [1.0, 2.0])


def test_steep_rows_are_refused_or_clipped():
    steep = np.array([[3.0, 4.0, 0.0]])
    with pytest.raises(ValueError, match="Lipschitz constant 5"):
        measure(rt.Absolute(), lipschitz=1.0).observe_many(steep, [0.0])
    clipped, scaled = measure(rt.Absolute(), lipschitz=1.0, on_steep="clip"), measure(rt.Absolute())
    clipped.observe_many(steep, [1.0])
    scaled.observe_many(steep / 5, [0.2])
    x = [0.3, 0.1, 0.2]
    assert clipped.log_density(x) == pytest.approx(scaled.log_density(x), rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("domain", [rt.Ball(3), rt.Simplex(3), rt.Box([-1, 0, 2.0], [1, 1, 4.0])], ids=repr)
def test_log_density_is_the_formula(loss, domain):
    m = measure(loss, domain)
    m.observe_many(*block(loss))
    x = domain.project([0.2, 0.5, 0.3])
    grown = loss.values(x, *block(loss)).sum() - loss.values(domain.center, *block(loss)).sum()
    expected = -0.1 * (grown + 10.0 * ((x - domain.center) ** 2).sum())
    assert m.log_density(x) == pytest.approx(expected, rel=1e-9)
    assert m.log_density([9.0, 9.0, 9.0]) == -np.inf


def test_methods_are_chosen_and_can_be_forced():
    chosen = {
        "closed-form": (rt.Ball(3), rt.Linear()),
        "gaussian": (rt.Ball(3), rt.Squared()),
        "line": (rt.Interval(-1, 1), rt.Pinball(0.3)),
        "curved": (rt.Simplex(3), rt.Logistic()),
        "quartic": (rt.Box([-1] * 3, [1] * 3), rt.Absolute()),
    }
    for method, (domain, loss) in chosen.items():
        m = measure(loss, domain)
        m.observe_many(*(part[:, : domain.dim] if part.ndim == 2 else part for part in block(loss)))
        draw = m.draw(0)
        assert (draw.method, draw.distance) == (method, 0.0)
        assert domain.contains(draw.point)
        with pytest.raises(ValueError, match="method must be one of"):
            m.draw(0, method="nuts")
    few = measure(rt.Absolute())
    few.observe(X[0], Y[0])
    assert few.draw(0).method == "tangent"
    assert few.draw(0, method="proximal").distance > 0.0


def test_too_much_work_is_an_error_that_says_what_helps():
    m = rt.Gibbs(rt.Ball(3), rt.Absolute(), beta=5.0, lam=0.1, limit=3)
    m.observe_many(X, Y)
    with pytest.raises(rt.WorkLimitError, match=r"limit=3 proposals.*larger lam"):
        m.draw(0, method="tangent")


def test_a_missing_bound_is_said_to_be_missing():
    m = rt.Gibbs(rt.Ball(3), rt.Absolute(), beta=1.0, lam=1.0)
    with pytest.raises(rt.WorkLimitError, match="no quartic bound"):
        m.draw(0, method="quartic")


def test_rows_along_one_line_are_no_trouble():
    m = rt.Gibbs(rt.Ball(3), rt.Absolute(), beta=0.1, lam=0.0)
    m.observe_many(np.outer(np.ones(300), [1.0, 0.0, 0.0]), np.linspace(-1, 1, 300))
    assert m.domain.contains(m.draw(0, method="tangent").point)
    with pytest.raises(rt.WorkLimitError, match="quartic"):
        m.draw(0, method="quartic")


def test_flat_and_empty_measures():
    for domain in (
        rt.Ball(2),
        rt.Box([0, 0], [1, 2]),
        rt.Simplex(3),
        rt.Polytope([[1, 1], [-1, 0], [0, -1]], [1, 0, 0]),
    ):
        draws = np.array([rt.Gibbs(domain, rt.Linear(), 1.0, 0.0).draw(s).point for s in range(200)])
        assert np.abs(draws.mean(axis=0) - domain.center).max() < 0.5 * domain.radius
    m = rt.Gibbs(rt.Ball(2), rt.Absolute(), 1.0, 0.0)
    m.observe([1.0, 0.0], 0.1)
    with pytest.raises(ValueError, match="lam > 0"):
        m.draw(0, method="proximal")


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_pickled_copy_goes_on_alike(loss):
    m = measure(loss)
    m.observe_many(*(part[:300] for part in block(loss)))
    m.draw(0)
    copy = pickle.loads(pickle.dumps(m))
    for one in (m, copy):
        one.observe_many(*(part[300:] for part in block(loss)))
    np.testing.assert_array_equal(m.draw(1).point, copy.draw(1).point)


def test_custom_losses_take_objects_and_are_checked():
    loss = rt.Custom(lambda x, c: float(np.abs(x - c).sum()), lambda x, c: np.sign(x - c), lipschitz=2.0)
    m = rt.Gibbs(rt.Ball(2), loss, beta=0.5, lam=2.0, lipschitz=2.0)
    m.observe(np.array([0.5, 0.1]))
    m.observe_many([np.array([0.1, 0.0]), np.array([-0.2, 0.3])])
    assert m.rounds == 3
    assert m.draw(0).distance == 0.0
    steep = rt.Custom(lambda x, c: float(np.abs(x - c).sum()), lambda x, c: np.sign(x - c), lipschitz=1.0)
    with pytest.raises(ValueError, match="declared Lipschitz constant 1"):
        rt.Gibbs(rt.Ball(2), steep, 1.0, 1.0).observe(np.array([0.5, 0.1]))
    broken = rt.Custom(lambda x, c: float("nan"), lambda x, c: x)
    with pytest.raises(ValueError, match="value of a custom loss"):
        rt.Gibbs(rt.Ball(2), broken, 1.0, 1.0).observe(None)


def test_where_no_quartic_bound_is_found_tangents_take_over_exactly():
    m = rt.Gibbs(rt.Ball(3), rt.Absolute(), beta=0.1, lam=1.0, distance=0.0)
    m.observe_many(np.outer(np.ones(300), [1.0, 0.0, 0.0]), np.linspace(-1, 1, 300))
    assert m.methods[0] == "quartic"
    m._sampler("quartic")._stretches = lambda: ((),)  # no scale fits
    draw = m.draw(0)
    assert (draw.method, draw.distance) == ("tangent", 0.0)


def test_a_scale_that_no_longer_fits_is_looked_for_again(monkeypatch):
    m = rt.Gibbs(rt.Ball(3), rt.Absolute(), beta=0.01, lam=30.0, distance=0.0)
    m.observe_many(X, Y)
    real = _kinked.build_quartic
    monkeypatch.setattr(_kinked, "build_quartic", lambda *a: None if a[-1] < 1.0 else real(*a))
    m._sampler("quartic").stretch = 0.5
    assert m.draw(0, method="quartic").method == "quartic"
    assert m._sampler("quartic").stretch >= 1.0
