"""Cases of gradient descent and FTRL."""

import numpy as np
from _case import Case

import reticent as rt

distance = rt.Custom(
    lambda x, c: float(np.linalg.norm(x - c)), lambda x, c: (x - c) / max(np.linalg.norm(x - c), 1e-12), lipschitz=1.0
)

CASES = [
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
