"""Cases of descent on a grid: squared losses on an interval, and custom quadratics on a box."""

import numpy as np
from _case import Case

import reticent as rt
from reticent.systems.grid_descent import plan_grid_descent


def value(x, c):
    return float(((x - c) ** 2).sum()) / 2


def slope(x, c):
    return x - c


BOX = rt.Box([-1.0, 0.0], [1.0, 2.0])
LONG = BOX.diameter
bowl = rt.Custom(value, slope, lipschitz=LONG)


def grid(domain, lipschitz, switches, h, bend):
    return lambda: plan_grid_descent(domain, 400, lipschitz, switches, strong_convexity=h, smoothness=bend)


CASES = [
    Case("grid-descent-interval", grid(rt.Interval(-1.0, 1.0), 2.0, 40, 0.9, 1.1), rt.Squared()),
    Case("grid-descent-logistic", grid(rt.Interval(-1.0, 1.0), 1.0, 40, 0.15, 0.3), rt.Logistic()),
    Case("grid-descent-box", grid(BOX, LONG, 60, 1.0, 1.0), bowl),
]

assert np.isclose(LONG, np.hypot(2.0, 2.0))
