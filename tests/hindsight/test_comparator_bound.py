"""Certificates: a lower bound never lies above the truth, whatever the solvers propose, and a false one is noticed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reticent as rt
from reticent.hindsight import _comparator
from reticent.hindsight._comparator import Record, best_fixed, inward, linear_floor, solve_program
from reticent.hindsight._sum import RowSum

RNG = np.random.default_rng(20)
MANY = rt.Polytope(np.vstack([np.eye(9), -np.eye(9), RNG.normal(size=(6, 9))]), np.ones(24))
SMALL = rt.Polytope(np.vstack([np.eye(3), -np.eye(3), np.ones((1, 3))]), np.append(np.ones(6), 1.0))
DOMAINS = [rt.Ball(3), rt.Box([-1.0, 0.0, 2.0], [1.0, 0.5, 5.0]), rt.Simplex(4), SMALL, MANY, rt.Interval(0.0, 2.0)]
LOSSES = [rt.Absolute(), rt.Pinball(0.7), rt.Hinge(), rt.Huber(0.1), rt.Logistic(), rt.Squared()]


def rows_of(domain, loss, seed, n=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, domain.dim))
    y = (
        rng.choice([-1, 1], size=n)
        if isinstance(loss, rt.Logistic | rt.Hinge)
        else X @ domain.center + rng.normal(size=n)
    )
    return loss.prepare(domain, X, y)


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda x: f"{type(x).__name__}{x.dim}")
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_linear_floor_is_below_all_points_and_tight(domain, size):
    rng = np.random.default_rng(21)
    slopes = [*rng.normal(size=(10, domain.chart_dim)), *np.eye(domain.chart_dim), np.zeros(domain.chart_dim)]
    if not domain.body.ball:
        slopes += list(domain.body.A[: domain.body.rows])
    for slope in slopes:
        floor = linear_floor(domain, size * slope)
        push = domain.from_chart(1e-3 * slope) - domain.center
        least = float(size * slope @ domain.to_chart(domain.support(push)))
        scale = size * float(np.linalg.norm(slope)) * domain.radius
        assert floor <= least + 1e-12 * scale
        assert floor >= least - 1e-8 * scale


def test_linear_floor_holds_where_the_support_point_is_wrong(monkeypatch):
    slope = np.array([1.0, -2.0, 0.5])
    truth = linear_floor(SMALL, slope)
    for wrong in ([0.1, 0.1, 0.1], [1.0, 0.0, 0.0], [-1.0, -1.0, -1.0]):
        monkeypatch.setattr(SMALL, "_support", lambda c, x=wrong: np.array(x))
        assert linear_floor(SMALL, slope) <= truth + 1e-12


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda x: f"{type(x).__name__}{x.dim}")
def test_points_are_drawn_inside(domain):
    for u in np.random.default_rng(22).normal(size=(30, domain.chart_dim)) * 3 * domain.radius:
        assert domain.contains(domain.from_chart(inward(domain, u)), 1e-14)
    deep = 0.01 * np.ones(domain.chart_dim) * domain.body.hi
    assert (inward(domain, deep) == deep).all()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.sampled_from(DOMAINS),
    st.sampled_from(LOSSES),
    st.integers(0, 1000),
    st.lists(st.tuples(st.floats(0.0, 1.0), st.sampled_from([0.0, 1e-6, 0.01, 1.0])), min_size=1, max_size=5),
)
def test_bounds_from_any_passes_hold(domain, loss, seed, looks):
    rows = rows_of(domain, loss, seed)
    total = RowSum(domain, loss, [rows])
    record = Record(domain, total, 0.0)
    rng = np.random.default_rng(seed)
    for depth, width in looks:
        u = inward(domain, depth * 2 * domain.radius * rng.normal(size=domain.chart_dim))
        record.add(total.look(u, width))
        record.combine()
    best = best_fixed(domain, loss, [rows], 1.0)
    # The truth is at most best.rise, and a random point is not as good.
    assert record.value - record.gap <= best.rise
    assert best.rise - best.rise_gap <= record.value


def _tilted(self, u, width=0.0, *, bend=True, real_look=RowSum.look):
    """A look whose minorant is too high by a tenth of the sum of the losses."""
    look = real_look(self, u, width, bend=bend)
    return look._replace(const=look.const + 0.1 * abs(self.base + look.value))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda x: type(x).__name__)
def test_a_false_minorant_is_noticed(monkeypatch, loss):
    domain = DOMAINS[0]
    rows = rows_of(domain, loss, 3)
    truth = best_fixed(domain, loss, [rows], 1.0)
    monkeypatch.setattr(RowSum, "look", _tilted)
    total = RowSum(domain, loss, [rows])
    record = Record(domain, total, 0.0)
    record.add(total.look(domain.to_chart(truth.point), 1e-6))
    for direction in np.vstack([np.eye(3), -np.eye(3)]):
        record.add(total.look(inward(domain, domain.to_chart(truth.point) + 1e-4 * direction)))
    record.combine()
    # The check of the test above, which must fail here.
    assert record.lower > truth.rise


@pytest.mark.parametrize("loss", LOSSES[:3], ids=lambda x: type(x).__name__)
def test_bad_advice_costs_tightness_only(monkeypatch, loss):
    domain = SMALL
    rows = rows_of(domain, loss, 4)
    truth = best_fixed(domain, loss, [rows], 1.0)
    rng = np.random.default_rng(23)

    def nonsense(H, c, A, b, ball=0.0, round_dims=0):
        return rng.normal(size=c.size), rng.normal(size=b.size)

    monkeypatch.setattr(_comparator, "solve_program", nonsense)
    total = RowSum(domain, loss, [rows])
    record = Record(domain, total, 0.0)
    for _ in range(20):
        record.add(total.look(inward(domain, rng.normal(size=3)), 0.1))
        record.combine()
    assert record.lower <= truth.rise
    assert record.gap >= record.value - truth.rise


def test_a_moved_comparator_has_the_larger_gap():
    domain, loss = rt.Ball(3), rt.Absolute()
    rows = rows_of(domain, loss, 5)
    best = best_fixed(domain, loss, [rows], 1.0)
    total = RowSum(domain, loss, [rows])
    for move in (1e-3, 1e-2, 0.1):
        record = Record(domain, total, 0.0)
        record.add(total.look(inward(domain, domain.to_chart(best.point) + move), 1e-3))
        assert record.gap >= record.value - best.rise > 0
        record.lower = best.rise - best.rise_gap
        assert record.gap == pytest.approx(record.value - best.rise + best.rise_gap, abs=1e-9)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(1, 6), st.integers(0, 10_000), st.booleans(), st.floats(0.0, 3.0))
def test_programs_satisfy_their_optimality_conditions(d, seed, ball, strength):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(rng.integers(0, d + 1), d))
    H, c = strength * root.T @ root, rng.normal(size=d) * 10.0 ** rng.uniform(-3, 3)
    A = np.vstack([np.eye(d), -np.eye(d), rng.normal(size=(3, d))])
    b = rng.uniform(0.1, 1.0, size=len(A))
    x, force = solve_program(H, c, A, b, 0.8 if ball else 0.0, d)
    assert (A @ x <= b + 1e-8).all()
    assert (force >= 0).all()
    push = H @ x + c + A.T @ force
    size = float(np.abs(c).max())
    if ball:
        assert np.linalg.norm(x) <= 0.8 + 1e-8
        # What is left over points straight inwards, and only at the boundary.
        across = push - (push @ x) / max(x @ x, 1e-30) * x
        assert np.abs(across).max() <= 1e-6 * size
        assert push @ x <= 1e-6 * size
    else:
        assert np.abs(push).max() <= 1e-6 * size
    assert abs(force @ (b - A @ x)) <= 1e-6 * size
