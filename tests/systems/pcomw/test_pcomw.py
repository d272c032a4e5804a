"""The face of the learner: the same transcript however rounds arrive, budgets, batches, horizons, refusals."""

import copy
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

import reticent as rt

rng = np.random.default_rng(11)
N = 600
X = rng.normal(size=(N, 3))
X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
Y = X @ [0.6, -0.4, 0.2] + 0.3 * rng.normal(size=N)
LABELS = np.where(Y > 0, 1.0, -1.0)
LOSSES = [rt.Linear(), rt.Absolute(), rt.Pinball(0.3), rt.Hinge(0.5), rt.Huber(0.4), rt.Logistic(), rt.Squared()]
BODIES = [rt.Ball(3), rt.Box([-0.5, -1.0, 0.0], [1.0, 1.0, 1.0]), rt.Simplex(3), rt.Ball(3, 0.5, [1.0, 0.0, 0.3])]


def block(loss: object, start: int = 0, stop: int = N) -> tuple[np.ndarray, ...]:
    if isinstance(loss, rt.Linear):
        return (X[start:stop],)
    return X[start:stop], (LABELS if isinstance(loss, rt.Hinge | rt.Logistic) else Y)[start:stop]


def plan(domain=None, horizon=N, **options) -> rt.Plan:
    parameters = {"beta": 0.4, "lam": 12.0, "p": 0.05, "phi": 1.3, "batch": 4} | options
    return rt.Plan(domain or rt.Ball(3), horizon, 5.0, **parameters)


def transcript(learner, cuts, loss) -> list[np.ndarray]:
    """Return the decision after every cut."""
    seen = []
    for start, stop in zip([0, *cuts], [*cuts, N], strict=True):
        learner.observe_many(*block(loss, start, stop))
        seen.append(learner.decision.copy())
    return seen


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("domain", BODIES, ids=lambda b: type(b).__name__)
def test_rows_blocks_and_pickled_copies_give_the_same_transcript_to_the_last_bit(loss, domain):
    one, many, uneven = (rt.PCOMW(plan(domain), loss, seed=3) for _ in range(3))
    decisions = [one.decision]
    for i in range(N):
        one.observe(*(part[i] for part in block(loss)))
        decisions.append(one.decision)
        if i == 333:
            one = pickle.loads(pickle.dumps(one))
    trace = many.observe_many(*block(loss))
    np.testing.assert_array_equal(trace.decisions(), decisions[:-1])
    np.testing.assert_array_equal(trace.final, decisions[-1])
    cuts = [1, 2, 7, 130, 131, 402, 599]
    for at, point in zip(cuts, transcript(uneven, cuts, loss), strict=False):
        np.testing.assert_array_equal(point, decisions[at])
    assert one.switches == many.switches == uneven.switches == trace.switches > 20
    assert one.rounds == many.rounds == N
    # They also go on alike.
    np.testing.assert_array_equal(one._rng.random(3), many._rng.random(3))


def test_mixed_rows_and_blocks_agree_too():
    loss = rt.Absolute()
    mixed, whole = (rt.PCOMW(plan(), loss, seed=8) for _ in range(2))
    for start in range(0, N, 50):
        for i in range(start, start + 7):
            mixed.observe(X[i].tolist(), float(Y[i]))
        mixed.observe_many(X[start + 7 : start + 50], Y[start + 7 : start + 50])
    whole.observe_many(X, Y)
    np.testing.assert_array_equal(mixed.decision, whole.decision)
    assert mixed.switches == whole.switches


def test_the_data_may_be_overwritten_between_calls():
    loss = rt.Absolute()
    reused, whole = (rt.PCOMW(plan(batch=16), loss, seed=5) for _ in range(2))
    features, targets = np.empty((5, 3)), np.empty(5)
    for start in range(0, N, 5):
        features[:], targets[:] = X[start : start + 5], Y[start : start + 5]
        reused.observe_many(features, targets)
    whole.observe_many(X, Y)
    np.testing.assert_array_equal(reused.decision, whole.decision)
    assert reused.switches == whole.switches > 5


