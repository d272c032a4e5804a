"""Who wins, in sentences: at how many points the paper's order shows, where it does not, and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from reticent._core import _names
from reticent.lab.tables._levels import NONE, TIE

Level = Mapping[str, Any]

KINDS = {"certificate": "by certificate", "measured": "as measured", "large": "by certificate at large T"}


def verdict(levels: Sequence[Level], rows: Sequence[Mapping[str, Any]] = ()) -> list[str]:
    """Return the sentences below a table: the first sums up, the others say where the paper's order does not show.

    `rows` are those of the exponents, which know of means above their certificates.
    """
    if not levels:
        return ["No point has both P-COMW and a previous best: nothing is compared."]
    cited = [level for level in levels if level["cited"] and level["expected"] is not None]
    said = [_all(cited)] if len({level["needs"] for level in cited}) > 1 else []
    for needs in dict.fromkeys(("", *(level["needs"] for level in cited))):
        said.append(_shows([level for level in cited if level["needs"] == needs], needs))
    same = [level for level in levels if level["expected"] is None]
    for rival in dict.fromkeys(level["rival"] for level in same):
        said.append(_same([level for level in same if level["rival"] == rival]))
    extra = [level for level in levels if not level["cited"] and level["expected"] is not None]
    for rival in dict.fromkeys(level["rival"] for level in extra):
        said.append(_extra([level for level in extra if level["rival"] == rival]))
    for rival, expected in dict.fromkeys((level["rival"], level["expected"]) for level in levels):
        said.append(_why([level for level in levels if (level["rival"], level["expected"]) == (rival, expected)]))
    said.append(_above(rows))
    return [f"{one[0].upper()}{one[1:]}." for one in said if one]


def places(levels: Sequence[Level]) -> str:
    """Return the rows of the paper's table in words.

    >>> places([{"regime": "1.2"}, {"regime": "1.3"}, {"regime": "1.4"}]), places([{"regime": "1.7"}])
    ('rows 2 to 4', 'row 7')
    """
    numbers = sorted({int(level["regime"].partition(".")[2]) for level in levels})
    if len(numbers) == 1:
        return f"row {numbers[0]}"
    if numbers == list(range(numbers[0], numbers[-1] + 1)) and len(numbers) > 2:
        return f"rows {numbers[0]} to {numbers[-1]}"
    return "rows " + ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"


def counted(levels: Sequence[Level], kind: str) -> Counter[str]:
    """Return how many points each system won, over several levels."""
    found: Counter[str] = Counter()
    for level in levels:
        found.update(level["winners"][kind])
    return found


def _of(levels: Sequence[Level], kind: str) -> str:
    """Say at how many points the expected winner wins."""
    won = sum(level["winners"][kind].get(level["expected"], 0) for level in levels)
    return f"at {won} of {counted(levels, kind).total()} points"


def _wins(levels: Sequence[Level], kind: str) -> str:
    """Say who wins at how many points."""
    found = counted(levels, kind)
    if len(found) == 1:
        (name,) = found
        return f"{_lower(name)} at all {found.total()} points"
    return (
        " and ".join(f"{_lower(name)} at {count}" for name, count in found.most_common())
        + f" of {found.total()} points"
    )


def _lower(name: str) -> str:
    return {TIE: "a tie", NONE: "neither"}.get(name, _names.label(name))


def _by_kind(levels: Sequence[Level], say: Callable[[Sequence[Level], str], str]) -> str:
    return "; ".join(f"{words} {say(levels, kind)}" for kind, words in KINDS.items() if counted(levels, kind).total())


def _all(levels: Sequence[Level]) -> str:
    return f"the paper's order shows {_by_kind(levels, _of)}" if levels else ""


def _shows(levels: Sequence[Level], needs: str) -> str:
    if not levels:
        return ""
    whom = f"the previous best for {needs}" if needs else "the previous best that needs no smooth losses"
    found = f"against {whom} ({places(levels)}) the paper's order shows {_by_kind(levels, _of)}"
    ratios = _ratios(levels)
    above = sum(ratio > 1 for ratio in ratios)
    if 2 * above > len(ratios):
        found += (
            f". P-COMW's certificate is above that of the comparator at {above} of the {len(ratios)} runnable points "
            f"where both say something ({_range(ratios)} times it)"
        )
    return found


def _ratios(levels: Sequence[Level], missed: bool = False) -> list[float]:
    """Return P-COMW's certificate divided by the other's where both say something: at runnable points, or at misses."""
    return [
        point["ours"]["certificate"] / point["theirs"]["certificate"]
        for level in levels
        for point in level["points"]
        if (point["certificate"] != level["expected"] if missed else point["scale"] == "runnable")
        and all(_sound(point[who]) for who in ("ours", "theirs"))
    ]


def _sound(side: Mapping[str, Any]) -> bool:
    return side["certificate"] is not None and not side["vacuous"]


def _range(values: Sequence[float], form: str = ".2f") -> str:
    low, high = (f"{pick(values):{form}}" for pick in (min, max))
    return low if low == high else f"{low} to {high}"


def _same(levels: Sequence[Level]) -> str:
    """Say who is lower where one rival and P-COMW have the same rate."""
    needs, lower = levels[0]["needs"], _by_kind(levels, _wins)
    if levels[0]["cited"]:
        where = f"{levels[0]['rate']} ({places(levels)}, {needs})"
        return f"where the paper gives both the same rate, {where}, the lower one is {lower}"
    return (
        f"{levels[0]['rival']}, for {needs} ({places(levels)}), is not in the paper's table; its authors have P-COMW's "
        f"own rate there, and the lower one is {lower}"
    )


def _extra(levels: Sequence[Level]) -> str:
    """Say how one rival that is not in the paper's table, and has another rate than P-COMW, does."""
    rival, stated = levels[0]["rival"], levels[0]["rival_rate"]
    said = [f"{rival} is not in the paper's table"]
    for ahead, words in ((False, "larger"), (True, "smaller")):
        mine = [level for level in levels if (level["expected"] == rival) == ahead]
        if mine:
            said.append(f"that its rate, {stated}, is the {words} one in {places(mine)} shows {_by_kind(mine, _of)}")
    return ". ".join(f"{one[0].upper()}{one[1:]}" for one in said)


