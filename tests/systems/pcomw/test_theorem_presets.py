"""The constants of the paper's theorems against the formulas, typed a second time, and their conditions."""

import math

import pytest

from reticent._core import _names
from reticent.domains import Ball, Box, Polytope, Simplex
from reticent.losses import Linear
from reticent.planning import theorem_lazy, theorem_private
from reticent.systems._goal import Goal, NotApplicable
from reticent.systems.pcomw import SYSTEMS
from reticent.systems.pcomw._account import privacy_formula
from reticent.systems.pcomw._regret import regret_bound
from reticent.systems.pcomw._switching import Switching

POINTS = [
    # domain, D, d, G, T, epsilon, delta
    (Ball(1), 2.0, 1, 1.0, 10_000, 1.0, 1e-6),
    (Ball(10, 3.0), 6.0, 10, 0.5, 1_000_000, 0.1, 1e-9),
    (Simplex(5), math.sqrt(2), 4, 2.0, 5_000, 0.7, 0.5),
    (Box([0, 0], [3, 4]), 5.0, 2, 10.0, 10**10, 0.01, 1e-12),
]


@pytest.mark.parametrize(("domain", "D", "d", "G", "T", "eps", "delta"), POINTS)
def test_private_constants(domain, D, d, G, T, eps, delta):
    made = theorem_private(domain, T, G, eps, delta)
    L = math.log(T) - math.log(delta)
    entries = [T**0.5 / 2, 1000 * T ** (1 / 3) * d**0.5 * L / eps, 1000 * T**0.375 * d**0.5 * L / eps**0.75]
    lam = max(entries) * G / D
    beta = lam / (100_000 * G * G * L * L) * min(eps**2 * T ** (-2 / 3), eps ** (3 / 2) * T ** (-3 / 4))
    assert made.lam == pytest.approx(lam, rel=1e-12)
    assert made.beta == pytest.approx(beta, rel=1e-12)
    delta_1, G_1 = delta / T**2 / 60, 3 * G
    phi_1 = 2 * beta * G_1**2 / lam + math.sqrt(8 * beta * G_1**2 * math.log(2 / delta_1) / lam)
    log_phi = 2 * phi_1
    assert math.log(made.phi) == pytest.approx(log_phi, rel=1e-9)
    p = max(T ** (-1 / 3), (G**4 * beta**2 / (lam**2 * log_phi**2)) ** (1 / 3))
    assert made.p == pytest.approx(p, rel=1e-12)
    p_tilde = p + 1 - math.exp(-2 * log_phi)
    assert made.budget == math.floor(3 * p_tilde * T)
    assert made.expected_switches == pytest.approx(p_tilde * T, rel=1e-9)
    regret = lam * D**2 / 2 + G**2 * T / lam + d * math.log(T) / beta
    regret += 2 * G * D * T * (math.exp(-p_tilde * T) + 3 * delta_1 * T) + G * D
    assert made.regret_bound == pytest.approx(regret, rel=1e-9)
    assert (made.epsilon, made.delta, made.neighbors, made.adversary) == (eps, delta, "replace", "oblivious")
    assert (made.batch, made.draws, made.distance) == (1, 1, 0.0)


def test_the_square_root_is_repaired():
    # The first entry decides only for huge T: there lambda is sqrt(T)/2 times G/D, not 1/(2 sqrt T).
    T = 10**60
    assert theorem_private(Ball(1), T, 1.0, 1.0, 0.5).lam == pytest.approx(math.sqrt(T) / 2 / 2)
    assert "sqrt(T)/2" in theorem_private(Ball(1), 1000, 1.0, 1.0, 0.1).remarks[0]


def test_the_privacy_formula_stays_below_epsilon_on_a_wide_grid():
    worst = 0.0
    for T in (10, 100, 10**3, 10**4, 10**6, 10**8, 10**10, 10**12):
        for delta in (0.5, 0.1, 1e-3, 1e-6, 1e-9, 1e-15, 1e-30):
            if 12 * math.log(1 / delta) > T:
                continue
            for eps in (1e-4, 1e-2, 0.1, 0.5, 1.0):
                made = theorem_private(Ball(3), T, 1.0, eps, delta)
                value = privacy_formula(T, delta, made.beta / made.lam, math.log(made.phi))
                printed = privacy_formula(T, delta, made.beta / made.lam, math.log(made.phi), printed=True)
                worst = max(worst, value / eps)
                assert 0.6 * value <= printed <= value
                assert not any("gives epsilon" in remark for remark in made.remarks)
    assert 0.4 < worst < 0.6


