"""A score in the units of the columns: made from a decision and public encodings, written as JSON, applied to rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent._core._check import Array
from reticent.estimators._encoding import Calendar, Categories, Encoding, Number, Range
from reticent.lab.files._table import Column, choose
from reticent.losses import Logistic
from reticent.losses._label import Label

if TYPE_CHECKING:
    from reticent.lab.files._rounds import Rounds
    from reticent.lab.files._table import Table
    from reticent.losses import Loss

_KIND, _VERSION = "scorer", 1
ODDS, MARGIN, PREDICTION = "log odds", "margin", "prediction"


@dataclass(frozen=True)
class Term:
    """What one column adds to a score: a weight times its value (days after the first, for dates), or one of a few."""

    column: str
    encoding: Encoding | None
    weights: tuple[float, ...]
    fill: float = float("nan")

    def add(self, codes: Array) -> Array:
        """Return what cells add; values beyond the bounds count as the bound."""
        if isinstance(self.encoding, Categories):
            chosen: Array = self.encoding.units(self.column, codes) @ np.array(self.weights)
            return chosen
        if isinstance(self.encoding, Number):
            codes = np.clip(codes, self.encoding.range.low, self.encoding.range.high)
        if isinstance(self.encoding, Calendar):
            codes = codes - self.encoding.range.low
        added: Array = self.weights[0] * codes
        return added

    def words(self) -> str:
        """Return the term as it stands in a formula, with its sign."""
        if isinstance(self.encoding, Categories):
            cases = ", ".join(f"{w:.4g} for {name}" for name, w in zip(self.encoding.labels, self.weights, strict=True))
            return f"+ ({self.column}: {cases})"
        what = self.column
        if isinstance(self.encoding, Calendar):
            what = f"(days of {self.column} after {self.encoding.shown_ends()[0]})"
        return f"{'-' if self.weights[0] < 0 else '+'} {abs(self.weights[0]):.4g} {what}"


@dataclass(frozen=True)
class Scorer:
    """A score that is a sum over columns: log odds, a margin or a prediction of the target.

    >>> term = Term("age", Number(Range((0.0, 120.0))), (0.05,))
    >>> scorer = Scorer("sick", ("no", "yes"), ODDS, -2.0, (term,))
    >>> scorer.formula()
    'log odds of sick = yes: -2 + 0.05 age'
    >>> scorer.scores(np.array([[40.0], [999.0]])).tolist()
    [0.0, 4.0]
    """

    target: str
    labels: tuple[str, ...]
    kind: str
    constant: float
    terms: tuple[Term, ...]
    promise: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(rounds: Rounds, loss: Loss | None, decision: Sequence[float], promise: Mapping[str, Any]) -> Scorer | None:
        """Return the score that a decision means; None where it is no score: a number, or an answer to gradients."""
        if rounds.linear or not rounds.features:
            return None
        weights = np.asarray(decision, dtype=np.float64) / rounds.root
        constant = float(weights[-1]) if rounds.intercept else 0.0
        terms, at = [], 0
        for i, column in enumerate(rounds.features):
            encoding = rounds.encodings[i] if rounds.encodings else None
            width = 1 if encoding is None else len(encoding.tails)
            own, at = weights[at : at + width], at + width
            if isinstance(encoding, Number):
                ends = encoding.range
                constant -= float(own[0]) * (1.0 if isinstance(encoding, Calendar) else ends.middle / ends.width)
                own = own * 2.0 / ends.width
            terms.append(Term(column.name, encoding, tuple(own.tolist()), column.fill))
        target = rounds.columns[-1]
        kind = ODDS if isinstance(loss, Logistic) else MARGIN if isinstance(loss, Label) else PREDICTION
        labels = target.labels or (() if kind == PREDICTION else ("-1", "1"))
        return Scorer(target.name if target.place >= 0 else "", labels, kind, constant, tuple(terms), dict(promise))

    def formula(self) -> str:
        """Return the score as a formula over the columns."""
        what = self.kind + (f" of {self.target}" if self.target else "")
        if self.target and self.labels:
            what += f" = {self.labels[1]}"
        return " ".join([f"{what}: {self.constant:.4g}", *(term.words() for term in self.terms)])

    def limits(self) -> str:
        """Say which values count as which: bounds, and what stands in empty cells."""
        said = []
        for term in self.terms:
            if isinstance(term.encoding, Number):
                low, high = term.encoding.shown_ends()
                said.append(f"{term.column} from {low} to {high}")
        return "values beyond count as the nearest of " + ", ".join(said) if said else ""

    def columns(self, table: Table) -> tuple[Column, ...]:
        """Return the columns of a table that the score reads."""
        found = []
        for term in self.terms:
            place = choose(table.names, term.column, table.name, table.hint(term.column))
            coded = isinstance(term.encoding, Calendar | Categories)
            kind = "coded" if coded else "number"
            found.append(Column(term.column, place, kind, (), term.encoding if coded else None, term.fill))
        return tuple(found)

    def scores(self, codes: Array) -> Array:
        """Return the score of rows of these columns, as tables give them."""
        total = np.full(len(codes), self.constant)
        for i, term in enumerate(self.terms):
            total = total + term.add(codes[:, i])
        return total

    def to_json(self) -> str:
        """Return the scorer as a JSON document, which holds nothing that is not public."""
        features = [_plain(term) for term in self.terms]
        facts = {"reticent": _KIND, "version": _VERSION, "formula": self.formula(), "target": self.target}
        facts |= {"labels": list(self.labels), "score": self.kind, "constant": self.constant, "features": features}
        return json.dumps(facts | {"promise": dict(self.promise)}, indent=2, ensure_ascii=False) + "\n"

    @staticmethod
    def from_json(text: str, name: str) -> Scorer:
        """Return the scorer in a JSON document; `name` is that of its file, for messages."""
        try:
            facts = json.loads(text)
            if facts["reticent"] != _KIND or facts["version"] != _VERSION:
                raise ValueError(f"it is a {facts['reticent']} of version {facts['version']}")
            terms = tuple(_term(one) for one in facts["features"])
            labels = tuple(str(label) for label in facts["labels"])
            if facts["score"] not in (ODDS, MARGIN, PREDICTION) or len(labels) not in (0, 2) or not terms:
                raise ValueError("its score, labels or features are none")
            constant = _finite(facts["constant"])
            return Scorer(str(facts["target"]), labels, facts["score"], constant, terms, dict(facts["promise"]))
        except (ValueError, TypeError, KeyError, AttributeError) as why:
            raise ValueError(f"{name} is no scorer that `reticent run --scorer` wrote ({why})") from None


def _plain(term: Term) -> dict[str, Any]:
    found: dict[str, Any] = {"column": term.column}
    if isinstance(term.encoding, Categories):
        found["weights"] = dict(zip(term.encoding.labels, term.weights, strict=True))
        if term.fill == term.fill:
            found["fill"] = term.encoding.labels[int(term.fill)]
        return found
    found["weight"] = term.weights[0]
    if isinstance(term.encoding, Calendar):
        found["first_day"], found["last_day"] = term.encoding.shown_ends()
    elif isinstance(term.encoding, Number):
        found |= {"low": term.encoding.range.low, "high": term.encoding.range.high}
    if term.fill == term.fill:
        found["fill"] = term.fill
    return found


def _term(one: Mapping[str, Any]) -> Term:
    encoding: Encoding | None = None
    weights: tuple[float, ...]
    if "weights" in one:
        encoding = Categories(tuple(one["weights"]))
        weights = tuple(_finite(weight) for weight in one["weights"].values())
        fill = encoding.code(one["fill"]) if "fill" in one else float("nan")
        return Term(str(one["column"]), encoding, weights, fill)
    if "first_day" in one:
        encoding = Calendar(date.fromisoformat(one["first_day"]), date.fromisoformat(one["last_day"]))
    elif "low" in one:
        encoding = Number(Range((one["low"], one["high"])))
    return Term(str(one["column"]), encoding, (_finite(one["weight"]),), float(one.get("fill", "nan")))


def _finite(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise ValueError(f"{value!r} is not a finite number")
    return float(value)
