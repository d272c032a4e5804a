"""Every system that a goal can be put to."""

from __future__ import annotations

from reticent.planning import _descent, _pcomw_systems
from reticent.planning._goal import System

SYSTEMS: tuple[System, ...] = (*_pcomw_systems.SYSTEMS, *_descent.SYSTEMS)
