"""Who wins at a point: by certificate, by measurement, and what nobody wins."""

import pytest
from cells import a_cell

from reticent._core import _names as names
from reticent.lab.tables._levels import by_certificate, by_measurement, levels_of


def both(ours, theirs):
    return a_cell(names.PCOMW, *ours), a_cell(names.DP_FTRL, *theirs)


def test_the_lower_certificate_wins_unless_it_is_within_one_percent():
    assert by_certificate(*both((100.0,), (102.0,))) == names.PCOMW
    assert by_certificate(*both((102.0,), (100.0,))) == names.DP_FTRL
    assert by_certificate(*both((100.0,), (100.9,))) == "tie"
    assert by_certificate(*both((100.9,), (100.0,))) == "tie"


def test_a_certificate_that_says_nothing_does_not_win():
    ours, theirs = both((100.0,), (500.0,))
    assert by_certificate(ours | {"vacuous": True}, theirs) == names.DP_FTRL
    assert by_certificate(ours | {"certificate": None}, theirs) == names.DP_FTRL
    assert by_certificate(ours | {"vacuous": True}, theirs | {"certificate": None}) == "none"


def test_measured_regret_wins_by_more_than_its_spread():
    # Four runs each: Student's 3.18 times sqrt(2) standard errors of 1 is 4.50.
    assert by_measurement(*both((100.0, 50.0), (100.0, 54.4))) == "tie"
    assert by_measurement(*both((100.0, 50.0), (100.0, 54.6))) == names.PCOMW
    assert by_measurement(*both((100.0, 54.6), (100.0, 50.0))) == names.DP_FTRL


def test_fewer_runs_have_a_longer_spread_and_one_has_none_that_is_known():
    ours, theirs = both((100.0, 50.0), (100.0, 54.6))
    assert by_measurement(ours | {"seeds": 3}, theirs | {"seeds": 3}) == "tie"
    assert by_measurement(ours | {"seeds": 1}, theirs | {"seeds": 8}) == "tie"
    assert by_measurement(ours | {"measured": {}}, theirs) is None


def test_levels_are_a_round_and_count_every_point():
    cells = []
    for rounds, ours, theirs in ((1000, (100.0, 60.0), (110.0, 40.0)), (2000, (150.0, 80.0), (120.0, 81.0))):
        cells += [one | {"rounds": rounds} for one in both(ours, theirs)]
    cells += [one | {"scale": "large", "rounds": 10**8} for one in both((1e5,), (2e5,))]
    cells.append(a_cell(names.DP_FTRL_TREE, 50.0))  # not a rival here, but it has the lowest certificate
    (level,) = levels_of(cells)
    assert (level["system"], level["rival"], level["expected"]) == (names.PCOMW, names.DP_FTRL, names.PCOMW)
    assert level["winners"] == {
        "certificate": {names.PCOMW: 1, names.DP_FTRL: 1},
        "measured": {names.DP_FTRL: 1, "tie": 1},
        "large": {names.PCOMW: 1},
    }
    first, shown, large = level["points"]
    assert level["shown"] == shown
    assert shown["T"] == 2000
    assert shown["ours"] == {
        "certificate": 0.075,
        "vacuous": False,
        "measured": 0.04,
        "error": 0.0005,
        "stream": "steady",
    }
    assert first["lowest"] == {"system": names.DP_FTRL_TREE, "certificate": 0.05}
    assert shown["lowest"] == {"system": names.DP_FTRL, "certificate": 0.06}
    assert large["measured"] is None
    assert {point["of"] for point in level["points"]} == {"table"}


def test_the_lowest_certificate_of_the_library_is_named_where_it_is_known():
    at = {"rounds": 1000, "dim": 2, "variable": "epsilon", "value": 0.25}
    library = [at | {"bounds": {"something new": 0.01, "another": 0.5}, "smooth": []}]
    (level,) = levels_of(both((100.0,), (110.0,)), library)
    assert level["shown"]["lowest"] == {"system": "something new", "certificate": 0.01}
    assert level["shown"]["of"] == "library"
    (level,) = levels_of(both((100.0,), (110.0,)), [library[0] | {"value": 0.5}])
    assert level["shown"]["lowest"] == {"system": names.PCOMW, "certificate": 0.1}


def test_privacy_for_losses_fixed_in_advance_is_no_rival_and_not_the_lowest():
    cells = [*both((100.0,), (110.0,)), a_cell(names.PCOMW_FIXED, 10.0)]
    (level,) = levels_of(cells)
    assert level["shown"]["lowest"]["system"] == names.PCOMW


@pytest.mark.parametrize("system", [names.PCOMW, names.DP_FTRL])
def test_without_one_of_both_there_is_no_level(system):
    assert levels_of([a_cell(system, 10.0)]) == []


def test_a_lazy_regime_has_a_rival_beyond_the_paper():
    more = {"regime": "2.3", "variable": "S", "value": 10.0}
    cells = [
        a_cell(name, 10.0, **more)
        for name in (names.PCOMW_LAZY, names.SHERMAN_KOREN_ANY, names.SHERMAN_KOREN, names.DESCENT)
    ]
    cited = {level["rival"]: level["cited"] for level in levels_of(cells)}
    assert cited == {names.SHERMAN_KOREN_ANY: True, names.SHERMAN_KOREN: False, names.DESCENT: False}
