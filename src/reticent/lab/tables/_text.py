"""The tables as text: exponents with their intervals, and why they differ from the paper's rates where they do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from reticent._core import _names
from reticent.lab._environment import in_words as environment_in_words
from reticent.lab.tables._regimes import OPEN, REGIMES, Rate, in_words, rate

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
    if system in (_names.PAPER, _names.PAPER_LAZY):
        return _logarithms(row, rooted)
    if rooted and last is not None:
        size = f"{last['certificate']:.3g} sqrt(T) at T = {last['T']:.0e}, d = {last['d']}"
        return f"the terms beside sqrt(T) still weigh, it is {size} in the upper part of the regime"
    if system in (_names.PCOMW, _names.PCOMW_FIXED):
        law = min(LAWS, key=lambda one: _distance(fit, LAWS[one]))
        return f"they are nearest to {in_words(LAWS[law])}, {law} (bench/results/plans.md)"
    if system == _names.FLAT:
        return f"as for P-COMW, with d in place of d^(1/2), the best batch leaves {in_words(FLAT_LAW)}"
    if system == _names.OBJECTIVE:
        return "ours is for generalised linear losses, for which its authors have d^(1/2) T^(1/3) epsilon^-1"
    if system == _names.SHERMAN_KOREN:
        return "ours is for generalised linear losses, for which Agarwal et al. have d^(1/2) T S^-1"
    if system in (_names.DP_FTRL, _names.DP_FTRL_TREE):
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
    formula = row["system"] in (_names.PAPER, _names.PAPER_LAZY)
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


# The tables as text: exponents with their intervals, the tables in Markdown.

ABOUT = f"""
# Tables 1 and 2 of the paper, made again

The paper states rates without logarithms. Here they stand beside exponents fitted to numbers: regret = constant *
T^a * d^b * epsilon^c (or S^c) by least squares in logarithms over points inside each regime (a tenth and nine tenths of
the way through it, in logarithms; an end that the paper leaves open is put {OPEN:g} times as far as the other). Unit
ball, slopes up to 1, neighbours that differ in one round.

* *certificate, runnable T* and *large T*: the regret that a plan promises, which costs no run. Delta is 1e-6 at
  runnable and 1e-9 at large T. Vacuous certificates are left out, but for the paper's constants, whose formula has
  exponents even where it says nothing.
* *measured*: the worst over a panel of streams of the mean regret over the learner's randomness; the stream that was
  the worst (at how many points) is named. The panel is linear and fixed in advance: a steady direction in noise, a
  direction that turns round every sqrt(T) rounds, one that turns against the sum so far, random signs, and for lazy
  learners signs held for T/S rounds. Random signs alone cost every learner sqrt(T). A panel is not the worst case:
  measured exponents are those of the panel. Regret is computed from the data and is not private.
* The interval behind an exponent is the 95 percent interval of the fit. A certificate has no noise: its interval tells
  how far it is from a power law there. "confounded": the points move T, d and epsilon together so much (condition
  number of 30 or more) that their exponents cannot be told apart.
* *T along the regime*: the exponent of T when epsilon (or S) moves with T so that its place in the regime, and d, stay;
  in order the paper's rate, the certificate at runnable and at large T, and measured. Most regimes end where two terms
  of a bound are of one order in T. Inside such a regime both keep one proportion however large T is, only d moves it:
  the exponents at fixed epsilon then show a mixture of both terms, and do not become those of the larger one as T
  grows, while the exponent along the regime is that of the paper.