# Why the paper's order does not show, rival by rival: rates are the paper's, everything else is read off the points.


def _why(levels: Sequence[Level]) -> str:
    """Say where and why the order does not show against one rival; nothing where it does everywhere."""
    if levels[0]["expected"] is None:
        return ""
    rival = levels[0]["rival"]
    promised = [level for level in levels if _missed(level, "certificate") + _missed(level, "large")]
    run = [level for level in levels if _missed(level, "measured")]
    reasons = []
    if promised:
        reasons.append(f"{places(promised)}, by certificate: {_promised(rival, promised)}")
    if run:
        reasons.append(f"{places(run)}, as measured: {_panel(rival, run)}")
    if not reasons:
        return ""
    return f"{rival}, " + ". ".join([reasons[0], *(f"{one[0].upper()}{one[1:]}" for one in reasons[1:])])


def _missed(level: Level, kind: str) -> Counter[str]:
    """Return who else wins, at how many points, where the paper has somebody ahead."""
    return Counter({name: count for name, count in level["winners"][kind].items() if name != level["expected"]})


def _promised(rival: str, levels: Sequence[Level]) -> str:
    missed = sum((_missed(level, kind) for level in levels for kind in ("certificate", "large")), Counter[str]())
    total = sum(counted(levels, kind).total() for kind in ("certificate", "large"))
    said = [_reason(rival, levels)] if set(missed) - {TIE, NONE} else []
    for name, words in ((TIE, "both are within one percent"), (NONE, "neither says anything")):
        if missed[name]:
            said.append(f"at {missed[name]} of {total} points, large T among them, {words}")
    return "; ".join(said)


def _reason(rival: str, levels: Sequence[Level]) -> str:
    ratios = _ratios(levels, missed=True)
    size = f" (P-COMW's is {_range(ratios)} times the other's where that does not show)" if ratios else ""
    points = [point for level in levels for point in level["points"]]
    if rival == _names.DESCENT:
        # Where P-COMW's certificate is c d^(1/2) T/S, it is below T S^(-1/2) from S = c^2 d on.
        lost = [point for point in points if point["certificate"] == rival and _sound(point["ours"])]
        c = [point["ours"]["certificate"] * point["S"] / math.sqrt(point["d"]) for point in lost]
        cost = f"P-COMW's is c d^(1/2) T/S with c = {_range(c, '.2g')} at the points that it loses; " if c else ""
        return f"{cost}that is below T S^(-1/2) only from S = c^2 d on"
    if levels[0]["expected"] == rival:
        run = [point for point in points if point["scale"] == "runnable"]
        ahead = sum(point["epsilon"] > math.sqrt(point["d"]) * point["T"] ** (-1 / 3) for point in run)
        named = ", though its table names the other" if levels[0]["cited"] else ""
        return (
            "the best batch leaves P-COMW less there than the rate that the paper states for it "
            f"(bench/results/plans.md), and at {ahead} of {len(run)} runnable points, with epsilon above "
            f"d^(1/2) T^(-1/3), the rates have P-COMW ahead{named}{size}"
        )
    large = levels[0]["variable"] == "epsilon" and any(_missed(level, "large")[rival] for level in levels)
    machine = ", and at large T what the machine and the public grid add, which grows with T" if large else ""
    return f"constants and logarithms, which the rates leave out, decide at these sizes{machine}{size}"


def _panel(rival: str, levels: Sequence[Level]) -> str:
    missed = sum((_missed(level, "measured") for level in levels), Counter[str]())
    total = counted(levels, "measured").total()
    said = []
    if missed[TIE]:
        said.append(f"at {missed[TIE]} of {total} points the spread of the runs covers the difference")
    lost = missed.total() - missed[TIE]
    if lost:
        points = [point for level in levels for point in level["points"] if "measured" in point["ours"]]
        mine, theirs = (_share(points, who) for who in ("ours", "theirs"))
        said.append(
            f"at {lost} of {total} points the other is lower on this panel, which is linear and the worst case of "
            f"neither: it reaches {theirs} of the certificate of {_names.label(rival)} and {mine} of P-COMW's (medians)"
            if levels[0]["expected"] != rival
            else f"at {lost} of {total} points P-COMW is lower on this panel, which is the worst case of neither"
        )
    return "; ".join(said)


def _share(points: Sequence[Mapping[str, Any]], who: str) -> str:
    """Return which part of a certificate the panel reaches."""
    found = [point[who]["measured"] / point[who]["certificate"] for point in points if _sound(point[who])]
    return f"{median(found):.0%}" if found else "none"


def _above(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say which means over a panel's runs are above certificates."""
    found = []
    for system in dict.fromkeys(row["system"] for row in rows):
        mine = [row for row in rows if row["system"] == system]
        count = sum(row["above"]["count"] for row in mine)
        if count:
            many = sum(sum(row["worst"].values()) for row in mine)
            most = max(row["above"]["errors"] for row in mine)
            found.append(f"{system} ({count} of {many}, by at most {most:.1f} standard errors)")
    if not found:
        return "no mean regret is above its certificate" if any(row["worst"] for row in rows) else ""
    return f"means over 3 to 8 runs that are above their certificates, which are for expectations: {', '.join(found)}"
