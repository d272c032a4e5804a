"""A plan holds what was written, refuses what makes no sense, and survives copies."""

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from reticent.domains import Ball, Interval, Simplex
from reticent.planning import Plan, plan_lazy, theorem_lazy, theorem_private

GOOD = {"beta": 0.1, "lam": 30.0, "p": 0.1, "phi": 1.2}


def plan(**changes):
    values = {"domain": Ball(2), "horizon": 1000, "lipschitz": 1.0, **GOOD, **changes}
    return Plan(values.pop("domain"), values.pop("horizon"), values.pop("lipschitz"), **values)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"domain": [0, 1]}, r"domain must be a domain such as Ball\(dim=2\), got \[0, 1\]"),
        ({"horizon": 0}, "horizon must be a whole number of at least 1, got 0"),
        ({"horizon": 10.0}, "horizon must be a whole number of at least 1, got 10.0"),
        ({"lipschitz": 0.0}, "lipschitz must be greater than 0, got 0.0"),
        ({"beta": 0}, "beta must be greater than 0, got 0"),
        ({"beta": float("nan")}, "beta must be finite, got nan"),
        ({"lam": -1.0}, "lam must be greater than 0, got -1.0"),
        ({"p": 1.5}, "p must be a probability from 0 to 1, got 1.5"),
        ({"p": -0.1}, "p must be a probability from 0 to 1, got -0.1"),
        ({"phi": 0.9}, "phi must be at least 1, got 0.9"),
        ({"phi": float("inf")}, "phi must be finite, got inf"),
        ({"phi": 1e301}, "phi must be at most 1e\\+300, got 1e\\+301"),
        ({"budget": -1}, "budget must be a whole number of at least 0, got -1"),
        ({"budget": 2.5}, "budget must be a whole number of at least 0, got 2.5"),
        ({"batch": 0}, "batch must be a whole number of at least 1, got 0"),
        ({"draws": 0}, "draws must be a whole number of at least 1, got 0"),
        ({"first_epoch": 0}, "first_epoch must be a whole number of at least 1, got 0"),
        ({"epsilon": 1.0}, "epsilon and delta go together, got epsilon=1.0 and delta=None; give delta as well"),
        ({"delta": 1e-6}, "epsilon and delta go together, got delta=1e-06 and epsilon=None; give epsilon as well"),
        ({"epsilon": 0.0, "delta": 1e-6}, "epsilon must be greater than 0, got 0.0"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta must be greater than 0 and less than 1, got 1.0"),
        ({"epsilon": 1.0, "delta": 1e-6, "horizon": None}, "give a horizon, use a preset with horizon=None"),
        ({"horizon": None, "regret_bound": 3.0}, "regret_bound must be None without a horizon, got 3.0"),
        ({"regret_bound": -3.0}, "regret_bound must be at least 0, got -3.0"),
        ({"expected_switches": float("nan")}, "expected_switches must be finite, got nan"),
        ({"neighbors": "add"}, "neighbors must be 'replace' or 'zero-out', got 'add'"),
        ({"adversary": "nice"}, "adversary must be 'adaptive' or 'oblivious', got 'nice'"),
        ({"distance": -1e-9}, "distance must be at least 0, got -1e-09"),
        ({"remarks": "one text"}, r"remarks must be a tuple of texts, got 'one text'; write"),
        ({"remarks": (1,)}, r"remarks must be a tuple of texts, got \(1,\)"),
        ({"source": None}, "source must be text, got None"),
        ({"recipe": 3}, "recipe must be None, or a preset .* got 3 with horizon=1000"),
    ],
)
def test_bad_values_are_refused_by_name(changes, message):
    with pytest.raises(ValueError, match=message):
        plan(**changes)


def test_the_good_values_pass_and_have_their_types():
    made = plan(lam=30, phi=np.float64(1.2), horizon=np.int64(1000), budget=np.int32(7), remarks=["a"])
    assert (made.lam, made.phi, made.horizon, made.budget, made.remarks) == (30.0, 1.2, 1000, 7, ("a",))
    assert type(made.lam) is float
    assert type(made.phi) is float
    assert type(made.horizon) is int


def test_fields_after_lipschitz_are_keyword_only_and_nothing_can_be_changed():
    with pytest.raises(TypeError):
        Plan(Ball(2), 10, 1.0, 0.1, 30.0, 0.0, 1.2)
    with pytest.raises(FrozenInstanceError):
        plan().beta = 2.0


