"""A row that passes the Lipschitz limit has no steeper slope in any kernel, at any point (docs/theory, Q12).

Found in review: for rows of length 1e20 the range of margins was off by thousands, so that on a domain that touches
the hyperplane where a row is 0 it passed as a constant, and was as steep as it is long in the corner where it was read.
"""

import numpy as np
import pytest

import reticent as rt
from reticent.gibbs._phi import dphi, margin
from reticent.losses import Rows
from reticent.losses._limit import margin_range, outer_range, steepness

LOSSES = [rt.Hinge(1.0), rt.Hinge(1e-3), rt.Logistic(), rt.Pinball(1e-6), rt.Huber(1e-3), rt.Absolute(), rt.Squared()]


def tip(kind, rng):
    """A domain, a direction whose margin is least, about 0, at a tip of it, and that tip in the chart."""
    d = int(rng.integers(1, 7))
    if kind == "ball":
        c = rng.uniform(0.5, 2.0, d)
        domain, a = rt.Ball(d, radius=float(np.linalg.norm(c)), center=c), c / np.linalg.norm(c)
        u = -a * domain.radius
    elif kind == "box":
        domain, a = rt.Box([0.0] * d, rng.uniform(0.5, 2.0, d)), rng.uniform(0.0, 1.0, d)
        u = domain.body.lo
    elif kind == "simplex":
        domain, a = rt.Simplex(d + 1), np.append(0.0, rng.uniform(0.5, 1.0, d))
        u = domain.to_chart(np.eye(d + 1)[0])
    else:
        domain, a = rt.Polytope([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.3]], [0.0, 0.0, 1.0]), rng.uniform(0.1, 1.0, 2)
        u = domain.to_chart(np.zeros(2))
    return domain, a, np.ascontiguousarray(u)


def slopes(loss, rows, u, rng):
    """What kernels take for the slope of each row at u, in several orders of summation."""
    shift = loss.parameter if isinstance(loss, rt.Hinge) else 0.0
    offsets, found = rows.offsets - shift, []
    for i in range(len(rows)):
        terms = rows.vectors[i] * u
        margins = [margin(rows.vectors, offsets, i, u), float(rows.vectors[i] @ u + offsets[i])]
        margins += [float(offsets[i] + sum(rng.permutation(terms))) for _ in range(3)]
        found.append(max(abs(dphi(loss.code, loss.parameter, m)) for m in margins))
    return np.array(found)


def steepest(loss, kind, bound, seeds=150):
    """The largest slope of a row of length 1e16 to 1e20, at a tip, over what is taken for its Lipschitz constant."""
    worst = 0.0
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        domain, a, u = tip(kind, rng)
        a = a * 10.0 ** rng.uniform(16, 20)
        labels = isinstance(loss, rt.Hinge | rt.Logistic)
        rows = loss.prepare(domain, [a], [1.0 if labels else 0.0])
        size = float(np.linalg.norm(rows.vectors))
        constant = float(bound(domain, rows, loss)[0])
        worst = max(worst, float(slopes(loss, rows, u, rng)[0]) * size / max(constant, 1e-300))
    return worst


