"""The budgeted follower: when to go where the learner in the background stands, with a guard behind."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from reticent._core._check import Array
from reticent._core._tags import saved
from reticent.losses import Custom, GeneralisedLinear, Loss, Objects, Rows
from reticent.saving import check_rows, refuse_unless
from reticent.systems._decider import Changes, Decider
from reticent.systems._learner import SystemLearner
from reticent.systems._plan import SystemPlan
from reticent.systems.budgeted._memories import STEPS, Memories, nearest
from reticent.systems.budgeted._plan import BudgetedPlan
from reticent.systems.budgeted._price import Prices


@saved("budgeted follower")
class BudgetedFollower(SystemLearner):
    """Changes its decision where that pays most, and never more often than its budget.

    Algorithm: in the background descent at ten step sizes (on a line also the best points of windows) is mixed by
    Hedge. The decision goes there once it has lost more than a price against it; the price is the lowest at which
    followers of constant prices made no more changes a round than are left. All of that is a heuristic.
    Theorem: never more than `plan.budget` changes; regret <= 3/2 of the bound of blocked descent with a quarter of them
    plus G diameter `plan.batch`, for losses that may react to decisions (docs/theory, R13): the guard, blocked descent,
    is followed once the run has lost half of its bound against it. Assumes convex Lipschitz losses. Not private.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_budgeted(rt.Interval(0.0, 10.0), 2_000, 0.9, max_switches=20)
    >>> learner = rt.learners.BudgetedFollower(plan, rt.Pinball(0.9))
    >>> level = np.repeat([2.0, 6.0, 3.0, 8.0], 500)
    >>> trace = learner.observe_many(np.ones(2_000), level + np.random.default_rng(0).normal(size=2_000))
    >>> trace.switches <= 20, bool(trace.losses.mean() < 0.35)
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = BudgetedPlan

    def _new_walk(self) -> Decider:
        return Following(self.plan, self.loss)

    def spent(self, delta: float | None = None) -> float:
        """Refuse: nothing here is private."""
        self._level(delta)
        raise ValueError(f"{self.plan.system} is not a private system, and has no account")

    def _check_counts(self) -> None:
        super()._check_counts()
        used = getattr(self._walk, "used", None)
        if used != self._switches:
            raise ValueError(f"it has made {self._switches} changes, and its walk {used!r}")

    def __repr__(self) -> str:
        """Say where the learner stands."""
        of = "" if self.plan.horizon is None else f" of {self.plan.horizon}"
        return f"<BudgetedFollower {self.loss!r}: {self._rounds} rounds{of}, {self._switches} switches>"


