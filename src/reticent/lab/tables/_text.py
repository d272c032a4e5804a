"""The tables as text: who wins in every regime, and in appendices every point and the exponents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reticent._core import _names
from reticent.lab._environment import in_words as environment_in_words
from reticent.lab.tables import _exponents
from reticent.lab.tables._levels import NONE, TIE
from reticent.lab.tables._regimes import OPEN
from reticent.lab.tables._verdicts import verdict

ABOUT = f"""
# Tables 1 and 2 of the paper, made again: who wins

For every regime of the paper's tables the previous best, as built in this library, beside P-COMW: what each promises
and what each reaches, as regret a round; rivals that are not in the paper's table are marked. The paper states rates
without constants and logarithms; levels have both.
Unit ball, slopes up to 1; neighbours differ in one round, and privacy holds for losses that react to decisions too.

* A regime has points at a tenth and nine tenths of the way through it (in logarithms; an end that the paper leaves open
  is put {OPEN:g} times as far as the other), for several T and d. A table shows the one of largest T, d and epsilon (or
  S) that was run, and who is lower there; in brackets at how many of all points that were run each is lower. All points
  are in appendix A.
* *Certificate*: the regret that a plan promises. Delta is 1e-6 at runnable and 1e-9 at large T. Within one percent is a
  tie; *none* where neither certificate says anything.
* *Measured*: mean regret over the learner's randomness on the worst stream of a panel. The panel is linear and fixed in
  advance: a steady direction in noise, a direction that turns round every sqrt(T) rounds, one that turns against the
  sum so far, random signs, and for lazy learners signs held for T/S rounds. It is not the worst case. A tie where the
  95 percent spread of the runs covers the difference. Regret is computed from the data and is not private.
* *Large T*: who has the lower certificate at how many points with T from 1e8 on, where nothing is run. What accounts
  charge for the machine's arithmetic and the step of the public grid (docs/theory, Q11) are in no rate and grow with T:
  at T = 1e12 they can be most of a private certificate. P-COMW's is 0.027 there with d = 2 and epsilon = 2.07e-4, and
  would be 0.00027 in real numbers.
* *Lowest certificate*: the lowest at the shown point of any system of the library for smooth losses, or (marked *) of
  the systems of this table where the others were not asked.
