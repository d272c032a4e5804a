"""The appendix on exponents: the fits that tell the paper's rates apart, and why some are not those of the paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from reticent._core import _names
from reticent.lab.tables._make import ALONG
from reticent.lab.tables._regimes import REGIMES, Rate, in_words, rate

NEAR = 0.05  # a difference that logarithms make at any T here
FITS = ("runnable", "large", "measured")

# What our accounting leaves of the two terms of a bound, up to logarithms (bench/results/plans.md, "Growth").
LAWS: dict[str, Rate] = {
    "what the best batch leaves with losses that react, until batches of one round give the paper's rate": rate(
        "2/5", "2/5", epsilon="-3/5"
    ),
    "what is left with losses fixed in advance, where the coin of the changed batch costs next to nothing": rate(
        "1/3", "1/2", epsilon="-2/3"
    ),
}
FLAT_LAW = rate("2/5", "4/5", epsilon="-3/5")

ABOUT = """
regret = constant * T^a * d^b * epsilon^c (or S^c), by least squares in logarithms over the points of a regime, with the
95 percent interval of the fit (a certificate has no noise: its interval tells how far it is from a power law). An
exponent stands here only if its interval is shorter than the least gap between the exponents that the paper states in
that regime, for whichever system: a longer one could not tell the rates apart. Where variables move together so much
that their exponents trade against each other (condition number of 30 or more), none stands. Vacuous certificates are
left out, but for the paper's constants, whose formula has exponents even where it says nothing. *Along*: the exponent
of T when epsilon (or S) moves with T so that its place in the regime, and d, stay. Most regimes end where two terms of
a bound are of one order in T; inside both keep one proportion however large T is, so that exponents at fixed epsilon
show a mixture of both, while the one along the regime is that of the paper. Private certificates at large T hold what
the machine's arithmetic and the public grid add, too (see *Large T* above), and so do their exponents. Measured
exponents are those of the panel.
""".strip()

HEADS = ("system", "paper's rate", "certificate, runnable T", "certificate, large T", "measured")


def power(row: Mapping[str, Any], which: str) -> str:
    """Return the exponents of one fit that have power, with half the width of their intervals.

    >>> fitted = {"exponents": {"T": {"value": 0.5, "low": 0.45, "high": 0.55}}}
    >>> power({"variable": "S", "large": fitted, "along": {"large": None}, "power": {"large": ["T"]}}, "large")
    'T 0.50 ± 0.05'
    """
    found = []
    for name in ("T", "d", row["variable"], ALONG):
        if name in row["power"][which]:
            one = row["along"][which] if name == ALONG else row[which]["exponents"][name]
            found.append(f"{name} {one['value']:.2f} ± {(one['high'] - one['low']) / 2:.2f}")
    return ", ".join(found) or "-"


def strong(row: Mapping[str, Any]) -> bool:
    """Whether any exponent of a row has power."""
    return any(row["power"].values())


def sections(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[list[str]], list[str]]]:
    """Return the title, the lines and the remarks of every regime; one remark names the exponents without power."""
    made = []
    for name in dict.fromkeys(row["regime"] for row in rows):
        mine = [row for row in rows if row["regime"] == name]
        told = [row for row in mine if strong(row)]
        lines = [[row["system"], _rate(row), *(power(row, which) for which in FITS)] for row in told]
        made.append((f"{name}: {REGIMES[name].words}", lines, [*remarks(told), *_weak(mine)]))
    return made


def _weak(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return one line on the exponents whose intervals are too long, and on variables in which no rates differ."""
    regime, found = REGIMES[rows[0]["regime"]], []
    for row in rows:
        parts = []
        for which in FITS:
            fitted = () if row[which] is None else row[which]["exponents"] or ("all",)
            vague = [key for key in fitted if key not in row["power"][which] and (key == "all" or regime.gap(key))]
            if vague:
                parts.append(f"{', '.join(vague)} {_WORDS[which]}")
        if parts:
            found.append(f"{row['system']} ({'; '.join(parts)})")
    said = [f"Cannot be told apart at these sizes: {', '.join(found)}."] if found else []
    same = [name for name in ("T", "d", regime.variable) if not regime.gap(name)]
    return [*said, *([f"The rates here do not differ in {' and '.join(same)}."] if same else [])]


_WORDS = {"runnable": "at runnable T", "large": "at large T", "measured": "measured"}


def _rate(row: Mapping[str, Any]) -> str:
    along = row["along"]["paper"]
    return f"{row['rate']}" + ("" if along is None else f" (along {along['value']:.2f})")


