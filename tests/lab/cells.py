"""Cells of the paper's tables with numbers that a test has chosen."""


def a_cell(system, certificate, regret=None, **more):
    """Return a cell of row 1.6 (row 2.3 if `variable` is S) with so much regret in all, and a standard error of 1."""
    cell = {
        "regime": "1.6", "scale": "runnable", "system": system, "rounds": 1000, "dim": 2, "variable": "epsilon",
        "value": 0.25, "delta": 1e-6, "seeds": 4, "certificate": certificate, "theorem": certificate, "vacuous": False,
        "switches": None, "reason": "", "seconds": 0.0, "measured": {},
    }  # fmt: skip
    if regret is not None:
        calm = {"regret": regret / 2, "error": 1.0, "switches": 1.0}
        cell["measured"] = {"steady": calm | {"regret": regret}, "turning": calm}
    return cell | more
