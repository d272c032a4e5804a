"""Every system that a goal can be put to."""

from __future__ import annotations

from reticent.planning import (
    _approximate_leader,
    _descent,
    _experts,
    _experts_dartboard,
    _experts_leaders,
    _flat,
    _ftrl,
    _implicit,
    _l2p,
    _lazy_leader,
    _newton,
    _pcomw_systems,
    _perturbed_lazy,
    _perturbed_objective,
    _private_dartboard_search,
)
from reticent.planning._goal import System

SYSTEMS: tuple[System, ...] = (
    *_pcomw_systems.SYSTEMS,
    *_l2p.SYSTEMS,
    *_flat.SYSTEMS,
    *_perturbed_objective.SYSTEMS,
    *_ftrl.SYSTEMS,
    *_implicit.SYSTEMS,
    *_approximate_leader.SYSTEMS,
    *_perturbed_lazy.SYSTEMS,
    *_lazy_leader.SYSTEMS,
    *_descent.SYSTEMS,
    *_newton.SYSTEMS,
    *_private_dartboard_search.SYSTEMS,
    *_experts_dartboard.SYSTEMS,
    *_experts_leaders.SYSTEMS,
    *_experts.SYSTEMS,
)
