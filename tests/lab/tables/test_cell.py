"""One cell: certificate and regret on the panel."""

import numpy as np
import pytest

from reticent._core import _names as names
from reticent.lab import streams
from reticent.lab.tables._cell import cell, panel, plan_of
from reticent.learners import make


def test_regret_is_that_of_a_run_against_the_best_fixed_point():
    found = cell(names.DESCENT, 500, 3, "S", 50.0, 0.0, seeds=1)
    for name, spec in panel(500, 3, 50.0).items():
        (gradients,) = streams.get(spec).block()
        learner = make(plan_of(names.DESCENT, 500, 3, 50.0, 0.0), streams.get(spec).loss, 0)
        suffered = learner.observe_many(gradients).total
        regret = suffered + np.linalg.norm(gradients.sum(axis=0))
        assert found["measured"][name]["regret"] == pytest.approx(regret, abs=1e-9)
        assert found["measured"][name]["switches"] == learner.switches


def test_without_seeds_nothing_is_run():
    found = cell(names.PAPER_LAZY, 10**12, 4, "S", 1e6, 0.0)
    assert found["measured"] == {}
    assert found["theorem"] == found["certificate"] > 0


def test_certificates_are_at_most_what_any_decisions_suffer():
    found = cell(names.PAPER_LAZY, 1000, 4, "S", 100.0, 0.0)
    assert found["vacuous"]
    assert found["theorem"] > found["certificate"] == 2 * 1000


def test_a_planner_that_refuses_is_recorded():
    found = cell(names.PAPER, 10**6, 2, "epsilon", 3.0, 1e-6)
    assert found["certificate"] is None
    assert "epsilon must be at most 1" in found["reason"]


@pytest.mark.parametrize("system", [names.DP_FTRL, names.DP_FTRL_TREE, names.FLAT])
def test_every_private_system_has_a_plan(system):
    assert plan_of(system, 300, 2, 3.0, 1e-6).delta == 1e-6


def test_every_stream_of_the_panel_is_linear_of_slope_one():
    for spec in panel(200, 2, 10.0).values():
        (gradients,) = streams.get(spec).block()
        assert gradients.shape == (200, 2)
        assert np.linalg.norm(gradients, axis=1).max() <= 1.0 + 1e-12
