"""The tables of a report: what every system did, and which of them did better than P-COMW."""

from __future__ import annotations

from collections.abc import Sequence

from reticent.lab.pictures._groups import Group, Spread
from reticent.lab.pictures._settings import Setting
from reticent.lab.pictures._style import number
from reticent.lab.report._html import Html, join, scrolled, tag
from reticent.lab.report._losing import FAR, Defeat, defeats, is_ours, paid
from reticent.lab.report._words import plus_minus

_SECRET = tag("span", "not private", class_="badge")


def results(found: Sequence[Group]) -> Html:
    """Return the table of all groups; headings become buttons that sort."""
    regret = any(group.regret is not None for group in found)
    right = any(run.correct is not None for group in found for run in group.runs)
    heads = [_head("system"), _head("epsilon"), _head("runs")]
    heads += [_head("regret", _SECRET)] * regret + [_head("certified at most"), _head("mean loss", _SECRET)]
    heads += [_head("right predictions", _SECRET)] * right + [
        _head("changes"),
        _head("changes allowed"),
        _head("seconds"),
    ]
    rows = []
    for group in found:
        cells = [
            _cell(group.label, group.label, "th"),
            _cell("none" if group.epsilon is None else number(group.epsilon), group.epsilon),
            _cell(str(len(group.runs)), len(group.runs)),
        ]
        if regret:
            cells.append(_spread(group.regret))
        bound = group.bound
        cells.append(_cell("nothing useful" if bound is None else number(bound), bound))
        cells.append(_spread(group.loss))
        if right:
            share = _share(group)
            cells.append(_cell("not counted" if share is None else f"{100 * share:.1f}%", share))
        cells.append(_spread(group.switches))
        cells.append(_cell("any number" if group.allowed is None else number(group.allowed), group.allowed))
        cells.append(_spread(group.seconds))
        rows.append(tag("tr", *cells))
    caption = (
        "Mean ± standard deviation over runs that differ in their seed. Changes allowed: at most, or in expectation."
    )
    return _table(caption, heads, rows, "What every system did")


def _share(group: Group) -> float | None:
    known = [run.correct / run.rounds for run in group.runs if run.correct is not None]
    return sum(known) / len(known) if known else None


def losing(found: Sequence[Setting]) -> Html:
    """Return where P-COMW did worse than others, in a sentence and a table."""
    everyone = [group for setting in found for group in (*setting.groups, *setting.free)]
    if not any(is_ours(group) for group in everyone):
        return tag("p", "P-COMW did not take part, so nothing can be said here.")
    if all(is_ours(group) for group in everyone):
        return tag("p", "P-COMW ran alone: there is nothing to compare it with.")
    lost = defeats(found)
    what = "regret" if all(group.regret is not None for group in everyone) else "mean loss"
    fair = [one for one in lost if one.setting is not None]
    seen, sure = sum(one.by_regret for one in fair), sum(one.by_regret and one.chance == FAR for one in fair)
    with_us = [setting.groups for setting in found if any(is_ours(group) for group in setting.groups)]
    met = sum(not is_ours(group) for inside in with_us for group in inside)
    text = (
        f"P-COMW met rivals that promise the same {met} time{'' if met == 1 else 's'}. The rival's measured {what} on "
        f"this stream was lower {seen} times, {sure} of them {FAR}, and "
        f"its certificate was lower {sum(one.by_certificate for one in fair)} times. "
        "One stream says little about others."
    )
    if not lost:
        return tag("p", text)
    both = tag("span", "rival, P-COMW", class_="badge")
    heads = [
        _head("rival"),
        _head("both promise", class_="text"),
        _head(what, both),
        _head("difference", class_="text"),
    ]
    heads += [_head("certified", both), _head("changes", both)]
    caption = "Every rival with a lower measurement or certificate; one that promises less stands beside P-COMW's best."
    return join([tag("p", text), _table(caption, heads, [_defeat(one) for one in lost], "Where P-COMW loses")])


def _defeat(one: Defeat) -> Html:
    ours, rival = one.ours, one.rival
    a, b = paid(rival), paid(ours)
    difference = "higher; only its certificate is lower"
    if one.by_regret:
        share = f"{min(100 * (1 - a.mean / b.mean), 100):.0f}% lower" if b.mean > 0 else "lower"
        difference = f"{share}, {one.chance}"
    bounds = ["none" if group.bound is None else number(group.bound) for group in (rival, ours)]
    terms = "the rival promises less" if one.setting is None else one.setting.title or "nothing more"
    return tag(
        "tr",
        _cell(rival.system, rival.system, "th"),
        _cell(terms, terms, "td", "text"),
        _cell(f"{number(a.mean)}, {number(b.mean)}", a.mean - b.mean),
        _cell(difference, a.mean - b.mean, "td", "text"),
        _cell(", ".join(bounds), rival.bound),
        _cell(f"{number(rival.switches.mean)}, {number(ours.switches.mean)}", rival.switches.mean),
    )


def refused(refusals: Sequence[dict[str, str]]) -> Html:
    """Return the systems that did not run, with reasons."""
    rows = [
        tag("tr", _cell(one["system"], one["system"], "th"), _cell(one["reason"], one["reason"], "td", "text"))
        for one in refusals
    ]
    heads = [_head("system"), _head("reason", class_="text")]
    return _table("Systems that were asked for and did not run.", heads, rows, "What did not run")


def _table(caption: str, heads: Sequence[Html], rows: Sequence[Html], name: str) -> Html:
    words = f"{'-'.join(name.lower().replace(',', '').split())}-words"
    parts = tag("thead", tag("tr", *heads)), tag("tbody", *rows)
    table = tag("table", *parts, class_="sortable", aria_label=name, aria_describedby=words)
    return join([tag("p", caption, class_="note", id=words), scrolled(table, f"Table: {name}")])


def _head(name: str, below: str = "", class_: str | None = None) -> Html:
    return tag("th", tag("span", name), below, scope="col", class_=class_)


def _cell(text: str, value: float | str | None, name: str = "td", class_: str | None = None) -> Html:
    known = "" if value is None else value if isinstance(value, str) else f"{value:.12g}"
    return tag(name, text, data_value=known, class_=class_, scope="row" if name == "th" else None)


def _spread(value: Spread | None) -> Html:
    return _cell(plus_minus(value), None if value is None else value.mean)
