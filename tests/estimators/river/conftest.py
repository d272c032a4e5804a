from functools import lru_cache

import pytest

from reticent.planning import Plan


@pytest.fixture
def planned_once(monkeypatch):
    """Plan every epoch once: that takes a second, and river's checks make a hundred models that all start anew."""
    monkeypatch.setattr(Plan, "epoch", _epoch)


@lru_cache
def _epoch(plan, k, *, _epoch=Plan.epoch):
    return _epoch(plan, k)