def test_the_privacy_formula_is_the_papers():
    T, delta, ratio, log_phi = 5000, 1e-5, 1e-8, 2e-3
    inner = 7 * T ** (2 / 3) * log_phi**2 + 12 * log_phi**3 * T + 11 * (ratio**2) ** (1 / 3) * log_phi ** (4 / 3) * T
    value = 3 * inner / 2 + math.sqrt(6 * inner) * math.sqrt(math.log(2 / delta))
    assert privacy_formula(T, delta, ratio, log_phi, printed=True) == pytest.approx(value, rel=1e-12)
    # The last correct line of the proof, at this p, is below the formula with 10 and 14 and above the printed one.
    p = max(T ** (-1 / 3), (ratio / log_phi) ** (2 / 3))
    line = 4 * log_phi**2 / p**2 + 6 * p * T * log_phi**2 + 12 * T * log_phi**3 + 8 * ratio**2 * T / p**2
    proved = 1.5 * line + math.sqrt(6 * line * math.log(2 / delta))
    assert value < proved <= privacy_formula(T, delta, ratio, log_phi)


def test_the_term_left_out_of_delta_is_named_where_it_matters():
    def named(made):
        return any("adds 3 T exp" in remark for remark in made.remarks)

    small = theorem_private(Ball(1), 2000, 1.0, 0.1, 1e-6)
    extra = 3 * 2000 * math.exp(-2000 * (1 - small.phi**-2))
    assert extra > 1e-9
    assert named(small)
    assert f"{extra:.3g}" in str(small)
    assert "within the share delta/3" in " ".join(small.remarks)
    large = theorem_private(Ball(1), 10**8, 1.0, 1.0, 1e-6)
    assert 3e8 * math.exp(-(10**8) * (1 - large.phi**-2)) < 1e-9
    assert not named(large)


@pytest.mark.parametrize(
    ("T", "eps", "delta", "message"),
    [
        (1000, 1.01, 1e-6, r"epsilon must be at most 1 .*\(its condition: epsilon <= 1\), got 1.01"),
        (1000, 0.0, 1e-6, "epsilon must be greater than 0, got 0.0"),
        (1000, 1.0, 0.51, r"\(its condition: delta in \(0, 1/2\]\), got 0.51"),
        (1000, 1.0, 0.0, r"\(its condition: delta in \(0, 1/2\]\), got 0.0"),
        (100, 1.0, 1e-6, r"12 log\(1/delta\) = 165.786 .*T >= 12 log\(1/delta\)\), got 100"),
        (0, 1.0, 1e-6, "horizon must be a whole number of at least 1, got 0"),
    ],
)
def test_private_conditions(T, eps, delta, message):
    with pytest.raises(ValueError, match=message):
        theorem_private(Ball(2), T, 1.0, eps, delta)


def test_private_condition_on_the_horizon_is_tight():
    assert theorem_private(Ball(2), 166, 1.0, 1.0, 1e-6).horizon == 166
    with pytest.raises(ValueError, match="got 165"):
        theorem_private(Ball(2), 165, 1.0, 1.0, 1e-6)


def test_first_epochs_meet_the_conditions():
    assert theorem_private(Ball(2), None, 1.0, 1.0, 1e-6).first_epoch == 1024
    assert theorem_private(Ball(2), None, 1.0, 1.0, 1e-60).first_epoch == 2048
    assert theorem_private(Ball(2), None, 1.0, 1.0, 1e-60).epoch(0).epsilon == 1.0
    assert theorem_lazy(Ball(2), None, 1.0, 5000).first_epoch == 8192


