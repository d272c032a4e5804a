"""The map of the best systems."""

from reticent._core._names import OBJECTIVE
from reticent.domains import Ball
from reticent.lab.tables._make import landscape, offers
from reticent.planning import plan_ftrl
from reticent.systems import _choice, approximate_leader, ftrl


def test_offers_are_certificates_per_round(monkeypatch):
    # All systems take seconds: two that are planned at once stand for them.
    monkeypatch.setattr(_choice, "SYSTEMS", (*ftrl.SYSTEMS, *approximate_leader.SYSTEMS))
    found = offers(1000, 2, 3.0)
    assert found["DP-FTRL"] == plan_ftrl(Ball(2), 1000, 1.0, 3.0, 1e-6).regret_bound / 1000
    assert "approximate leader (Smith, Thakurta)" in found


def test_vacuous_certificates_are_not_chosen():
    place = {"rounds": 100, "dim": 1, "epsilon": 0.1}
    (cell,) = landscape([place], [{"P-COMW": 1.2, OBJECTIVE: 1.0}], smooth=True)
    assert cell["system"] is None
    assert cell["bound"] is None
