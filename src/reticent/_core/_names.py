"""The systems by name: what each is called in tables, in narrow places and on the command line, and its colour."""

from __future__ import annotations

from typing import NamedTuple

PCOMW = "P-COMW"
PCOMW_FIXED = "P-COMW, losses fixed in advance"
PCOMW_LAZY = "P-COMW, lazy"
DP_OCO, LAZY_OCO = "P-COMW, Theorem DP OCO", "P-COMW, Theorem Lazy OCO"
PAPER, PAPER_LAZY = "P-COMW, the paper's constants", "P-COMW, lazy, the paper's constants"
L2P = "lazy-to-private (L2P)"
FLAT = "continuous weights, lambda = 0 (Asi et al.)"
OBJECTIVE = "objective perturbation (Agarwal et al.)"
DP_FTRL, DP_FTRL_LINEAR, DP_FTRL_TREE = "DP-FTRL", "DP-FTRL, linear losses", "DP-FTRL, tree noise"
DP_FTRL_SMOOTH = "DP-FTRL, smooth losses"
AGARWAL_SINGH = "FTRL on a tree (Agarwal, Singh)"
IMPLICIT = "implicit descent (Jain et al.)"
APPROXIMATE_LEADER = "approximate leader (Smith, Thakurta)"
SHERMAN_KOREN = "lazy perturbed leader (Sherman, Koren)"
FLL = "follow the lazy leader (FLL)"
NOISY_DESCENT = "noisy descent"
FILTERED = "filtered gate"
DESCENT, FTRL, NEWTON = "online gradient descent", "FTRL", "online Newton step"
PRIVATE_DARTBOARD, DARTBOARD = "private shrinking dartboard", "shrinking dartboard"
DRAWN_LEADER = "experts drawn from DP-FTRL"
FLAT_LAZY = "continuous weights, lazy (Anava et al.)"
FPL = "follow the perturbed leader (FPL)"
FLL_STAR, FLL_EXPERTS = "follow the lazy leader (FLL*), experts", "follow the lazy leader (FLL), experts"
HEDGE, LIMITED = "multiplicative weights (Hedge)", "Hedge in blocks, a hard budget of switches"
INDEPENDENT = "averaged descent, independent losses"
RESTARTING = "restarting leader, a hard budget of switches"
BUDGETED = "budgeted follower"
DOUBLING = "doubling experts"

INK = "#1f2328"
"""The colour of text and axes."""


class Name(NamedTuple):
    """How a system is told from others."""

    label: str
    """In narrow places."""
    nicks: tuple[str, ...] = ()
    """On the command line, beside any part of its name that no other has."""
    colour: str | None = None
    """In every picture, of Okabe and Ito's palette; None for a system that takes one that is free."""


NAMES = {
    PCOMW: Name("P-COMW", colour="#D55E00"),
    PCOMW_LAZY: Name("P-COMW, lazy", ("pcomwlazy",)),
    L2P: Name("L2P", ("l2p",), "#009E73"),
    FLAT: Name("continuous weights"),
    OBJECTIVE: Name("objective pert.", colour="#CC79A7"),
    DP_FTRL: Name("DP-FTRL", colour="#0072B2"),
    DP_FTRL_LINEAR: Name("DP-FTRL, linear", ("dpftrllinear",)),
    DP_FTRL_SMOOTH: Name("DP-FTRL, smooth", ("dpftrlsmooth",)),
    DP_FTRL_TREE: Name("DP-FTRL, tree", ("tree", "dpftrltree")),
    AGARWAL_SINGH: Name("FTRL on a tree"),
    IMPLICIT: Name("implicit descent"),
    APPROXIMATE_LEADER: Name("approx. leader"),
    SHERMAN_KOREN: Name("lazy pert. leader", ("shermankoren",)),
    FLL: Name("FLL", ("fll",)),
    NOISY_DESCENT: Name("noisy descent", ("noisy",), "#E69F00"),
    FILTERED: Name("filtered gate", ("filtered",), "#56B4E9"),
    DESCENT: Name("gradient descent", ("ogd",), INK),
    NEWTON: Name("Newton step", ("ons",)),
    FPL: Name(FPL, ("fpl",)),
    HEDGE: Name("Hedge", ("hedge",)),
    BUDGETED: Name("budgeted follower", ("budgeted",), "#009E73"),
    DOUBLING: Name("doubling experts", ("doubling",)),
    DRAWN_LEADER: Name("DP-FTRL, drawn", ("drawn",)),
    FLAT_LAZY: Name("cont. weights, lazy"),
}
"""What is known of a name; a system that is not here goes by its full name."""


def label(system: str) -> str:
    """Return a system's name for narrow places.

    >>> label("lazy-to-private (L2P)"), label("something new")
    ('L2P', 'something new')
    """
    return NAMES[system].label if system in NAMES else system


NICKS = {nick: name for name, known in NAMES.items() for nick in known.nicks}
"""Short names on the command line."""
