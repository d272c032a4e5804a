"""Cases of the budgeted follower."""

from _case import Case
from descent import distance

import reticent as rt
from reticent.planning import plan_budgeted

TRIANGLE = rt.Polytope([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], [0.0, 0.0, 1.0])

CASES = [
    Case("budgeted-ball", lambda: plan_budgeted(rt.Ball(3), 400, 1.0, 20), rt.Logistic()),
    Case("budgeted-interval", lambda: plan_budgeted(rt.Interval(-1.0, 1.0), 400, 1.0, 9), rt.Absolute()),
    Case("budgeted-far", lambda: plan_budgeted(rt.Interval(1e6, 1e6 + 1), 400, 1e-8, 9), rt.Linear()),
    Case("budgeted-box", lambda: plan_budgeted(rt.Box([-1, 0], [1, 2]), 400, 1.0, 2), rt.Hinge()),
    Case("budgeted-simplex", lambda: plan_budgeted(rt.Simplex(4), 400, 1.0, 12), rt.Linear()),
    Case("budgeted-polytope", lambda: plan_budgeted(TRIANGLE, 400, 1.0, 6), rt.Squared(), scale=0.3),
    Case("budgeted-custom", lambda: plan_budgeted(rt.Ball(2), 150, 1.0, 4), distance),
    Case("budgeted-never", lambda: plan_budgeted(rt.Ball(2), 400, 1.0, 0), rt.Linear()),
]
