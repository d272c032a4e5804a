"""Trackers of windows: close, never at an end, the same one by one, saved and resumed, and clear about bad goals."""

import math
import pickle
import subprocess
import sys
import threading
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

import reticent as rt
from reticent.trackers._memory import Memory
from reticent.trackers._windows import WindowPlan, window_of


def quantile(seed=1, **options):
    return rt.PrivateQuantile(0.8, 0.0, 1.0, 2.0, seed=seed, **options)


def quantiles(seed=1, **options):
    return rt.PrivateQuantiles((0.5, 0.9), 0.0, 1.0, 2.0, seed=seed, **options)


def mean(seed=1, **options):
    return rt.PrivateMean(0.0, 1.0, 2.0, seed=seed, **options)


MAKERS = pytest.mark.parametrize("make", [quantile, quantiles, mean])


def test_quantiles_and_means_are_found():
    values = np.random.default_rng(0).uniform(size=40_000)
    for make, true in ((quantile, 0.8), (mean, 0.5)):
        tracker = make()
        tracker.update_many(values)
        assert tracker.value == pytest.approx(true, abs=0.03)
        assert tracker.average == pytest.approx(true, abs=0.03)
        assert tracker.switches < 40_000 / tracker.plan.window / 3
    several = quantiles()
    several.update_many(values)
    assert several.value == pytest.approx((0.5, 0.9), abs=0.03)
    assert several.quantile(0.9) == several.value[1]


def test_a_jump_is_followed_at_once():
    rng = np.random.default_rng(0)
    tracker = quantile()
    tracker.update_many(rng.uniform(0.0, 0.3, size=20_000))
    tracker.update_many(rng.uniform(0.5, 0.8, size=3 * tracker.plan.window))
    assert tracker.value > 0.6


def test_several_never_cross():
    """Hardly any epsilon, and levels side by side: draws scatter over all cells."""
    tracker = rt.PrivateQuantiles((0.4, 0.5, 0.6), 0.0, 1.0, epsilon=0.01, window=10, seed=1)
    seen = set()
    for value in np.random.default_rng(0).uniform(size=2_000):
        tracker.update(value)
        seen.add(tracker.value)
        assert list(tracker.value) == sorted(tracker.value)
    assert len(seen) > 20


@MAKERS
def test_one_at_a_time_is_the_same_to_the_last_bit(make):
    values = np.random.default_rng(2).normal(0.5, 1.0, size=700)
    one, many, observed = (make(window=60) for _ in range(3))
    for value in values:
        one.update(value)
        observed.observe(value)
    for part in np.split(values, [1, 30, 200, 560]):
        many.update_many(part.tolist())
    many.observe_many([])
    assert one.value == many.value == observed.decision
    assert one.rounds == many.rounds == 700
    assert one.switches == many.switches > 0
    assert one.spent() == many.spent() == 2.0
    if make is not quantiles:
        assert one.average == pytest.approx(many.average, rel=1e-12)


@MAKERS
@pytest.mark.parametrize("how", ["pickle", "file"])
def test_saved_trackers_go_on_bit_for_bit(make, how, tmp_path):
    values = np.random.default_rng(2).uniform(size=500)
    tracker = make(window=40)
    tracker.update_many(values[:250])
    if how == "pickle":
        other = pickle.loads(pickle.dumps(tracker))
    else:
        tracker.save(tmp_path / "state")
        other = rt.load(tmp_path / "state")
    for one in (tracker, other):
        one.update_many(values[250:])
    assert other.value == tracker.value
    assert repr(other) == repr(tracker)


def test_trackers_with_a_horizon_are_saved_too(tmp_path):
    tracker = rt.PrivateMean(0.0, 1.0, horizon=100, epsilon=2.0, delta=1e-6, seed=1)
    tracker.update(0.3)
    tracker.save(tmp_path / "state")
    assert rt.load(tmp_path / "state").value == tracker.value
    with pytest.raises(ValueError, match="loss must be None for a saved tracker"):
        rt.load(tmp_path / "state", loss=rt.Linear())


