"""Tables that take a second: two regimes, short runs."""

import pytest

from reticent._core import _names as names
from reticent.lab.tables import _make
from reticent.lab.tables._regimes import REGIMES

SYSTEMS = {"1.1": names.DP_FTRL_TREE, "2.3": names.DESCENT}


@pytest.fixture(scope="module")
def tiny():
    """Let `make` do its work on a handful of points."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        _shrink(monkeypatch)
        yield


@pytest.fixture(scope="module")
def results(tiny, tmp_path_factory):
    return _make.make(True, _make.Workers(tmp_path_factory.mktemp("cache"), jobs=1))


def _shrink(monkeypatch):

    def few(table, quick):
        name = "1.1" if table == "table1" else "2.3"
        found = []
        for scale, sizes in (("runnable", (200, 400, 800)), ("large", (10**6, 10**8, 10**9))):
            for rounds in sizes:
                for dim in (2, 4):
                    for part in _make.PARTS:
                        regime = REGIMES[name]
                        size = {"rounds": rounds, "dim": dim, "variable": regime.variable}
                        more = {"value": regime.at(rounds, dim, part), "seeds": 1 if scale == "runnable" else 0}
                        found.append((name, scale, {"system": SYSTEMS[name], "delta": 1e-6} | size | more))
        return found

    def curves(variable, quick):
        system = names.DP_FTRL_TREE if variable == "epsilon" else names.DESCENT
        size = {"system": system, "rounds": 300, "dim": 2, "variable": variable, "seeds": 1}
        return [size | {"value": value} for value in ((1.0, 3.0) if variable == "epsilon" else (10.0, 50.0))]

    monkeypatch.setattr(_make, "all_tasks", few)
    monkeypatch.setattr(_make._cell, "tasks", curves)
    monkeypatch.setattr(_make, "landscape_tasks", lambda quick: [{"rounds": 300, "dim": 1, "epsilon": 3.0}])
    monkeypatch.setattr(_make, "offers", offers)


def offers(rounds, dim, epsilon=None, switches=None):
    return {"bounds": {"P-COMW": 0.3, names.OBJECTIVE: 0.2, "DP-FTRL": 0.4}, "smooth": [names.OBJECTIVE]}
