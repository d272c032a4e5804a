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
OBJECTIVE_ANY = "objective perturbation, any smooth loss"
DP_FTRL, DP_FTRL_LINEAR, DP_FTRL_TREE = "DP-FTRL", "DP-FTRL, linear losses", "DP-FTRL, tree noise"
DP_FTRL_SMOOTH = "DP-FTRL, smooth losses"
AGARWAL_SINGH = "FTRL on a tree (Agarwal, Singh)"
IMPLICIT = "implicit descent (Jain et al.)"
APPROXIMATE_LEADER = "approximate leader (Smith, Thakurta)"
SHERMAN_KOREN = "lazy perturbed leader (Sherman, Koren)"
SHERMAN_KOREN_ANY = "lazy perturbed leader, any smooth loss"
FLL = "follow the lazy leader (FLL)"
NOISY_DESCENT = "noisy descent"
FILTERED = "filtered gate"
DESCENT, FTRL, NEWTON = "online gradient descent", "FTRL", "online Newton step"
PRIVATE_DARTBOARD, DARTBOARD = "private shrinking dartboard", "shrinking dartboard"
DRAWN_LEADER, SIMPLEX_LEADER = "experts drawn from DP-FTRL", "experts drawn from FTRL"
NOISY_WEIGHTS = "weights on noisy sums (Agarwal, Singh), experts"
FLAT_LAZY = "continuous weights, lazy (Anava et al.)"
FPL = "follow the perturbed leader (FPL)"
FLL_STAR, FLL_EXPERTS = "follow the lazy leader (FLL*), experts", "follow the lazy leader (FLL), experts"
HEDGE, LIMITED = "multiplicative weights (Hedge)", "Hedge in blocks, a hard budget of switches"
INDEPENDENT = "averaged descent, independent losses"
GRID_DESCENT = "descent on a grid, strongly convex losses"
RESTARTING = "restarting leader, a hard budget of switches"
BUDGETED = "budgeted follower"
DOUBLING = "doubling experts"

INK = "#1f2328"
"""The colour of text and axes."""
MUTED, GRID = "#575f68", "#d9dee3"
"""The colours of side remarks, and of grid lines."""


VERMILION, BLUE, GREEN, PINK = "#D55E00", "#0072B2", "#009E73", "#CC79A7"
ORANGE, SKY = "#E69F00", "#56B4E9"
PALETTE = (VERMILION, BLUE, GREEN, PINK, INK, ORANGE, SKY)
"""Okabe and Ito's palette without its yellow, which is lost on white; ink takes the place of black."""


class Name(NamedTuple):
    """How a system is told from others."""

    label: str
    """In narrow places."""
    nicks: tuple[str, ...] = ()
    """On the command line, beside any part of its name that no other has."""
    colour: str = INK
    """In every picture, report and notebook. Systems of one colour differ by their marks and dashes."""


NAMES = {
    PCOMW: Name("P-COMW", colour=VERMILION),
    PCOMW_LAZY: Name("P-COMW, lazy", ("pcomwlazy",), VERMILION),
    L2P: Name("L2P", ("l2p",), GREEN),
    FLAT: Name("continuous weights", colour=PINK),
    OBJECTIVE: Name("objective pert.", colour=PINK),
    DP_FTRL: Name("DP-FTRL", colour=BLUE),
    DP_FTRL_LINEAR: Name("DP-FTRL, linear", ("dpftrllinear",), BLUE),
    DP_FTRL_SMOOTH: Name("DP-FTRL, smooth", ("dpftrlsmooth",), BLUE),
    DP_FTRL_TREE: Name("DP-FTRL, tree", ("tree", "dpftrltree"), BLUE),
    AGARWAL_SINGH: Name("FTRL on a tree", colour=SKY),
    IMPLICIT: Name("implicit descent", colour=ORANGE),
    APPROXIMATE_LEADER: Name("approx. leader", colour=GREEN),
    SHERMAN_KOREN: Name("lazy pert. leader", ("shermankoren",), PINK),
    FLL: Name("FLL", ("fll",), SKY),
    NOISY_DESCENT: Name("noisy descent", ("noisy",), ORANGE),
    FILTERED: Name("filtered gate", ("filtered",), SKY),
    DESCENT: Name("gradient descent", ("ogd",), INK),
    NEWTON: Name("Newton step", ("ons",), INK),
    FPL: Name(FPL, ("fpl",), PINK),
    HEDGE: Name("Hedge", ("hedge",), INK),
    BUDGETED: Name("budgeted follower", ("budgeted",), GREEN),
    DOUBLING: Name("doubling experts", ("doubling",), SKY),
    DRAWN_LEADER: Name("DP-FTRL, drawn", ("drawn",), BLUE),
    FLAT_LAZY: Name("cont. weights, lazy", colour=BLUE),
    PCOMW_FIXED: Name(PCOMW_FIXED, colour=VERMILION),
    DP_OCO: Name(DP_OCO, colour=VERMILION),
    LAZY_OCO: Name(LAZY_OCO, colour=VERMILION),
    PAPER: Name(PAPER, colour=VERMILION),
    PAPER_LAZY: Name(PAPER_LAZY, colour=VERMILION),
    FTRL: Name(FTRL, colour=INK),
    PRIVATE_DARTBOARD: Name(PRIVATE_DARTBOARD, colour=GREEN),
    DARTBOARD: Name(DARTBOARD, colour=GREEN),
    FLL_STAR: Name(FLL_STAR, colour=SKY),
    FLL_EXPERTS: Name(FLL_EXPERTS, colour=SKY),
    LIMITED: Name(LIMITED, colour=ORANGE),
    INDEPENDENT: Name(INDEPENDENT, colour=ORANGE),
    GRID_DESCENT: Name("descent on a grid", ("griddescent",), SKY),
    RESTARTING: Name(RESTARTING, colour=ORANGE),
    NOISY_WEIGHTS: Name("noisy weights", ("noisyweights",), SKY),
    SIMPLEX_LEADER: Name("FTRL, drawn", ("drawnftrl",), INK),
    OBJECTIVE_ANY: Name("objective pert., any", colour=PINK),
    SHERMAN_KOREN_ANY: Name("lazy pert. leader, any", colour=PINK),
}
"""What is known of a name; a system that is not here goes by its full name, and has a colour that is free."""


def _leads() -> dict[str, int]:
    """Return the number of each system's look: those that are most seen have the plain look of their colour."""
    first = (PCOMW, DP_FTRL, BUDGETED, OBJECTIVE, DESCENT, NOISY_DESCENT, FILTERED)
    seen: dict[str, int] = {}
    numbers = {}
    for name in dict.fromkeys((*first, *NAMES)):
        colour = NAMES[name].colour
        seen[colour] = seen.get(colour, -1) + 1
        numbers[name] = PALETTE.index(colour) + seen[colour] * len(PALETTE)
    return numbers


LOOKS = _leads()
"""The number of each system's look, the same in every picture: its colour's place in the palette, and how many systems
of that colour came before it."""


def colour_of(system: str) -> str:
    """Return the colour of a system, grey for one that has none of its own.

    >>> colour_of("P-COMW") == colour_of("P-COMW, lazy"), colour_of("something new")
    (True, '#575f68')
    """
    return NAMES[system].colour if system in NAMES else MUTED


def label(system: str) -> str:
    """Return a system's name for narrow places.

    >>> label("lazy-to-private (L2P)"), label("something new")
    ('L2P', 'something new')
    """
    return NAMES[system].label if system in NAMES else system


NICKS = {nick: name for name, known in NAMES.items() for nick in known.nicks}
"""Short names on the command line."""
