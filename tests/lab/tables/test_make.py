"""The tables as a whole, on a handful of points."""

import json

import pytest

from reticent._core import _names as names
from reticent.lab.tables import Workers, count, make, markdown


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


def test_unknown_sections_are_refused():
    with pytest.raises(ValueError, match="sections must be among table1, table2, landscape, curves, got 'table3'"):
        make(True, Workers(), ["table3"])


def test_the_landscape_leaves_objective_perturbation_out_without_smoothness(results):
    assert results["landscape"]["convex"][0]["system"] == "P-COMW"
    assert results["landscape"]["smooth"][0]["system"] == names.OBJECTIVE
