"""Draws that only need values and subgradients of the losses: exact by rejection, or certified by a proximal chain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from reticent._core._check import Array
from reticent._core._fine import standard_exponential
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.domains._gaussian import draw_gaussian
from reticent.domains._line import line_sampler
from reticent.gibbs._history import project_in_chart


class Potential(Protocol):
    """A sum of convex losses in the chart of a domain."""

    @property
    def domain(self) -> Domain:
        """Where decisions live."""

    def __len__(self) -> int:
        """Return the number of rounds."""

    def value(self, u: Array, /) -> float:
        """Return the sum at u, less that at the centre: so that digits go to what depends on u (docs/theory, Q12)."""

    def value_and_gradient(self, u: Array, /) -> tuple[float, Array]:
        """Return the same and a subgradient."""


def _evaluate(args, x):
    history, beta, lam = args
    value, slope = history.value_and_gradient(np.array([x]))
    return -beta * (value + 0.5 * lam * x * x), -beta * (float(slope[0]) + lam * x)


# The uncompiled body of the sampler serves functions that only Python can call.
_draw_line = line_sampler(_evaluate).py_func


@saved("line sampler")
class LineSampler:
    """Exact draws in one dimension from losses that only Python can call."""

    _moves: ClassVar[tuple[str, ...]] = ("guess",)

    def __init__(self, history: Potential, beta: float, lam: float) -> None:
        self.history, self.beta, self.lam = history, beta, lam
        self.guess = 0.0

    def draw(self, rng: np.random.Generator, limit: int) -> tuple[Array, int, int]:
        """Return (chart point, evaluations, rows read)."""
        lo, hi = float(self.history.domain.body.lo[0]), float(self.history.domain.body.hi[0])
        scale = min(hi - lo, 1.0 / math.sqrt(self.beta * self.lam) if self.lam > 0.0 else np.inf)
        args = (self.history, self.beta, self.lam)
        out = np.empty(1)
        self.guess, evaluations = _draw_line(args, lo, hi, self.guess, scale, rng, out)
        return out, evaluations, evaluations * len(self.history)


@saved("anchor")
@dataclass
class Anchor:
    """A point, by how much the sum of losses rises to there from the centre, and its subgradient: for rejection."""

    z: Array
    rise: float
    gradient: Array


def _check_point(found: Any, history: Potential) -> None:
    right = type(found) is np.ndarray and found.dtype == np.float64 and found.shape == (history.domain.chart_dim,)
    if not right or not np.isfinite(found).all():
        raise ValueError("a point that a sampler has kept is none of its body")


def anchor(history: Potential, z: Array) -> Anchor:
    """Return the tangent at z."""
    return Anchor(z, *history.value_and_gradient(z))


def find_mode(history: Potential, beta: float, lam: float, start: Array, steps: int = 60) -> Anchor:
    """Return a tangent near the mode, by projected subgradient steps; only speed depends on how near."""
    x = start
    best = anchor(history, x)
    best_value = best.rise + 0.5 * lam * float(x @ x)
    radius = history.domain.radius
    total = np.zeros_like(x)
    for k in range(1, steps + 1):
        here = anchor(history, x)
        value = here.rise + 0.5 * lam * float(x @ x)
        if value < best_value:
            best, best_value = here, value
        slope = here.gradient + lam * x
        total += slope * slope
        size = np.sqrt(total)
        # Coordinate-wise steps that adapt to the slopes seen so far.
        step = np.where(size > 0.0, slope / np.where(size > 0.0, size, 1.0), 0.0)
        x = project_in_chart(history.domain, x - radius * step / math.sqrt(x.size) * 0.7 ** (k // 12))
    return best


def _step(
    history: Potential, at: Anchor, beta: float, h: Array, k: float, rng: np.random.Generator, limit: int
) -> tuple[Array | None, int]:
    """Draw exactly from exp(-beta F(x) + h.x - k|x|^2/2) on the body by rejection from the tangent at `at`.

    Returns (point or None after `limit` proposals, proposals). F lies above its tangent, so the acceptance
    probability exp(-beta (F(x) - tangent)) is at most 1.
    """
    d = h.size
    body = history.domain.body
    tilted = h - beta * at.gradient
    P = k * np.eye(d)
    for count in range(1, limit + 1):
        found = draw_gaussian(rng, tilted, P, k, body, 1_000_000)
        if found is None:
            return None, count
        x = found[0]
        gap = history.value(x) - at.rise - float(at.gradient @ (x - at.z))
        if standard_exponential(rng) >= beta * gap:
            return x, count
    return None, limit


@saved("tangent sampler")
class TangentSampler:
    """Exact draws by rejection from one tangent near the mode: good while the losses bend little beside lam."""

    _moves: ClassVar[tuple[str, ...]] = ("at", "counted", "_exact")
    _may_lack: ClassVar[tuple[str, ...]] = ("at",)

    def __init__(self, history: Potential, beta: float, lam: float) -> None:
        self.history, self.beta, self.lam = history, beta, lam
        self.at: Anchor | None = None
        self.counted = self._exact = 0

    _exact = 0  # the rounds that the tangent has seen; some older states do not say

    def _check_moved(self) -> None:
        if self.at is None:
            return
        _check_point(self.at.z, self.history)
        _check_point(self.at.gradient, self.history)
        if type(self.at.rise) is not float or not 0 <= self._exact <= len(self.history):
            raise ValueError(f"its tangent has seen {self._exact} rounds, and lies at {self.at.rise!r}")

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a saved state; tangents of older versions, whose values were not rises, are found anew."""
        vars(self).update(state)
        if self.at is not None and not hasattr(self.at, "rise"):
            self.at, self._exact = Anchor(self.at.z, 0.0, self.at.gradient), 0

    def prepare(self) -> Anchor:
        """Return the tangent at a point near the mode, found again when the past has grown by a tenth."""
        n = len(self.history)
        if self.at is None or n > 1.1 * self.counted:
            start = np.zeros(self.history.domain.chart_dim) if self.at is None else self.at.z
            self.at, self.counted = find_mode(self.history, self.beta, self.lam, start), n
            self._exact = n
        elif n != self._exact:
            self.at, self._exact = anchor(self.history, self.at.z), n
        return self.at

    def draw(self, rng: np.random.Generator, limit: int) -> tuple[Array, int, int] | None:
        """Return (chart point, proposals, rows read), or None after `limit` proposals."""
        at = self.prepare()
        k = self.beta * self.lam
        point, count = _step(self.history, at, self.beta, np.zeros(at.z.size), k, rng, limit)
        return None if point is None else (point, count, (count + 1) * len(self.history))


