"""The regimes of the paper's Tables 1 and 2, and the rates that it states there."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from reticent._core import _names

OPEN = 16.0  # an end that the paper leaves open is put this far from the other one

Rate = Mapping[str, Fraction]


def rate(T: str, d: str = "0", epsilon: str = "", S: str = "") -> Rate:
    """Return the exponents of a rate.

    >>> in_words(rate("1/3", "1/2", epsilon="-1"))
    'd^(1/2) T^(1/3) epsilon^-1'
    """
    given = {"T": T, "d": d, "epsilon": epsilon, "S": S}
    return {name: Fraction(value) for name, value in given.items() if value}


def in_words(exponents: Rate) -> str:
    """Return a rate as a product of powers."""
    parts = []
    for name in ("d", "T", "epsilon", "S"):
        power = exponents.get(name, Fraction(0))
        if power == 1:
            parts.append(name)
        elif power:
            parts.append(f"{name}^{power}" if power.denominator == 1 else f"{name}^({power})")
    return " ".join(parts)


@dataclass(frozen=True)
class Rival:
    """A previous best that P-COMW is set against in a regime.

    `needs` are the losses that it is for, where those are not all convex ones. `ahead` is who has the lower rate there
    by the paper: P-COMW ("ours"), the rival ("theirs"), or "neither" where the rates are the same. A rival that is not
    `cited` is not in the paper's table.
    """

    system: str
    needs: str = ""
    ahead: str = "ours"
    cited: bool = True


@dataclass(frozen=True)
class Regime:
    """A row of a table: between which powers of d and T epsilon (or S) lies, and the rates stated there.

    `low` and `high` are pairs (power of d, power of T), None where the paper leaves the end open.
    """

    table: int
    number: int
    text: str
    variable: str
    low: tuple[float, float] | None
    high: tuple[float, float] | None
    rates: Mapping[str, Rate]
    rivals: tuple[Rival, ...]

    @property
    def name(self) -> str:
        """Table and row."""
        return f"{self.table}.{self.number}"

    @property
    def words(self) -> str:
        """Between which ends epsilon (or S) lies.

        >>> TABLE_1[0].words, TABLE_1[3].words
        ('epsilon >= d T^(-1/6)', 'epsilon from T^(-1/6) to d^(1/2) T^(-1/6)')
        """
        return self.text if self.text.startswith(f"{self.variable} ") else f"{self.variable} from {self.text}"

    def gap(self, variable: str) -> float:
        """Return the least difference between the exponents of a variable in the rates stated here, 0 if there is none.

        >>> TABLE_2[2].gap("S"), TABLE_2[2].gap("T")
        (0.5, 0.0)
        """
        return least_gap(float(powers.get(variable, 0)) for powers in self.rates.values())

    def ends(self, rounds: int, dim: int) -> tuple[float, float]:
        """Return the ends of the regime, open ones put `OPEN` times as far (and switches at most one a round)."""

        def end(powers: tuple[float, float]) -> float:
            return math.exp(powers[0] * math.log(dim) + powers[1] * math.log(rounds))

        low = end(self.low) if self.low is not None else end(self.high or (0.0, 0.0)) / OPEN
        high = end(self.high) if self.high is not None else end(self.low or (0.0, 0.0)) * OPEN
        return low, min(high, float(rounds)) if self.variable == "S" else high

    def at(self, rounds: int, dim: int, part: float) -> float | None:
        """Return the value a part of the way (in logarithms) through the regime; None where the regime is empty.

        >>> TABLE_1[0].at(10**6, 2, 0.0), TABLE_1[4].at(10**6, 8, 0.5)
        (0.2, None)
        """
        low, high = self.ends(rounds, dim)
        if high <= low * (1 + 1e-9):
            return None
        value = float(f"{low * (high / low) ** part:.12g}")
        return float(max(1, round(value))) if self.variable == "S" else value


def least_gap(values: Iterable[float]) -> float:
    """Return the least difference between values that differ, 0 if none do.

    >>> least_gap([0.5, 1.0, 0.5, 0.75])
    0.25
    """
    apart = [high - low for low, high in itertools.pairwise(sorted(values))]
    return min((gap for gap in apart if gap > 1e-6), default=0.0)


SMOOTH, SMOOTH_LINEAR = "smooth losses", "smooth generalised linear losses"

_ROOT = rate("1/2", epsilon="0")
_OURS_MIDDLE = rate("3/8", "1/2", epsilon="-3/4")
_OURS_SMALL = rate("1/3", "1/2", epsilon="-1")
_ROOT_DIM = rate("1/2", "1/2", epsilon="0")
_BEFORE = rate("1/3", "1", epsilon="-1")
_SUMS = rate("1/2", "1/4", epsilon="-1/2")


def _leaders(any_smooth: str, linear: str, same: bool) -> tuple[Rival, Rival]:
    """Return a perturbed leader for smooth losses of every kind, as the paper's tables have it, and one for less.

    For generalised linear losses its authors have P-COMW's own rate, as the paper says in its introduction.
    """
    return (
        Rival(any_smooth, SMOOTH, "neither" if same else "ours"),
        Rival(linear, SMOOTH_LINEAR, "neither", cited=False),
    )


def _row(number: int, text: str, low: tuple[float, float] | None, high: tuple[float, float] | None, ours: Rate,
         flat: Rate | None = None, smooth: Rate | None = None) -> Regime:  # fmt: skip
    rates = {_names.PCOMW: ours, _names.PCOMW_FIXED: ours, _names.PAPER: ours}
    rivals = []
    if flat is not None:
        rates[_names.FLAT] = flat
        rivals.append(Rival(_names.FLAT))
    if smooth is not None:
        rates |= {_names.OBJECTIVE_ANY: smooth, _names.OBJECTIVE: ours}
        rivals += _leaders(_names.OBJECTIVE_ANY, _names.OBJECTIVE, smooth == ours)
    if not rivals:  # the last row is the one where the paper calls the rival the current best
        rivals.append(Rival(_names.DP_FTRL, ahead="ours" if low is not None else "theirs"))
    rates |= {_names.DP_FTRL: _SUMS, _names.DP_FTRL_TREE: _SUMS}
    if number > 1:  # not in the paper, but with DP-FTRL's rate; in the first row, above d^(1/2), it would be T^(1/2)
        rates[_names.NOISY_DESCENT] = _SUMS
        rivals.append(Rival(_names.NOISY_DESCENT, ahead="ours" if low is not None else "theirs", cited=False))
    return Regime(1, number, text, "epsilon", low, high, rates, tuple(rivals))


TABLE_1 = (
    _row(1, "epsilon >= d T^(-1/6)", (1, -1 / 6), None, _ROOT, _ROOT_DIM, _ROOT),
    _row(2, "d^(2/3) T^(-1/6) to d T^(-1/6)", (2 / 3, -1 / 6), (1, -1 / 6), _ROOT, _ROOT_DIM, _BEFORE),
    _row(3, "d^(1/2) T^(-1/6) to d^(2/3) T^(-1/6)", (1 / 2, -1 / 6), (2 / 3, -1 / 6), _OURS_MIDDLE, _ROOT_DIM, _BEFORE),
    _row(4, "T^(-1/6) to d^(1/2) T^(-1/6)", (0, -1 / 6), (1 / 2, -1 / 6), _OURS_MIDDLE, _BEFORE, _BEFORE),
    _row(5, "d^(3/2) T^(-1/3) to T^(-1/6)", (3 / 2, -1 / 3), (0, -1 / 6), _OURS_SMALL, _BEFORE, _BEFORE),
    _row(6, "d T^(-1/3) to d^(3/2) T^(-1/3)", (1, -1 / 3), (3 / 2, -1 / 3), _OURS_SMALL),
    _row(7, "epsilon <= d T^(-1/3)", None, (1, -1 / 3), _OURS_SMALL),
)

_LAZY_ROOT = rate("1/2", S="0")
_LAZY_OURS = rate("1", "1/2", S="-1")
_LAZY_BEFORE = rate("1", "1", S="-1")
_IN_BLOCKS = rate("1", S="-1/2")


def _lazy(number: int, text: str, low: tuple[float, float] | None, high: tuple[float, float] | None, ours: Rate,
          before: Rate) -> Regime:  # fmt: skip
    rates = {_names.PCOMW_LAZY: ours, _names.PAPER_LAZY: ours, _names.SHERMAN_KOREN_ANY: before}
    rates |= {_names.SHERMAN_KOREN: ours, _names.DESCENT: _IN_BLOCKS}
    rivals = (
        *_leaders(_names.SHERMAN_KOREN_ANY, _names.SHERMAN_KOREN, before == ours),
        Rival(_names.DESCENT, cited=False),
    )
    return Regime(2, number, text, "S", low, high, rates, rivals)


TABLE_2 = (
    _lazy(1, "S >= d T^(1/2)", (1, 1 / 2), None, _LAZY_ROOT, _LAZY_ROOT),
    _lazy(2, "(d T)^(1/2) to d T^(1/2)", (1 / 2, 1 / 2), (1, 1 / 2), _LAZY_ROOT, _LAZY_BEFORE),
    _lazy(3, "S <= (d T)^(1/2)", None, (1 / 2, 1 / 2), _LAZY_OURS, _LAZY_BEFORE),
)

TABLES = {"table1": TABLE_1, "table2": TABLE_2}
REGIMES = {regime.name: regime for regime in (*TABLE_1, *TABLE_2)}
