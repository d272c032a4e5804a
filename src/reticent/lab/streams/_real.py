"""Real streams from data files inside other packages, of people and of things, scaled by public bounds."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reticent._core._check import Array
from reticent._core._errors import need
from reticent.domains import Ball, Interval, Simplex
from reticent.lab.streams._stream import Block, Stream
from reticent.losses import Absolute, Logistic, Pinball

EXTRAS = {"river": "streams", "universal": "streams", "vega_datasets": "streams", "statsmodels": "lab"}
"""Which extra brings a package that has data."""


def located(package: str, *parts: str) -> Path:
    """Return the path of a file inside a package, which is not imported; say which extra to install if it is missing.

    >>> located("json", "decoder.py").name
    'decoder.py'
    """
    spec = importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        need(package, EXTRAS[package])  # the message of every missing extra
        raise ValueError(f"{package} must be an installed package with data files, got a module without any")
    path = Path(spec.submodule_search_locations[0]).joinpath(*parts)
    if not path.is_file():
        raise ValueError(
            f"the installed package {package} must have the file {'/'.join(parts)}, which it does not; "
            f"pip install --upgrade 'reticent[{EXTRAS.get(package, 'streams')}]' brings a version that does"
        )
    return path


@cache
def table(package: str, *parts: str) -> Any:
    """Return a table of numbers and words from a file of comma-separated values, compressed or not, as a data frame."""
    path = located(package, *parts)
    return need("pandas", EXTRAS.get(package, "streams")).read_csv(path)


# Scaling by public bounds: rows of length at most 1 whatever the data are.


def unit(values: ArrayLike, low: float, high: float) -> Array:
    """Return values moved from the public range [low, high] to [-1, 1], clipped.

    >>> unit([0.0, 5.0, 99.0], 0.0, 10.0)
    array([-1.,  0.,  1.])
    """
    moved = (2.0 * np.asarray(values, dtype=np.float64) - (low + high)) / (high - low)
    clipped: Array = np.clip(moved, -1.0, 1.0)
    return clipped


def rows(*columns: Array) -> Array:
    """Return rows with an intercept before columns that lie in [-1, 1], divided by their largest length.

    >>> rows(np.array([1.0, 0.0]), np.array([-1.0, 0.5]), np.array([1.0, 0.0]))
    array([[ 0.5 ,  0.5 , -0.5 ,  0.5 ],
           [ 0.5 ,  0.  ,  0.25,  0.  ]])
    """
    found: Array = np.column_stack([np.ones_like(columns[0]), *columns]) / np.sqrt(1.0 + len(columns))
    return found


def labels(positive: ArrayLike) -> Array:
    """Return 1 where it is true, else -1."""
    return np.where(np.asarray(positive, dtype=bool), 1.0, -1.0)


# Real streams with people behind the rows: doctor visits and answers to a questionnaire.

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


# Real streams of things: web pages, sensors, pictures, polls, weather and water.

_SENSORS = tuple(f"f{i}" for i in range(1, 10))
_SIGNS = (
    "empty_server_form_handler",
    "popup_window",
    "https",
    "request_from_other_domain",
    "anchor_from_other_domain",
    "is_popular",
    "long_url",
    "age_of_domain",
    "ip_in_url",
)
_REGIONS = {
    "region-centroid-col": (0.0, 255.0),
    "region-centroid-row": (0.0, 255.0),
    "intensity-mean": (0.0, 255.0),
    "exred-mean": (-100.0, 100.0),
    "exblue-mean": (-100.0, 100.0),
    "exgreen-mean": (-100.0, 100.0),
    "value-mean": (0.0, 255.0),
    "saturation-mean": (0.0, 1.0),
    "hue-mean": (-np.pi, np.pi),
}
_HOUSES = ("gallup", "ipsos", "morning_consult", "rasmussen", "you_gov")


def _river(name: str) -> tuple[str, str, str]:
    return "river", "datasets", name


def _phishing() -> Iterator[Block]:
    pages = table(*_river("phishing.csv.gz"))
    yield rows(*(unit(pages[name], 0.0, 1.0) for name in _SIGNS)), labels(pages["is_phishing"])


def _shuttle() -> Iterator[Block]:
    readings = table(*_river("shuttle.csv.gz"))
    yield rows(*(unit(readings[name], -128.0, 127.0) for name in _SENSORS)), labels(readings["anomaly"])


def _bananas() -> Iterator[Block]:
    import zipfile

    with zipfile.ZipFile(located(*_river("banana.zip"))) as archive:
        text = archive.read(archive.namelist()[0]).decode()
    # Lines of the kind "-1 1:0.25 2:-1.5": a label and two numbered coordinates.
    numbers = np.array([float(word.rpartition(":")[2]) for word in text.split()]).reshape(-1, 3)
    x, y = (unit(numbers[:, i], -4.0, 4.0) for i in (1, 2))
    yield rows(x, y, x * x, x * y, y * y), labels(numbers[:, 0] > 0)


def _segments() -> Iterator[Block]:
    regions = table(*_river("segment.csv.zip"))
    features = rows(*(unit(regions[name], *ends) for name, ends in _REGIONS.items()))
    yield features, labels(regions["category"] == "foliage")


def _polls() -> Iterator[Block]:
    days = table(*_river("trump_approval.csv.gz"))
    yield (
        np.column_stack([unit(days[name], 30.0, 70.0) for name in _HOUSES]),
        unit(days["five_thirty_eight"], 30.0, 70.0),
    )


def _water() -> Iterator[Block]:
    flow = np.clip(table(*_river("water-flow.csv")).iloc[:, 1].to_numpy(np.float64), 0.0, 200.0) / 10.0
    yield np.ones_like(flow), flow


def _temperatures() -> Iterator[Block]:
    degrees = table("vega_datasets", "_data", "seattle-temps.csv")["temp"].to_numpy(np.float64)
    hour = np.arange(degrees.size)
    day, year = 2 * np.pi * hour / 24, 2 * np.pi * hour / (24 * 365.25)
    # cos^2 + sin^2 = 1: with the intercept the squares of a row add up to 3.
    features = np.column_stack([np.ones(hour.size), np.cos(day), np.sin(day), np.cos(year), np.sin(year)]) / np.sqrt(3)
    yield features, np.clip((degrees - 50.0) / 10.0, -8.0, 8.0)


THINGS = (
    Stream(
        name="phishing",
        title="which web pages are phishing",
        why="pages that people reported: a published filter should not tell which page one person reported",
        source="UCI's website phishing data, 1,250 pages in file order, as river ships them",
        domain=Ball(10, 8.0),
        loss=Logistic(),
        lipschitz=1.0,
        rounds=1_250,
        decision=("intercept", *(name.replace("_", " ") for name in _SIGNS)),
        scaling="signs coded 0, 0.5, 1 to [-1, 1]; rows divided by sqrt(10); radius 8 leaves room for odds of "
        "e^2.5 a sign",
        best_for="private",
        pieces=_phishing,
    ),
    Stream(
        name="shuttle",
        title="when the readings of a space shuttle's sensors are out of the ordinary",
        why="no person is behind a row; a rule on board is tested anew after every change, so changes should be few",
        source="Statlog's shuttle data, 49,097 readings in file order (the main class against the rare ones), as river "
        "ships them",
        domain=Ball(10, 10.0),
        loss=Logistic(),
        lipschitz=1.0,
        rounds=49_097,
        decision=("intercept", *(f"sensor {i}" for i in range(1, 10))),
        scaling="the data's authors state no ranges: readings are taken for numbers of 8 bits, clipped to [-128, 127] "
        "and brought to [-1, 1]; rows divided by sqrt(10); radius 10 leaves room for odds of e^3 a sensor",
        best_for="lazy",
        pieces=_shuttle,
    ),
    Stream(
        name="bananas",
        title="two clusters in the shape of bananas",
        why="a toy, artificial: nobody is behind a row; it shows a model with curved features",
        source="the banana data (OpenML 1460), 5,300 points in file order, as river ships them",
        domain=Ball(6, 10.0),
        loss=Logistic(),
        lipschitz=1.0,
        rounds=5_300,
        decision=("intercept", "x", "y", "x squared", "x times y", "y squared"),
        scaling="coordinates from [-4, 4] to [-1, 1], with their products; rows divided by sqrt(6); radius 10",
        best_for="private",
        pieces=_bananas,
    ),
    Stream(
        name="imagesegments",
        title="which regions of outdoor pictures are foliage",
        why="pictures somebody took: a toy for a filter that learns from people's photographs",
        source="Statlog's image segmentation data, 2,310 regions in file order (foliage against six other classes), as "
        "river ships them",
        domain=Ball(10, 10.0),
        loss=Logistic(),
        lipschitz=1.0,
        rounds=2_310,
        decision=("intercept", *_REGIONS),
        scaling="pixels and intensities from [0, 255], excesses of a colour from [-100, 100], saturation from [0, 1], "
        "hue from [-pi, pi], each to [-1, 1]; rows divided by sqrt(10); radius 10",
        best_for="private",
        pieces=_segments,
    ),
    Stream(
        name="trump",
        title="how much weight each of five polling houses deserves",
        why="weights that are public and have to be explained whenever they change: few changes; polls are public",
        source="approval of a president, 1,001 days (FiveThirtyEight's average and five houses), as river ships it",
        domain=Simplex(5),
        loss=Absolute(),
        lipschitz=2.2,  # five entries within 1: the part across (1, ..., 1) has length at most sqrt(24/5) < 2.2
        rounds=1_001,
        decision=tuple(name.replace("_", " ") for name in _HOUSES),
        scaling="approval from 30 to 70 percent to [-1, 1]: a loss of 1 is 20 points",
        best_for="lazy",
        pieces=_polls,
    ),
    Stream(
        name="waterflow",
        title="the flow of water that nine of ten hours exceed",
        why="an alarm level that a person sets in the control room: every change costs a visit",
        source="hourly flow through a branch of a pipeline, 1,268 hours of 2022, as river ships it",
        domain=Interval(0.0, 20.0),
        loss=Pinball(0.1),
        lipschitz=0.9,
        rounds=1_268,
        decision=("flow in 10 litres a second",),
        scaling="flow clipped to [0, 200] litres a second; a loss of 1 is 10 litres a second",
        best_for="lazy",
        pieces=_water,
    ),
    Stream(
        name="temperatures",
        title="the median temperature of Seattle by hour and season",
        why="nobody is behind a row; a heating curve that is programmed by hand should change rarely",
        source="hourly temperatures of Seattle (normals of 2010), 8,759 hours, as vega_datasets ships them",
        domain=Ball(5, 8.0),
        loss=Absolute(),
        lipschitz=1.0,
        rounds=8_759,
        decision=("mean", "cosine of the hour", "sine of the hour", "cosine of the season", "sine of the season"),
        scaling="degrees Fahrenheit less 50, divided by 10, clipped to [-8, 8]; rows divided by sqrt(3); radius 8",
        best_for="lazy",
        pieces=_temperatures,
    ),
)