@saved("walk of the budgeted follower")
class Following:
    """Collects blocks of rounds; at the end of each it looks at whether a change pays."""

    _moves: ClassVar[tuple[str, ...]] = (
        "done",
        "torn",
        "u",
        "used",
        "saved",
        "end",
        "batch",
        "left",
        "memories",
        "prices",
        "guard",
        "pull",
        "behind",
        "following",
        "began",
        "kept",
    )

    def __init__(self, plan: BudgetedPlan, loss: Loss) -> None:
        """Start at the centre."""
        self.plan, self.loss = plan, loss
        d, G, R = plan.domain.chart_dim, plan.lipschitz, plan.domain.radius
        self.done, self.torn = 0, False
        self.u: Array = np.zeros(d)
        self.used = 0  # changes
        self.saved = 0.0  # what a change would have saved by now
        self.end, self.batch, self.left = plan.stretch(0, 0)
        self.memories = Memories(plan.domain, loss, plan.horizon, self.batch)
        gap = None if plan.horizon is None else plan.horizon / max(1, plan.budget)
        self.prices = Prices(G * R, gap, d)
        self.guard: Array = np.zeros(d)  # blocked descent
        self.pull: Array = np.zeros(d)  # the gradients of its open block
        self.behind = 0.0  # how much more than the guard the run has lost
        self.following = False  # whether the guard is followed
        self.began = 0  # where the open block began
        self.kept: list[Any] = []  # its rounds

    def _check_moved(self) -> None:
        plan = self.plan
        refuse_unless(self.used <= plan.budget, f"it has made {self.used} changes of {plan.budget}")
        if plan.horizon is not None:
            end, batch, left = plan.stretch(0, 0)
            same = (self.end, self.batch, self.left) == (end, batch, left - self.used)
        else:
            same = self.batch >= 1 and self.end > self.began
        refuse_unless(same, f"its blocks have {self.batch} rounds, up to round {self.end}")
        held = sum(check_rows(rows, plan.domain) for rows in self.kept)
        inside = 0 <= self.began <= self.done < self.due and held == self.done - self.began
        refuse_unless(inside, f"its open block begins at round {self.began}, with {held} rounds, of {self.done}")

    @property
    def due(self) -> int:
        """How many rounds will have been taken in when the decision may change next: at the end of the block."""
        close = self.began + self.batch
        if self.plan.guarded:
            length = self.plan.guard_batch  # whose blocks end with blocks of the run
            close = min(close, (self.began // length + 1) * length)
        return min(close, self.end) if self.began < self.end else close

    @property
    def frozen(self) -> bool:
        """Whether the budget is spent."""
        return self.used >= self.plan.budget

    def take(self, rows: Any, changes: Changes) -> None:
        """Take in prepared rounds, and look at the end of each block whether to change."""
        start = 0
        while start < len(rows):
            stop = min(len(rows), start + self.due - self.done)
            part = rows[start:stop].copy()
            block = None
            if self.done + stop - start == self.due:
                block = _Block(self, type(part).join([*self.kept, part]))  # functions of the caller may raise
            self.torn = True
            self.done += stop - start
            self.kept.append(part)
            if block is not None:
                self._close(block, changes)
            self.torn = False
            start = stop

    def _close(self, block: _Block, changes: Changes) -> None:
        plan, size = self.plan, self.done - self.began
        ahead = block.ahead
        self.memories.learn(block.rows, block.late, block.gradients, plan.domain.radius / (plan.lipschitz * size))
        point = self.memories.point
        self.prices.learn(block.followers, ahead, point)
        self.saved = max(0.0, self.saved + block.own - ahead)
        self.behind += block.own - block.guard
        self.began, self.kept = self.done, []
        if plan.guarded:
            self.pull = self.pull + block.guard_gradient
            if self.done % plan.guard_batch == 0:
                self.guard = nearest(plan.domain, (self.guard - plan.guard_step * self.pull)[None])[0]
                self.pull = np.zeros_like(self.pull)
            if not self.following and self.behind > plan.guard_bound / 2:
                self.following = True
        if self.following:
            self._go(self.guard, changes)
        elif self.left > 0 and self._free() > 0:
            price = self.prices.price(self.left, self.done, self.end - self.done)
            if self.saved > price:
                self._go(point, changes)
        if self.done >= self.end and self.plan.horizon is None:
            self.end, self.batch, self.left = plan.stretch(self.done, self.used)

    def _free(self) -> int:
        """Return how many changes are left beside those that the guard may need."""
        plan = self.plan
        left = plan.budget - self.used
        if not plan.guarded or plan.horizon is None or self.done >= plan.horizon:
            return left
        rest = plan.lipschitz * plan.domain.diameter * (plan.horizon - self.done)
        if self.behind + rest <= plan.guard_bound / 2:
            return left  # it will not be needed any more
        return left - 1 - (plan.horizon // plan.guard_batch - self.done // plan.guard_batch)

    def _go(self, point: Array, changes: Changes) -> None:
        """Change the decision, if that is another and may still be done."""
        domain = self.plan.domain
        if self.frozen or np.array_equal(domain._from_chart(self.u), domain._from_chart(point)):
            return
        self.u, self.saved = point.copy(), 0.0
        self.used += 1
        self.left -= 1
        changes.add(self.done, self.u)


class _Block:
    """What all the points of a walk lose in a block, and the gradients where they are needed; nothing is changed."""

    def __init__(self, walk: Following, rows: Any) -> None:
        memories, prices = walk.memories, walk.prices
        first = STEPS.size + 1  # of these gradients are needed
        rest = first + 2 + len(prices.points)
        held = memories.held
        points = np.empty((rest + len(held), walk.u.size))
        points[: first - 1] = memories.points[: STEPS.size]
        points[first - 1], points[first], points[first + 1] = walk.guard, walk.u, memories.point
        points[first + 2 : rest], points[rest:] = prices.points, held
        losses, gradients = _read(walk.plan.domain, walk.loss, rows, points, first)
        self.rows = rows if isinstance(rows, Rows) else None
        self.gradients, self.guard_gradient = gradients[:-1], gradients[-1]
        self.guard, self.own, self.ahead = (float(loss) for loss in losses[first - 1 : first + 2])
        self.followers, self.late = losses[first + 2 : rest], losses[rest:]


def _read(domain: Any, loss: Loss, rows: Any, points: Array, first: int) -> tuple[Array, Array]:
    """Return the sums of the losses of rounds at points of the chart, and of their gradients at the first of them."""
    if isinstance(rows, Objects):
        assert isinstance(loss, Custom)
        losses, gradients = np.zeros(len(points)), np.zeros((first, points.shape[1]))
        decisions = domain.from_chart(points)
        for item, scale, bound in zip(rows.items, rows.scales, rows.bounds, strict=True):
            for i, x in enumerate(decisions):
                value, slope = loss.look(domain, x, item, float(bound / scale) if scale > 0 else np.inf)
                losses[i] += scale * value
                if i < first:
                    gradients[i] += domain.pull(scale * slope[None])[0][0]
        return losses, gradients
    assert isinstance(rows, Rows)
    margins = rows.vectors @ points.T
    if not isinstance(loss, GeneralisedLinear):
        return margins.sum(axis=0), np.tile(rows.vectors.sum(axis=0), (first, 1))
    margins += rows.offsets[:, None]
    slopes: Array = loss.dphi(margins[:, :first]).T @ rows.vectors
    totals: Array = loss.phi(margins).sum(axis=0)
    return totals, slopes
