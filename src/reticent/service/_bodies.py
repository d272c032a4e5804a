"""What callers send: bodies as typed structures, and rounds as arrays; a refusal says where, never which number."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Struct

from reticent._core._check import Array
from reticent.service._problems import Problem

ID = r"^[a-z0-9][a-z0-9._-]{0,62}$"
"""What learners and fleets may be called in addresses."""
MEMBER = r"^[^\x00-\x1f\x7f]{1,200}$"
"""Keys of a fleet, rounds, Idempotency-Keys: printable, and not too long for an index."""
JSON, RAW = "application/json", "application/octet-stream"
LARGEST = 10_000  # coordinates of a decision that a service hands out

Id = Annotated[str, Meta(pattern=ID, description="Small letters, digits, dots, dashes; it stands in addresses.")]
Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$", description="For people.")]
Member = Annotated[str, Meta(pattern=MEMBER)]
Plain = bool | int | float | str | list[int | float | str] | None
Cells = list[float | list[float] | None]
T = TypeVar("T")


class _New(Struct, forbid_unknown_fields=True):
    spec: Annotated[dict[str, Plain], Meta(description="What rt.fleet.Spec.from_json takes.")]
    id: Id | None = None
    name: Name | None = None
    population: (
        Annotated[str, Meta(max_length=200, description="Whom the ledger charges, before anything else.")] | None
    ) = None
    seed: (
        Annotated[int, Meta(ge=0, le=(1 << 63) - 1, description="For tests; refused unless the server allows seeds.")]
        | None
    ) = None


class NewLearner(_New, forbid_unknown_fields=True):
    """A learner to be made."""

    feedback_lag: (
        Annotated[
            int,
            Meta(ge=1, le=100_000, description="For delayed feedback: a round enters when so many more were opened."),
        ]
        | None
    ) = None


class NewFleet(_New, forbid_unknown_fields=True):
    """A fleet to be made: one learner for each key that appears."""

    max_keys: (
        Annotated[int, Meta(ge=1, le=1 << 31, description="Under so many keys one person appears at most.")] | None
    ) = None


class Rounds(Struct, forbid_unknown_fields=True):
    """Rounds of a learner: as columns or as rows, or one whose target is to come (`round` and `open`, then `close`)."""

    columns: Annotated[dict[str, Cells], Meta(description="One list for each column, all as long.")] | None = None
    rows: (
        Annotated[
            list[dict[str, float | list[float] | None]], Meta(min_length=1, description="One object for each round.")
        ]
        | None
    ) = None
    round: Member | None = None
    open: Annotated[list[float], Meta(description="Features of a round whose target is still to come.")] | None = None
    close: Annotated[float, Meta(description="The target of a round that was opened.")] | None = None


class KeyedRounds(Struct, forbid_unknown_fields=True):
    """Rounds of a fleet: as columns with a list of keys, or as rows with a `key` in each."""

    keys: Annotated[list[Member], Meta(min_length=1)] | None = None
    columns: Annotated[dict[str, Cells], Meta(description="One list for each column, all as long.")] | None = None
    rows: (
        Annotated[
            list[dict[str, float | str | list[float] | None]],
            Meta(min_length=1, description="One object for each round."),
        ]
        | None
    ) = None


class NewKey(Struct, forbid_unknown_fields=True):
    """An API key to be made."""

    name: Name
    scopes: Annotated[list[Annotated[str, Meta(pattern="^(read|write|admin)$")]], Meta(min_length=1, max_length=3)]
    only: Annotated[list[Id], Meta(min_length=1, max_length=1000)] | None = None
    days: Annotated[float, Meta(gt=0, le=36_500)] | None = None


def decoded(body: bytes, kind: type[T]) -> T:
    """Return a body as a structure; refuse what does not fit, by its place.

    >>> decoded(b'{"name": "ops", "scopes": ["read"]}', NewKey).scopes
    ['read']
    >>> decoded(b'{"name": "ops"}', NewKey)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    reticent.service._problems.Problem: the body must be JSON of ...: object missing required field `scopes`
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = str(error)
        # Names of fields and types come from the schema, or are those of the caller's own keys; values never do.
        detail = said[:1].lower() + said[1:] if isinstance(error, msgspec.DecodeError) else "it is no JSON"
        raise Problem("malformed", f"the body must be JSON of the documented form: {detail}") from None


