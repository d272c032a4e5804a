"""The tables as a whole, on a handful of points."""

import json

import pytest

from reticent._core import _names as names
from reticent.lab.tables import REGIMES, Workers, count, judged, make, markdown
from reticent.lab.tables._make import library_tasks


def test_rows_hold_the_paper_beside_certificates_and_measurements(results):
    (row,) = results["table2"]["rows"]
    assert row["system"] == names.DESCENT
    assert row["paper"] == {"T": 1.0, "d": 0.0, "S": -0.5}
    # The certificate of descent in blocks is G R T / sqrt(S), but for blocks of a whole number of rounds.
    large = row["large"]["exponents"]
    assert large["T"]["value"] == pytest.approx(1.0, abs=0.01)
    assert large["S"]["value"] == pytest.approx(-0.5, abs=0.01)
    assert row["measured"]["points"] <= 12
    assert sum(row["worst"].values()) == 12


def test_along_the_regime_the_paper_and_the_certificate_agree(results):
    (row,) = results["table2"]["rows"]
    # S is (d T)^(1/2) times a constant there, so T / sqrt(S) is T^(3/4).
    for name in ("paper", "large"):
        assert row["along"][name]["value"] == pytest.approx(0.75, abs=0.02)


def test_it_is_plain_data(results):
    assert json.loads(json.dumps(results)) == results


@pytest.mark.usefixtures("tiny")
def test_nothing_is_made_twice(tmp_path, monkeypatch):
    told = []
    make(True, Workers(tmp_path, jobs=1, report=told.append), ["table2"])
    monkeypatch.setattr("reticent.lab.tables._cell.plan_of", None)  # would raise if it were called again
    again = make(True, Workers(tmp_path, jobs=1, report=told.append), ["table2"])
    assert len(told) == 2 * count(True, ["table2"])
    assert again["table2"]["rows"][0]["large"] is not None


def test_the_report_says_what_was_done(results):
    text = markdown(results)
    for words in ("## Table 1", "### 1.1: epsilon >= d T^(-1/6)", "## Table 2", "Smooth losses", names.OBJECTIVE):
        assert words in text
    assert "nan" not in text
    assert max(len(line) for line in text.splitlines() if not line.startswith(("|", "*"))) < 400


def test_exponents_are_in_an_appendix_and_those_without_power_in_one_line(results):
    before, _, appendix = markdown(results).partition("## Appendix B")
    assert "±" not in before.partition("## Appendix A")[0]  # no P-COMW here: nothing is compared
    assert "nothing is compared" in before
    assert "### 2.3: S <= (d T)^(1/2)" in appendix
    assert "The rates here do not differ in T." in appendix
    (row,) = results["table2"]["rows"]
    assert "T" not in row["power"]["large"]
    assert {"d", "S"} <= set(row["power"]["large"])


def test_results_read_from_a_file_are_judged_alike(results):
    read = json.loads(json.dumps(results))
    for name in ("table1", "table2"):
        read[name] = {"cells": read[name]["cells"]}  # as an earlier version may have written it
    assert judged(read) == results
    assert markdown(judged(read)) == markdown(results)


@pytest.mark.usefixtures("tiny")
def test_all_systems_are_asked_at_the_points_that_are_shown(results):
    assert library_tasks(True, ["landscape"]) == []
    (private, lazy) = library_tasks(True, ["table1", "table2"])
    assert private == {"rounds": 800, "dim": 4, "epsilon": pytest.approx(REGIMES["1.1"].at(800, 4, 0.9))}
    assert lazy == {"rounds": 800, "dim": 4, "switches": REGIMES["2.3"].at(800, 4, 0.9)}
    assert [one["variable"] for one in results["landscape"]["library"]] == ["epsilon", "S"]
    assert results["landscape"]["library"][0]["bounds"] == {"P-COMW": 0.3, names.OBJECTIVE: 0.2, "DP-FTRL": 0.4}


def test_unknown_sections_are_refused():
    with pytest.raises(ValueError, match="sections must be among table1, table2, landscape, curves, got 'table3'"):
        make(True, Workers(), ["table3"])


def test_the_landscape_leaves_objective_perturbation_out_without_smoothness(results):
    assert results["landscape"]["convex"][0]["system"] == "P-COMW"
    assert results["landscape"]["smooth"][0]["system"] == names.OBJECTIVE