""".strip()

HEADS = (
    "regime",
    "previous best, as built",
    "its rate / P-COMW's in the paper",
    "shown at",
    "certificate: it / P-COMW",
    "lower",
    "measured: it / P-COMW",
    "lower",
    "lower at large T",
    "lowest certificate",
)
SHORT_HEADS = ("row", "previous best", "certificate", "lower", "measured", "lower", "large T")
SHORT_CAPTION = (
    "Regret a round, the previous best (it) above P-COMW, at the largest T that was run; in brackets at how many of "
    "all points each is lower. Measured on a panel of streams, not the worst case."
)


def size(value: float) -> str:
    """Return a number of rounds or switches in few letters.

    >>> size(400000), size(10**12), size(2**36), size(1922)
    ('4e5', '1e12', '6.9e10', '1922')
    """
    if value < 10_000:
        return f"{value:.0f}"
    digits, _, power = f"{value:.1e}".partition("e")
    return f"{digits.removesuffix('.0')}e{int(power)}"


def at(point: Mapping[str, Any], variable: str) -> str:
    """Return a point in words."""
    value = f"{point[variable]:.3g}" if variable == "epsilon" else size(point[variable])
    return f"T = {size(point['T'])}, d = {point['d']}, {variable} = {value}"


def who(winner: str | None, level: Mapping[str, Any]) -> str:
    """Return a winner in a word or two."""
    if winner is None:
        return "not run"
    return {level["system"]: "P-COMW", TIE: "tie", NONE: "none"}.get(winner, _names.label(winner))


def _promise(side: Mapping[str, Any]) -> str:
    if side["certificate"] is None:
        return "no plan"
    return f"{side['certificate']:.3g}" + (" (vacuous)" if side["vacuous"] else "")


def _reached(side: Mapping[str, Any], spread: bool = False) -> str:
    if "measured" not in side:
        return "-"
    moves = side["error"] > 1e-9 * abs(side["measured"])  # some learners have no randomness
    return f"{side['measured']:.3g}" + (f" ± {side['error']:.1g}" if spread and moves else "")


def _won(level: Mapping[str, Any], kind: str) -> str:
    """Return the winner at the shown point, and at how many points each wins."""
    winner = level["shown"][kind]
    return "not run" if winner is None else f"{who(winner, level)} ({_counts(level, kind)})"


def _counts(level: Mapping[str, Any], kind: str) -> str:
    """Return at how many points each wins."""
    winners = level["winners"][kind]
    if len(winners) == 1:
        return f"all {sum(winners.values())}"
    return ", ".join(f"{'it' if name == level['rival'] else who(name, level)} {n}" for name, n in winners.items())


def _large(level: Mapping[str, Any]) -> str:
    winners = level["winners"]["large"]
    if not winners:
        return "-"
    return f"{who(next(iter(winners)), level)} ({_counts(level, 'large')})"


def _lowest(point: Mapping[str, Any]) -> str:
    if point["lowest"] is None:
        return "none says anything"
    star = "" if point["of"] == "library" else "*"
    return f"{point['lowest']['system']} {point['lowest']['certificate']:.3g}{star}"


def line(level: Mapping[str, Any], again: bool = False) -> list[str]:
    """Return the line of one regime and previous best; `again` where the regime stands in the line above."""
    shown = level["shown"]
    needs = f", {level['needs']}" if level["needs"] and "smooth" not in level["rival"] else ""
    beyond = "" if level["cited"] else " (not in the paper's table)"
    return [
        level["regime"] if again else f"{level['regime']}: {level['text']}",
        f"{level['rival']}{needs}{beyond}",
        f"{level['rival_rate']} / {level['rate']}",
        at(shown, level["variable"]),
        f"{_promise(shown['theirs'])} / {_promise(shown['ours'])}",
        _won(level, "certificate"),
        f"{_reached(shown['theirs'], spread=True)} / {_reached(shown['ours'], spread=True)}",
        _won(level, "measured"),
        _large(level),
        _lowest(shown),
    ]


def _lines(levels: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    before = [None, *(level["regime"] for level in levels)]
    return [line(level, level["regime"] == one) for level, one in zip(levels, before, strict=False)]


def short_line(level: Mapping[str, Any]) -> list[str]:
    """Return a line for a terminal: the previous best above P-COMW."""
    shown = level["shown"]
    return [
        level["regime"],
        f"{_names.label(level['rival'])}\n{at(shown, level['variable']).replace(' = ', '=').replace(', ', ' ')}",
        f"{_promise(shown['theirs'])}\n{_promise(shown['ours'])}",
        _stacked(_won(level, "certificate")),
        f"{_reached(shown['theirs'])}\n{_reached(shown['ours'])}",
        _stacked(_won(level, "measured")),
        _stacked(_large(level)),
    ]


def _stacked(text: str) -> str:
    return text.replace(" (", "\n(").replace(", ", ",\n")


def markdown(results: Mapping[str, Any]) -> str:
    """Return the whole report."""
    tables = {number: results[f"table{number}"] for number in (1, 2) if f"table{number}" in results}
    parts = [ABOUT, _made(results)]
    for number, found in tables.items():
        parts.append(f"## Table {number}")
        if found["levels"]:
            parts.append(_grid(HEADS, _lines(found["levels"])))
        parts.append(_bullets(verdict(found["levels"], found["rows"])))
    if "landscape" in results:
        parts += _landscape(results["landscape"])
    if tables:
        parts += ["## Appendix A: every point", "Regret a round. " + ABOUT_POINTS]
        parts += [part for found in tables.values() for mine in _regimes(found["levels"]) for part in _points(mine)]
        parts += ["## Appendix B: exponents, where fits have power", _exponents.ABOUT]
        parts += [part for found in tables.values() for part in _fits(found["rows"])]
    return "\n\n".join(part for part in parts if part) + "\n"


ABOUT_POINTS = "Measured with the standard error of the mean; nothing is run at T from 1e8 on."


def _made(results: Mapping[str, Any]) -> str:
    kind = "a quick run, fewer points" if results["quick"] else "the full run"
    minutes = f"{results['seconds'] / 60:.1f} minutes"
    work = f"its cells took {results['work'] / 60:.0f} minutes of one core when they were made"
    told = environment_in_words(results["environment"])
    note = f" {results['note']}" if "note" in results else ""
    return f"{told} This is {kind}: {minutes} (kept results counted as found); {work}.{note}"


def _points(levels: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return every point of one regime, with all previous bests beside P-COMW."""
    first, variable = levels[0], levels[0]["variable"]
    heads = ["T", "d", variable]
    for kind in ("certificate", "measured"):
        heads.append(f"{kind}: P-COMW")
        for level in levels:
            heads += [_names.label(level["rival"]), "lower"]
    lines = []
    for points in zip(*(level["points"] for level in levels), strict=True):
        point = points[0]
        value = f"{point[variable]:.3g}" if variable == "epsilon" else size(point[variable])
        made = [size(point["T"]), str(point["d"]), value]
        for kind, words in (("certificate", _promise), ("measured", _spread)):
            made.append(words(point["ours"]))
            for one, level in zip(points, levels, strict=True):
                made += [words(one["theirs"]), "-" if one[kind] is None else who(one[kind], level)]
        lines.append(made)
    return [f"### {first['regime']}: {first['text']}", _grid(heads, lines)]


def _spread(side: Mapping[str, Any]) -> str:
    return _reached(side, spread=True)


def _regimes(levels: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    names = dict.fromkeys(level["regime"] for level in levels)
    return [[level for level in levels if level["regime"] == name] for name in names]


def _fits(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    parts = []
    for title, lines, said in _exponents.sections(rows):
        parts.append(f"### {title}")
        if lines:
            parts.append(_grid(_exponents.HEADS, lines))
        parts.append(_bullets(said))
    return parts


def _bullets(said: Sequence[str]) -> str:
    return "\n".join(f"* {one}" for one in said)


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
