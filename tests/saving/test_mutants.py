"""States with one number changed are refused, or run on as some state of their plan does: never into a crash."""

import numpy as np
import pytest
from contract_rows import first_rows
from mutants import fate, mutants
from test_contract import ALL, data_of, new, plan_of

import reticent as rt
from reticent._core._tags import tagged
from reticent.saving._twin import _named
from reticent.systems._saved import pack_learner, unpack_learner
from reticent.trackers._saved import load

# What only a key protects: random numbers, what the learner counts for its reader, and the caller's own objects.
OPEN = {"state", "inc", "has_uint32", "uinteger", "_switches", "switches", "items", "scales", "bounds"}
FAST = (
    "noisy-ball",
    "filtered-ball",
    "budgeted-interval",
    "experts-doubling",
    "descent-ball",
    "ftrl-ball",
    "pcomw-lazy",
)


def check(data, load, go_on, some):
    """Try mutants of a state; return how many were refused."""
    refused, expected = 0, go_on(load(data))
    for leaf, what, mutant in mutants(data, some):
        name = next(part for part in reversed(leaf.path) if isinstance(part, str))
        found = fate(mutant, load, go_on, expected)
        assert found in ("refused", "same", "another") or name in OPEN, f"{leaf!r}, {what}: {found}"
        # Another loss makes another learner that its plan allows: only a key can tell which one was saved.
        if found == "another" and leaf.path[0] != "loss":
            plain = name in OPEN or leaf.owner in ("generator", "domain")
            moves = OPEN | {"_x"} | (set() if plain else _named(tagged(leaf.owner), "_moves"))
            # Past rounds are saved without the room behind them, under names of their own.
            assert name in moves or f"_{name}" in moves, f"{leaf!r}, {what}: {found}"
        refused += found == "refused"
    return refused


def checked_case(case, some):
    data, given = first_rows(data_of(case, "drifting"), 0, 100), None
    if isinstance(case.loss, rt.Custom):
        given = case.loss
    learner = new(case)
    learner.observe_many(*first_rows(data, 0, 60))

    def go_on(found):
        trace = found.observe_many(*first_rows(data, 60, None))
        assert found.rounds == 100
        assert all(plan_of(case).domain.contains(x) for x in (*trace.points, trace.final))
        return trace.decisions().tobytes(), trace.final.tobytes(), found.switches

    return check(pack_learner(learner), lambda mutant: unpack_learner(mutant, "it", given), go_on, some)


@pytest.mark.parametrize("name", FAST)
def test_some_mutants_of_learners(name):
    (case,) = (case for case in ALL if case.name == name)
    assert checked_case(case, 60) > 20


@pytest.mark.slow
@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_all_mutants_of_learners(case):
    assert checked_case(case, None) > 100


TRACKERS = {
    "quantile": lambda: rt.PrivateQuantile(0.9, 0.0, 1.0, epsilon=1.0, window=50, seed=1),
    "quantiles": lambda: rt.PrivateQuantiles((0.5, 0.9), 0.0, 1.0, epsilon=1.0, window=50, seed=1),
    "mean": lambda: rt.PrivateMean(0.0, 1.0, epsilon=1.0, window=50, seed=1),
}


@pytest.mark.parametrize("name", TRACKERS)
def test_mutants_of_trackers(name, tmp_path):
    tracker, values = TRACKERS[name](), np.random.default_rng(0).random(600)
    tracker.update_many(values[:320])
    tracker.save(tmp_path / "state")

    def loaded(mutant):
        (tmp_path / "mutant").write_bytes(mutant)
        return load(tmp_path / "mutant")

    def go_on(found):
        shown = []
        for value in values[320:]:
            found.update(value)
            shown.append(found.value)
            assert np.isfinite(found.value).all()
        return shown, found.rounds, found.switches

    assert check((tmp_path / "state").read_bytes(), loaded, go_on, 150) > 40


def test_every_system_has_constants_that_are_compared():
    """What the issue found to load: noise, caps, batches and coins that are not the plan's."""
    from test_forged import Forgery

    named = {
        "ftrl-ball": [("sigma", 0.0), ("lam", 1.0), ("batch", -1000), ("kind", 0)],
        "pcomw-lazy": [
            ("cap", 10**9),
            ("batch", -1000),
            ("length", 5),
            (("coin", "odds"), 0.5),
            (("coin", "phi"), 9.0),
        ],
        "experts-private": [("budget", 10**6), ("beta", 0.0), ("p", 1.0), ("batch", 0)],
        "noisy-ball": [("lam", 1e-9), ("batch", 7), (("release", "sigma"), 0.001), (("release", "most"), 1 << 60)],
        "filtered-ball": [(("mechanism", "mu"), 0.0), (("release", "clip"), 100.0)],
        "sherman-koren-linear": [("sigma", 0.0), ("lam", 5.0)],
    }
    for name, edits in named.items():
        (case,) = (case for case in ALL if case.name == name)
        for place, value in edits:
            forgery = Forgery(new(case))
            path = place if isinstance(place, tuple) else (place,)
            forgery.set("_walk", *path, value=value)
            with pytest.raises(ValueError, match="cannot be read by reticent"):
                forgery.load()