def test_state_that_no_tracker_can_have_is_refused(tmp_path):
    for spoil, words in (
        (lambda t: t.learner._waiting.append(7.0), "open window"),
        (lambda t: vars(t.learner).update(_done=3), "counts 3 rounds"),
        (lambda t: vars(t).update(low=2.0), "low must be less"),
        (lambda t: vars(t.learner.memory).update(shown=7.0), "publishes 7.0"),
    ):
        tracker = quantile(window=40)
        tracker.update(0.5)
        spoil(tracker)
        tracker.save(tmp_path / "state")
        with pytest.raises(ValueError, match=words):
            rt.load(tmp_path / "state")


def test_interrupted_release_is_not_repeated(monkeypatch):
    tracker = quantile(window=5)
    tracker.update_many([0.1, 0.2, 0.3, 0.4])
    with monkeypatch.context() as patch:
        patch.setattr(Memory, "take", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            tracker.update(0.5)
    for again in (lambda: tracker.update(0.5), lambda: tracker.update_many([0.5]), lambda: tracker.save("nowhere")):
        with pytest.raises(RuntimeError, match="released a window"):
            again()
    assert tracker.spent() == 2.0


def test_interrupted_block_cannot_be_given_again(monkeypatch):
    """The third window of four is interrupted before its release: the first two must not be released twice."""
    tracker = quantile(window=4)
    close, calls = tracker.learner._close, []

    def third(values):
        calls.append(values)
        if len(calls) == 3:
            raise KeyboardInterrupt
        close(values)

    with monkeypatch.context() as patch:
        patch.setattr(tracker.learner, "_close", third)
        with pytest.raises(KeyboardInterrupt):
            tracker.update_many(np.arange(16) / 16)
    with pytest.raises(RuntimeError, match="interrupted while it took in a block"):
        tracker.update_many(np.arange(16) / 16)


def test_threads_release_no_value_twice(monkeypatch):
    """Threads without a lock are refused while another is at work; what is released and what waits was accepted."""
    before = sys.getswitchinterval()
    released, accepted = [], []
    tracker = mean(window=3)
    monkeypatch.setattr(tracker.learner, "_release", lambda values: released.extend(values.tolist()) or False)

    def give(values):
        for value in values:
            try:
                tracker.update(value)
            except RuntimeError:
                continue
            accepted.append(value)

    threads = [threading.Thread(target=give, args=(part.tolist(),)) for part in np.split(np.arange(8_000) / 8_000, 4)]
    try:
        sys.setswitchinterval(1e-6)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
            assert not thread.is_alive()
    finally:
        sys.setswitchinterval(before)
    assert sorted(released + tracker.learner._waiting) == sorted(accepted)
    assert len(set(released)) == len(released) > 0


def test_tracker_at_work_refuses_other_calls(monkeypatch, tmp_path):
    tracker, seen = quantile(window=2), []

    def release(values):
        for other in (
            lambda: tracker.update(0.1),
            lambda: tracker.update_many([0.1]),
            lambda: tracker.save(tmp_path / "state"),
            lambda: pickle.dumps(tracker),
        ):
            with pytest.raises(RuntimeError, match="at work in another thread"):
                other()
            seen.append(values)
        return False

    with monkeypatch.context() as patch:
        patch.setattr(tracker.learner, "_release", release)
        tracker.update_many([0.1, 0.2])
        tracker.update(0.3)
        tracker.update(0.4)
    assert len(seen) == 8
    assert tracker.rounds == pickle.loads(pickle.dumps(tracker)).rounds == 4


def test_errors_do_not_print_values():
    for values in (
        [0.123456, "secret"],
        np.array(["secret"]),
        np.ma.array([0.123456], mask=[True]),
        [10**400, 0.123456],
    ):
        with pytest.raises(ValueError, match="must be real numbers") as found:
            mean().update_many(values)
        assert not {"secret", "0.123456", "1000"} & {*str(found.value).replace("'", " ").split()}
        assert len(str(found.value)) < 100


def test_rounds_without_a_value():
    """Left out where neighbours are "zero-out": ranks are of the values that are there, and sums have the middle."""
    values = np.random.default_rng(0).uniform(size=20_000)
    values[::2] = math.nan
    for make, true in ((quantile, 0.8), (mean, 0.5)):
        tracker = make(neighbors="zero-out")
        tracker.update_many(values)
        tracker.update(math.nan)
        assert tracker.rounds == 20_001
        assert tracker.value == pytest.approx(true, abs=0.05)
        with pytest.raises(ValueError, match="must not be missing"):
            make().update_many([0.5, math.nan])


def test_windows_of_nothing_are_released_too():
    tracker = quantile(window=4, neighbors="zero-out")
    tracker.update_many(np.full(40, math.nan))
    assert 0 <= tracker.value <= 1


def test_account():
    tracker = quantile(window=10)
    assert tracker.spent() == 0.0
    tracker.update_many(np.full(9, 0.5))
    assert tracker.spent() == 0.0
    tracker.update(0.5)
    assert tracker.spent() == 2.0
    assert 1.99 < tracker.spent(1e-9) < 2.0
    account = tracker.plan.account()
    assert account.delta(2.0) == 0.0 < account.delta(1.9) < 0.1
    assert "pure epsilon 2" in tracker.plan.explain()
    assert "none: any number of rounds" in str(tracker.plan)


@pytest.mark.parametrize("neighbors", ["replace", "zero-out"])
@pytest.mark.parametrize("accountant", [PLDAccountant, RdpAccountant])
def test_event_is_never_below_the_account_under_the_default_relation(accountant, neighbors):
    plan = quantile(neighbors=neighbors).plan
    composed = accountant().compose(plan.dp_event())
    for delta in (1e-9, 1e-3, 0.1):
        assert plan.account().epsilon(delta) <= composed.get_epsilon(delta)


def test_sums_are_exact_and_their_noise_is_as_claimed():
    """A thousand windows of the same values: mean and deviation of the released means (within 5 deviations)."""
    tracker = rt.PrivateMean(-1.0, 3.0, 1.0, window=20, seed=1)
    tracker.learner.memory.take = (seen := []).append
    tracker.update_many(np.full(20_000, 2.5))
    deviation = tracker.deviation
    assert deviation == pytest.approx(math.sqrt(2) * 4.0 / 20, rel=1e-4)
    inside = [one for one in seen if one < 3.0]  # a mean beyond the bounds is cut off there
    assert np.median(seen) == pytest.approx(2.5, abs=5 * deviation / math.sqrt(500))
    assert len(inside) == pytest.approx(1_000 * (1 - math.exp(-0.5 * math.sqrt(2) / deviation) / 2), abs=80)


def test_old_calls_are_told_apart_from_new_ones():
    new = [
        rt.PrivateQuantile(0.5, 0, 1, 2.0),
        rt.PrivateQuantile(0.5, 0, 1, 2.0, 1e-6),
        rt.PrivateQuantile(level=0.5, low=0, high=1, epsilon=2.0),
        rt.PrivateQuantile(0.5, 0, 1, None, 2.0, 1e-6),
        rt.PrivateMean(0, 1, 2.0),
        rt.PrivateMean(0, 1, None, 2.0, 1e-6),
    ]
    assert all(type(tracker.plan) is WindowPlan and tracker.plan.epsilon == 2.0 for tracker in new)
    old = [
        rt.PrivateQuantile(0.5, 0, 1, 50, 2.0, 1e-6),
        rt.PrivateQuantile(q=0.5, low=0, high=1, horizon=50, epsilon=2.0, delta=1e-6),
        rt.PrivateQuantile(0.5, 0, 1, 50, epsilon=2.0, delta=1e-6),
        rt.PrivateQuantile(0.5, 0, 1, 2.0, 1e-6, horizon=50),
        rt.PrivateMean(0, 1, 50, 2.0, delta=1e-6),
        rt.PrivateMean(0, 1, horizon=50, epsilon=2.0, delta=1e-6),
    ]
    assert all(tracker.plan.horizon == 50 and tracker.plan.epsilon == 2.0 for tracker in old)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rt.PrivateQuantile(0.0, 0, 1, 1.0), "level .* got 0.0"),
        (lambda: rt.PrivateQuantile(1e-9, 0, 1, 1.0), "by a millionth at least"),
        (lambda: rt.PrivateQuantile(0.5, 1, 0, 1.0), "low must be less than high"),
        (lambda: rt.PrivateQuantile(0.5, 0, 1e200, 1.0), "radius of the domain must be from"),
        (lambda: rt.PrivateQuantile(0.5, 0, 1, 100.0), "epsilon must be from 1e-06 to 50"),
        (lambda: rt.PrivateQuantile(0.5, 0, 1, 1.0, -0.1), "delta must be at least 0"),
        (lambda: rt.PrivateQuantile(0.5, 0, 1, 1.0, window=0), "window must be"),
        (lambda: rt.PrivateQuantile(0.5, 0, 1, 1.0, traffic=-1), "traffic must be"),
        (lambda: rt.PrivateQuantile(0.5, 0, 1, 1.0, cells=1), "cells must be"),
        (lambda: rt.PrivateQuantile(0.5, 0, 1, 1.0, neighbors="add"), "neighbors must be"),
        (lambda: rt.PrivateQuantile(0.5, 0, 1, 1.0, 1e-6, horizon=9, window=3), "window and traffic are for"),
        (lambda: rt.PrivateQuantiles((0.9, 0.5), 0, 1, 1.0), "each above the one before"),
        (lambda: rt.PrivateQuantiles((), 0, 1, 1.0), "levels must be one or more"),
        (lambda: quantiles().quantile(0.3), "level must be one of"),
    ],
)
def test_bad_goals_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_arguments_given_twice_are_refused():
    with pytest.raises(TypeError, match="twice"):
        rt.PrivateQuantile(0.5, 0, 1, 50, 2.0, 1e-6, delta=1e-6)