@dataclass(frozen=True)
class Shape:
    """What the columns of a specification are like: names, and how many numbers each has in a round."""

    names: tuple[str, ...]
    widths: tuple[int, ...]
    missing: bool
    """Whether a round may have no value."""

    @classmethod
    def of(cls, spec: Any) -> Shape:
        """Return that of a specification."""
        names = tuple(spec.columns)
        wide = 1 if names == ("values",) else int(spec.plan.domain.dim)
        widths = tuple(wide if name in ("features", "gradients") else 1 for name in names)
        return cls(names, widths, names == ("values",) and spec.plan.neighbors == "zero-out")

    def columns(self, given: dict[str, Any], count: int | None) -> tuple[list[Array], int]:
        """Return columns as arrays, in order, and how many rounds they are; `features` of width 1 may be left out."""
        odd = given.keys() - set(self.names)
        if odd:
            raise _refused(
                f"there is no column {sorted(map(str, odd))[0][:80]!r} here; there are {', '.join(self.names)}"
            )
        for name in self.names:
            if name in given and count is None:
                count = len(given[name])
        if not count:
            raise _refused(f"rounds must be given, as columns {', '.join(self.names)}")
        return [
            self._column(name, width, given, count) for name, width in zip(self.names, self.widths, strict=True)
        ], count

    def _column(self, name: str, width: int, given: dict[str, Any], count: int) -> Array:
        if name not in given:
            if name == "features" and width == 1:
                return np.ones(count)
            raise _refused(f"the column {name!r} is missing")
        try:
            array = np.array(given[name], dtype=np.float64)
        except (TypeError, ValueError):
            array = np.empty(0)
        wanted = (count,) if width == 1 else (count, width)
        if array.shape == (count, 1) and width == 1:
            array = array[:, 0]
        if array.shape != wanted:
            each = "a number" if width == 1 else f"a list of {width} numbers"
            raise _refused(f"the column {name!r} must have {count} rounds, each {each}")
        self._check_finite(name, array)
        return array

    def _check_finite(self, name: str, array: Array) -> None:
        if math.isfinite(array.sum()):
            return
        bad = ~np.isfinite(array)
        if self.missing:
            bad &= ~np.isnan(array)
        if bad.any():
            place = int(np.argwhere(bad)[0][0])
            raise _refused(
                f"the column {name!r} must hold finite numbers, and round {place} of the request does not; leave no "
                "round out (that would show), but put a public number in its place"
            )

    def raw(self, body: bytes, keyed: bool) -> tuple[list[str] | None, list[Array]]:
        """Return rounds from little-endian float64, row by row: a key (a whole number) first, where there are keys."""
        wide = sum(self.widths) + int(keyed)
        if not body or len(body) % (8 * wide):
            raise _refused(f"a raw body must be float64 rows of {wide} numbers, so a multiple of {8 * wide} bytes")
        table = np.frombuffer(body, dtype="<f8").reshape(-1, wide).astype(np.float64)
        keys = None
        if keyed:
            first, table = table[:, 0], table[:, 1:]
            if not (np.isfinite(first).all() and (first == np.floor(first)).all() and (abs(first) < 2.0**53).all()):
                raise _refused("the first number of each raw row must be a key, a whole number below 2^53")
            keys = [str(int(key)) for key in first]
        ends = np.cumsum((0, *self.widths))
        found = []
        for name, width, begin in zip(self.names, self.widths, ends[:-1], strict=True):
            part = table[:, begin] if width == 1 else table[:, begin : begin + width]
            self._check_finite(name, part)
            found.append(np.ascontiguousarray(part))
        return keys, found

    @cached_property
    def _quick(self) -> tuple[msgspec.json.Decoder[Any], msgspec.json.Decoder[Any]]:
        """Readers of whole columns, and of those with keys: several times as fast as those of all that is allowed."""
        columns = msgspec.defstruct(
            "Columns",
            [
                (name, list[float] if width == 1 else list[list[float]])
                for name, width in zip(self.names, self.widths, strict=True)
            ],
            forbid_unknown_fields=True,
        )
        plain = msgspec.defstruct("Plain", [("columns", columns)], forbid_unknown_fields=True)
        keyed = msgspec.defstruct("Keyed", [("keys", list[Member]), ("columns", columns)], forbid_unknown_fields=True)
        return msgspec.json.Decoder(plain), msgspec.json.Decoder(keyed)

    def read(self, body: bytes, keyed: bool) -> Rounds | tuple[list[str] | None, list[Array]]:
        """Return keys and columns of a body of JSON; the body itself where it is about a round opened or closed."""
        try:
            found = self._quick[keyed].decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            given: Rounds | KeyedRounds = decoded(body, KeyedRounds) if keyed else decoded(body, Rounds)
            return given if isinstance(given, Rounds) and given.round is not None else self.from_json(given)
        keys = found.keys if keyed else None
        return keys, self.columns(msgspec.structs.asdict(found.columns), None if keys is None else len(keys))[0]

    def from_json(self, body: Rounds | KeyedRounds) -> tuple[list[str] | None, list[Array]]:
        """Return keys (None where there are none) and columns of a body."""
        keys = body.keys if isinstance(body, KeyedRounds) else None
        if (body.columns is None) == (body.rows is None):
            raise _refused("give either columns or rows")
        if body.columns is not None:
            if isinstance(body, KeyedRounds) and keys is None:
                raise _refused("columns of a fleet need keys, one for each round")
            return keys, self.columns(body.columns, None if keys is None else len(keys))[0]
        assert body.rows is not None
        if keys is not None:
            raise _refused("rows have their key in themselves; leave keys out")
        rows: list[dict[str, Any]] = [*body.rows]
        if isinstance(body, KeyedRounds):
            keys = [_member(row.pop("key", None)) for row in rows]
        names = {name for name in self.names if name in rows[0]}
        for place, row in enumerate(rows):
            if row.keys() != names:
                raise _refused(f"row {place} must have {', '.join(self.names)} as the others, and nothing else")
        return keys, self.columns({name: [row[name] for row in rows] for name in names}, len(rows))[0]

    def open_features(self, given: list[float]) -> Array:
        """Return the features of a round that is opened."""
        if self.names != ("features", "targets"):
            raise _refused(
                f"only rounds with features and targets can be opened and closed, and here are {', '.join(self.names)}"
            )
        return self.columns({"features": [given] if self.widths[0] > 1 else given, "targets": [0.0]}, 1)[0][0]


def target_of(value: float) -> float:
    """Return a target that closes a round."""
    if not math.isfinite(value):
        raise _refused("a target must be a finite number")
    return float(value)


def member(what: str, text: str) -> str:
    """Return a key, a round or an Idempotency-Key; refuse what is none."""
    if not re.match(MEMBER, text) or text != text.strip():
        raise Problem("malformed", f"{what} must be 1 to 200 printable letters without spaces around them")
    return text


def _member(value: Any) -> str:
    if not isinstance(value, str) or not re.match(MEMBER, value):
        raise _refused("every row of a fleet needs a key, a text of 1 to 200 printable letters")
    return value


def _refused(detail: str) -> Problem:
    return Problem("refused", f"{detail}; nothing of the request was recorded")