""".strip()


def power(fit: Mapping[str, Any] | None, variables: Sequence[str], between: str = ", ") -> str:
    """Return fitted exponents with half the width of their intervals.

    >>> made = {"exponents": {"T": {"value": 0.5, "low": 0.45, "high": 0.55}}, "identifiable": True}
    >>> power(made, ("T", "d"))
    'T 0.50 ± 0.05'
    """
    if fit is None:
        return "-"
    if not fit["exponents"]:
        return "confounded"
    found = fit["exponents"]
    parts = [
        f"{name} {found[name]['value']:.2f} ± {(found[name]['high'] - found[name]['low']) / 2:.2f}"
        for name in variables
        if name in found
    ]
    return between.join(parts) + ("" if fit["identifiable"] else f"{between}confounded")


def shown(row: Mapping[str, Any]) -> list[str]:
    """Return a row of the report: system, rate, certificate twice, measured, T along the regime, worst streams."""
    variables = ("T", "d", row["variable"])
    worst = ", ".join(f"{name} ({count})" for name, count in row["worst"].items()) or "not run"
    fits = [power(row[name], variables) for name in ("runnable", "large", "measured")]
    return [row["system"], row["rate"], *fits, along(row), worst]


def along(row: Mapping[str, Any]) -> str:
    """Return the exponents of T along the regime: paper, certificate at runnable and at large T, measured."""
    found = [row["along"][name] for name in ("paper", "runnable", "large", "measured")]
    return " / ".join("-" if one is None else f"{one['value']:.2f}" for one in found)


def short_row(row: Mapping[str, Any]) -> list[str]:
    """Return a row for a terminal: system, rate and the three fits, with a line for each exponent.

    The last line is the exponent of T along the regime.
    """
    variables = ("T", "d", row["variable"])
    made = [row["system"], f"{row['rate']}{_line(row['along']['paper'])}"]
    for name in ("runnable", "large", "measured"):
        made.append(power(row[name], variables, "\n") + _line(row["along"][name], spread=True))
    return made


def _line(one: Mapping[str, float] | None, spread: bool = False) -> str:
    if one is None:
        return ""
    return f"\nalong {one['value']:.2f}" + (f" ± {(one['high'] - one['low']) / 2:.2f}" if spread else "")


def exponent_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what `pictures.exponents` draws: a row for every exponent, certificates at large T."""
    found = []
    for row in rows:
        fits = [("certificate", row["large"]), ("measured", row["measured"])]
        line = {"table": row["table"], "regime": row["text"], "system": row["system"]}
        for variable in ("T", "d", row["variable"]):
            drawn = {name: fit["exponents"].get(variable) for name, fit in fits if fit is not None}
            found.append(line | {"variable": variable, "paper": row["paper"].get(variable)} | _bars(drawn))
        stated = row["along"]["paper"]
        drawn = {"certificate": row["along"]["large"], "measured": row["along"]["measured"]}
        paper = None if stated is None else stated["value"]
        found.append(line | {"variable": "T, along", "paper": paper} | _bars(drawn))
    return found


def _bars(drawn: Mapping[str, Mapping[str, float] | None]) -> dict[str, float]:
    made: dict[str, float] = {}
    for name, one in drawn.items():
        if one is not None:
            made |= {name: one["value"], f"{name}_low": one["low"], f"{name}_high": one["high"]}
    return made


HEADS = (
    "system",
    "paper's rate",
    "certificate, runnable T",
    "certificate, large T",
    "measured",
    "T along the regime",
    "worst streams",
)


def markdown(results: Mapping[str, Any]) -> str:
    """Return the whole report."""
    parts = [ABOUT, _made(results)]
    for number in (1, 2):
        if f"table{number}" in results:
            parts += _table(number, results[f"table{number}"]["rows"])
    if "landscape" in results:
        parts += _landscape(results["landscape"])
    return "\n\n".join(parts) + "\n"


def _made(results: Mapping[str, Any]) -> str:
    kind = "a quick run, fewer points" if results["quick"] else "the full run"
    minutes = f"{results['seconds'] / 60:.1f} minutes"
    work = f"its cells took {results['work'] / 60:.0f} minutes of one core when they were made"
    told = environment_in_words(results["environment"])
    return f"{told} This is {kind}: {minutes} (kept results counted as found); {work}."


def _table(number: int, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    parts = [f"## Table {number}"]
    for name in dict.fromkeys(row["regime"] for row in rows):
        mine = [row for row in rows if row["regime"] == name]
        regime = REGIMES[name]
        lines = [shown(row) for row in mine]
        parts += [f"### {name}: {regime.variable} {_where(regime.text)}", _grid(HEADS, lines), _spans(mine)]
        parts.append("\n".join(f"* {one}" for one in remarks(mine)))
    return [part for part in parts if part]


def _where(text: str) -> str:
    return text.removeprefix("epsilon ").removeprefix("S ")


def _spans(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say over which T the fits go."""
    found = {}
    for name, words in (("runnable", "runnable T"), ("large", "large T"), ("measured", "measured")):
        spans = {tuple(row[name]["rounds"]) for row in rows if row[name] is not None}
        if spans:
            found[words] = f"{min(low for low, _ in spans):.0e} to {max(high for _, high in spans):.0e}"
    return "Rounds: " + "; ".join(f"{words} {span}" for words, span in found.items()) + "."


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _landscape(found: Mapping[str, Any]) -> list[str]:
    parts = ["## The lowest certificate", "Unit ball, slopes up to 1, delta = 1e-6; regret per round in brackets."]
    for kind, words in (("convex", "Convex losses, nothing more known"), ("smooth", "Smooth losses (logistic)")):
        cells = found[kind]
        epsilons = sorted({cell["epsilon"] for cell in cells})
        lines = []
        for size in dict.fromkeys((cell["horizon"], cell["dim"]) for cell in cells):
            mine = {cell["epsilon"]: cell for cell in cells if (cell["horizon"], cell["dim"]) == size}
            best = [mine[epsilon] for epsilon in epsilons]
            lines.append([f"{size[0]:.0e}", str(size[1]), *(_best(cell) for cell in best)])
        parts += [f"### {words}", _grid(["T", "d", *(f"epsilon {epsilon:g}" for epsilon in epsilons)], lines)]
    return parts


def _best(cell: Mapping[str, Any]) -> str:
    return "none says anything" if cell["system"] is None else f"{cell['system']} ({cell['bound']:.3g})"
