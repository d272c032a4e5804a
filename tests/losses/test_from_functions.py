"""Losses from JAX and PyTorch: the same numbers as closed forms, and functions that break a promise are refused."""

import pickle
import sys

import numpy as np
import pytest

import reticent as rt
from reticent._core._errors import MissingExtra

ENGINES = ("jax", "torch")


def jax_logistic(x, datum):
    import jax.numpy as jnp

    features, label = datum
    return jnp.logaddexp(0.0, -label * (features @ x))


def torch_logistic(x, datum):
    import torch

    features, label = datum
    return torch.logaddexp(torch.zeros((), dtype=x.dtype), -label * (features @ x))


@pytest.fixture(params=ENGINES)
def engine(request):
    """The namespace in which functions are written, and what makes losses of them."""
    package = pytest.importorskip(request.param)
    if request.param == "jax":
        import jax.numpy as jnp

        return jnp, rt.losses.from_jax, jax_logistic
    return package, rt.losses.from_torch, torch_logistic


def rows(count, dim, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, dim))
    features /= np.maximum(1.0, np.linalg.norm(features, axis=1, keepdims=True))
    return features, np.where(rng.random(count) < 0.6, 1.0, -1.0)


def pairs(features, labels):
    return list(zip(features, labels, strict=True))


def test_values_and_slopes_are_those_of_the_closed_form(engine):
    _, make, logistic = engine
    features, labels = rows(20, 3)
    loss = make(logistic, lipschitz=1.0)
    for x in ([0.0, 0.0, 0.0], [0.3, -2.0, 40.0]):
        np.testing.assert_allclose(
            loss.values(x, pairs(features, labels)), rt.Logistic().values(x, features, labels), rtol=1e-14
        )
        slopes = loss.subgradients(x, pairs(features, labels))
        assert slopes.dtype == np.float64
        np.testing.assert_allclose(slopes, rt.Logistic().subgradients(x, features, labels), rtol=1e-12)


def test_jax_settings_stay_as_they_are():
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    loss = rt.losses.from_jax(jax_logistic, lipschitz=1.0)
    loss.values([0.0], pairs(*rows(1, 1)))
    assert jax.config.jax_enable_x64 == before
    assert jax.numpy.ones(1).dtype == (np.float64 if before else np.float32)


@pytest.mark.parametrize("domain", [rt.Interval(-2.0, 1.0), rt.Ball(2, radius=3.0)], ids=repr)
def test_measure_has_the_same_density_and_the_same_draws(engine, domain):
    _, make, logistic = engine
    features, labels = rows(12, domain.dim)
    auto = rt.Gibbs(domain, make(logistic, lipschitz=1.0), beta=0.7, lam=2.0)
    closed = rt.Gibbs(domain, rt.Logistic(), beta=0.7, lam=2.0)
    auto.observe_many(pairs(features, labels))
    closed.observe_many(features, labels)
    for u in np.random.default_rng(1).normal(size=(10, domain.dim)):
        x = domain.project(u)
        assert auto.log_density(x) == pytest.approx(closed.log_density(x), rel=1e-12)
    # Rejection from the same tangent, with the same randomness, goes the same way up to rounding.
    for seed in range(3):
        a, b = (measure.draw(seed, method="tangent") for measure in (auto, closed))
        np.testing.assert_allclose(a.point, b.point, rtol=1e-6, atol=1e-8)
        assert a.distance == 0.0


def test_private_learner_runs_and_blocks_do_not_matter(engine):
    _, make, logistic = engine
    domain = rt.Interval(-1.0, 1.0)
    plan = rt.plan_private(domain, 14, 1.0, epsilon=50.0, delta=1e-3)
    features, labels = rows(14, 1)
    data = pairs(features, labels)
    one, many = (rt.PCOMW(plan, make(logistic, lipschitz=1.0), seed=3) for _ in range(2))
    for datum in data:
        one.observe(datum)
    trace = many.observe_many(data)
    assert one.decision == many.decision
    assert one.switches == many.switches == trace.switches
    assert domain.contains(one.decision)
    assert one.switches > 0
    assert 0 < one.spent() <= 50.0
    closed = rt.PCOMW(plan, rt.Custom(closed_value, closed_slope, lipschitz=1.0), seed=3)
    beside = closed.observe_many(data)
    np.testing.assert_allclose(trace.decisions(), beside.decisions(), atol=1e-9)


def closed_value(x, datum):
    return float(np.logaddexp(0.0, -datum[1] * (datum[0] @ x)))


def closed_slope(x, datum):
    return -datum[1] * datum[0] / (1 + np.exp(datum[1] * (datum[0] @ x)))


