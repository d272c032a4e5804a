"""Cases of perturbed leaders: objective perturbation, the lazy perturbed leader, and the lazy leader."""

import numpy as np
from _case import Case

import reticent as rt
from reticent.systems.lazy_leader._independent import plan_independent
from reticent.systems.lazy_leader._lazy_leader import plan_lazy_leader
from reticent.systems.perturbed._lazy import plan_sherman_koren
from reticent.systems.perturbed._objective import plan_objective


def objective(domain, smoothness, **options):
    return lambda: plan_objective(domain, 300, 1.0, 3.0, 1e-5, smoothness=smoothness, **options)


BOX = rt.Box([-1.0, 0.0], [1.0, 2.0])


def away(x, c):
    return float(np.sqrt(1 + (x - c) @ (x - c)))


def slope(x, c):
    return (x - c) / away(x, c)


def bend(x, c):
    return (np.eye(x.size) - np.outer(slope(x, c), slope(x, c))) / away(x, c)


round_bowl = rt.Custom(away, slope, 1.0, bend)

CASES = [
    Case("independent-ball", lambda: plan_independent(rt.Ball(3), 400, 1.0), rt.Hinge(), certified=False),
    Case("independent-box", lambda: plan_independent(BOX, 400, 1.0, 3), rt.Linear(), certified=False),
    Case("objective-ball-linear", objective(rt.Ball(3), 0.0), rt.Linear()),
    Case("objective-ball-logistic", objective(rt.Ball(3), 1.0), rt.Logistic()),
    Case("objective-box-huber", objective(BOX, 1.0, neighbors="zero-out"), rt.Huber(0.5)),
    Case("objective-interval-squared", objective(rt.Interval(-1.0, 1.0), 0.5), rt.Squared(), scale=0.6),
    Case("objective-batches", objective(rt.Ball(3), 1.0, batch=7), rt.Logistic()),
    Case("objective-custom", objective(BOX, 1.0, general=True, batch=3), round_bowl),
    Case("objective-simplex", objective(rt.Simplex(3), 0.0), rt.Linear()),
    Case("sherman-koren-linear", lambda: plan_sherman_koren(rt.Ball(3), 400, 1.0, 40), rt.Linear()),
    Case("sherman-koren-box", lambda: plan_sherman_koren(BOX, 400, 1.0, 40), rt.Linear()),
    Case("sherman-koren-simplex", lambda: plan_sherman_koren(rt.Simplex(3), 400, 1.0, 40), rt.Linear()),
    Case(
        "sherman-koren-logistic",
        lambda: plan_sherman_koren(rt.Ball(2), 400, 1.0, 100, smoothness=1.0),
        rt.Logistic(),
    ),
    Case("lazy-leader-ball", lambda: plan_lazy_leader(rt.Ball(3), 400, 1.0, max_switches=40), rt.Linear()),
    Case("lazy-leader-box", lambda: plan_lazy_leader(BOX, 400, 1.0), rt.Linear()),
    Case("lazy-leader-simplex", lambda: plan_lazy_leader(rt.Simplex(4), 400, 1.0, max_switches=40), rt.Linear()),
]
