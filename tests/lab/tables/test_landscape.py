"""The map of the best systems."""

import pytest

from reticent._core._names import DESCENT, IMPLICIT, OBJECTIVE, SHERMAN_KOREN
from reticent.domains import Ball
from reticent.lab.tables._make import landscape, offers
from reticent.planning import plan_ftrl
from reticent.systems import _choice, approximate_leader, descent, ftrl, implicit, perturbed


def test_offers_are_certificates_per_round(monkeypatch):
    # All systems take seconds: two that are planned at once stand for them.
    monkeypatch.setattr(_choice, "SYSTEMS", (*ftrl.SYSTEMS, *approximate_leader.SYSTEMS))
    found = offers(1000, 2, 3.0)
    assert found["bounds"]["DP-FTRL"] == plan_ftrl(Ball(2), 1000, 1.0, 3.0, 1e-6).regret_bound / 1000
    assert "approximate leader (Smith, Thakurta)" in found["bounds"]


def test_offers_name_the_systems_that_need_smooth_losses(monkeypatch):
    monkeypatch.setattr(_choice, "SYSTEMS", (*perturbed.PRIVATE, *perturbed.LAZY, *implicit.SYSTEMS, *descent.SYSTEMS))
    private = offers(1000, 2, epsilon=3.0)
    assert private["smooth"] == [OBJECTIVE]
    assert set(private["bounds"]) == {OBJECTIVE, IMPLICIT}
    lazy = offers(1000, 2, switches=50)
    assert lazy["bounds"][DESCENT] == pytest.approx(1 / 50**0.5)
    assert lazy["smooth"] == [SHERMAN_KOREN]


def test_vacuous_certificates_are_not_chosen():
    place = {"rounds": 100, "dim": 1, "epsilon": 0.1}
    (cell,) = landscape([place], [{"bounds": {"P-COMW": 1.2, OBJECTIVE: 1.0}, "smooth": [OBJECTIVE]}], smooth=True)
    assert cell["system"] is None
    assert cell["bound"] is None
