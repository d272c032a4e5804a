"""What draws cost, as counts: losses read, proposals, bytes; never as seconds."""

import subprocess
import sys

import numpy as np
import pytest

import reticent as rt
from reticent.gibbs._history import RowHistory

PRIVATE = {"beta": 0.015, "lam": 18_000.0}  # parameters of a private plan


def sphere(n: int, d: int, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def reads(loss: rt.Gibbs, draws: int = 400) -> float:
    rng = np.random.default_rng(1)
    return float(np.mean([loss.draw(rng).losses_read for _ in range(draws)]))


def logistic_reads(n: int) -> float:
    features = sphere(n, 10)
    m = rt.Gibbs(rt.Ball(10), rt.Logistic(), **PRIVATE)
    m.observe_many(features, np.where(np.random.default_rng(2).random(n) < 0.5 + 0.4 * features[:, 0], 1.0, -1.0))
    return reads(m)


def test_a_draw_reads_no_more_of_a_long_past():
    few, many = logistic_reads(10_000), logistic_reads(1_000_000)
    assert many <= 3.0 * few
    assert many < 10.0  # of a million


def test_without_thinning_the_count_would_grow():
    # Negative control: a draw that looks at every loss fails the same check.
    m = rt.Gibbs(rt.Ball(2), rt.Logistic(), **PRIVATE)
    counts = []
    for n in (100, 900):
        m.observe_many(sphere(n, 2), np.ones(n))
        counts.append(m.draw(0, method="tangent").losses_read)
    assert counts[1] > 3.0 * counts[0]


@pytest.mark.parametrize(("d", "most"), [(3, 400), (10, 5_000)])
def test_kinked_draws_read_a_small_part(d, most):
    rng = np.random.default_rng(0)
    n = 200_000
    features = rng.uniform(-1, 1, size=(n, d)) / np.sqrt(d)
    m = rt.Gibbs(rt.Ball(d), rt.Absolute(), **PRIVATE)
    m.observe_many(features, features @ np.full(d, 0.2) + rng.uniform(-1, 1, size=n))
    assert reads(m, 50) < most


def test_one_dimensional_draws_read_nothing_and_evaluate_little():
    rng = np.random.default_rng(0)
    m = rt.Gibbs(rt.Interval(-1, 1), rt.Absolute(), **PRIVATE)
    m.observe_many(np.ones(100_000), rng.normal(size=100_000))
    draws = [m.draw(rng) for _ in range(100)]
    assert max(d.losses_read for d in draws) == 0
    assert np.mean([d.proposals for d in draws]) < 100


def test_the_bound_is_built_rarely():
    rng = np.random.default_rng(0)
    m = rt.Gibbs(rt.Ball(3), rt.Absolute(), **PRIVATE)
    for _ in range(300):
        features = rng.uniform(-1, 1, size=(20, 3))
        m.observe_many(features, rng.normal(size=20))
        m.draw(rng)
    assert m._sampler("quartic").builds <= 40  # grows with the logarithm of the 6,000 rounds


MEMORY = """
import resource, numpy as np, reticent as rt
m = rt.Gibbs(rt.Ball(10), rt.{loss}(), beta=0.015, lam=18000.0)
rng = np.random.default_rng(0)
def more(n):
    x = rng.uniform(-0.3, 0.3, size=(n, 10))
    m.observe_many(x, np.sign(rng.normal(size=n)))
more(2000)
m.draw(rng)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(100):
    more(10_000)
m.draw(rng)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is counted in kilobytes on Linux only")
@pytest.mark.parametrize("loss", ["Logistic", "Absolute"])
def test_a_million_rows_take_little_more_than_themselves(loss):
    done = subprocess.run(
        [sys.executable, "-c", MEMORY.format(loss=loss)], capture_output=True, text=True, check=True, timeout=600
    )
    assert int(done.stdout) < 2.5 * 80e6


def test_a_mode_on_the_boundary_is_found_in_a_few_passes(monkeypatch):
    """Steps that still descend at the boundary must stand: cutting them took hundreds of passes over the past."""
    passes, inner = [], RowHistory.derivatives
    monkeypatch.setattr(RowHistory, "derivatives", lambda history, x: passes.append(1) or inner(history, x))
    measure = rt.Gibbs(rt.Ball(3), rt.Logistic(), beta=0.5, lam=1.0)
    measure.observe_many(np.tile([0.9, 0.0, 0.0], (5000, 1)), np.ones(5000))
    assert measure.draw(0).point[0] > 0.9
    assert 1 <= len(passes) <= 12
