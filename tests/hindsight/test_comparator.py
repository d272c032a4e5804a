"""The best fixed decision against brute force and against independent solvers."""

import numpy as np
import pytest
import scipy

import reticent as rt
from reticent.hindsight import _comparator
from reticent.hindsight._comparator import best_fixed

TRIANGLE = rt.Polytope([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0], [1.0, -2.0]], [0.2, 0.3, 1.0, 0.9])
FLAT = [rt.Ball(2, 0.7), rt.Box([-1.0, 0.5], [0.25, 1.0]), rt.Simplex(3), TRIANGLE, rt.Ball(2, 0.1, [30.0, -4.0])]
LINE = [rt.Interval(-0.5, 2.0), rt.Ball(1, 0.3), rt.Simplex(2), rt.Polytope([[2.0], [-1.0]], [1.0, 1.0])]
KINKED = [rt.Absolute(), rt.Pinball(0.8), rt.Hinge(0.5)]
ROW_LOSSES = [rt.Linear(), rt.Squared(), rt.Logistic(), rt.Huber(0.05), *KINKED]
DISTANCE = rt.Custom(
    lambda x, c: float(np.linalg.norm(x - c)), lambda x, c: (x - c) / max(1e-300, float(np.linalg.norm(x - c))), 1.0
)


def stream(domain, loss, n, seed=0, whole=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, domain.dim))
    if whole:
        X = rng.integers(-1, 2, size=X.shape).astype(float)
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    if isinstance(loss, rt.Custom):
        return ([domain.center + 0.5 * row for row in X],)
    if isinstance(loss, rt.Linear):
        return (X + 0.05,)
    if isinstance(loss, rt.Logistic | rt.Hinge):
        return X, np.where(rng.random(n) < 0.7, 1, -1)
    noise = rng.integers(-1, 2, size=n) / 4 if whole else 0.3 * rng.normal(size=n)
    return X, X @ (domain.center + 0.3 * rng.normal(size=domain.dim)) + noise


def solve(domain, loss, data, **options):
    return best_fixed(domain, loss, [loss.prepare(domain, *data)], 1.0, **options)


def grid(domain):
    """A fine grid of the body in user coordinates, and how far from any point of it the nearest grid point may be."""
    steps = 4001 if domain.chart_dim == 1 else 81
    axes = [np.linspace(a, b, steps) for a, b in zip(domain.body.lo, domain.body.hi, strict=True)]
    lattice = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, domain.chart_dim)
    points = domain.from_chart(lattice)
    inside = np.array([domain.contains(x, 1e-12) for x in points])
    # Points outside count too, once projected: what they leave uncovered is less than a cell.
    near = [x if ok else domain.project(x) for x, ok in zip(points, inside, strict=True)]
    return np.array(near), max(a[1] - a[0] for a in axes) * domain.chart_dim**0.5


