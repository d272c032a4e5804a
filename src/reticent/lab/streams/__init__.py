"""Streams of rounds: real ones from files of other packages, and synthetic adversaries with seeds.

`get("phishing")` or `get("drifting:rounds=1e5,dim=3")` makes one, `names()` and `describe()` list them, `relatives`
gives a market's price relatives. A `Stream` brings its domain, loss and Lipschitz constant.
"""

from reticent.lab.streams._catalogue import About, describe, get, names, settings
from reticent.lab.streams._prices import relatives
from reticent.lab.streams._stream import Block, Stream

__all__ = ["About", "Block", "Stream", "describe", "get", "names", "relatives", "settings"]