@pytest.mark.parametrize("kind", ["ball", "box", "simplex", "polytope"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_no_kernel_finds_a_steeper_slope_than_was_checked(loss, kind):
    assert steepest(loss, kind, lambda domain, rows, loss: loss.rows_lipschitz(domain, rows)) <= 1 + 2.0**-25


@pytest.mark.parametrize("kind", ["ball", "box"])
@pytest.mark.parametrize("loss", [rt.Hinge(1.0), rt.Logistic()], ids=repr)
def test_ranges_that_are_not_rounded_outwards_hide_kinks(loss, kind):
    """The negative control: what was checked."""

    def plain(domain, rows, loss):
        return np.linalg.norm(rows.vectors, axis=1) * loss.slope_bound(*margin_range(domain, rows))

    assert steepest(loss, kind, plain) > 1e15


@pytest.mark.parametrize("kind", ["ball", "box", "simplex"])
@pytest.mark.parametrize("loss", [rt.Hinge(1.0), rt.Logistic(), rt.Huber(1e-3)], ids=repr)
def test_rows_that_are_scaled_down_are_as_flat_as_they_should(loss, kind):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        domain, a, u = tip(kind, rng)
        rows = loss.prepare(domain, [1e20 * a], [1], lipschitz=1.0, on_steep="clip")
        assert slopes(loss, rows, u, rng)[0] * np.linalg.norm(rows.vectors) <= 1 + 1e-7
        assert np.linalg.norm(rows.vectors) > 0


@pytest.mark.parametrize(
    "domain", [rt.Ball(3), rt.Box([0.0] * 3, [1.0, 2.0, 1e-3]), rt.Interval(1e6, 1e6 + 1)], ids=repr
)
def test_the_outer_range_holds_the_margins_in_exact_arithmetic(domain):
    rng = np.random.default_rng(2)
    d = domain.chart_dim
    vectors = rng.normal(size=(200, d)) * 10.0 ** rng.uniform(-5, 20, (200, 1))
    rows = Rows(vectors, rng.normal(size=200) * np.abs(vectors).max(axis=1))
    (low, high), (least, most) = margin_range(domain, rows), outer_range(domain, rows)
    assert (least < low).all()
    assert (high < most).all()
    far = domain.radius + np.linalg.norm(domain.center)
    size = np.abs(rows.offsets) + np.linalg.norm(vectors, axis=1) * far
    assert (low - least >= (2 * d + 8) * 2.0**-53 * size).all()
    assert (low - least <= 1e-13 * size).all()


@pytest.mark.parametrize(
    ("domain", "loss", "features", "targets", "limit"),
    [
        (rt.Interval(1e6, 1e6 + 1), rt.Squared(), [1.0, 1.0], [1e6, 1e6 + 1], 1.0),
        (rt.Interval(1000.0, 1001.0), rt.Squared(), [1.0], [1000.0], 1.0),
        (rt.Ball(4), rt.Squared(), [[0.5] * 4], [1.0], 2.0),
        (rt.Box([-1.0, -1e-6], [1.0, 1e-6]), rt.Squared(), [[0.0, 1.0]], [0.0], 1e-6),
        (rt.Ball(4), rt.Huber(0.5), [[0.5] * 4], [9.0], 0.5),
        (rt.Ball(4), rt.Huber(3.0), [[0.5] * 4], [1.0], 2.0),
        (rt.Ball(4), rt.Hinge(), [[0.5] * 4], [1], 1.0),
        (rt.Ball(4), rt.Logistic(), [[0.5] * 4], [1], 1.0),
        (rt.Ball(4), rt.Pinball(0.9), [[0.5] * 4], [1.0], 0.9),
        (rt.Interval(0.0, 1.0), rt.Pinball(0.9), [2.0], [-3.0], 0.2000000000000001),
    ],
    ids=repr,
)
def test_ordinary_rows_at_the_limit_pass_as_they_are(domain, loss, features, targets, limit):
    features = np.asarray(features, dtype=float).reshape(len(targets), domain.dim)
    plain = loss.prepare(domain, features, targets)
    for how in ("raise", "clip"):
        rows = loss.prepare(domain, features, targets, lipschitz=limit, on_steep=how)
        assert np.array_equal(rows.vectors, plain.vectors)
        assert np.array_equal(rows.offsets, plain.offsets)


def test_a_row_cannot_move_dp_ftrl_to_the_other_corner():
    """The attack: in the corner that all others lead to its gradient was 1e20, and decisions went to the other one."""
    top = [0.9795224544239975, 0.7812615735916774, 1.508789950875304, 0.7926610976852075]
    row = [5.7768789251785925e19, 6.022391763796258e19, 9.62423093124381e19, 7.226526552987678e18]
    domain = rt.Box([0.0] * 4, top)
    plan = rt.planning.plan_ftrl(domain, 20_000, 1.0, 1.0, 1e-6)
    features, targets = np.full((20_000, 4), 0.5), np.full(20_000, -1.0)
    features[10_000], targets[10_000] = row, 1.0
    with pytest.raises(ValueError, match="row 10000 has Lipschitz constant"):
        rt.learners.DPFTRL(plan, rt.Hinge(1.0), seed=0).observe_many(features, targets)
    trace = rt.learners.DPFTRL(plan, rt.Hinge(1.0), seed=0, on_steep="clip").observe_many(features, targets)
    assert (trace.decisions()[10_000] == 0).all()
    assert not np.allclose(trace.final, top, atol=1e-3)


def test_curvature_is_not_hidden_either():
    domain = rt.Box([0.0] * 4, [0.9795224544239975, 0.7812615735916774, 1.508789950875304, 0.7926610976852075])
    a = [5.7768789251785925e19, 6.022391763796258e19, 9.62423093124381e19, 7.226526552987678e18]
    assert rt.Logistic().curvature(domain, [a], [1])[1] == pytest.approx(0.25)
    assert steepness(domain, rt.Logistic().prepare(domain, [a], [1]), rt.Logistic().slope_bound) > 1e19


@pytest.mark.parametrize("angle", [1e-1, 1e-4, 3e-6, 1e-7])
def test_sharp_corners_hide_no_slope(angle):
    """Attack: a tip so sharp that projections end far beyond it; the row took DP-FTRL from there to the other end."""
    turn = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    sides = np.array([[-angle, 1.0], [-angle, -1.0], [1.0, 0.0]]) @ turn.T
    needle = rt.Polytope(sides, [0.0, 0.0, 1.0])
    along, loss = turn @ [1.0, 0.0], rt.Pinball(1e-15)
    row, target = [-1e15 * along], [-8.4e-13 * 1e15]
    projected = needle.project(-1e6 * along)
    beyond = -float(along @ projected)
    assert beyond <= needle.spill
    if angle == 3e-6:
        assert needle.spill > 100 * 2.0**-36 * needle.radius  # what was allowed for before
        with pytest.raises(ValueError, match="above the limit"):
            loss.prepare(needle, row, target, lipschitz=1.0)
