"""What stands beside each other in a picture or a report."""

from dataclasses import replace

from example import small_study

from reticent.lab.pictures import regret_over_time
from reticent.lab.pictures._groups import groups, settings


def test_goals_that_no_plan_meets_together_were_asked_for_apart():
    study = small_study((0.5, 1.0))
    study = replace(study, goal={**study.goal, "max_switches": [1]})
    assert [(one.title, len(one.groups)) for one in settings(study, groups(study))] == [
        ("epsilon 0.5", 2),
        ("epsilon 1", 2),
    ]
    assert regret_over_time(study).axes