@saved("proximal sampler")
class ProximalSampler:
    """Certified draws: a chain of exact proximal steps, as many as the distance asked takes (docs/theory, S11)."""

    _moves: ClassVar[tuple[str, ...]] = ("step_size", "tuned_at", "_left")
    _may_lack: ClassVar[tuple[str, ...]] = ("_left",)

    PILOTS = 24

    def __init__(self, history: Potential, beta: float, lam: float, distance: float, tangent: TangentSampler) -> None:
        if lam <= 0.0:
            raise ValueError(
                f"the proximal sampler contracts only for lam > 0, got lam={lam!r}; give the measure a regulariser"
            )
        self.history, self.beta, self.lam = history, beta, lam
        self.target = distance
        self.tangent = tangent
        self.step_size = 0.0
        self.tuned_at = -1
        self._left: tuple[int, int, Array] | None = None  # rounds, steps done and the point of a draw given up

    def _check_moved(self) -> None:
        if self.step_size < 0.0 or not -1 <= self.tuned_at <= len(self.history):
            raise ValueError(f"its chain has steps of {self.step_size!r}, from round {self.tuned_at} on")
        if self._left is not None:
            rounds, done, y = self._left
            _check_point(y, self.history)
            if [type(rounds), type(done)] != [int, int] or not done >= 0 or not 0 <= rounds <= len(self.history):
                raise ValueError(f"its chain was left after {done!r} steps, at round {rounds!r}")

    def steps(self, h: float) -> int:
        """Return how many steps of size h bring the chain within w = target sqrt(h) of the measure, and one more."""
        w = self.target * math.sqrt(h)
        return 1 + max(
            1,
            math.ceil(math.log(max(self.history.domain.diameter / w, 1.0)) / math.log1p(h * self.beta * self.lam)),
        )

    def distance(self, h: float, steps: int) -> float:
        """Return the certified GDP distance after `steps` steps from anywhere."""
        w = self.history.domain.diameter * (1.0 + h * self.beta * self.lam) ** -(steps - 1)
        return w / math.sqrt(h)

    def _noised(self, x: Array, h: float, rng: np.random.Generator) -> Array:
        return x + math.sqrt(h) * rng.standard_normal(x.size)

    def _back(self, y: Array, h: float, rng: np.random.Generator, limit: int) -> tuple[Array | None, int]:
        at = anchor(self.history, project_in_chart(self.history.domain, y))
        return _step(self.history, at, self.beta, y / h, self.beta * self.lam + 1.0 / h, rng, limit)

    def tune(self) -> None:
        """Choose the step size by pilot steps with randomness of their own: it may not depend on that of the chain."""
        n = len(self.history)
        if self.step_size > 0.0 and n <= 1.5 * self.tuned_at:
            return
        # A stream that no seed of a caller gives.
        pilot = np.random.Generator(np.random.PCG64(np.random.SeedSequence([n, 0x70696C6F74])))
        x = self.tangent.prepare().z.copy()
        h = 1.0 / (self.beta * self.lam)
        best_cost, best_h = math.inf, h
        for _ in range(60):
            tries = done = 0
            place = x
            for _ in range(self.PILOTS):
                moved, count = self._back(self._noised(place, h, pilot), h, pilot, 20)
                tries += count
                done += moved is not None
                place = place if moved is None else moved
            # Work per draw: steps times (one pass for the tangent and one per proposal).
            cost = self.steps(h) * (1.0 + tries / done) if done >= self.PILOTS // 2 else math.inf
            if cost < best_cost:
                best_cost, best_h = cost, h
            elif math.isfinite(best_cost) and cost > 2.0 * best_cost:
                break
            h /= 4.0
        self.step_size, self.tuned_at = best_h, n

    @property
    def halfway(self) -> bool:
        """Whether the last draw was given up and no round has come since."""
        return self._left is not None and self._left[0] == len(self.history)

    def draw(self, rng: np.random.Generator, limit: int) -> tuple[Array, int, int, float] | None:
        """Return (chart point, proposals, rows read, distance), or None if more than `limit` proposals are needed.

        The next call then goes on where this one gave up: to begin anew would favour chains that happen to be fast.
        """
        self.tune()
        h = self.step_size
        steps = self.steps(h)
        if steps > limit:
            return None
        n = len(self.history)
        if self._left is not None and self._left[0] == n:
            done, y = self._left[1:]
        else:
            done, y = 0, self._noised(self.tangent.prepare().z, h, rng)
        self._left = None
        proposals = 0
        while True:
            x, count = self._back(y, h, rng, limit - proposals)
            proposals += count
            if x is None:
                self._left = n, done, y
                return None
            done += 1
            if done == steps:
                return x, proposals, (proposals + steps) * n, self.distance(h, steps)
            y = self._noised(x, h, rng)
