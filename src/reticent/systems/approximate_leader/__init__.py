"""The private approximate leader, after Smith and Thakurta 2013."""

from reticent.systems.approximate_leader._approximate_leader import (
    SYSTEMS,
    ApproximateLeader,
    ApproximateLeaderPlan,
    plan_approximate_leader,
)

__all__ = ["SYSTEMS", "ApproximateLeader", "ApproximateLeaderPlan", "plan_approximate_leader"]
