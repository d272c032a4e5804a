"""A loaded learner is looked at before it is handed over: does it stand as a learner with its plan can stand?

The checksum finds accidents; this finds a state that was put together by something else than `learner.save`: what has
checks of its own is made again, so that they speak, and what says the same thing twice must say it alike.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reticent._check import integer
from reticent.gibbs import Gibbs
from reticent.learners import PCOMW, Learner
from reticent.learners._inbox import Inbox
from reticent.learners._learner import NEVER

FACE = (
    *("plan", "loss", "_on_steep", "_rng", "_switches", "_rounds", "_gate", "_inbox", "_walk", "_last"),
    *("_x", "_wake"),
)
"""What every learner has."""
EPOCHS = ("_coin", "_before", "_past", "_now", "_epoch", "_length")
"""What a learner that runs in epochs has besides."""


def check_standing(learner: Learner) -> None:
    """Refuse a learner whose parts do not fit together."""
    wanted = {*FACE, *EPOCHS} if isinstance(learner, PCOMW) else {*FACE}
    odd = (vars(learner).keys() - {"_busy"}) ^ wanted
    if odd or learner._busy:
        raise ValueError(f"its state has {sorted(odd) or ['_busy']} too many or too few")
    now = getattr(learner, "_now", learner.plan)
    for plan in {id(plan): plan for plan in (learner.plan, now, *getattr(learner, "_past", ()))}.values():
        _check_plan(plan)
    _check_counts(learner)
    _check_doors(learner)
    _check_decision(learner)
    _check_measure(getattr(learner._walk, "measure", None), now)
    repr(learner)  # reads what else there is of the walk


def _check_plan(plan: Any) -> None:
    again = replace(plan)  # checks every value
    if again != plan or getattr(again, "seal", None) != getattr(plan, "seal", None):
        raise ValueError("its plan is not as the planner wrote it")


def _check_counts(learner: Learner) -> None:
    for name in ("_switches", "_rounds", "_last"):
        integer(name, getattr(learner, name), least=0)
    if learner._torn() or learner._inbox.count:
        raise ValueError(f"it counts {learner._rounds} rounds, and its walk {learner._done()}")
    if learner._last != _last(learner):
        raise ValueError(f"it would go on for {learner._last} rounds, where its plan has {_last(learner)}")
    if learner._rounds > learner._last or learner._wake < learner._rounds:
        raise ValueError(f"it stands at round {learner._rounds} of {learner._last}")


def _last(learner: Learner) -> int:
    """Return how many rounds the promises of the plan last for, as a new learner would."""
    plan = learner.plan
    if not plan.private or plan.horizon is None:
        return NEVER
    if isinstance(learner, PCOMW):
        from reticent.privacy import rounds_within

        return rounds_within(plan)
    return int(plan.horizon)


def _check_doors(learner: Learner) -> None:
    """What lets rounds in must do so as for a new learner, or it holds some back for the full check."""
    gate, inbox = learner._new_gate(), Inbox(learner.plan.domain, learner.loss, learner.plan.lipschitz)
    found, new = learner._inbox.__getstate__(), inbox.__getstate__()
    easier = found.pop("most") > new.pop("most") or found.pop("capacity") > new.pop("capacity")
    if easier or found != new or type(learner._gate) is not type(gate) or vars(learner._gate) != vars(gate):
        raise ValueError("it would let in rounds that its plan does not allow")


def _check_decision(learner: Learner) -> None:
    domain, x = learner.plan.domain, learner._x
    if not np.array_equal(x, domain.from_chart(learner._walk.u)) or not domain.contains(x):
        raise ValueError(f"its decision {x} is not the one of its walk, or lies outside {domain!r}")
    if x.flags.writeable:
        raise ValueError("its decision can be written to")


def _check_measure(measure: Gibbs | None, plan: Any) -> None:
    if measure is None:
        return
    measure.emptied()  # checks every value
    for part in (measure, *measure._samplers.values()):
        if (part.beta, part.lam) != (plan.beta, measure.lam):
            raise ValueError(f"its measure has beta={part.beta!r} and lam={part.lam!r}, which are not the plan's")
