"""Cases of the filtered gate, for the front door."""

from _case import Case
from descent import distance
from gate import BOX, GOAL, TRIANGLE

import reticent as rt
from reticent.planning import FilteredPlan, plan_filtered

FREE = {"certified": False}  # nothing is certified of its decisions

CASES = [
    Case("filtered-ball", lambda: plan_filtered(rt.Ball(3), 400, *GOAL, clip=0.5), rt.Logistic(), **FREE),
    Case("filtered-box-lazy", lambda: plan_filtered(BOX, 400, *GOAL, max_switches=9), rt.Hinge(), **FREE),
    Case(
        "filtered-simplex", lambda: plan_filtered(rt.Simplex(4), 400, *GOAL, neighbors="zero-out"), rt.Linear(), **FREE
    ),
    Case("filtered-interval", lambda: plan_filtered(rt.Interval(-1.0, 1.0), 400, *GOAL), rt.Absolute(), **FREE),
    Case("filtered-far", lambda: plan_filtered(rt.Interval(1e6, 1e6 + 1), 400, 1e-8, *GOAL[1:]), rt.Linear(), **FREE),
    Case("filtered-polytope", lambda: plan_filtered(TRIANGLE, 400, *GOAL), rt.Squared(), scale=0.3, **FREE),
    Case("filtered-custom", lambda: plan_filtered(rt.Ball(2), 400, *GOAL), distance, **FREE),
    Case("filtered-never", lambda: plan_filtered(rt.Ball(2), 400, *GOAL, max_switches=0), rt.Linear(), **FREE),
    Case(
        "filtered-no-claim",
        lambda: FilteredPlan(rt.Ball(3), 400, 1.0, noise=0.5, clip=0.5, batch=3),
        rt.Huber(),
        **FREE,
    ),
]
