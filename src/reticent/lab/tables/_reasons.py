"""Where fitted exponents differ from the paper's rates, said from the numbers, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from reticent.lab.tables import _regimes as names
from reticent.lab.tables._regimes import Rate, in_words, rate

NEAR = 0.05  # a difference that logarithms make at any T here

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


def remarks(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is to be said of the rows of one regime, each a sentence.

    Growth along the regime for all systems together; then every system whose exponents are not the paper's, and why;
    then what was left out, and how near measurements come to certificates.
    """
    said = [_growth(rows)]
    for row in rows:
        parts = [one for one in (_certified(row), _left_out(row), _measured(row)) if one]
        if parts:
            said.append(f"{row['system']}: " + "; ".join(parts))
    return [f"{one[0].upper()}{one[1:]}." for one in said if one]


def _growth(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say which certificates grow with T along the regime as the paper says."""
    known = [row for row in rows if row["along"]["paper"] is not None and row["along"]["large"] is not None]
    if not known:
        return ""
    off = [row for row in known if abs(row["along"]["large"]["value"] - row["along"]["paper"]["value"]) > NEAR]
    words = ", ".join(
        f"{row['system']} (T^{row['along']['large']['value']:.2f}, not T^{row['along']['paper']['value']:.2f})"
        for row in off
    )
    whose = "every certificate" if not off else f"{len(known) - len(off)} of {len(known)} certificates"
    return (
        f"along the regime {whose} at large T grow{'s' if not off else ''} as the paper's rate, to within {NEAR:g}"
        + (f"; others: {words}" if off else "")
    )


def _certified(row: Mapping[str, Any]) -> str:
    fit, which = (row["large"], "large") if row["large"] is not None else (row["runnable"], "runnable")
    if fit is None:
        return "no certificate says anything here"
    if not fit["identifiable"]:
        return f"the certificate's exponents at {which} T are confounded (condition number {fit['condition']:.0f})"
    far = _far(fit, row["paper"])
    if not far:
        return f"the certificate at {which} T has the paper's exponents to within {NEAR:g} or its interval{_moves(row)}"
    words = ", ".join(f"{name} {abs(gap):.2f} {'above' if gap > 0 else 'below'}" for name, gap in far.items())
    return (
        f"the certificate at {which} T has other exponents than the paper ({words}){_moves(row)}: {_reason(row, fit)}"
    )


def _far(fit: Mapping[str, Any], paper: Mapping[str, float]) -> dict[str, float]:
    """Return by how much exponents differ from the paper's where that is more than logarithms and intervals allow."""
    gaps = {}
    for name, one in fit["exponents"].items():
        stated = paper.get(name, 0.0)
        if abs(one["value"] - stated) > NEAR and not one["low"] <= stated <= one["high"]:
            gaps[name] = one["value"] - stated
    return gaps


def _moves(row: Mapping[str, Any]) -> str:
    """Say how the exponent of T goes on from runnable to large T."""
    fits = [row["runnable"], row["large"]]
    if any(fit is None or not fit["identifiable"] or "T" not in fit["exponents"] for fit in fits):
        return ""
    first, then = (fit["exponents"]["T"]["value"] for fit in fits)
    return "" if abs(first - then) < 0.02 else f", that of T going from {first:.2f} at runnable T to {then:.2f}"


def _reason(row: Mapping[str, Any], fit: Mapping[str, Any]) -> str:
    """Return why a certificate need not have the paper's exponents at these T."""
    system, last = row["system"], row["last"] or row["last_run"]
    rooted = row["paper"]["T"] == 0.5 and not row["paper"].get("d") and not row["paper"].get(row["variable"])
    if system in (names.PAPER, names.LAZY_PAPER):
        return _logarithms(row, rooted)
    if rooted and last is not None:
        size = f"{last['certificate']:.3g} sqrt(T) at T = {last['T']:.0e}, d = {last['d']}"
        return f"the terms beside sqrt(T) still weigh, it is {size} in the upper part of the regime"
    if system in (names.PRIVATE, names.FIXED):
        law = min(LAWS, key=lambda one: _distance(fit, LAWS[one]))
        return f"they are nearest to {in_words(LAWS[law])}, {law} (bench/results/plans.md)"
    if system == names.FLAT:
        return f"as for P-COMW, with d in place of d^(1/2), the best batch leaves {in_words(FLAT_LAW)}"
    if system == names.OBJECTIVE:
        return "ours is for generalised linear losses, for which its authors have d^(1/2) T^(1/3) epsilon^-1"
    if system == names.LEADER:
        return "ours is for generalised linear losses, for which Agarwal et al. have d^(1/2) T S^-1"
    if system in (names.FTRL, names.TREE):
        return "the paper's rate leaves out logarithms of T and of 1/delta"
    return "the paper's rate leaves out logarithms"


def _distance(fit: Mapping[str, Any], law: Rate) -> float:
    return math.fsum((one["value"] - float(law[name])) ** 2 for name, one in fit["exponents"].items())


def _logarithms(row: Mapping[str, Any], rooted: bool) -> str:
    """Say what the logarithms of the paper's constants add to the exponent of T."""
    T = (row["last"] or {"T": 10**12})["T"]
    if row["table"] == 1:
        gain = 1 / math.log(T) + 1 / math.log(T / 1e-9)
        words = f"its factor log(T) log(T/delta) adds about {gain:.2f} to the exponent of T"
        return words + (", and with its constants sqrt(T) is the largest term only beyond T = 1e42" if rooted else "")
    words = f"its factor log(T) adds about {1 / math.log(T):.2f} to the exponent of T"
    return words + (", and with its constants sqrt(T) is not yet the largest term" if rooted else "")


def _left_out(row: Mapping[str, Any]) -> str:
    parts = [f"{count} at {scale} T" for scale, count in row["vacuous"].items() if count]
    formula = row["system"] in (names.PAPER, names.LAZY_PAPER)
    said = []
    if parts:
        words = "fitted all the same, as a formula" if formula else "left out"
        said.append(f"vacuous certificates ({words}): {' and '.join(parts)}")
    said += [f"no plan at some points: {reason}" for reason in row["refused"]]
    return "; ".join(said)


def _measured(row: Mapping[str, Any]) -> str:
    fit, last = row["measured"], row["last_run"]
    if fit is None or last is None or last["measured"] is None:
        return ""
    share = f"{last['measured'] / last['certificate']:.0%}"
    found = f"the panel's worst is {share} of the certificate at T = {last['T']:.0e}, d = {last['d']}"
    if row["above"]["count"]:
        many = f"{row['above']['count']} of {sum(row['worst'].values())} means are above their certificates"
        found += f"; {many}, by at most {row['above']['errors']:.1f} standard errors of the 3 to 8 runs behind each"
    return found
