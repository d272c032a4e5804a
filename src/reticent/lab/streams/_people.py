"""Real streams with people behind the rows: doctor visits and answers to a questionnaire."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reticent.domains import Ball, Interval
from reticent.lab.streams._files import table
from reticent.lab.streams._scaling import labels, rows, unit
from reticent.lab.streams._stream import Block, Stream
from reticent.losses import Logistic, Pinball

_HEALTH = {"lncoins": 5.0, "disea": 60.0, "hlthg": 1.0, "hlthf": 1.0, "hlthp": 1.0, "physlm": 1.0}
_MOST_VISITS = 80.0
_ANSWERS = {
    "rate_marriage": (1.0, 5.0),
    "age": (15.0, 45.0),
    "yrs_married": (0.0, 25.0),
    "children": (0.0, 6.0),
    "religious": (1.0, 4.0),
    "educ": (9.0, 20.0),
    "occupation": (1.0, 6.0),
    "occupation_husb": (1.0, 6.0),
}
_SHUFFLE = 6366  # the file is sorted by the answer asked for; a public seed puts it into another order


def _visits() -> Iterator[Block]:
    visits = np.clip(_randhie("mdvis"), 0.0, _MOST_VISITS)
    yield np.ones_like(visits), visits


def _often() -> Iterator[Block]:
    columns = (np.clip(_randhie(name) / most, 0.0, 1.0) for name, most in _HEALTH.items())
    yield rows(*columns), labels(_randhie("mdvis") > 2)


def _randhie(column: str) -> np.ndarray:
    found: np.ndarray = table("statsmodels", "datasets", "randhie", "randhie.csv")[column].to_numpy(np.float64)
    return found


def _affairs() -> Iterator[Block]:
    answers = table("statsmodels", "datasets", "fair", "fair.csv")
    order = np.random.default_rng(_SHUFFLE).permutation(len(answers))
    features = rows(*(unit(answers[name], *ends) for name, ends in _ANSWERS.items()))
    yield features[order], labels(answers["affairs"] > 0)[order]


_RAND = "the RAND health insurance experiment, 20,190 person-years in file order, as statsmodels ships it"

PEOPLE = (
    Stream(
        name="randhie",
        title="who sees a doctor more than twice a year",
        why="medical records: whoever watches the published model should learn little about any one person-year",
        source=_RAND,
        domain=Ball(7, 4.0),
        loss=Logistic(),
        lipschitz=1.0,
        rounds=20_190,
        decision=(
            "intercept",
            "coinsurance",
            "chronic disease",
            "good health",
            "fair health",
            "poor health",
            "physical limitation",
        ),
        scaling="log coinsurance to [0, 5], diseases to [0, 60], the others are 0 or 1; rows divided by sqrt(7); "
        "radius 4 leaves room for odds of e^1.5 a feature",
        best_for="private",
        pieces=_often,
    ),
    Stream(
        name="randhie-visits",
        title="doctor visits that 9 of 10 people do not exceed",
        why="medical records: the published threshold should reveal little about any one person-year",
        source=_RAND,
        domain=Interval(0.0, 20.0),
        loss=Pinball(0.9),
        lipschitz=0.9,
        rounds=20_190,
        decision=("visits a year",),
        scaling="visits clipped to [0, 80]; the threshold is looked for in [0, 20]",
        best_for="private",
        pieces=_visits,
    ),
    Stream(
        name="fair",
        title="who reports an affair",
        why="answers to an intimate questionnaire: nobody's answer should show in the published model",
        source="Redbook's survey of 1974 (Fair 1978), 6,366 women, as statsmodels ships it, in an order drawn with a "
        "public seed: the file is sorted by the answer",
        domain=Ball(9, 8.0),
        loss=Logistic(),
        lipschitz=1.0,
        rounds=6_366,
        decision=("intercept", *(name.replace("_", " ") for name in _ANSWERS)),
        scaling="the questionnaire's ranges (age 15 to 45, years married 0 to 25, children 0 to 6, education 9 to 20, "
        "scales 1 to 4, 5 or 6) to [-1, 1]; rows divided by 3; radius 8 leaves room for odds of e^2.7 a feature",
        best_for="private",
        pieces=_affairs,
    ),
)
