"""Pictures of studies: readable without colours, as PNG and as vectors."""

from reticent.lab.pictures._budget import budget_left
from reticent.lab.pictures._files import save
from reticent.lab.pictures._path import decision_path
from reticent.lab.pictures._tables import exponents, landscape, winners
from reticent.lab.pictures._time import privacy_spent, regret_over_time
from reticent.lab.pictures._trade import against_epsilon, against_switches
from reticent.lab.pictures._wealth import wealth

__all__ = [
    "against_epsilon",
    "against_switches",
    "budget_left",
    "decision_path",
    "exponents",
    "landscape",
    "privacy_spent",
    "regret_over_time",
    "save",
    "wealth",
    "winners",
]
