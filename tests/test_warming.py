"""Kernels compiled ahead: all kinds, once each, and nothing is left to compile for who uses them."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import reticent as rt
from reticent.warming import KINDS, _shares

COUNTED = """
from numba.core import event
class Count(event.Listener):
    names = []
    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__qualname__)
    def on_end(self, event):
        pass
count = Count()
"""
EXPERTS = f"""{COUNTED}
import numpy as np, reticent as rt
assert list(rt.warm(["experts"])) == ["experts"]
event.register("numba:compile", count)
plan = rt.planning.plan_dartboard(rt.Experts(7), 300, 2.0, 50)
learner = rt.make(plan, rt.Linear(), seed=None)
learner.observe_many(np.random.default_rng(1).random((300, 7)))
assert learner.switches and not count.names, count.names
"""
FRONT = """
import sys, numpy as np, reticent as rt
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(2000, 3)) / 2
learner = rt.private_learner(rt.Logistic(), rt.Ball(3, radius=4.0), epsilon=1.0, delta=1e-6)
learner.observe_many(X, np.where(X[:, 0] > 0, 1.0, -1.0))
assert learner.rounds == 2000 and "numba" not in sys.modules
lazy = rt.lazy_learner(rt.Pinball(0.9), rt.Interval(0, 10), max_switches=20, horizon=500)
lazy.observe_many(np.ones((500, 1)), rng.uniform(0, 10, 500))
assert lazy.rounds == 500 and "numba" not in sys.modules
"""


def run(code, **settings):
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | settings)


def test_a_kind_that_is_warm_compiles_nothing_more():
    run(EXPERTS)


@pytest.mark.slow  # ten seconds; `make unit` compiles all kinds first in any case
def test_every_kind_runs():
    # Without the compiler, which would take minutes: what is at stake is whether every plan takes its domain and rows.
    run(
        "import reticent as rt; from reticent.warming import KINDS; assert set(rt.warm()) == set(KINDS)",
        NUMBA_DISABLE_JIT="1",
    )


def test_the_front_door_loads_no_compiler():
    run(FRONT)


def test_an_unknown_kind_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="there is no kind 'expert' to compile; kinds are pcomw-curved-ball"):
        rt.warm(["experts", "expert"])
    with pytest.raises(ValueError, match="jobs must"):
        rt.warm(["experts"], jobs=0)


def test_progress_is_told_kind_by_kind():
    seen = []
    times = rt.warm(["experts", "experts"], progress=lambda name, seconds: seen.append((name, seconds)))
    assert dict(seen) == times
    assert len(seen) == 1


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_processes_share_all_kinds_once_and_groups_as_a_whole(workers):
    groups = {}
    for name, kind in KINDS.items():
        groups.setdefault(kind.group, []).append(name)
    shares = _shares(list(groups.values()), workers)
    assert len(shares) == min(workers, len(groups))
    assert sorted(name for share in shares for name in share) == sorted(KINDS)
    for group in groups.values():
        assert sum(set(group) <= set(share) for share in shares) == 1


@pytest.mark.slow
def test_after_all_kinds_no_learner_of_the_contract_compiles_anything():
    here = Path(__file__).parent
    cases = sorted(path.stem for path in (here / "systems/cases").glob("[!_]*.py"))
    assert all(importlib.import_module(name).CASES for name in cases)
    run(
        f"""{COUNTED}
import sys, importlib
sys.path[:0] = [{str(here / "systems")!r}, {str(here / "systems/cases")!r}]
import reticent as rt
from contract_rows import stream
rt.warm()
event.register("numba:compile", count)
for module in {cases!r}:
    for case in importlib.import_module(module).CASES:
        plan = case.plan()
        rows = stream("drifting", plan.domain, case.loss, plan.lipschitz, plan.horizon, 0, case.scale)
        for seed in (7, None):
            rt.make(plan, case.loss, seed=seed).observe_many(*rows)
        assert not count.names, (case.name, count.names)
"""
    )
