"""Samplers of other libraries on the same log density: NUTS of blackjax, the ensemble of emcee.

Both work on the whole space: the streams keep the mode so far inside the ball that no draw comes near its
boundary. Both start from exact draws, so that neither spends time on a burn-in.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import blackjax
import emcee
import jax
import jax.numpy as jnp
import numpy as np

from _streams import BETA, LAM

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)

PIECES = 5  # NUTS samples are timed in so many pieces, of which the median counts
CELLS = 1 << 18  # margins handled together by the numpy density


@dataclass(frozen=True)
class Peer:
    """What a peer took: milliseconds per effective sample, or why it was not run."""

    ms: float | None
    note: str = ""
    samples: int = 0
    effective: float = 0.0
    seconds: float = 0.0
    pieces: tuple[float, ...] = ()  # milliseconds per effective sample of each timed piece
    mean: np.ndarray | None = None
    error: np.ndarray | None = None  # standard error of `mean`

    def record(self) -> dict[str, Any]:
        """Return the figures that go into the machine-readable results."""
        return {
            "ms per effective sample": self.ms, "note": self.note, "samples": self.samples,
            "effective samples": self.effective, "seconds": self.seconds, "pieces": list(self.pieces),
        }  # fmt: skip


def _log_density(x: jax.Array, loss: str, columns: jax.Array, targets: jax.Array) -> jax.Array:
    margins = x @ columns  # features stored by column: the fastest way round for XLA's gradient
    losses = jnp.abs(margins - targets) if loss == "absolute" else jax.nn.softplus(-targets * margins)
    return -BETA * (jnp.sum(losses) + 0.5 * LAM * x @ x)


@partial(jax.jit, static_argnames=("loss", "steps"))
def _warm_up(key, x, loss, steps, columns, targets):  # type: ignore[no-untyped-def]
    density = partial(_log_density, loss=loss, columns=columns, targets=targets)
    (state, tuned), _ = blackjax.window_adaptation(blackjax.nuts, density).run(key, x, steps)
    return state, tuned["step_size"], tuned["inverse_mass_matrix"]


@partial(jax.jit, static_argnames=("loss", "steps"))
def _sample(key, state, step_size, mass, loss, steps, columns, targets):  # type: ignore[no-untyped-def]
    density = partial(_log_density, loss=loss, columns=columns, targets=targets)
    kernel = blackjax.nuts(density, step_size, mass).step

    def step(state, key):  # type: ignore[no-untyped-def]
        state, info = kernel(key, state)
        return state, (state.position, info.num_integration_steps)

    return jax.lax.scan(step, state, jax.random.split(key, steps))


def nuts(
    loss: str,
    A: np.ndarray,
    y: np.ndarray,
    start: np.ndarray,
    warm_up: int,
    samples: int,
    between: Callable[[], None] = lambda: None,
) -> Peer:
    """Run NUTS, with a call of `between` after each piece; the warm-up and compilation are not counted."""
    columns, targets = jnp.asarray(np.ascontiguousarray(A.T)), jnp.asarray(y)
    keys = jax.random.split(jax.random.key(0), PIECES + 1)
    state, step_size, mass = _warm_up(keys[0], jnp.asarray(start), loss, warm_up, columns, targets)
    steps = samples // PIECES
    jax.block_until_ready(mass)
    run = _sample.lower(keys[1], state, step_size, mass, loss, steps, columns, targets).compile()
    times, points, gradients = [], [], 0
    for key in keys[1:]:
        begin = time.perf_counter()
        state, (found, leaps) = jax.block_until_ready(run(key, state, step_size, mass, columns, targets))
        times.append(time.perf_counter() - begin)
        points.append(np.asarray(found))
        gradients += int(leaps.sum())
        between()
    chain = np.concatenate(points)
    effective = np.asarray(blackjax.ess(chain[None]))
    seconds = float(np.median(times)) * PIECES
    least = float(effective.min())
    note = f"{gradients / len(chain):.1f} gradients a sample"
    error = chain.std(axis=0, ddof=1) / np.sqrt(effective)
    pieces = tuple(1e3 * PIECES * piece / least for piece in times)
    return Peer(1e3 * seconds / least, note, len(chain), least, seconds, pieces, chain.mean(axis=0), error)


def log_densities(X: np.ndarray, loss: str, A: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the log density at each row of X, up to the same constant as `Gibbs.log_density`."""
    totals = np.zeros(len(X))
    step = max(1, CELLS // len(X))
    for first in range(0, len(y), step):
        part = slice(first, first + step)
        m = X @ A[part].T
        if loss == "absolute":
            m -= y[part]
            totals += np.abs(m, out=m).sum(axis=1)
        else:
            m *= -y[part]
            totals += np.maximum(m, 0.0).sum(axis=1)
            np.abs(m, out=m)
            np.exp(np.negative(m, out=m), out=m)
            totals += np.log1p(m, out=m).sum(axis=1)
    return -BETA * (totals + 0.5 * LAM * (X**2).sum(axis=1))


def walkers(d: int) -> int:
    """Return the size of the ensemble."""
    return max(32, 4 * d)


def ensemble(loss: str, A: np.ndarray, y: np.ndarray, start: np.ndarray, budget: float) -> Peer:
    """Run emcee with a walker from each row of `start`, unless a useful chain takes more than `budget` seconds."""
    d = A.shape[1]
    steps = max(400, 80 * d)
    trials = []
    for _ in range(3):
        begin = time.perf_counter()
        log_densities(start, loss, A, y)
        trials.append(time.perf_counter() - begin)
    need = steps * min(trials)
    if need > budget:
        return Peer(None, f"{steps} steps would take {need:.0f} s, more than {budget:.0f} s")
    sampler = emcee.EnsembleSampler(len(start), d, log_densities, args=(loss, A, y), vectorize=True)
    sampler.random_state = np.random.RandomState(0).get_state()  # emcee takes no Generator
    begin = time.perf_counter()
    sampler.run_mcmc(start, steps, skip_initial_state_check=True)
    seconds = time.perf_counter() - begin
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tau = float(np.max(sampler.get_autocorr_time(tol=0, quiet=True)))
    effective = steps * len(start) / tau
    note = f"autocorrelation time {tau:.0f} of {steps} steps" + (", a short chain" if steps < 20 * tau else "")
    return Peer(1e3 * seconds / effective, note, steps * len(start), effective, seconds)
