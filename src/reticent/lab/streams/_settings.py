"""Settings of streams in words: "drifting:rounds=1e5,dim=3" taken apart, checked and put together again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from reticent._check import real

Value = int | float | str


@dataclass(frozen=True)
class Setting:
    """What may be set: a default, the least and the most allowed for a number, or the words to choose from."""

    default: Value
    least: float = 0.0
    most: float = 1e15
    words: tuple[str, ...] = ()

    def read(self, name: str, text: str) -> Value:
        """Return the value that a text stands for; refuse one that is none.

        >>> Setting(10, least=1).read("dim", "1e2")
        100
        """
        if isinstance(self.default, str):
            if text not in self.words:
                raise ValueError(f"{name} must be one of {', '.join(self.words)}, got {text!r}")
            return text
        whole = isinstance(self.default, int)
        wanted = f"{name} must be a {'whole number' if whole else 'number'} from {self.least:g} to {self.most:g}"
        try:
            number = real(name, float(text))
        except ValueError:
            raise ValueError(f"{wanted}, got {text!r}") from None
        if not self.least <= number <= self.most or (whole and number != int(number)):
            raise ValueError(f"{wanted}, got {text!r}")
        return int(number) if whole else number


def taken_apart(spec: str) -> tuple[str, dict[str, str]]:
    """Return the name and the settings of a spec.

    >>> taken_apart("iid:rounds=1e3,dim=2")
    ('iid', {'rounds': '1e3', 'dim': '2'})
    """
    if not isinstance(spec, str):
        raise ValueError(f"a stream is named by text such as 'iid:rounds=1000,dim=2', got {spec!r}")
    name, _, rest = spec.partition(":")
    found: dict[str, str] = {}
    for one in filter(None, (part.strip() for part in rest.split(","))):
        key, equals, value = (word.strip() for word in one.partition("="))
        if not equals or not key or not value:
            raise ValueError(f"settings of a stream must be given as name=value, got {one!r} in {spec!r}")
        if key in found:
            raise ValueError(f"a setting must be given once, got {key} twice in {spec!r}")
        found[key] = value
    return name.strip(), found


def put_together(name: str, values: Mapping[str, Value], settings: Mapping[str, Setting]) -> str:
    """Return the spec that names these settings, those at their default left out.

    >>> put_together("iid", {"rounds": 1000, "dim": 2}, {"rounds": Setting(1000), "dim": Setting(5)})
    'iid:dim=2'
    """
    changed = [f"{key}={values[key]}" for key, setting in settings.items() if values[key] != setting.default]
    return f"{name}:{','.join(changed)}" if changed else name


def read_all(name: str, given: Mapping[str, str], settings: Mapping[str, Setting]) -> dict[str, Value]:
    """Return the value of every setting of a stream; refuse settings that it does not have."""
    for key in given:
        if key not in settings:
            raise ValueError(f"the stream {name} has no setting {key!r}{nearest(key, settings)}")
    return {
        key: setting.read(key, given[key]) if key in given else setting.default for key, setting in settings.items()
    }


def nearest(word: str, known: Mapping[str, object]) -> str:
    """Return the end of a sentence about an unknown word: the one that may be meant, and all there are.

    >>> nearest("shutle", {"shuttle": 1, "fair": 2})
    '; did you mean shuttle? there are shuttle, fair'
    """
    close = get_close_matches(word, known, n=1)
    return (f"; did you mean {close[0]}? there are " if close else "; there are ") + ", ".join(known)
