"""The best fixed decision in hindsight, to a certified gap: on a line, by Newton's method, or by levels.

Answers are used as suggestions only (where to look next, how to weigh lower bounds): no guarantee rests on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy

from reticent._core._check import Array, positive
from reticent.domains import Domain, Simplex
from reticent.hindsight._sum import Blocks, Look, ObjectSum, RowSum
from reticent.losses import Custom, GeneralisedLinear, Linear, Loss, Squared

_ITERATIONS = 60  # fifteen to thirty are usual
_GOOD = 1e-13  # residuals and complementarity, relative to a problem scaled to size 1
_STALE = 5  # iterations without a better point: rounding has the upper hand


def solve_program(
    H: Array, c: Array, A: Array, b: Array, ball: float = 0.0, round_dims: int = 0
) -> tuple[Array, Array]:
    """Minimise `x @ H @ x / 2 + c @ x` over `A @ x <= b`; return a minimiser and the multipliers of the rows.

    With `ball` above 0, the first `round_dims` coordinates also have to lie in the ball of that radius around 0.
    Mehrotra's predictor and corrector from an infeasible start; the ball is one more, curved, constraint.

    >>> x, forces = solve_program(np.eye(2), np.array([-3.0, 0.0]), np.array([[1.0, 0.0]]), np.array([1.0]))
    >>> x.round(8) + 0.0, forces.round(8)
    (array([1., 0.]), array([2.]))
    >>> solve_program(np.zeros((2, 2)), np.array([-3.0, 4.0]), np.zeros((0, 2)), np.zeros(0), 1.0, 2)[0].round(8)
    array([ 0.6, -0.8])
    """
    size = np.linalg.norm(A, axis=1)
    size[size == 0] = 1.0
    unit = ball if ball > 0 else max(1e-300, float(np.abs(b / size).max()))  # the scale of x
    weight = max(float(np.abs(c).max()) * unit, float(np.abs(H).max()) * unit * unit, 1e-300)
    x, forces = _scaled(
        H * (unit * unit / weight), c * (unit / weight), A / size[:, None], b / size / unit, ball > 0, round_dims
    )
    return x * unit, forces * (weight / unit) / size


def _scaled(H: Array, c: Array, A: Array, b: Array, ball: bool, round_dims: int) -> tuple[Array, Array]:
    dim, m = c.size, b.size
    curl = np.zeros(dim)  # the Hessian of the ball's constraint |x|^2 / 2 - 1 / 2
    curl[:round_dims] = 1.0 if ball else 0.0
    J = np.vstack([A, np.zeros((int(ball), dim))])
    x = np.zeros(dim)
    slack, force = np.maximum(np.append(b, [0.5] * ball), 0.1), np.ones(m + ball)
    best, kept, stale = np.inf, (x, force), 0
    for _ in range(_ITERATIONS):
        over = np.append(A @ x - b, [0.5 * float(x @ (curl * x)) - 0.5] * ball) + slack
        if ball:
            J[m] = curl * x
        push = H @ x + c + J.T @ force
        gap = float(slack @ force) / max(1, slack.size)
        off = max(float(np.abs(push).max()), float(np.abs(over).max(initial=0.0)), gap)
        if off < best:
            best, kept, stale = off, (x, force), 0
        stale += 1
        if off <= _GOOD or (stale > _STALE and best <= 1e-8):
            break
        W = H + (force[m] * np.diag(curl) if ball else 0.0)
        D = force / slack
        K = W + (J.T * D) @ J
        # A little ridge keeps directions without curvature and without constraints from blowing up.
        K[np.diag_indices(dim)] += 1e-14 * max(1.0, float(np.trace(K)))
        try:
            factor = scipy.linalg.cho_factor(K, check_finite=False)
        except (scipy.linalg.LinAlgError, ValueError):
            break

        target = np.zeros_like(slack)
        dx = scipy.linalg.cho_solve(factor, -push - J.T @ (-force + D * over), check_finite=False)
        ds = -over - J @ dx
        df = (target - force * ds) / slack - force
        step = _reach(slack, ds, force, df)
        ahead = float((slack + step * ds) @ (force + step * df)) / max(1, slack.size)
        centring = (ahead / gap) ** 3 if gap > 0 else 0.0
        target = centring * gap - ds * df
        dx = scipy.linalg.cho_solve(factor, -push - J.T @ (target / slack - force + D * over), check_finite=False)
        ds = -over - J @ dx
        df = (target - force * ds) / slack - force
        step = 0.995 * _reach(slack, ds, force, df)
        if not (np.isfinite(dx).all() and np.isfinite(df).all()) or step < 1e-10:
            break
        x = x + step * dx
        slack, force = slack + step * ds, force + step * df
    return kept[0], kept[1][:m]


def _reach(slack: Array, ds: Array, force: Array, df: Array) -> float:
    """Return the longest step, at most 1, that keeps slacks and forces from going negative."""
    both, move = np.concatenate([slack, force]), np.concatenate([ds, df])
    down = move < 0
    with np.errstate(over="ignore"):  # an infinite reach is cut to 1
        return min(1.0, float((both[down] / -move[down]).min(initial=np.inf)))


# Lower bounds of a linear function over a body that hold whatever a solver says, and points drawn back inside.


def linear_floor(domain: Domain, slope: Array) -> float:
    """Return a lower bound of `slope @ u` over the chart points u of the domain; tight up to rounding.

    Balls, boxes and simplices have closed forms. For a polytope, the vertex that a solver finds only says which rows
    to weigh: for any `y >= 0`, `slope @ u >= -b @ y + (slope + A.T @ y) @ u`, and what is left over in the last
    term (nothing, up to rounding, for the right y) is bounded over the bounding box.

    >>> from reticent.domains import Ball, Interval
    >>> linear_floor(Ball(2, radius=2.0), np.array([3.0, 4.0])), linear_floor(Interval(0.0, 4.0), np.array([-1.0]))
    (-10.0, -2.0)
    """
    body = domain.body
    if body.ball:
        return -float(np.linalg.norm(slope)) * body.radius
    if body.box:
        return float(np.minimum(slope * body.lo, slope * body.hi).sum())
    if isinstance(domain, Simplex):
        return float((domain.to_chart(np.eye(domain.dim)) @ slope).min())
    size = float(np.abs(slope).max())
    if size == 0.0:
        return 0.0
    c = slope / size  # the chart of a polytope only moves the origin: a slope is the same in both
    A, b = body.A[: body.rows], body.b[: body.rows]
    vertex = domain.to_chart(domain.support(c))
    best = -np.inf
    for near in (1e-9, 1e-6, np.inf):
        rows = np.flatnonzero(b - A @ vertex <= near * body.radius)
        if not rows.size:
            continue
        y, left = scipy.optimize.nnls(A[rows].T, -c, maxiter=100 * (rows.size + c.size))
        rest = c + A[rows].T @ y
        best = max(best, float(-b[rows] @ y + np.minimum(rest * body.lo, rest * body.hi).sum()))
        if left <= 1e-9:
            break
    return best * size


def inward(domain: Domain, u: Array) -> Array:
    """Return u, or where it lies outside the body the point of it towards the centre.

    >>> from reticent.domains import Ball
    >>> inward(Ball(2), np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """
    body = domain.body
    if body.box:
        clipped: Array = np.clip(u, body.lo, body.hi)
        return clipped
    if body.ball:
        over = float(np.linalg.norm(u)) / body.radius
    else:
        # The centre is strictly inside, so all levels are positive.
        over = float((body.A[: body.rows] @ u / body.b[: body.rows]).max())
    drawn: Array = u / over if over > 1.0 else u
    return drawn


# What is known of the least total loss: the best point so far, and a lower bound from affine minorants.

Total = RowSum | ObjectSum


class Record:
    """The best point, and the best certified lower bound, from the passes so far.

    Every pass gives an affine minorant of the sum. A weighted mean of minorants is one too, so for any weights the
    least value of that mean over the body is a lower bound: a solver proposes weights, `linear_floor` does the rest.
    In floating point the weights are what they are (non-negative, divided by their sum), and the error of the
    constants, slopes and dot products is within `total.rounding`, which `gap` adds.
    """

    def __init__(self, domain: Domain, total: Total, wanted: float) -> None:
        self.domain, self.total, self.wanted = domain, total, wanted
        self.value, self.lower = np.inf, -np.inf
        self.point = np.zeros(domain.chart_dim)
        self.consts, self.slopes = np.zeros(0), np.zeros((0, domain.chart_dim))
        self.idle = np.zeros(0, dtype=np.int64)  # for how many programs a minorant has had no weight

    @property
    def gap(self) -> float:
        """How far the least value may lie below `value`, rounding included."""
        return max(0.0, self.value - self.lower) + self.total.rounding

    @property
    def done(self) -> bool:
        """Whether the gap is as wanted, or as small as rounding lets it become."""
        return self.gap <= max(self.wanted, 1.5 * self.total.rounding)

    def inside(self, u: Array) -> Array:
        """Return u, drawn back into the body where it lies outside."""
        return inward(self.domain, u)

    def add(self, look: Look) -> float:
        """Take in what a pass found; return how far its smooth value may be above the least one (Frank-Wolfe gap)."""
        if look.value < self.value:
            self.value, self.point = look.value, look.point
        floor = linear_floor(self.domain, look.slope)
        self.lower = max(self.lower, look.const + floor)
        self.consts, self.slopes = np.append(self.consts, look.const), np.vstack([self.slopes, look.slope])
        self.idle = np.append(self.idle, 0)
        return max(0.0, float(look.slope @ look.point) - floor)

    def constraints(self) -> tuple[Array, Array, float]:
        """Return rows, levels and the radius of the ball (0 for none) of the body."""
        body = self.domain.body
        return body.A[: body.rows], body.b[: body.rows], body.radius if body.ball else 0.0

    def combine(self) -> None:
        """Raise the lower bound by the best mean of minorants; forget minorants long without weight."""
        if self.domain.chart_dim == 1:
            self._combine_on_line()
            return
        A, b, ball = self.constraints()
        d, k = self.domain.chart_dim, len(self.consts)
        # In units of the body and of the steepest minorant: minimise t above all minorants.
        steep = max(float(np.linalg.norm(self.slopes, axis=1).max()), 1e-300)
        unit = steep * self.domain.radius
        base = float(self.consts.max())
        rows = np.zeros((len(A) + k, d + 1))
        rows[: len(A), :d], rows[len(A) :, :d], rows[len(A) :, d] = A, self.slopes / steep, -1.0
        levels = np.concatenate([b, (base - self.consts) / steep])
        cost = np.zeros(d + 1)
        cost[d] = 1.0
        # t is measured in lengths here: one unit of t is `steep` of loss, so that rows and body have one scale.
        _, forces = solve_program(np.zeros((d + 1, d + 1)), cost, rows, levels, ball, d)
        weights = np.maximum(forces[len(A) :], 0.0)
        if weights.sum() > 0 and np.isfinite(weights).all() and unit > 0:
            weights /= weights.sum()
            mean = float(weights @ self.consts) + linear_floor(self.domain, weights @ self.slopes)
            self.lower = max(self.lower, mean)
            self.idle = np.where(weights > 1e-9, 0, self.idle + 1)
        kept = self.idle < 12 + 2 * d
        self.consts, self.slopes, self.idle = self.consts[kept], self.slopes[kept], self.idle[kept]

    def _combine_on_line(self) -> None:
        """Raise the lower bound by means of two minorants, one falling and one rising, that are level."""
        slopes = self.slopes[:, 0]
        falling, rising = np.flatnonzero(slopes < 0), np.flatnonzero(slopes > 0)
        if not (falling.size and rising.size):
            return
        down, up = slopes[falling][:, None], slopes[rising][None, :]
        share = up / (up - down)
        means = share * self.consts[falling][:, None] + (1.0 - share) * self.consts[rising][None, :]
        i, j = np.unravel_index(int(np.argmax(means)), means.shape)
        left = share[i, j] * down[i, 0] + (1.0 - share[i, j]) * up[0, j]  # 0 but for rounding
        self.lower = max(self.lower, float(means[i, j]) + linear_floor(self.domain, np.array([left])))
        kept = np.sort(np.append(np.argsort(self.consts + slopes * self.point[0])[-40:], [falling[i], rising[j]]))
        kept = np.unique(kept)
        self.consts, self.slopes, self.idle = self.consts[kept], self.slopes[kept], self.idle[kept]


_LEVEL = 0.3  # how far above the lower bound the next point is looked for, as a share of the gap
_BARREN = 40  # passes without a gap a tenth smaller, after which the method gives up


def level(total: Total, record: Record, passes: int) -> None:
    """Shrink the gap of a record with at most `passes` passes.

    Lemarechal, Nemirovskii and Nesterov (1995): project the last point onto where all minorants lie below a level
    between the bounds. Passes grow with 1/gap^2 at worst, whatever the dimension; usually with its logarithm.
    """
    if not len(record.consts):
        record.add(total.look(record.point, bend=False))
    A, b, ball = record.constraints()
    last = total.passes + passes
    at, best, since = record.point, np.inf, 0
    while total.passes < last:
        record.combine()
        if record.done or since > _BARREN:
            return
        best, since = (record.gap, 0) if record.gap < 0.9 * best else (best, since + 1)
        goal = record.lower + _LEVEL * (record.value - record.lower)
        steep = max(float(np.linalg.norm(record.slopes, axis=1).max()), 1e-300)
        rows = np.vstack([A, record.slopes / steep])
        levels = np.concatenate([b, (goal - record.consts) / steep])
        found, _ = solve_program(np.eye(at.size), -at, rows, levels, ball, at.size)
        at = record.inside(found)
        record.add(total.look(at, bend=False))


# The least sum of kinked losses on a line: exact, from the sorted kinks near the change of sign of the slope.

_SORTED = 1 << 20  # kinks sorted at once
_BINS = 1 << 12  # parts into which one pass divides the line
_NARROWINGS = 4  # passes that divide it further: more would be below the spacing of doubles


def line(total: RowSum, record: Record) -> None:
    """Find the minimiser in a few passes: narrow the place down by histograms of kinks, then sort those left."""
    low, high = float(record.domain.body.lo[0]), float(record.domain.body.hi[0])
    end = max(abs(low), abs(high))
    for _ in range(_NARROWINGS):
        if total.rounds <= _SORTED:
            break
        before, jumps, counts = _histogram(total, low, high)
        edges = np.linspace(low, high, _BINS + 1)
        slopes = before + np.cumsum(jumps)
        place = int(np.searchsorted(slopes, 0.0))
        if place >= _BINS:
            low = high
            break
        low, high = float(edges[place]), float(edges[place + 1])
        if counts[place] <= _SORTED or high - low <= 1e-15 * end:
            break
    best = low if low == high else _sorted(total, low, high)
    # Beside the minimiser on both sides, so that the two minorants meet at it.
    tiny = 4.0 * np.spacing(end)
    for at in (best, best - tiny, best + tiny):
        record.add(total.look(record.inside(np.array([at])), bend=False))
    record.combine()


def _kinks(total: RowSum, vectors: Array, offsets: Array, low: float) -> tuple[float, Array, Array]:
    """Return the slope at the left end, and place and jump of all kinks to the right of it."""
    a = vectors[:, 0]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        places = (total.kink - offsets) / a
    # A row with a < 0 goes through its slopes from the right.
    first, then = np.where(a >= 0, total.low, total.high) * a, np.where(a >= 0, total.high, total.low) * a
    passed = places <= low
    ahead = (places > low) & (a != 0)
    return float(np.where(passed, then, first).sum()), places[ahead], (then - first)[ahead]


def _histogram(total: RowSum, low: float, high: float) -> tuple[float, Array, Array]:
    slope, jumps, counts = 0.0, np.zeros(_BINS), np.zeros(_BINS)
    for vectors, offsets in total.chunks():
        start, places, steps = _kinks(total, vectors, offsets, low)
        slope += start
        inside = places <= high
        bins = np.minimum(((places[inside] - low) * (_BINS / (high - low))).astype(np.int64), _BINS - 1)
        jumps += np.bincount(bins, steps[inside], _BINS)
        counts += np.bincount(bins, minlength=_BINS)
    return slope, jumps, counts


def _sorted(total: RowSum, low: float, high: float) -> float:
    slope, parts = 0.0, []
    room = _SORTED
    for vectors, offsets in total.chunks():
        start, places, steps = _kinks(total, vectors, offsets, low)
        slope += start
        inside = places <= high
        if room > 0 or total.rounds <= _SORTED:
            parts.append((places[inside], steps[inside]))
            room -= int(inside.sum())
    places, steps = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(places)
    slopes = slope + np.cumsum(steps[order])
    place = -1 if slope >= 0 else int(np.searchsorted(slopes, 0.0))
    if place < 0:
        return low
    return float(places[order[place]]) if place < len(order) else high


# Newton's method for the least sum of losses on a body; kinks are rounded off, less and less.

_CUTS = 8  # shorter and shorter steps tried in one direction


def newton(total: RowSum, record: Record, start: Array, width: float, passes: int) -> None:
    """Look for the minimiser from `start`, with at most `passes` passes over the data.

    Stops when the record has the wanted gap, or when no progress is made. With kinks rounded off over `width`, the
    gap is that of the rounded problem plus what the rounding leaves, which falls with the square of the width where
    kinks lie apart: so the width follows from the gap wanted.
    """
    last = total.passes + passes
    finest = max(record.wanted, total.rounding) / max(1, total.rounds) if total.kinked else 0.0
    width = max(width, finest) if total.kinked else 0.0
    look = total.look(record.inside(start), width)
    behind = record.add(look)
    while not record.done and total.passes < last:
        left = look.value - look.const - float(look.slope @ look.point)  # what rounding off the kinks leaves
        if total.kinked and width > finest and behind <= max(0.5 * left, 0.25 * record.wanted):
            ratio = math.sqrt(0.25 * record.wanted / left) if left > 0 else 0.03
            width = max(finest, width * min(max(ratio, 0.03), 0.3))
            look = total.look(look.point, width)
            behind = record.add(look)
            continue
        found = _step(total, record, look, width, last)
        if found is None:
            return
        look, behind = found


def _step(total: RowSum, record: Record, look: Look, width: float, last: int) -> tuple[Look, float] | None:
    """Take one step, shortened until it pays; None where none does."""
    u = look.point
    A, b, ball = record.constraints()
    bend = look.bend + 1e-12 * max(float(np.trace(look.bend)), 1e-300) / u.size * np.eye(u.size)
    goal, _ = solve_program(bend, look.slope - bend @ u, A, b, ball, u.size)
    move = record.inside(goal) - u
    gain = -float(look.slope @ move)
    if not gain > total.rounding:
        return None
    fraction = 1.0
    for _ in range(_CUTS):
        if total.passes >= last:
            return None
        new = total.look(record.inside(u + fraction * move), width)
        behind = record.add(new)
        if record.done or new.smooth <= look.smooth - 1e-3 * fraction * gain:
            return new, behind
        # Where the slope along the step would vanish, were it linear.
        end = float(new.slope @ move)
        fraction *= min(max(gain / (gain + end), 0.1), 0.6) if end > 0 else 0.3
    return None


# The best fixed decision in hindsight, to a certified gap.

_RELATIVE = 1e-6  # the gap unless given, as a share of lipschitz * diameter * rounds
_LARGE = 1 << 17  # rows from which on a sample tells where to start
_NEWTON = 60  # passes of Newton's method before the level method takes over
_PASSES = 200  # passes of the level method


@dataclass(frozen=True, slots=True, eq=False)
class Hindsight:
    """A decision, the sum of all losses at it, and how far below that the least sum over the domain may be.

    The least sum lies in `[value - gap, value]`; the gap holds an allowance for the rounding of the sums. `passes`
    says how often the data was read. `rise` is by how much the sum at the decision exceeds that at the centre of the
    domain, and `rise_gap` how far below that the least may be: one loss far larger than all others takes the digits of
    the sum, but not of these. None where they are not known.
    """

    point: Array
    value: float
    gap: float
    passes: int
    rise: float | None = None
    rise_gap: float | None = None

    def __setstate__(self, state: list[Any]) -> None:
        """Take a pickled state; those of older versions know no rise."""
        for field, value in zip(fields(self), [*state, None, None], strict=False):
            object.__setattr__(self, field.name, value)


def best_fixed(domain: Domain, loss: Loss, blocks: Blocks, lipschitz: float, *, gap: float | None = None) -> Hindsight:
    """Return a decision whose total loss over the prepared `blocks` is within a certified gap of the least.

    `blocks` are rounds as `loss.prepare` returns them, or a function that gives them afresh for every pass. `gap`
    is the gap wanted, `1e-6 * lipschitz * diameter * rounds` unless given. Where that takes too many passes, the
    gap reported is what was reached; it is never less than the truth.

    Linear losses need the support function only. Smooth ones are solved by Newton's method on the body, kinked ones
    exactly on a line and otherwise by Newton's method with the kinks rounded off, custom ones by the level method.
    The lower bound is the least value over the domain of an affine function that lies below the sum of losses. On a
    finite set every decision is tried.

    >>> from reticent.domains import Interval
    >>> from reticent.losses import Absolute
    >>> domain = Interval(0.0, 10.0)
    >>> rows = Absolute().prepare(domain, [[1.0], [1.0], [1.0]], [1.0, 2.0, 9.0])
    >>> best = best_fixed(domain, Absolute(), [rows], 1.0)
    >>> float(best.point[0]), best.value, best.gap < 1e-10
    (2.0, 8.0, True)
    """
    steep = positive("lipschitz", lipschitz)
    wanted = None if gap is None else positive("gap", gap, zero=True)
    if domain.finite:
        return _finite(domain, loss, blocks)
    if isinstance(loss, Custom):
        record = _custom(domain, loss, blocks, steep, wanted)
    elif isinstance(loss, GeneralisedLinear | Linear):
        record = _rows(domain, loss, blocks, steep, wanted)
    else:
        raise ValueError(f"no solver knows the loss {loss!r}; wrap it in Custom(value, subgradient)")
    return _found(domain, record.total, record.point, record.value, record.gap)


def _found(domain: Domain, total: Total, u: Array, rise: float, gap: float) -> Hindsight:
    return Hindsight(domain.from_chart(u), total.base + rise, gap + total.blur, total.passes, rise, gap)


def _goal(domain: Domain, rounds: int, steep: float, wanted: float | None) -> float:
    return _RELATIVE * steep * domain.diameter * rounds if wanted is None else wanted


def _custom(domain: Domain, loss: Custom, blocks: Blocks, steep: float, wanted: float | None) -> Record:
    total = ObjectSum(domain, loss, blocks)
    first = total.look(np.zeros(domain.chart_dim))
    _refuse_empty(total.rounds)
    record = Record(domain, total, _goal(domain, total.rounds, steep, wanted))
    record.add(first)
    level(total, record, _PASSES)
    return record


def _rows(domain: Domain, loss: Loss, blocks: Blocks, steep: float, wanted: float | None) -> Record:
    sampling = not isinstance(loss, Linear | Squared) and domain.chart_dim > 1
    total = RowSum(domain, loss, blocks, sample=sampling)
    _refuse_empty(total.rounds)
    record = Record(domain, total, _goal(domain, total.rounds, steep, wanted))
    middle = np.zeros(domain.chart_dim)
    if isinstance(loss, Linear):
        _linear(record, total)
    elif total.kinked and domain.chart_dim == 1:
        line(total, record)
    else:
        start, width = middle, 0.3 * total.reach
        if sampling and total.rounds > _LARGE:
            rows = total.sample()
            small = RowSum(domain, loss, [rows])
            # A sample of m rows knows the minimiser to about 1 / sqrt(m): no use in solving it further than that.
            guess = Record(domain, small, 1e-4 * steep * domain.diameter * small.rounds)
            newton(small, guess, middle, width, _NEWTON)
            start, width = guess.point, 2.0 * total.reach / float(np.sqrt(small.rounds))
        newton(total, record, start, width, _NEWTON)
        if not record.done:
            level(total, record, _PASSES)
    return record


def _finite(domain: Domain, loss: Loss, blocks: Blocks) -> Hindsight:
    """Return the point of a finite set with the least sum: column sums, whose error `RowSum.rounding` bounds."""
    if not isinstance(loss, Linear):
        raise ValueError(f"losses over {domain!r} must be Linear(), got {loss!r}")
    total = RowSum(domain, loss, blocks)
    _refuse_empty(total.rounds)
    sums = np.zeros(domain.chart_dim)
    for vectors, _ in total.chunks():
        sums += vectors.sum(axis=0)
    best = int(np.argmin(sums))
    point = np.zeros(domain.chart_dim)
    point[best] = 1.0
    return _found(domain, total, point, float(sums[best]), total.rounding)


def _linear(record: Record, total: RowSum) -> None:
    look = total.look(record.point, bend=False)
    record.add(look)
    domain = record.domain
    # The chart is an isometry, so the slope in user coordinates is its image.
    push = domain.from_chart(np.zeros(domain.chart_dim))
    scale = float(np.abs(look.slope).max())
    if scale > 0:
        small = look.slope / scale * (0.1 * domain.radius)
        point = record.inside(domain.to_chart(domain.support(domain.from_chart(small) - push)))
        value = look.const + float(look.slope @ point)
        if value < record.value:
            record.value, record.point = value, point


def _refuse_empty(rounds: int) -> None:
    if rounds == 0:
        raise ValueError("blocks must hold at least one round, got none; observe something first")