def remarks(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is to be said of rows of one regime in sentences: growth along it, then exponents that are off."""
    said = [_growth(rows)]
    for row in rows:
        found = _certified(row)
        if found:
            said.append(f"{row['system']}: {found}")
    return [f"{one[0].upper()}{one[1:]}." for one in said if one]


def _growth(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say which certificates grow with T along the regime as the paper says."""
    known = [row for row in rows if row["along"]["paper"] is not None and ALONG in row["power"]["large"]]
    if not known:
        return ""
    off = [row for row in known if abs(row["along"]["large"]["value"] - row["along"]["paper"]["value"]) > NEAR]
    words = ", ".join(
        f"{row['system']} (T^{row['along']['large']['value']:.2f}, not T^{row['along']['paper']['value']:.2f})"
        for row in off
    )
    whose = "every certificate here" if not off else f"{len(known) - len(off)} of {len(known)} certificates"
    return (
        f"along the regime {whose} at large T grow{'s' if not off else ''} as the paper's rate, to within {NEAR:g}"
        + (f"; others: {words}" if off else "")
    )


def _certified(row: Mapping[str, Any]) -> str:
    """Say by how much the certificate's exponents differ from the paper's, and why; nothing where they do not."""
    for which in ("large", "runnable"):
        fitted = {name: row[which]["exponents"][name] for name in row["power"][which] if name != ALONG}
        if fitted:
            far = _far(fitted, row["paper"])
            if not far:
                return ""
            words = ", ".join(f"{name} {abs(gap):.2f} {'above' if gap > 0 else 'below'}" for name, gap in far.items())
            return f"the certificate at {which} T is off the paper's exponents ({words}): {_reason(row, fitted)}"
    return ""


def _far(fitted: Mapping[str, Any], paper: Mapping[str, float]) -> dict[str, float]:
    """Return by how much exponents differ from the paper's where that is more than logarithms and intervals allow."""
    gaps = {}
    for name, one in fitted.items():
        stated = paper.get(name, 0.0)
        if abs(one["value"] - stated) > NEAR and not one["low"] <= stated <= one["high"]:
            gaps[name] = one["value"] - stated
    return gaps


def _reason(row: Mapping[str, Any], fitted: Mapping[str, Any]) -> str:
    """Return why a certificate need not have the paper's exponents at these T."""
    system, last = row["system"], row["last"] or row["last_run"]
    rooted = row["paper"]["T"] == 0.5 and not row["paper"].get("d") and not row["paper"].get(row["variable"])
    if system in (_names.PAPER, _names.PAPER_LAZY):
        return _logarithms(row, rooted)
    if rooted and last is not None:
        size = f"{last['certificate']:.3g} sqrt(T) at T = {last['T']:.0e}, d = {last['d']}"
        return f"the terms beside sqrt(T) still weigh, it is {size} in the upper part of the regime"
    if system in (_names.PCOMW, _names.PCOMW_FIXED):
        law = min(LAWS, key=lambda one: _distance(fitted, LAWS[one]))
        return f"they are nearest to {in_words(LAWS[law])}, {law} (bench/results/plans.md)"
    if system == _names.FLAT:
        return f"as for P-COMW, with d in place of d^(1/2), the best batch leaves {in_words(FLAT_LAW)}"
    if system in (_names.DP_FTRL, _names.DP_FTRL_TREE):
        return "the paper's rate leaves out logarithms of T and of 1/delta"
    return "the paper's rate leaves out logarithms"


def _distance(fitted: Mapping[str, Any], law: Rate) -> float:
    return math.fsum((one["value"] - float(law[name])) ** 2 for name, one in fitted.items())


def _logarithms(row: Mapping[str, Any], rooted: bool) -> str:
    """Say what the logarithms of the paper's constants add to the exponent of T."""
    T = (row["last"] or {"T": 10**12})["T"]
    if row["table"] == 1:
        gain = 1 / math.log(T) + 1 / math.log(T / 1e-9)
        words = f"its factor log(T) log(T/delta) adds about {gain:.2f} to the exponent of T"
        return words + (", and with its constants sqrt(T) is the largest term only beyond T = 1e42" if rooted else "")
    words = f"its factor log(T) adds about {1 / math.log(T):.2f} to the exponent of T"
    return words + (", and with its constants sqrt(T) is not yet the largest term" if rooted else "")


def exponent_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what `pictures.exponents` draws: every exponent that has power, certificates at large T."""
    found = []
    for row in rows:
        for variable in ("T", "d", row["variable"], ALONG):
            bars: dict[str, float] = {}
            for name, which in (("certificate", "large"), ("measured", "measured")):
                if variable in row["power"][which]:
                    one = row["along"][which] if variable == ALONG else row[which]["exponents"][variable]
                    bars |= {name: one["value"], f"{name}_low": one["low"], f"{name}_high": one["high"]}
            stated = row["along"]["paper"] if variable == ALONG else {"value": row["paper"].get(variable)}
            if bars:
                line = {"table": row["table"], "regime": row["text"], "system": row["system"]}
                shown = "T, along" if variable == ALONG else variable
                found.append(line | {"variable": shown, "paper": None if stated is None else stated["value"]} | bars)
    return found