@pytest.mark.parametrize(
    ("domain", "D", "d", "G", "T", "S"),
    [
        (Ball(1), 2.0, 1, 1.0, 100_000, 300),
        (Ball(10, 3.0), 6.0, 10, 0.5, 100_000, 100_000),
        (Simplex(5), math.sqrt(2), 4, 2.0, 3, 1),
        (Box([0, 0], [3, 4]), 5.0, 2, 10.0, 10**9, 10**4),
    ],
)
def test_lazy_constants(domain, D, d, G, T, S):
    made = theorem_lazy(domain, T, G, S)
    delta = 2 / T**2
    lam = max(G * math.sqrt(2 * T) / D, math.sqrt(512 * d) * G * math.log(T) / D * T / S)
    beta = lam / (256 * G**2 * math.log(T)) * S**2 / T**2
    log_phi = 2 * beta * G**2 / lam + math.sqrt(8 * beta * G**2 * math.log(2 / delta) / lam)
    assert made.lam == pytest.approx(lam, rel=1e-12)
    assert made.beta == pytest.approx(beta, rel=1e-12)
    assert math.log(made.phi) == pytest.approx(log_phi, rel=1e-9)
    assert (made.p, made.budget, made.batch, made.draws) == (0.0, None, 1, 1)
    assert made.expected_switches == S
    regret = G * D * math.sqrt(2 * T) + 16 * G * D * math.log(T) * math.sqrt(d) * T / S + 13 * G * D
    assert made.regret_bound == pytest.approx(regret, rel=1e-12)
    assert made.private is False


@pytest.mark.parametrize(
    ("T", "S", "message"),
    [
        (2, 1, r"horizon must be at least 3 .*\(its condition: T >= 3\), got 2"),
        (10, 11, r"\(its condition: S <= T\), got 11 for 10 rounds"),
        (10, 0, "max_switches must be a whole number of at least 1, got 0"),
        (10, 2.5, "max_switches must be a whole number of at least 1, got 2.5"),
    ],
)
def test_lazy_conditions(T, S, message):
    with pytest.raises(ValueError, match=message):
        theorem_lazy(Ball(2), T, 1.0, S)


@pytest.mark.parametrize("S", [10, 1000, 10_000])
@pytest.mark.parametrize("domain", [Ball(1), Ball(10), Simplex(4)])
def test_our_certificate_of_the_lazy_theorem_is_below_the_theorem(domain, S):
    made = theorem_lazy(domain, 10_000, 1.0, S)
    ours = regret_bound(made)
    assert ours.total < made.regret_bound
    assert Switching(made).expected < S
    assert ours.stability == pytest.approx(10_000 / (2 * made.lam))
    assert "so the printed bound holds" in made.remarks[0]
    assert f"{ours.total:.6g}" in made.remarks[0]


def test_the_printed_lazy_bound_holds_where_its_proof_does_not_reach():
    # A thin rectangle around a corner: there R is almost D, and the proof's three terms pass the printed bound.
    domain = Polytope([[-1, 0], [1, 0], [0, 1], [0, -1]], [0, 1, 1e-3, 0], center=[1e-6, 1e-6])
    T, S = 100_000, 5623
    made = theorem_lazy(domain, T, 1.0, S)
    D, d, log = domain.diameter, 2, math.log(T)
    proof = made.lam * D**2 / 2 + T / made.lam + 256 * d * log**2 / made.lam * T**2 / S**2 + 13 * D
    assert proof > made.regret_bound > regret_bound(made).total > 0.9 * made.regret_bound


@pytest.mark.parametrize(
    ("domain", "horizon", "epsilon", "delta"),
    [(Simplex(3), 11_347_206, 0.0267, 4.73e-12), (Simplex(13), 1_918_553_669, 0.4884, 3.88e-6)],
)
def test_a_theorem_that_failing_draws_break_is_not_offered_and_the_plan_says_so(domain, horizon, epsilon, delta):
    # 3 ptilde T draws, each of which may fail, take more than delta: the account is infinite, and the plan claimed on.
    plan = theorem_private(domain, horizon, 1.0, epsilon, delta)
    assert plan.account().epsilon(delta) == math.inf
    assert "do not rely on" in str(plan)
    said = " ".join(plan.explain().split())
    assert "(by the paper's theorem, for real numbers)" in said
    assert "part of epsilon and delta" not in said
    (system,) = (one for one in SYSTEMS if one.name == _names.DP_OCO)
    with pytest.raises(NotApplicable, match="epsilon inf"):
        system.answer(Goal(domain, horizon, 1.0, Linear(), epsilon, delta, adversary="oblivious"))


def test_a_theorem_that_holds_in_the_machine_says_nothing_of_it():
    assert "do not rely on" not in str(theorem_private(Ball(2), 10_000, 1.0, 1.0, 1e-6))
    assert "plan.epoch(k).account()" in str(theorem_private(Simplex(3), None, 1.0, 1.0, 1e-6))
