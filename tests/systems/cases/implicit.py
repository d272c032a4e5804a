"""Cases of private implicit descent and of the private approximate leader."""

from _case import Case

import reticent as rt
from reticent.systems.approximate_leader._approximate_leader import plan_approximate_leader
from reticent.systems.implicit._implicit import plan_implicit

EPSILON, DELTA = 4.0, 1e-5
triangle = rt.Polytope([[-1, 0], [0, -1], [1, 1]], [0, 0, 1])


def value(x, c):
    """A quarter of the squared distance from a point of the ball: of strong convexity 1/2, and slope 1 at most."""
    return float(((x - c) ** 2).sum()) / 4


def subgradient(x, c):
    return (x - c) / 2


near = rt.Custom(value, subgradient, lipschitz=1.0)

CASES = [
    Case("implicit-ball", lambda: plan_implicit(rt.Ball(3), 400, 1.0, EPSILON, DELTA), rt.Logistic()),
    Case("implicit-box", lambda: plan_implicit(rt.Box([-1, 0], [1, 2]), 400, 1.0, EPSILON, DELTA), rt.Hinge()),
    Case("implicit-interval", lambda: plan_implicit(rt.Interval(0.0, 2.0), 400, 1.0, EPSILON, DELTA), rt.Absolute()),
    Case("implicit-simplex", lambda: plan_implicit(rt.Simplex(4), 300, 1.0, EPSILON, DELTA), rt.Linear()),
    Case("implicit-polytope", lambda: plan_implicit(triangle, 300, 1.0, EPSILON, DELTA), rt.Huber(0.5)),
    Case("approximate-ball", lambda: plan_approximate_leader(rt.Ball(3), 400, 1.0, EPSILON, DELTA), rt.Hinge()),
    Case("approximate-simplex", lambda: plan_approximate_leader(rt.Simplex(4), 400, 1.0, EPSILON, DELTA), rt.Linear()),
    Case("approximate-polytope", lambda: plan_approximate_leader(triangle, 400, 1.0, EPSILON, DELTA), rt.Logistic()),
    Case(
        "approximate-strong",
        lambda: plan_approximate_leader(rt.Ball(2), 300, 1.0, EPSILON, DELTA, strong_convexity=0.5),
        near,
    ),
]