def test_distance_depends_on_the_claim_unless_given():
    assert plan().distance == 1e-9
    assert plan(epsilon=1.0, delta=1e-6).distance == 0.0
    assert plan(epsilon=1.0, delta=1e-6, distance=1e-12).distance == 1e-12
    assert plan().private is False
    assert plan(epsilon=1.0, delta=1e-6).private is True


def test_coins_are_full_batches():
    assert plan(batch=7).coins == 142
    assert plan(batch=1001).coins == 0
    with pytest.raises(ValueError, match=r"ask plan.epoch\(k\).coins"):
        _ = plan(horizon=None).coins


def test_vacuous_compares_with_staying_at_the_centre():
    assert plan(regret_bound=1000.0).vacuous
    assert not plan(regret_bound=1000.0 - 1e-3).vacuous
    assert not plan().vacuous
    assert plan().certified_regret is None


def test_what_is_certified_is_capped_at_what_any_decisions_suffer():
    assert plan(regret_bound=1e9).regret_bound == 1e9
    assert plan(regret_bound=1e9).certified_regret == 2 * 1000.0
    assert plan(regret_bound=1e9).vacuous
    assert plan(regret_bound=1500.0).certified_regret == 1500.0


def test_epochs_of_a_hand_written_plan_keep_its_parameters():
    endless = plan(horizon=None, first_epoch=100)
    assert endless.epoch(0) == plan(first_epoch=100, horizon=100)
    assert endless.epoch(3).horizon == 800
    assert endless.epoch(3).beta == endless.beta
    with pytest.raises(ValueError, match="k must be a whole number of at least 0, got -1"):
        endless.epoch(-1)
    with pytest.raises(ValueError, match="only a plan with horizon=None has epochs, got a horizon of 1000"):
        plan().epoch(0)


PRESETS = [
    lambda T: theorem_private(Ball(2), T, 1.0, 0.5, 1e-6),
    lambda T: theorem_lazy(Simplex(3), T, 2.0, 100),
    lambda T: plan_lazy(Interval(0.0, 1.0), T, 1.0, 50, hard=True),
]


@pytest.mark.parametrize("preset", PRESETS)
def test_epochs_of_a_preset_are_planned_anew(preset):
    endless = preset(None)
    assert endless.horizon is None
    assert endless.first_epoch == 1024
    assert endless.epoch(2) == preset(4096)
    assert (endless.beta, endless.lam, endless.phi) == tuple(getattr(preset(1024), k) for k in ("beta", "lam", "phi"))
    assert endless.epoch(2).beta != endless.beta


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("horizon", [None, 2000])
def test_plans_can_be_pickled_compared_and_hashed(preset, horizon):
    made = preset(horizon)
    copy = pickle.loads(pickle.dumps(made))
    assert copy == made
    assert hash(copy) == hash(made)
    assert str(copy) == str(made)
    if horizon is None:
        assert copy.epoch(1) == made.epoch(1)
    assert replace(made, beta=2 * made.beta) != made


def test_equality_sees_the_domain():
    assert plan(domain=Ball(2)) == plan(domain=Ball(2))
    assert plan(domain=Ball(2)) != plan(domain=Ball(2, 2.0))


def test_a_planners_plan_that_is_edited_says_so():
    made = theorem_private(Interval(-1.0, 1.0), 10_000, 1.0, 1.0, 1e-6)
    assert "not certified" not in str(made)
    edited = replace(made, beta=5.0, budget=None)
    assert "claimed by hand, not certified" in str(edited)
    assert edited.source.startswith("edited by hand; it was: Theorem 'DP OCO'")
    assert "not certified" not in str(replace(made, remarks=("a remark changes nothing",)))
    endless = theorem_private(Interval(-1.0, 1.0), None, 1.0, 1.0, 1e-6)
    assert "not certified" not in str(endless)
    with pytest.raises(ValueError, match="ask the preset"):
        replace(endless, horizon=10**6)


@pytest.mark.parametrize("lipschitz", [1e-160, 1e150, 1e200])
def test_scales_that_leave_double_precision_are_refused(lipschitz):
    for make in (
        lambda: Plan(Interval(-1.0, 1.0), 10, lipschitz, **GOOD),
        lambda: theorem_lazy(Interval(-1.0, 1.0), 1000, lipschitz, 100),
        lambda: theorem_private(Interval(-1.0, 1.0), 1000, lipschitz, 1.0, 1e-6),
        lambda: plan_lazy(Interval(-1.0, 1.0), 1000, lipschitz, 100),
    ):
        with pytest.raises(ValueError, match="lipschitz must be from 1e-100 to 1e100"):
            make()
