"""Cases of DP-FTRL and of Agarwal and Singh's FTRL."""

import math

from _case import Case
from descent import distance

import reticent as rt
from reticent.planning import FTRLPlan, plan_agarwal_singh, plan_ftrl

GOAL = (1.0, 3.0, 1e-5)
BOX = rt.Box([-1, 0], [1, 2])


def bowled(x, c):
    return math.sqrt(1 + float((x - c) @ (x - c)))


def towards(x, c):
    return (x - c) / bowled(x, c)


bowl = rt.Custom(bowled, towards, lipschitz=1.0)  # second derivatives are at most 1


CASES = [
    Case("ftrl-ball", lambda: plan_ftrl(rt.Ball(3), 400, *GOAL), rt.Logistic()),
    Case("ftrl-box-lazy", lambda: plan_ftrl(BOX, 400, *GOAL, max_switches=20, neighbors="zero-out"), rt.Hinge()),
    Case("ftrl-exact-simplex", lambda: plan_ftrl(rt.Simplex(4), 400, *GOAL, noise="toeplitz-exact"), rt.Linear()),
    Case("ftrl-tree-interval", lambda: plan_ftrl(rt.Interval(-1.0, 1.0), 400, *GOAL, noise="tree"), rt.Absolute()),
    Case("ftrl-custom", lambda: plan_ftrl(rt.Ball(2), 400, *GOAL, batch=7), distance),
    Case("ftrl-linear", lambda: plan_ftrl(rt.Ball(3), 400, *GOAL, linear=True), rt.Linear()),
    Case("ftrl-linear-tree", lambda: plan_ftrl(BOX, 400, *GOAL, linear=True, noise="tree"), rt.Linear()),
    Case("ftrl-no-claim", lambda: FTRLPlan(rt.Ball(3), 400, 1.0, lam=60.0, sigma=2.0, batch=3), rt.Huber()),
    Case("ftrl-smooth", lambda: plan_ftrl(rt.Ball(3), 400, *GOAL, smoothness=0.25), rt.Logistic()),
    Case("ftrl-smooth-near", lambda: plan_ftrl(rt.Ball(3), 400, *GOAL, smoothness=0.25, reach=3.0), rt.Logistic()),
    Case("ftrl-smooth-box", lambda: plan_ftrl(BOX, 400, *GOAL, smoothness=1.0, max_switches=40), rt.Huber()),
    Case("ftrl-smooth-custom", lambda: plan_ftrl(rt.Ball(2), 400, *GOAL, smoothness=1.0, batch=7), bowl),
    Case("agarwal-singh-ball", lambda: plan_agarwal_singh(rt.Ball(3), 400, *GOAL), rt.Linear()),
    Case("agarwal-singh-simplex", lambda: plan_agarwal_singh(rt.Simplex(3), 400, *GOAL), rt.Linear()),
]
