"""Traces: losses at the decisions in play, joins, and regret."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reticent as rt
from reticent.hindsight._comparator import Hindsight
from reticent.hindsight._trace import Regret, Trace, suffered

DOMAINS = [rt.Interval(-1.0, 2.0), rt.Ball(3), rt.Simplex(4), rt.Box([5.0, 0.0], [6.0, 1.0])]
FAR = rt.Ball(2, 1e-3, [1e5, -1e5])
CUSTOM = rt.Custom(lambda x, c: float(np.abs(x - c).sum()), lambda x, c: np.sign(x - c), 2.0)
LOSSES = [rt.Linear(), rt.Absolute(), rt.Logistic(), rt.Squared(), CUSTOM]


def block(domain, loss, n, rng):
    X = rng.normal(size=(n, domain.dim))
    X /= np.linalg.norm(X, axis=1)[:, None]
    if isinstance(loss, rt.Custom):
        return (list(X),)
    if isinstance(loss, rt.Linear):
        return (X,)
    return X, (rng.choice([-1, 1], size=n) if isinstance(loss, rt.Logistic) else X @ domain.center)


def point(domain, rng):
    return domain.project(domain.center + rng.normal(size=domain.dim))


def run(domain, loss, sizes, chance=0.2, seed=0, lipschitz=4.0):
    """A learner that moves at random: the traces of its blocks, and every decision and loss, worked out one by one."""
    rng = np.random.default_rng(seed)
    now, first, traces, decisions, losses = point(domain, rng), 0, [], [], []
    for size in sizes:
        data = block(domain, loss, size, rng)
        starts, points = [0], [now]
        for i in range(size):
            decisions.append(now)
            losses.append(float(loss.values(now, *(part[i : i + 1] for part in data))[0]))
            if rng.random() < chance:
                now = point(domain, rng)
                starts.append(i + 1)
                points.append(now)
        final = now
        parts = [
            loss.prepare(domain, *(part[k : k + 7] for part in data), lipschitz=lipschitz) for k in range(0, size, 7)
        ]
        options = {"lipschitz": lipschitz, "on_steep": "raise", "first": first, "parts": parts, "data": data}
        starts, points = np.array(starts), np.array(points)
        traces.append(
            Trace.record(
                domain, loss, starts=starts, chart_points=domain.to_chart(points), points=points, final=final, **options
            )
        )
        first += size
    return traces, np.array(decisions), np.array(losses), now


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda x: type(x).__name__)
def test_a_trace_tells_what_happened(domain, loss):
    (trace,), decisions, losses, final = run(domain, loss, [50])
    assert len(trace) == trace.rounds == 50
    assert np.array_equal(trace.decisions(), decisions)
    assert trace.losses == pytest.approx(losses, rel=1e-9, abs=1e-9)
    assert trace.total == pytest.approx(losses.sum())
    changed = np.append(decisions[1:], final[None], axis=0) != decisions
    times = np.flatnonzero(changed.any(axis=1)) + 1
    assert trace.switch_times.tolist() == times.tolist()
    assert trace.switches == len(times) > 3
    assert np.array_equal(trace.final, final)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    st.sampled_from(DOMAINS),
    st.sampled_from(LOSSES),
    st.lists(st.integers(1, 25), min_size=1, max_size=6),
    st.sampled_from([0.0, 0.1, 0.9]),
    st.integers(0, 100),
)
def test_joins_equal_the_whole(domain, loss, sizes, chance, seed):
    traces, decisions, losses, final = run(domain, loss, sizes, chance, seed)
    whole = Trace.join(traces)
    assert np.array_equal(whole.decisions(), decisions)
    assert whole.losses == pytest.approx(losses, rel=1e-9, abs=1e-9)
    assert whole.switches == sum(trace.switches for trace in traces)
    assert whole.switch_times.tolist() == [t for trace in traces for t in trace.switch_times.tolist()]
    assert np.array_equal(whole.final, final)
    assert len(whole.data) == len(sizes)
    one_by_one = traces[0]
    for trace in traces[1:]:
        one_by_one = one_by_one + trace
    assert np.array_equal(one_by_one.starts, whole.starts)
    assert np.array_equal(one_by_one.points, whole.points)
    best = whole.regret()
    assert 0 <= best.gap <= 1e-6 * 4.0 * domain.diameter * len(whole)
    curve = whole.curve(best.comparator)
    assert curve[-1] == pytest.approx(best.value, abs=1e-7)
    assert curve.shape == (len(whole),)


def test_switches_at_seams_are_counted_once():
    domain, loss = rt.Interval(0.0, 1.0), rt.Linear()

    def piece(first, at, final):
        data = (np.ones((2, 1)),)
        return Trace(domain, loss, 1.0, "raise", first, [0], [[at]], [final], [at, at], (data,))

    stays, moves, goes_on = piece(0, 0.5, 0.5), piece(2, 0.5, 0.75), piece(4, 0.75, 0.75)
    assert [stays.switches, moves.switches, goes_on.switches] == [0, 1, 0]
    assert moves.switch_times.tolist() == [4]
    whole = stays + moves + goes_on
    assert whole.starts.tolist() == [0, 4]
    assert whole.points.ravel().tolist() == [0.5, 0.75]
    assert whole.switch_times.tolist() == [4]
    assert repr(whole) == "<Trace: rounds 1 to 6, 1 switch, total loss 3.5>"


def test_runs_that_no_round_saw_leave_no_mark():
    domain, loss, data = rt.Interval(0.0, 1.0), rt.Linear(), (np.ones((4, 1)),)
    points = np.array([[0.1], [0.2], [0.3], [0.3], [0.9], [0.8]])
    trace = Trace.record(
        domain,
        loss,
        lipschitz=1.0,
        on_steep="raise",
        first=0,
        starts=np.array([0, 0, 1, 2, 4, 4]),
        chart_points=domain.to_chart(points),
        points=points,
        final=points[-1],
        parts=[loss.prepare(domain, *data)],
        data=data,
    )
    assert trace.starts.tolist() == [0, 1]
    assert trace.points.ravel().tolist() == [0.2, 0.3]
    assert trace.losses == pytest.approx([0.2, 0.3, 0.3, 0.3])
    assert trace.switch_times.tolist() == [1, 4]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_the_best_decision_has_no_regret_and_others_have(domain, loss):
    rng = np.random.default_rng(3)
    data = block(domain, loss, 400, rng)
    losses = loss.values(domain.center, *data)
    start = Trace(domain, loss, 4.0, "raise", 0, [0], [domain.center], domain.center, losses, (data,))
    best = start.regret().comparator
    best_losses = loss.values(best.point, *data)
    same = Trace(domain, loss, 4.0, "raise", 0, [0], [best.point], best.point, best_losses, (data,)).regret()
    assert abs(same.value) <= best.gap + 1e-9
    assert 0 <= float(same) <= 2e-6 * 4.0 * domain.diameter * 400 + 1e-9
    assert start.regret().value == pytest.approx(float(losses.sum() - best_losses.sum()), abs=1e-6)
    assert float(start.regret()) >= 0


def test_clipped_rows_are_clipped_again():
    domain, loss = rt.Ball(2), rt.Absolute()
    data = (np.array([[3.0, 4.0], [0.6, 0.8], [30.0, 0.0]]), np.array([5.0, 0.0, -30.0]))
    rows = loss.prepare(domain, *data, lipschitz=1.0, on_steep="clip")
    trace = Trace.record(
        domain,
        loss,
        lipschitz=1.0,
        on_steep="clip",
        first=0,
        starts=np.array([0]),
        chart_points=np.zeros((1, 2)),
        points=np.zeros((1, 2)),
        final=np.zeros(2),
        parts=[rows],
        data=data,
    )
    assert trace.losses == pytest.approx([1.0, 0.0, 1.0])
    angles = np.linspace(0, 2 * np.pi, 2001)
    disc = np.concatenate([r * np.stack([np.cos(angles), np.sin(angles)], axis=1) for r in np.linspace(0, 1, 201)])
    least = np.abs(disc @ rows.vectors.T + rows.offsets).sum(axis=1).min()
    assert trace.regret().value == pytest.approx(2.0 - least, abs=1e-3)


def test_blocks_of_all_shapes_give_one_regret():
    domain, loss, rng = rt.Ball(2), rt.Absolute(), np.random.default_rng(4)
    X, y = block(domain, loss, 70_000, rng)
    y = y + rng.normal(size=len(y))
    losses, middle = np.abs(y), np.zeros(2)

    def trace(data):
        return Trace(domain, loss, 1.0, "raise", 0, [0], [middle], middle, losses, data)

    whole = trace(((X, y),)).regret()
    rows = [(X[i], y[i]) for i in range(40)]
    mixed = trace((*rows, (X[40:100].tolist(), y[40:100].tolist()), (X[100:], y[100:]))).regret()
    assert mixed.value == pytest.approx(whole.value, abs=whole.gap + mixed.gap)
    column = rt.Interval(-1.0, 1.0)
    flat = Trace(column, loss, 1.0, "raise", 0, [0], [[0.0]], [0.0], losses, ((X[:, 0], y),)).regret()
    tall = Trace(column, loss, 1.0, "raise", 0, [0], [[0.0]], [0.0], losses, ((X[:, :1], y),)).regret()
    assert flat.value == tall.value


def test_thousands_of_traces_join_in_one_go():
    domain, loss, data = rt.Interval(0.0, 1.0), rt.Linear(), (np.ones((1, 1)),)
    traces = [
        Trace(domain, loss, 1.0, "raise", i, [0], [[i % 7 / 7]], [(i + 1) % 7 / 7], [i % 7 / 7], (data,))
        for i in range(3000)
    ]
    whole = Trace.join(iter(traces))
    assert whole.switches == 3000
    assert len(whole.data) == 3000
    assert whole.regret().value == pytest.approx(whole.total, abs=1e-9)


def test_a_long_trace_is_small_and_shares_what_it_was_given():
    n = 1_000_000
    domain = rt.Ball(10)
    losses, X = np.zeros(n), np.zeros((n, 10))
    trace = Trace(domain, rt.Linear(), 1.0, "raise", 0, [0], np.zeros((1, 10)), np.zeros(10), losses, ((X,),))
    assert np.shares_memory(trace.losses, losses)
    assert trace.data[0][0] is X
    copy = pickle.loads(pickle.dumps(Trace.join([trace])))
    assert len(copy) == n
    assert copy.domain == domain
    with pytest.raises(ValueError, match="read-only"):
        trace.losses[0] = 1.0
    with pytest.raises(AttributeError):
        trace.first = 3


def test_long_data_is_prepared_again_for_every_pass(monkeypatch):
    from reticent.hindsight import _trace

    (trace,), *_ = run(rt.Ball(3), rt.Absolute(), [300])
    held = trace.regret()
    monkeypatch.setattr(_trace, "_HELD", 0)
    assert trace.regret().value == held.value


def test_data_that_changed_is_noticed():
    (trace,), *_ = run(rt.Ball(3), rt.Absolute(), [50])
    trace.data[0][1][17] += 0.5
    with pytest.raises(ValueError, match="round 17 whose loss is now"):
        trace.regret()


def test_a_domain_far_from_the_origin_is_no_change_of_data():
    for loss in (rt.Absolute(), rt.Squared(), rt.Linear()):
        (trace,), *_ = run(FAR, loss, [200])
        assert trace.regret().gap <= 1e-5  # totals of a million are not known much better


def test_refusals():
    traces, *_ = run(rt.Ball(3), rt.Absolute(), [20, 20, 20])
    others, *_ = run(rt.Ball(3), rt.Absolute(), [20, 20, 20], seed=1)
    squared, *_ = run(rt.Ball(3), rt.Squared(), [20, 20])
    for bad, message in [
        ([], "at least one trace"),
        ([traces[0], traces[2]], "after round 20 comes one that starts after round 40"),
        ([traces[1], traces[0]], "must follow each other"),
        ([traces[0], others[1]], "one ends with the decision"),
        ([traces[0], squared[1]], "must have one loss"),
    ]:
        with pytest.raises(ValueError, match=message):
            Trace.join(bad)
    with pytest.raises(TypeError):
        traces[0] + 1
    good = {"starts": [0, 1], "points": [[0.0], [1.0]], "final": [1.0], "losses": [0.0, 1.0]}
    for wrong, message in [
        ({"starts": [0, 2]}, "starts must rise"),
        ({"starts": [1, 1]}, "starts must rise"),
        ({"starts": [0]}, "starts must rise"),
        ({"points": [[1.0], [1.0]]}, "consecutive points must differ"),
        ({"points": [[1.0, 0.0], [1.0, 1.0]]}, "points must be rows of 1 numbers"),
        ({"final": [1.0, 2.0]}, "final must be a vector of length 1"),
        ({"losses": []}, "at least one round"),
    ]:
        with pytest.raises(ValueError, match=message):
            Trace(rt.Interval(0, 1), rt.Linear(), 1.0, "raise", 0, **{**good, **wrong}, data=())
    short = Trace(rt.Interval(0, 1), rt.Linear(), 1.0, "raise", 0, **good, data=((np.ones((1, 1)),),))
    with pytest.raises(ValueError, match="must hold the 2 rounds of the losses, got 1"):
        Trace(rt.Interval(0, 1), rt.Linear(), 1.0, "raise", 0, [0], [[1.0]], [1.0], [1.0, 1.0], short.data).regret()


def test_regret_shows_its_range_and_errs_on_the_safe_side():
    regret = Regret(10.0, 0.25, Hindsight(np.zeros(2), 1.0, 0.25, 3))
    assert float(regret) == 10.25
    assert repr(regret) == "Regret(10 to 10.25)"


def test_suffered_reads_any_memory_layout():
    domain, loss, rng = rt.Ball(3), rt.Absolute(), np.random.default_rng(5)
    rows = loss.prepare(domain, rng.normal(size=(40, 3)), rng.normal(size=40))
    starts, points = np.array([0, 3, 30]), rng.normal(size=(3, 3)) / 9
    plain = suffered(loss, domain, rows, starts, points)
    fortran = type(rows)(np.asfortranarray(rows.vectors), rows.offsets)
    assert np.array_equal(suffered(loss, domain, fortran, starts, points[::1].T.copy().T), plain)
    expected = np.abs(np.einsum("ij,ij->i", rows.vectors, np.repeat(points, [3, 27, 10], axis=0)) + rows.offsets)
    assert plain == pytest.approx(expected)