def test_windows_follow_epsilon_and_traffic():
    assert [rt.PrivateQuantile(q, 0, 1, e).plan.window for q, e in ((0.95, 1.0), (0.95, 0.5), (0.5, 1.0))] == [
        350,
        700,
        170,
    ]
    assert rt.PrivateQuantile(0.95, 0, 1, 1.0, traffic=1_000_000).plan.window == 10_000
    assert window_of(300.0, None, 8) == 2


@pytest.mark.parametrize("ends", [(1000.0, 1000.001), (-1e99, 1e99), (-3e-90, 5e-90)])
def test_bounds_of_any_size(ends):
    for tracker in (
        rt.PrivateQuantile(0.5, *ends, 1.0, window=3, seed=1),
        rt.PrivateMean(*ends, 1.0, window=3, seed=1),
    ):
        tracker.update_many([*ends, -math.inf, math.inf, ends[0] / 2 + ends[1] / 2, *ends])
        assert ends[0] <= tracker.value <= ends[1]


def test_first_number_needs_no_compiled_code():
    script = (
        "import sys, reticent as rt; t = rt.PrivateQuantile(0.9, 0, 1, 1.0, window=3); t.update_many([0.1, 0.2, 0.3]); "
        "print(t.value, 'numba' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600)
    assert found.stdout.split()[1] == "False"


def test_released_numbers_lie_on_the_public_grid():
    tracker = rt.PrivateQuantile(0.5, 0.0, 8.0, 1.0, window=5, cells=16, seed=1)
    tracker.update_many(np.random.default_rng(0).uniform(0.0, 8.0, size=500))
    grid = {float(Fraction(2 * i + 1, 4)) for i in range(16)}
    assert {*tracker.learner.memory.releases} <= grid
