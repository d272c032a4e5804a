"""Cases of gradient descent and FTRL."""

import numpy as np
from _case import Case

import reticent as rt


def away(x, c):
    return float(np.linalg.norm(x - c))


def from_there(x, c):
    return (x - c) / max(np.linalg.norm(x - c), 1e-12)


distance = rt.Custom(away, from_there, lipschitz=1.0)

CASES = [
    Case("descent-far", lambda: rt.planning.plan_descent(rt.Interval(1e6, 1e6 + 1), 400, 1e-8), rt.Linear()),
    Case("descent-ball", lambda: rt.planning.plan_descent(rt.Ball(3), 400, 1.0), rt.Logistic()),
    Case(
        "descent-box-lazy",
        lambda: rt.planning.plan_descent(rt.Box([-1, 0], [1, 2]), 400, 1.0, max_switches=20),
        rt.Hinge(),
    ),
    Case("descent-simplex", lambda: rt.planning.plan_descent(rt.Simplex(4), 400, 1.0), rt.Linear()),
    Case("leader-interval", lambda: rt.planning.plan_leader(rt.Interval(-1.0, 1.0), 400, 1.0), rt.Absolute()),
    Case("leader-custom", lambda: rt.planning.plan_leader(rt.Ball(2), 400, 1.0), distance),
]
