"""The regimes and rates are those of the paper's tables."""

import itertools
from fractions import Fraction

import pytest

from reticent._core import _names as names
from reticent.lab.tables import TABLE_1, TABLE_2
from reticent.lab.tables._make import LARGE, RUNNABLE, all_tasks
from reticent.lab.tables._regimes import REGIMES
from reticent.systems._checks import check_claim


def on_boundary(rate, powers, variable):
    """Return the exponents of d and T of a rate where epsilon (or S) is d^a T^b."""
    a, b = (Fraction(power).limit_denominator(100) for power in powers)
    power = rate.get(variable, Fraction(0))
    return rate["d"] + power * a, rate["T"] + power * b


@pytest.mark.parametrize("table", [TABLE_1, TABLE_2])
def test_neighbouring_regimes_meet(table):
    for upper, lower in itertools.pairwise(table):
        assert upper.low == lower.high


@pytest.mark.parametrize(
    ("table", "system"),
    [
        (TABLE_1, names.PCOMW),
        (TABLE_1, names.FLAT),
        (TABLE_1, names.OBJECTIVE_ANY),
        (TABLE_1, names.OBJECTIVE),
        (TABLE_1, names.DP_FTRL),
        (TABLE_2, names.PCOMW_LAZY),
        (TABLE_2, names.SHERMAN_KOREN_ANY),
        (TABLE_2, names.SHERMAN_KOREN),
    ],
)
def test_rates_agree_where_regimes_meet(table, system):
    meet = 0
    for upper, lower in itertools.pairwise(table):
        if system in upper.rates and system in lower.rates:
            ends = [on_boundary(regime.rates[system], upper.low, upper.variable) for regime in (upper, lower)]
            # The paper's d T / S meets its sqrt(T) at S = d sqrt(T).
            assert ends[0] == ends[1], (upper.name, lower.name)
            meet += 1
    assert meet >= 2


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("table", ["table1", "table2"])
def test_every_point_is_inside_its_regime(table, quick):
    seen = set()
    for name, scale, task in all_tasks(table, quick):
        low, high = REGIMES[name].ends(task["rounds"], task["dim"])
        room = 0.5 if table == "table2" else 0.0  # switches are whole
        assert low - room < task["value"] < high + room
        assert task["value"] <= task["rounds"]
        seen.add((name, scale, task["system"]))
        if table == "table1":  # rows 5 to 7 are below T^(-1/6), the others above: no point is in two rows
            assert (task["value"] < task["rounds"] ** (-1 / 6)) == (int(name[2]) >= 5)
            check_claim(task["value"], task["delta"])  # no planner refuses it
    regimes = TABLE_1 if table == "table1" else TABLE_2
    assert seen == {
        (regime.name, scale, system)
        for regime in regimes
        for system in regime.rates
        for scale in (RUNNABLE, LARGE)
        if not (quick and system == names.PCOMW_FIXED)
    }


def test_the_paper_has_ahead_whom_its_rates_have_ahead():
    claims = {regime.name: [rival.ahead for rival in regime.rivals] for regime in (*TABLE_1, *TABLE_2)}
    assert claims["1.1"] == ["ours", "neither", "neither"]
    assert claims["1.6"] == ["ours", "ours"]
    assert claims["1.7"] == ["theirs", "theirs"]
    assert claims["2.1"] == ["neither", "neither", "ours"]
    for regime in (*TABLE_1, *TABLE_2):
        ours = names.PCOMW if regime.table == 1 else names.PCOMW_LAZY
        for rival in regime.rivals:
            ratios = [
                rated(regime, ours, rounds, dim, part) / rated(regime, rival.system, rounds, dim, part)
                for rounds in (10**6, 10**10)
                for dim in (2, 4)
                for part in (0.1, 0.9)
                if regime.at(rounds, dim, part) is not None
            ]
            assert ratios
            if rival.ahead == "ours":
                assert max(ratios) < 1, (regime.name, rival.system)
            elif rival.ahead == "neither":
                assert ratios == pytest.approx([1.0] * len(ratios))
            else:  # row 7: the rates cross inside, at d^(1/2) T^(-1/3)
                assert min(ratios) < 1 < max(ratios)


def rated(regime, system, rounds, dim, part):
    at = {"T": rounds, "d": dim, regime.variable: regime.at(rounds, dim, part)}
    found = 1.0
    for name, power in regime.rates[system].items():
        found *= at[name] ** float(power)
    return found


def test_a_regime_that_is_empty_has_no_point():
    assert REGIMES["1.5"].at(10**6, 8, 0.5) is None
    assert REGIMES["1.2"].at(10**6, 1, 0.5) is None
