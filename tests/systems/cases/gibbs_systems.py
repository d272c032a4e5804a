"""Cases of lazy-to-private, continuous multiplicative weights and the online Newton step."""

import math

from _case import Case
from descent import distance

import reticent as rt
from reticent.planning import FlatPlan, LazyToPrivatePlan, plan_flat, plan_l2p, plan_newton


def renewed():
    return LazyToPrivatePlan(
        rt.Ball(3), 400, 1.0, beta=0.05, lam=60.0, p=0.05, budget=40, batch=2, refresh=0.1, refreshes=12
    )


CASES = [
    Case("l2p-never", lambda: plan_l2p(rt.Ball(2), 400, 1.0, 3.0, 1e-5, refresh="never"), rt.Logistic()),
    Case("l2p-published", lambda: plan_l2p(rt.Interval(-1.0, 1.0), 400, 1.0, 3.0, 1e-5), rt.Absolute()),
    Case("l2p-by-hand", renewed, rt.Linear()),
    Case(
        "l2p-box-lazy",
        lambda: plan_l2p(rt.Box([-1, 0], [1, 2]), 400, 1.0, 5.0, 1e-5, max_switches=12, refresh="never"),
        rt.Linear(),
    ),
    Case(
        "l2p-custom",
        lambda: LazyToPrivatePlan(rt.Interval(-1.0, 1.0), 120, 1.0, beta=0.1, lam=20.0, p=0.03, budget=12),
        distance,
    ),
    Case("flat-ball", lambda: plan_flat(rt.Ball(2), 400, 1.0, 3.0, 1e-5), rt.Logistic()),
    Case("flat-interval", lambda: plan_flat(rt.Interval(0.0, 2.0), 400, 1.0, 3.0, 1e-5), rt.Absolute()),
    Case("flat-box", lambda: FlatPlan(rt.Box([-1, 0], [1, 2]), 300, 1.0, beta=0.05, p=0.05, budget=60), rt.Linear()),
    Case("flat-lazy", lambda: rt.planning.plan_flat_lazy(rt.Interval(-1.0, 1.0), 400, 1.0, 60), rt.Absolute()),
    Case("newton-ball", lambda: plan_newton(rt.Ball(3), 400, 1.0, math.exp(-1.0)), rt.Logistic()),
    Case("newton-box", lambda: plan_newton(rt.Box([-1, 0], [1, 2]), 400, 2.0, 0.05), rt.Logistic(), scale=0.5),
    Case("newton-squared", lambda: plan_newton(rt.Simplex(4), 400, 1.0, 0.2), rt.Squared(), scale=0.7),
]
