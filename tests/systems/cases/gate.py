"""Cases of noisy descent, the system behind the gate."""

from _case import Case
from descent import distance

import reticent as rt
from reticent.planning import NoisyDescentPlan, plan_noisy_descent

GOAL = (1.0, 3.0, 1e-5)
BOX = rt.Box([-1, 0], [1, 2])
TRIANGLE = rt.Polytope([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], [0.0, 0.0, 1.0])

CASES = [
    Case("noisy-ball", lambda: plan_noisy_descent(rt.Ball(3), 400, *GOAL), rt.Logistic()),
    Case("noisy-box-lazy", lambda: plan_noisy_descent(BOX, 400, *GOAL, max_switches=9), rt.Hinge()),
    Case("noisy-simplex", lambda: plan_noisy_descent(rt.Simplex(4), 400, *GOAL, neighbors="zero-out"), rt.Linear()),
    Case("noisy-interval", lambda: plan_noisy_descent(rt.Interval(-1.0, 1.0), 400, *GOAL), rt.Absolute()),
    Case("noisy-far", lambda: plan_noisy_descent(rt.Interval(1e6, 1e6 + 1), 400, 1e-8, *GOAL[1:]), rt.Linear()),
    Case("noisy-polytope", lambda: plan_noisy_descent(TRIANGLE, 400, *GOAL), rt.Squared(), scale=0.3),
    Case("noisy-custom", lambda: plan_noisy_descent(rt.Ball(2), 400, *GOAL), distance),
    Case("noisy-never", lambda: plan_noisy_descent(rt.Ball(2), 400, *GOAL, max_switches=0), rt.Linear()),
    Case("noisy-no-claim", lambda: NoisyDescentPlan(rt.Ball(3), 400, 1.0, sigma=1.0, batch=3, lam=60.0), rt.Huber()),
]