def test_custom_losses_give_the_same_transcript_in_rows_and_blocks():
    loss = rt.Custom(lambda x, c: float(abs(x @ c - 0.3)), lambda x, c: c * np.sign(x @ c - 0.3), lipschitz=1.0)
    one, many = (rt.PCOMW(plan(horizon=60, lam=40.0), loss, seed=4) for _ in range(2))
    for row in X[:60]:
        one.observe(row)
    trace = many.observe_many(list(X[:60]))
    np.testing.assert_array_equal(one.decision, many.decision)
    assert one.switches == trace.switches > 0
    assert trace.losses[0] == pytest.approx(abs(trace.points[0] @ X[0] - 0.3))


@pytest.mark.parametrize("batch", [1, 3, 7, N, 2 * N])
def test_decisions_change_at_the_ends_of_full_batches_only(batch):
    learner = rt.PCOMW(plan(batch=batch, p=0.9), rt.Linear(), seed=0)
    trace = learner.observe_many(X)
    assert (trace.switch_times % batch == 0).all()
    assert trace.switches <= N // batch
    assert learner.switches == trace.switches
    if batch <= N:
        assert trace.switches > 0.8 * (N // batch) - 2


def test_the_budget_is_a_hard_cap_and_the_state_says_so():
    for loss in (rt.Linear(), rt.Logistic()):
        capped = rt.PCOMW(plan(budget=5, batch=1), loss, seed=2)
        free = rt.PCOMW(plan(batch=1), loss, seed=2)
        a, b = capped.observe_many(*block(loss)), free.observe_many(*block(loss))
        assert a.switches == capped.switches == 5 < b.switches
        np.testing.assert_array_equal(a.points, b.points[:6])
        np.testing.assert_array_equal(a.starts, b.starts[:6])
        assert capped.frozen
        assert capped.budget_left == 0
        assert "frozen" in repr(capped)
        assert "0 of 5 switches left" in repr(capped)
        assert not free.frozen
        assert free.budget_left is None
        assert "no budget" in repr(free)


def test_a_frozen_learner_keeps_checking_rounds_and_keeps_nothing():
    learner = rt.PCOMW(plan(budget=0), rt.Logistic(), seed=2)
    still = learner.decision
    learner.observe_many(*block(rt.Logistic()))
    with pytest.raises(ValueError, match="nan"):
        learner.observe([np.nan, 0.0, 0.0], 1)
    assert learner.rounds == N
    assert learner.frozen
    np.testing.assert_array_equal(learner.decision, still)
    assert len(pickle.dumps(learner)) < 20_000


def private(horizon: int) -> rt.Plan:
    return plan(horizon=horizon, beta=1e-3, lam=1e3, p=0.2, phi=1.05, epsilon=1.0, delta=1e-6)


def test_a_plan_that_claims_less_than_it_spends_is_stopped_before_it_does():
    modest = replace(private(600), epsilon=0.2)
    learner = rt.PCOMW(modest, rt.Absolute(), seed=1)
    limit = rt.privacy.rounds_within(modest)
    assert 4 <= limit < 600
    learner.observe_many(X[:limit], Y[:limit])
    assert learner.spent() <= 0.2
    with pytest.raises(ValueError, match=r"1 more rounds were requested.*\(spent in \d+ rounds\).*0.2 that is allowed"):
        learner.observe(X[limit], Y[limit])
    with pytest.raises(ValueError, match=r"more than the 0.2 that is allowed"):
        learner.observe_many(X[limit:], Y[limit:])
    assert learner.rounds == limit


def test_the_odometer_grows_to_the_certificate_and_survives_a_resume():
    learner = rt.PCOMW(private(600), rt.Absolute(), seed=1)
    spent = [learner.spent(1e-6)]
    for start in range(0, 600, 150):
        learner.observe_many(X[start : start + 150], Y[start : start + 150])
        learner = pickle.loads(pickle.dumps(learner))
        spent.append(learner.spent())
    assert spent[0] == 0.0
    assert spent == sorted(spent)
    assert spent[-1] == rt.privacy.account(learner.plan).epsilon(1e-6) <= 1.0
    with pytest.raises(ValueError, match="delta must be given"):
        rt.PCOMW(plan(), rt.Absolute()).spent()


def test_epochs_of_a_private_plan_do_not_add_up():
    endless = rt.theorem_private(rt.Ball(3), None, 1.0, 1.0, 1e-6)
    learner = rt.PCOMW(endless, rt.Linear(), seed=1)
    learner.observe_many(np.tile(X[:1], (3000, 1)))
    assert learner.epoch == 1
    epochs = [rt.privacy.account(endless.epoch(k)).epsilon(1e-6) for k in (0, 1)]
    assert epochs[0] <= learner.spent() <= max(epochs)


def test_rounds_beyond_a_private_horizon_are_refused_and_nothing_is_recorded():
    learner, copied = (rt.PCOMW(private(100), rt.Absolute(), seed=1) for _ in range(2))
    learner.observe_many(X[:90], Y[:90])
    with pytest.raises(ValueError, match=r"11 more rounds.*10 of its horizon=100 left.*longer horizon.*horizon=None"):
        learner.observe_many(X[90:101], Y[90:101])
    assert learner.rounds == 90
    for i in range(90, 100):
        learner.observe(X[i], Y[i])
    with pytest.raises(ValueError, match=r"1 more rounds.*0 of its horizon"):
        learner.observe(X[100], Y[100])
    copied.observe_many(X[:100], Y[:100])
    np.testing.assert_array_equal(learner.decision, copied.decision)
    assert learner.rounds == 100


def test_a_plan_without_a_privacy_claim_goes_on_beyond_its_horizon():
    learner, longer = rt.PCOMW(plan(horizon=100), rt.Absolute(), seed=1), rt.PCOMW(plan(), rt.Absolute(), seed=1)
    learner.observe_many(X, Y)
    longer.observe_many(X, Y)
    np.testing.assert_array_equal(learner.decision, longer.decision)
    assert learner.rounds == N


GOOD = [0.1, 0.1, 0.1]


@pytest.mark.parametrize("loss", [rt.Linear(), rt.Absolute(), rt.Logistic()], ids=repr)
@pytest.mark.parametrize(
    "bad",
    [
        ([np.nan, 0.0, 0.0], 1.0),
        ([np.inf, 0.0, 0.0], 1.0),
        ([1.0, 2.0], 1.0),
        ([[0.1, 0.2, 0.3], [0.1, 0.2, 0.3]], 1.0),
        ([3.0, 4.0, 1.0], -1.0),  # steeper than allowed
        (["a", "b", "c"], 1.0),
        (GOOD, np.nan),
        (GOOD, "x"),
        (GOOD, [1.0, 1.0]),
        (GOOD, None),
        (None, 1.0),
    ],
    ids=str,
)
def test_bad_rounds_leave_the_learner_exactly_as_it_was(loss, bad):
    learner = rt.PCOMW(plan(), loss, seed=6)
    learner.observe_many(*block(loss, 0, 201))
    for i in range(201, 216):
        learner.observe(*(part[i] for part in block(loss)))
    untouched = copy.deepcopy(learner)
    # A gradient has no target that could be bad: with one it has too many arguments, which is refused as well.
    row = bad[:1] if isinstance(loss, rt.Linear) and bad[0] != GOOD else bad
    with pytest.raises(ValueError):
        learner.observe(*row)
    with pytest.raises(ValueError, match="must be given as"):
        learner.observe()
    many = [np.array(part[216:230]) for part in block(loss)]
    many[0][13] = np.nan
    with pytest.raises(ValueError, match="nan"):
        learner.observe_many(*many)
    for one in (learner, untouched):
        assert one.rounds == 216
        one.observe_many(*block(loss, 216))
    np.testing.assert_array_equal(learner.decision, untouched.decision)
    assert learner.switches == untouched.switches
    np.testing.assert_array_equal(learner._rng.random(3), untouched._rng.random(3))


def test_steep_rounds_can_be_clipped_in_rows_and_blocks_alike():
    # Kinks this steep are drawn by the chain once there are many of them: a few rounds show as much.
    steep, targets = 9.0 * X[:60], Y[:60]
    one, many = (rt.PCOMW(plan(), rt.Absolute(), seed=6, on_steep="clip") for _ in range(2))
    for features, target in zip(steep, targets, strict=True):
        one.observe(features, target)
    trace = many.observe_many(steep, targets)
    np.testing.assert_array_equal(one.decision, many.decision)
    assert np.abs(trace.losses).max() < 5.0 * 2.0 + 1.0


def test_doubling_epochs_start_from_nothing():
    endless = rt.Plan(rt.Ball(3), None, 5.0, beta=0.4, lam=12.0, p=0.05, phi=1.3, budget=4, first_epoch=40)
    for loss in (rt.Linear(), rt.Absolute()):
        one, many = (rt.PCOMW(endless, loss, seed=9) for _ in range(2))
        for i in range(N):
            one.observe(*(part[i] for part in block(loss)))
        trace = many.observe_many(*block(loss))
        np.testing.assert_array_equal(one.decision, many.decision)
        # Epochs of 40, 80, 160, 320 rounds end after 40, 120, 280 and 600.
        assert set(trace.switch_times) >= {40, 120, 280, 600}
        assert many.epoch == 4
        assert many.switches == trace.switches <= 4 + 4 * 4
        assert many.budget_left == 4
        # Nothing of an epoch's past is in the next: the measure has as many rounds as the epoch.
        many.observe_many(*block(loss, 0, 10))
        assert many._walk.walk.done == 10


def test_an_epoch_does_not_depend_on_the_data_of_earlier_ones():
    endless = rt.Plan(rt.Ball(3), None, 5.0, beta=0.4, lam=12.0, p=0.05, phi=1.3, first_epoch=40)
    a, b = (rt.PCOMW(endless, rt.Absolute(), seed=9) for _ in range(2))
    a.observe_many(X[:40], Y[:40])
    b.observe_many(-X[:40], Y[:40])
    b._rng.bit_generator.state = a._rng.bit_generator.state
    for one in (a, b):
        walk = one._walk.walk
        one._walk.walk = type(walk)(endless.epoch(1), walk.measure, one._rng, walk.coin, 80)
        one._stand()
        one.observe_many(X[40:120], Y[40:120])
    np.testing.assert_array_equal(a.decision, b.decision)


class CountingGibbs:
    """Counts draws of every measure while it is in force."""

    def __init__(self, monkeypatch):
        self.count = 0
        inner = rt.Gibbs.draw_in_chart

        def counted(measure, *args):
            self.count += 1
            return inner(measure, *args)

        monkeypatch.setattr(rt.Gibbs, "draw_in_chart", counted)


@pytest.mark.parametrize(("p", "log_phi", "draws"), [(0.23, 0.175, 1), (0.0, 0.02, 1), (0.05, 0.1, 3), (1.0, 0.1, 1)])
def test_draws_are_counted_by_coins_not_by_rounds(monkeypatch, p, log_phi, draws):
    counter = CountingGibbs(monkeypatch)
    n = 3000
    features = np.random.default_rng(0).uniform(-0.5, 0.5, size=(2 * n, 3))
    labels = np.sign(features[:, 0])
    # With Huber rows Python makes the draws, so that they can be counted.
    learner = rt.PCOMW(
        plan(horizon=2 * n, beta=0.02, lam=500.0, p=p, phi=math.exp(log_phi), batch=2, draws=draws),
        rt.Huber(3.0),
        seed=1,
    )
    learner.observe_many(features, labels)
    open_ = 1.0 - math.exp(-2.0 * log_phi)
    mean = n * (p + (1.0 + draws) * (1.0 - p) * open_)
    deviation = math.sqrt(n * (p + (1.0 + draws) ** 2 * (1.0 - p) * open_))
    assert counter.count <= 1.1 * mean + 5.0 * deviation
    assert counter.count >= learner.switches + 1
    if p < 1.0:
        assert counter.count > 0.3 * mean - 5.0 * deviation  # and the coins are not skipped


def test_uneventful_rounds_cost_no_draw_at_all(monkeypatch):
    counter = CountingGibbs(monkeypatch)
    learner = rt.PCOMW(plan(p=0.0, phi=1.0), rt.Absolute(), seed=1)
    learner.observe_many(X, Y)
    assert counter.count == 1
    assert learner.switches == 0


def test_memory_is_the_history_and_nothing_else():
    n = 60_000
    features = np.random.default_rng(0).uniform(-0.5, 0.5, size=(n, 3))
    linear = rt.PCOMW(plan(horizon=n, phi=1.01, p=0.001), rt.Linear(), seed=1)
    before = len(pickle.dumps(linear))
    linear.observe_many(features)
    assert len(pickle.dumps(linear)) < before + 2_000
    kept = rt.PCOMW(plan(horizon=n, beta=1e-3, lam=500.0, phi=1.01, p=0.001), rt.Logistic(), seed=1)
    kept.observe_many(features, np.sign(features[:, 0]))
    raw = features.nbytes + 8 * n
    assert len(pickle.dumps(kept)) < 1.4 * raw + 20_000


class Flaky(rt.Gibbs):
    """Draws that fail when told to."""

    failing = False

    def draw_in_chart(self, *args):
        if Flaky.failing:
            raise rt.WorkLimitError("too much work")
        return super().draw_in_chart(*args)


def test_a_failed_draw_leaves_the_coin_open_and_the_next_call_goes_on(monkeypatch):
    monkeypatch.setattr("reticent.systems.pcomw._walk.Gibbs", Flaky)
    learner = rt.PCOMW(plan(batch=10, p=1.0, phi=1.0), rt.Absolute(), seed=3)
    learner.observe_many(X[:25], Y[:25])
    Flaky.failing = True
    with pytest.raises(rt.WorkLimitError) as caught:
        learner.observe_many(X[25:50], Y[25:50])
    assert "5 of the 25 rounds" in caught.value.__notes__[0]
    assert learner.rounds == 30
    assert learner.switches == 2
    with pytest.raises(rt.WorkLimitError):
        learner.observe(X[30], Y[30])  # the coin after round 30 is still open
    assert learner.rounds == 30
    Flaky.failing = False
    trace = learner.observe_many(X[30:50], Y[30:50])
    assert learner.rounds == 50
    assert learner.switches == 5
    assert trace.switches == 2  # the open coin was tossed before the first round of this trace


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, rt.Linear()), "plan must be a Plan"),
        ((plan(), "linear"), "loss must be one of the losses"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        rt.PCOMW(*arguments)
    with pytest.raises(ValueError, match="seed"):
        rt.PCOMW(plan(), rt.Linear(), seed=-1)
    with pytest.raises(ValueError, match="on_steep"):
        rt.PCOMW(plan(), rt.Linear(), on_steep="ignore")


def test_decisions_are_read_only_and_in_the_domain():
    learner = rt.PCOMW(plan(rt.Simplex(3)), rt.Linear())
    for row in X[:50]:
        learner.observe(row)
        assert rt.Simplex(3).contains(learner.decision)
    with pytest.raises(ValueError, match="read-only"):
        learner.decision[0] = 1.0


def test_private_plans_get_exact_draws_or_an_error():
    loss = rt.Custom(lambda x, c: float(np.abs(x - c).sum()), lambda x, c: np.sign(x - c), lipschitz=2.0)
    learner = rt.PCOMW(private(100), loss, seed=1)
    assert learner._walk.measure.distance == 0.0
    assert "proximal" not in learner._walk.measure.methods
    relaxed = rt.PCOMW(plan(), loss, seed=1)
    assert "proximal" in relaxed._walk.measure.methods


@pytest.mark.parametrize("loss", [rt.Linear(), rt.Absolute()], ids=repr)
def test_constant_work_draws_the_same_number_of_times_at_every_coin(monkeypatch, loss):
    counter = CountingGibbs(monkeypatch)
    steady = rt.PCOMW(plan(constant_work=True, draws=2, batch=1, horizon=300), loss, seed=1)
    counts = []
    for i in range(300):
        before = counter.count
        steady.observe(*(part[i] for part in block(loss)))
        counts.append(counter.count - before)
    assert set(counts) == {3}
    assert 10 < steady.switches < 200
