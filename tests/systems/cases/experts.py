"""Cases of the systems over experts."""

from _case import Case

import reticent as rt

FIVE, THREE = rt.Experts(5), rt.Experts(3)

CASES = [
    Case("experts-hedge", lambda: rt.planning.plan_hedge(FIVE, 400, 1.0), rt.Linear()),
    Case("experts-limited", lambda: rt.planning.plan_limited_switching(FIVE, 400, 1.0, 20), rt.Linear()),
    Case("experts-restarting", lambda: rt.planning.plan_restarting_leader(FIVE, 400, 1.0, 40), rt.Linear()),
    Case("experts-fpl", lambda: rt.planning.plan_perturbed_leader(THREE, 400, 1.0), rt.Linear()),
    Case(
        "experts-fpl-uniform", lambda: rt.planning.plan_perturbed_leader(THREE, 400, 1.0, noise="uniform"), rt.Linear()
    ),
    Case("experts-fll-star", lambda: rt.planning.plan_lazy_leader_star(FIVE, 400, 1.0, 50), rt.Linear()),
    Case("experts-fll", lambda: rt.planning.plan_experts_lazy_leader(FIVE, 400, 1.0, 50), rt.Linear()),
    Case("experts-dartboard", lambda: rt.planning.plan_dartboard(FIVE, 400, 1.0, 50), rt.Linear()),
    Case("experts-dartboard-hard", lambda: rt.planning.plan_dartboard(FIVE, 400, 1.0, 20, hard=True), rt.Linear()),
    Case("experts-drawn", lambda: rt.planning.plan_drawn_leader(FIVE, 400, 1.0, 2.0, 1e-4), rt.Linear()),
    Case(
        "experts-drawn-batch",
        lambda: rt.planning.plan_drawn_leader(THREE, 400, 1.0, 2.0, 1e-4, batch=7, neighbors="zero-out"),
        rt.Linear(),
    ),
    Case("experts-simplex-leader", lambda: rt.planning.plan_simplex_leader(THREE, 400, 1.0), rt.Linear()),
    Case("experts-simplex-leader-lazy", lambda: rt.planning.plan_simplex_leader(FIVE, 400, 1.0, 30), rt.Linear()),
    Case("experts-weights", lambda: rt.planning.plan_agarwal_singh_experts(FIVE, 400, 1.0, 2.0, 1e-4), rt.Linear()),
    Case(
        "experts-weights-tree",
        lambda: rt.planning.plan_agarwal_singh_experts(
            THREE, 400, 1.0, 2.0, 1e-4, noise="tree", batch=7, neighbors="zero-out"
        ),
        rt.Linear(),
    ),
    Case("experts-doubling", lambda: rt.planning.plan_doubling(FIVE, 400, 1.0, 2.0), rt.Linear(), certified=False),
    Case(
        "experts-private",
        lambda: rt.planning.plan_private_dartboard(FIVE, 400, 1.0, epsilon=2.0, delta=1e-4),
        rt.Linear(),
    ),
    Case(
        "experts-private-batch",
        lambda: rt.planning.plan_private_dartboard(
            THREE, 400, 1.0, epsilon=2.0, delta=1e-4, batch=7, max_switches=10, neighbors="zero-out"
        ),
        rt.Linear(),
    ),
]
