"""All streams by name: made from a few words, listed without loading anything."""

from __future__ import annotations

import importlib.util
from typing import NamedTuple

from reticent._core._errors import need
from reticent.lab.streams._prices import PORTFOLIOS
from reticent.lab.streams._real import EXTRAS, PEOPLE, THINGS
from reticent.lab.streams._stream import Setting, Stream, nearest, put_together, read_all, taken_apart
from reticent.lab.streams._synthetic import AROUND, SERVICES, WORST

_REAL = {stream.name: stream for stream in (*PEOPLE, *THINGS, *PORTFOLIOS)}
_SYNTHETIC = {name: (make, settings) for name, make, settings in (*AROUND, *WORST, *SERVICES)}
_PACKAGES = (
    dict.fromkeys((stream.name for stream in PEOPLE), "statsmodels")
    | dict.fromkeys((stream.name for stream in THINGS), "river")
    | dict.fromkeys((stream.name for stream in PORTFOLIOS), "universal")
    | {"temperatures": "vega_datasets"}
)


class About(NamedTuple):
    """A stream in a list: `extra` is what brings its data, empty where nothing is needed."""

    name: str
    kind: str
    title: str
    rounds: int
    dim: int
    extra: str


def names() -> tuple[str, ...]:
    """Return the names of all streams, real ones first.

    >>> "shuttle" in names() and "drifting" in names()
    True
    """
    return (*_REAL, *_SYNTHETIC)


def get(spec: str) -> Stream:
    """Return a stream by its name, with settings after a colon; data are read when rounds are asked for.

    Every stream has the setting `rounds`, where it stops; of a real one that can be earlier only. Synthetic streams of
    the same settings begin with the same rounds, whatever `rounds` is.

    >>> stream = get("drifting:rounds=1e4,dim=3,seed=7")
    >>> stream.name, stream.rounds, stream.domain
    ('drifting:rounds=10000,dim=3,seed=7', 10000, Ball(3, 1.0))
    >>> get(stream.name) == stream
    True
    >>> get("shuttel")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: no stream is called 'shuttel'; did you mean shuttle? there are randhie, randhie-visits, fair, ...
    """
    name, given = taken_apart(spec)
    if name in _REAL:
        whole = _REAL[name]
        values = read_all(name, given, {"rounds": Setting(whole.rounds, least=1, most=whole.rounds)})
        if importlib.util.find_spec(_PACKAGES[name]) is None:
            need(_PACKAGES[name], EXTRAS[_PACKAGES[name]])
        rounds = int(values["rounds"])
        return whole if rounds == whole.rounds else whole.head(rounds)
    if name not in _SYNTHETIC:
        raise ValueError(f"no stream is called {name!r}{nearest(name, dict.fromkeys(names()))}")
    make, settings = _SYNTHETIC[name]
    chosen = read_all(name, given, settings)
    return make(name=put_together(name, chosen, settings), **chosen)


def settings(name: str) -> dict[str, str]:
    """Return what can be set for a stream: the settings with their defaults, in words.

    >>> settings("latency")
    {'rounds': '1000000', 'seed': '0', 'level': '0.95'}
    """
    stream = get(name)
    if name in _REAL:
        return {"rounds": str(stream.rounds)}
    return {key: str(setting.default) for key, setting in _SYNTHETIC[name][1].items()}


def describe() -> list[About]:
    """Return all streams with what they are about; loads no data and needs no extra.

    >>> [one for one in describe() if one.name == "latency"][0].rounds
    1000000
    """
    real = [_about(stream, "real", EXTRAS[_PACKAGES[stream.name]]) for stream in _REAL.values()]
    return real + [_about(get(name), "synthetic", "") for name in _SYNTHETIC]


def _about(stream: Stream, kind: str, extra: str) -> About:
    return About(stream.name, kind, stream.title, stream.rounds, stream.domain.dim, extra)