@pytest.fixture(scope="module")
def grids():
    return {id(domain): grid(domain) for domain in FLAT + LINE}


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("loss", [*ROW_LOSSES, DISTANCE], ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("domain", FLAT + LINE, ids=lambda x: f"{type(x).__name__}{x.chart_dim}")
def test_agrees_with_a_grid(grids, domain, loss, whole):
    n = 12
    data = stream(domain, loss, n, whole=whole)
    best = solve(domain, loss, data)
    points, cell = grids[id(domain)]
    totals = sum(loss_at(loss, points, data, i) for i in range(n))
    steepest = float(np.sum(loss.lipschitz(domain, *data)))
    assert domain.contains(best.point)
    assert best.value == pytest.approx(float(loss.values(best.point, *data).sum()), rel=1e-9, abs=1e-9)
    assert 0 <= best.gap <= 1e-6 * domain.diameter * n
    assert best.value - best.gap <= totals.min() + 1e-10
    assert best.value >= totals.min() - steepest * cell


def loss_at(loss, points, data, i):
    """The loss of round i at all points, written out independently of the comparator."""
    if isinstance(loss, rt.Custom):
        return np.linalg.norm(points - data[0][i], axis=1)
    if isinstance(loss, rt.Linear):
        return points @ data[0][i]
    m = points @ data[0][i]
    m = m * data[1][i] if isinstance(loss, rt.Logistic | rt.Hinge) else m - data[1][i]
    return loss.phi(m)


def by_linear_program(loss, A, b, equal, X, y):
    """The least total of a kinked loss over A x <= b (or x in the simplex), as a linear program in (x, t)."""
    n, d = X.shape
    if isinstance(loss, rt.Hinge):
        rows, levels = [-(X * y[:, None]), np.zeros_like(X)], [np.full(n, -loss.margin), np.zeros(n)]
    else:
        down, up = (-1.0, 1.0) if isinstance(loss, rt.Absolute) else (-loss.tau, 1 - loss.tau)
        rows, levels = [down * X, up * X], [down * y, up * y]
    top = np.vstack([np.hstack([r, -np.eye(n)]) for r in rows])
    left = np.vstack([top, np.hstack([A, np.zeros((len(A), n))])])
    answer = scipy.optimize.linprog(
        np.append(np.zeros(d), np.ones(n)),
        A_ub=left,
        b_ub=np.concatenate([*levels, b]),
        A_eq=np.append(np.ones(d), np.zeros(n))[None] if equal else None,
        b_eq=[1.0] if equal else None,
        bounds=(None, None),
    )
    return answer.fun


@pytest.mark.parametrize("loss", KINKED, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("kind", ["box", "polytope", "simplex"])
@pytest.mark.parametrize("whole", [False, True])
def test_kinked_losses_agree_with_a_linear_program(kind, loss, whole):
    d, n = 4, 150
    A, b = np.vstack([np.eye(d), -np.eye(d)]), np.full(2 * d, 0.3)
    domain = rt.Box([-0.3] * d, [0.3] * d)
    if kind == "polytope":
        A, b = np.vstack([A, np.ones(d), [1.0, -1.0, 2.0, 0.0]]), np.append(b, [0.2, 0.1])
        domain = rt.Polytope(A, b)
    if kind == "simplex":
        A, b, domain = -np.eye(d), np.zeros(d), rt.Simplex(d)
    X, y = stream(domain, loss, n, seed=5, whole=whole)
    truth = by_linear_program(loss, A, b, kind == "simplex", X, y)
    best = solve(domain, loss, (X, y), gap=1e-5)
    assert best.gap <= 1e-5
    assert truth - 1e-7 <= best.value <= truth + best.gap + 1e-7
    # The check would notice a decision that is off: moved by a fiftieth of the way to the centre.
    moved = 0.98 * best.point + 0.02 * domain.center
    assert float(loss.values(moved, X, y).sum()) > truth + best.gap + 1e-7


@pytest.mark.parametrize("loss", [rt.Squared(), rt.Logistic(), rt.Huber(0.1)], ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("radius", [0.2, 50.0])
def test_smooth_losses_agree_with_scipy_on_a_ball(loss, radius):
    domain = rt.Ball(5, radius)
    X, y = stream(domain, loss, 400, seed=2)
    best = solve(domain, loss, (X, y))
    found = scipy.optimize.minimize(
        lambda x: float(loss.values(x, X, y).sum()) / 400,
        0.9 * best.point,
        jac=lambda x: loss.subgradients(x, X, y).sum(axis=0) / 400,
        constraints={"type": "ineq", "fun": lambda x: radius**2 - x @ x, "jac": lambda x: -2 * x},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    theirs = float(loss.values(domain.project(found.x), X, y).sum())
    assert best.value - best.gap <= theirs <= best.value + 1e-3
    assert best.value <= theirs + best.gap


@pytest.mark.parametrize("domain", [rt.Ball(10), rt.Simplex(10), rt.Box([-1.0] * 3, [1.0] * 3)], ids=str)
@pytest.mark.parametrize("loss", ROW_LOSSES, ids=lambda x: type(x).__name__)
def test_long_streams_take_few_passes(domain, loss):
    n = 300_000
    data = stream(domain, loss, n, seed=4)
    reads = []

    def blocks():
        reads.append(1)
        return (loss.prepare(domain, *(a[i : i + 32768] for a in data)) for i in range(0, n, 32768))

    best = best_fixed(domain, loss, blocks, 1.0)
    assert best.gap <= 1e-6 * domain.diameter * n
    # A sample says where to look, so that few looks at all of the data are enough: 6 usually, more for weak labels.
    assert best.passes == len(reads) <= 20


def test_a_million_rounds_take_few_passes():
    domain, loss = rt.Ball(10), rt.Absolute()
    X, y = stream(domain, loss, 1_000_000, seed=6)
    best = best_fixed(domain, loss, [loss.prepare(domain, X, y)], 1.0)
    assert best.passes <= 12
    assert best.gap <= 2.0
    for seed in range(3):
        nearby = domain.project(best.point + 0.05 * np.random.default_rng(seed).normal(size=10))
        assert np.abs(X @ nearby - y).sum() > best.value


@pytest.mark.parametrize("loss", KINKED, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("domain", LINE, ids=str)
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("at_once", [1 << 20, 16, 1])
def test_on_a_line_the_answer_is_a_kink_or_an_end(monkeypatch, domain, loss, whole, at_once):
    monkeypatch.setattr(_comparator, "_SORTED", at_once)  # less than the rounds: histograms first
    data = stream(domain, loss, 300, seed=8, whole=whole)
    best = solve(domain, loss, data)
    rows = loss.prepare(domain, *data)
    kink = loss.margin if isinstance(loss, rt.Hinge) else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        kinks = (kink - rows.offsets) / rows.vectors[:, 0]
    lo, hi = domain.body.lo[0], domain.body.hi[0]
    places = np.append(kinks[(kinks >= lo) & (kinks <= hi)], [lo, hi])
    truth = loss.phi(np.outer(places, rows.vectors[:, 0]) + rows.offsets).sum(axis=1).min()
    assert best.value == pytest.approx(truth, abs=1e-11)
    assert best.gap <= 1e-8


def test_custom_losses_agree_with_the_same_losses_in_rows():
    domain = rt.Simplex(4)
    X, y = stream(domain, rt.Absolute(), 100, seed=9)
    custom = rt.Custom(
        lambda x, row: abs(float(row[0] @ x) - row[1]), lambda x, row: np.sign(row[0] @ x - row[1]) * row[0], 1.0
    )
    ours = solve(domain, rt.Absolute(), (X, y))
    theirs = solve(domain, custom, (list(zip(X, y, strict=True)),))
    assert abs(ours.value - theirs.value) <= max(ours.gap, theirs.gap)
    assert theirs.gap <= 1e-6 * domain.diameter * 100
    assert theirs.passes <= 60


@pytest.mark.parametrize("loss", [*ROW_LOSSES, DISTANCE], ids=lambda x: type(x).__name__)
def test_a_gap_of_zero_is_not_claimed(loss):
    domain = rt.Ball(3)
    data = stream(domain, loss, 40, seed=10)
    best = solve(domain, loss, data, gap=0.0)
    # A few dozen passes for kinks, and rounding is left over in any case.
    assert 0 < best.gap <= 1e-7
    assert best.passes <= 300


@pytest.mark.parametrize("loss", [*KINKED, rt.Huber(0.01)], ids=lambda x: type(x).__name__)
def test_rows_that_repeat_or_vanish(loss):
    domain = rt.Box([-1.0] * 6, [1.0] * 6)
    X, y = stream(domain, loss, 60, seed=11)
    for features in (np.zeros_like(X), X[[0] * 60], np.outer(X[:, 0], np.ones(6)), X * 1e-9):
        best = solve(domain, loss, (features, y))
        assert best.gap <= 1e-6 * domain.diameter * 60
        corners = np.random.default_rng(0).choice([-1.0, 1.0], size=(50, 6))
        assert best.value - best.gap <= min(float(loss.values(x, features, y).sum()) for x in corners)


def test_the_far_away_domain_loses_little():
    domain = rt.Box([1e6, -1e6], [1e6 + 1, -1e6 + 1])
    for loss in (rt.Absolute(), rt.Squared(), rt.Linear()):
        data = stream(domain, loss, 50, seed=12)
        assert solve(domain, loss, data).gap <= 1e-6 * domain.diameter * 50


@pytest.mark.parametrize(
    ("blocks", "lipschitz", "gap", "message"),
    [
        ([], 1.0, None, "blocks must hold at least one round"),
        ([1], -1.0, None, "lipschitz must be greater than 0"),
        ([1], 1.0, -1.0, "gap must be at least 0"),
    ],
)
def test_refusals(blocks, lipschitz, gap, message):
    for loss in (rt.Absolute(), DISTANCE):
        with pytest.raises(ValueError, match=message):
            best_fixed(rt.Ball(2), loss, blocks, lipschitz, gap=gap)
    with pytest.raises(ValueError, match="no solver knows the loss 'absolute'"):
        best_fixed(rt.Ball(2), "absolute", [], 1.0)