BODIES = [
    rt.Interval(0.0, 5.0),
    rt.Ball(3),
    rt.Box([0.0, -1.0], [1.0, 3.0]),
    rt.Simplex(4),
    rt.Polytope([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1.0, 1.0, 1.0]),
]


@pytest.mark.parametrize("domain", BODIES, ids=repr)
def test_convex_functions_are_never_refused(engine, domain):
    numpy, make, _ = engine
    absolute, biggest = (abs, numpy.maximum)
    cases = [
        (lambda x, c: (x - c).sum(), 10.0),
        (lambda x, c: absolute(x - c).sum(), 10.0),
        (lambda x, c: ((x - c) ** 2).sum() / 2, 100.0),
        (lambda x, c: biggest(x - c, 0 * x).sum(), 10.0),
        (lambda x, c: numpy.exp(x - c).sum(), 1e4),
        (lambda x, c: numpy.sqrt(1e-12 + ((x - c) ** 2).sum()), 10.0),
        (lambda x, c: 1e9 + absolute(x - c).sum() * 1e-3, 10.0),
        (lambda x, c: (c * 0).sum(), 0.0),
    ]
    data = [np.linspace(-1.0, 1.0, domain.dim) * s for s in (0.0, 1.0)]
    for fn, bound in cases:
        assert len(make(fn, lipschitz=bound).prepare(domain, data)) == 2


@pytest.mark.parametrize("domain", BODIES, ids=repr)
@pytest.mark.parametrize(
    "fn",
    [
        lambda np_, x: -(x**2).sum(),
        lambda np_, x: np_.sin(6 * x).sum(),
        lambda np_, x: np_.sqrt(1e-3 + abs(x)).sum(),
        lambda np_, x: np_.cos(40 * x[0]) * 1e-3,
    ],
)
def test_functions_that_bend_down_are_refused_with_the_segment(engine, domain, fn):
    numpy, make, _ = engine
    loss = make(lambda x, _: fn(numpy, x), lipschitz=1e6)
    measure = rt.Gibbs(domain, loss, beta=1.0, lam=1.0)
    with pytest.raises(ValueError, match=r"the loss of row 0 is not convex: .* the segment from \["):
        measure.observe(0.0)
    assert measure.rounds == 0


def test_row_that_bends_down_is_named_and_nothing_is_recorded(engine):
    _, make, _ = engine
    learner = rt.PCOMW(rt.Plan(rt.Ball(2), 10, 4.0, beta=0.1, lam=9.0, p=0.1, phi=2.0), make(bowl, lipschitz=4.0), 1)
    learner.observe(1.0)
    before = learner.decision
    with pytest.raises(ValueError, match="the loss of row 2 is not convex"):
        learner.observe_many([1.0, 2.0, -1.0, 1.0])
    assert learner.rounds == 1
    np.testing.assert_array_equal(learner.decision, before)


def bowl(x, bend):
    return bend * (x**2).sum() / 1.0


def test_slopes_are_checked_all_over_the_domain_and_not_at_the_centre_only(engine):
    numpy, make, _ = engine
    # Flat but for a small cap: 20 times too steep there.
    loss = make(lambda x, top: numpy.logaddexp(0 * x[0], 200 * (x @ top - 0.9)) / 10, lipschitz=1.0)
    for seed in range(8):
        top = np.random.default_rng(seed).normal(size=5)
        top /= np.linalg.norm(top)
        with pytest.raises(ValueError, match=r"the loss of row 0 has a subgradient of length .* above its declared"):
            loss.prepare(rt.Ball(5), [top])
    edge = make(lambda x, c: 30 * numpy.maximum(x[0] - c, 0 * x[0]), lipschitz=1.0)
    with pytest.raises(ValueError, match=r"subgradient of length 30 at \[1\.\]"):
        edge.prepare(rt.Interval(-1.0, 1.0), [0.999999])


def test_slopes_are_checked_again_wherever_one_is_taken(engine):
    _, make, _ = engine
    loss = make(bowl, lipschitz=1.0, probe=0)
    measure = rt.Gibbs(rt.Ball(2), loss, beta=1.0, lam=0.1)
    measure.observe_many([1.0] * 3)  # steeper than declared away from the centre, and nobody looked
    with pytest.raises(ValueError, match="above its declared Lipschitz constant 1"):
        measure.draw(0, method="proximal")


def test_declared_slopes_may_depend_on_the_datum_and_are_held_to_the_limit(engine):
    _, make, _ = engine
    loss = make(bowl, lipschitz=lambda bend: 2 * bend)
    ball = rt.Ball(2)
    with pytest.raises(ValueError, match="row 1 has Lipschitz constant 4, above the limit lipschitz=2"):
        loss.prepare(ball, [1.0, 2.0], lipschitz=2.0)
    clipped = loss.prepare(ball, [1.0, 2.0], lipschitz=2.0, on_steep="clip")
    np.testing.assert_array_equal(clipped.scales, [1.0, 0.5])


