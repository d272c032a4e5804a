"""Cases of P-COMW itself: blocks without coins where switches are few, coins where they are more."""

from _case import Case

import reticent as rt

CASES = [
    Case("pcomw-lazy", lambda: rt.plan_lazy(rt.Ball(3), 400, 1.0, max_switches=40), rt.Linear()),
    Case("pcomw-lazy-hard", lambda: rt.plan_lazy(rt.Interval(-1.0, 1.0), 400, 1.0, 40, hard=True), rt.Absolute()),
    Case("pcomw-coins", lambda: rt.plan_lazy(rt.Interval(-1.0, 1.0), 400, 1.0, 150), rt.Linear()),
    Case("pcomw-coins-hard", lambda: rt.plan_lazy(rt.Interval(-1.0, 1.0), 400, 1.0, 220, hard=True), rt.Absolute()),
    Case("pcomw-private", lambda: rt.plan_private(rt.Interval(-1.0, 1.0), 400, 1.0, 1.0, 1e-6), rt.Absolute()),
    Case("pcomw-private-ball", lambda: rt.plan_private(rt.Ball(2), 400, 1.0, 3.0, 1e-5), rt.Logistic()),
]
