"""Every system that a goal can be put to."""

from __future__ import annotations

from reticent.planning import (
    _approximate_leader,
    _descent,
    _experts,
    _experts_dartboard,
    _experts_leaders,
    _ftrl,
    _implicit,
    _pcomw_systems,
    _private_dartboard_search,
)
from reticent.planning._goal import System

SYSTEMS: tuple[System, ...] = (
    *_pcomw_systems.SYSTEMS,
    *_ftrl.SYSTEMS,
    *_implicit.SYSTEMS,
    *_approximate_leader.SYSTEMS,
    *_descent.SYSTEMS,
    *_private_dartboard_search.SYSTEMS,
    *_experts_dartboard.SYSTEMS,
    *_experts_leaders.SYSTEMS,
    *_experts.SYSTEMS,
)