def test_derivatives_that_do_not_exist_are_refused(engine):
    numpy, make, _ = engine
    loss = make(lambda x, c: numpy.sqrt(((x - c) ** 2).sum()), lipschitz=1.0)
    with pytest.raises(ValueError, match="must be finite and have a finite derivative everywhere"):
        loss.prepare(rt.Ball(2), [np.zeros(2)])
    with pytest.raises(ValueError, match="row 0 must be finite"):
        make(bowl, lipschitz=2.0).prepare(rt.Ball(2), [np.nan])


def test_arrays_of_the_caller_may_change_afterwards(engine):
    _, make, logistic = engine
    measure = rt.Gibbs(rt.Ball(2), make(logistic, lipschitz=1.0), beta=1.0, lam=1.0)
    features = np.array([0.6, 0.8])
    measure.observe((features, 1.0))
    before = measure.log_density([0.1, 0.2])
    features[:] = 100.0
    assert measure.log_density([0.1, 0.2]) == before


def test_losses_compare_by_function_and_can_be_pickled(engine):
    _, make, logistic = engine
    loss = make(logistic, lipschitz=1.0)
    assert loss == make(logistic, lipschitz=1.0) == pickle.loads(pickle.dumps(loss))
    assert hash(loss) == hash(make(logistic, lipschitz=1.0))
    assert loss != make(logistic, lipschitz=2.0)
    assert loss != make(bowl, lipschitz=1.0)
    assert isinstance(loss, rt.Custom)
    data = pairs(*rows(3, 2))
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(loss)).values([0.1, 0.1], data), loss.values([0.1, 0.1], data)
    )


def test_learner_is_saved_without_the_function_and_goes_on_with_it(engine, tmp_path):
    _, make, logistic = engine
    data = pairs(*rows(40, 2))
    loss = make(logistic, lipschitz=1.0)
    plan = rt.planning.plan_ftrl(rt.Ball(2), 40, 1.0, epsilon=3.0, delta=1e-5)
    learner = rt.make(plan, loss, seed=1)
    learner.observe_many(data[:20])
    learner.save(tmp_path / "learner")
    with pytest.raises(ValueError, match="loss must be the one that the learner was made with"):
        rt.load(tmp_path / "learner", loss=make(bowl, lipschitz=1.0))
    other = rt.load(tmp_path / "learner", loss=loss)
    for each in (learner, other):
        each.observe_many(data[20:])
    np.testing.assert_array_equal(other.decision, learner.decision)
    plain = rt.Plan(rt.Ball(2), 40, 1.0, beta=0.1, lam=9.0, p=0.1, phi=2.0, batch=10)
    keeps = rt.PCOMW(plain, loss, 1)  # holds the rows themselves
    keeps.observe_many(data[:15])
    keeps.save(tmp_path / "keeps")
    assert (
        rt.load(tmp_path / "keeps", loss=loss).observe_many(data[15:]).switches
        == keeps.observe_many(data[15:]).switches
    )


@pytest.mark.parametrize(
    ("fn", "words"),
    [(lambda x, c: x, r"one real number in double precision.* got shape \(2,\)"), (lambda x, c: 1.0, None)],
)
def test_what_a_function_returns_is_checked(engine, fn, words):
    _, make, _ = engine
    if words is None and make is rt.losses.from_jax:
        pytest.skip("a plain number is a constant function to JAX")
    with pytest.raises(ValueError, match=words or "as a tensor, got 1.0"):
        make(fn, lipschitz=1.0).prepare(rt.Ball(2), [0.0])


def test_single_precision_is_refused(engine):
    numpy, make, _ = engine

    def rough(x, c):
        total = (x**2).sum()
        return total.astype("float32") if hasattr(total, "astype") else total.to(numpy.float32)

    with pytest.raises(ValueError, match=r"double precision.*float32"):
        make(rough, lipschitz=2.0).prepare(rt.Ball(2), [0.0])


def test_what_must_be_given(engine):
    _, make, logistic = engine
    with pytest.raises(ValueError, match="lipschitz must be given to from_"):
        make(logistic)
    with pytest.raises(ValueError, match="lipschitz must be at least 0"):
        make(logistic, lipschitz=-1.0)
    with pytest.raises(ValueError, match="fn must be a function"):
        make(3.0, lipschitz=1.0)
    with pytest.raises(ValueError, match="probe must be a whole number"):
        make(logistic, lipschitz=1.0, probe=-1)


@pytest.mark.parametrize("package", ENGINES)
def test_missing_package_is_named(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'reticent\[{package}\]'"):
        getattr(rt.losses, f"from_{package}")(bowl, lipschitz=1.0)
