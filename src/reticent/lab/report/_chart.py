"""The chart that answers to a cursor: drawn for a wide and a narrow page, and there without scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent._core._errors import need
from reticent._core._html import Html, tag
from reticent._core._look import DASHES, Style, styles, tick
from reticent._core._names import INK
from reticent.lab._study import Study
from reticent.lab.pictures._groups import Floats, Group, groups, settings

_POINTS = 120  # places of the cursor: about one per three pixels of a phone
_SETTLED = 0.01  # the first part of a run, whose means jump too much to be drawn beside the rest
_MANY = 8  # curves that can be told apart; of more, only those of one setting are shown at first
_SIZES = {"wide": (720, 400), "narrow": (344, 320)}
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 24, 14, 44  # room around the axes, in pixels


@dataclass(frozen=True)
class View:
    """One thing to look at over time: a mean and a deviation per group, at common rounds; nan where a run has ended."""

    name: str
    title: str
    logs: bool  # whether rounds are on a log scale
    at: Floats
    means: list[Floats]
    deviations: list[Floats]


@dataclass(frozen=True)
class Scale:
    """From values to pixels."""

    low: float
    high: float
    first: float
    last: float
    logs: bool = False

    def __call__(self, value: Any) -> Any:
        """Return the pixel of a value, or pixels of values."""
        low, high, at = (np.log(x) for x in (self.low, self.high, value)) if self.logs else (self.low, self.high, value)
        return self.first + (at - low) / (high - low) * (self.last - self.first)

    def ticks(self, many: int) -> list[float]:
        """Return round values to name on an axis."""
        ticker = need("matplotlib.ticker", "lab")
        locator = ticker.LogLocator(subs=(1,)) if self.logs else ticker.MaxNLocator(many, steps=[1, 2, 2.5, 5, 10])
        found = [float(x) for x in locator.tick_values(self.low, self.high)]
        return [x for x in found if self.low <= x * (1 + 1e-9) and x <= self.high * (1 + 1e-9)]


def chart(study: Study) -> Html:
    """Return the chart with its switches, cursor and numbers; scripts wake the last three."""
    found = groups(study)
    views = [_view(study, found, regret=False)]
    if study.best is not None:
        views.insert(0, _view(study, found, regret=True))
    drawn = _curve_styles(found)
    shown = _at_first(study, found)
    plots = [
        tag(
            "div",
            tag("h4", view.title),
            *(_drawing(view, found, drawn, size) for size in _SIZES),
            class_="view",
            data_view=view.name,
        )
        for view in views
    ]
    keys = [
        tag(
            "label",
            tag("input", type="checkbox", checked=on, autocomplete="off", data_series=str(k)),
            _sample(style),
            tag("span", group.label),
            class_="key",
        )
        for k, (group, style, on) in enumerate(zip(found, drawn, shown, strict=True))
    ]
    return tag(
        "div",
        _choice(views),
        *plots,
        tag("div", _cursor(views[0].at.size), class_="scripted", hidden=True),
        tag("p", class_="readout scripted", role="status", aria_live="polite", hidden=True),
        tag("fieldset", tag("legend", "Systems"), *keys, class_="keys"),
        tag("script", _data(views, found), type="application/json", class_="data"),
        class_="chart",
    )


def _view(study: Study, found: Sequence[Group], *, regret: bool) -> View:
    best = study.best if regret else None
    curves = [group.over_time(best) for group in found]
    longest = max((curve[0] for curve in curves), key=lambda at: at[-1])
    settled = longest[longest >= _SETTLED * longest[-1]]
    at = settled[np.unique(np.linspace(0, settled.size - 1, _POINTS).astype(int))]
    values = [[np.interp(at, x, y, right=np.nan) for y in (mean, sd)] for x, mean, sd in curves]
    title = "Regret: loss beyond the best fixed decision" if regret else "Mean loss per round so far"
    return View("regret" if regret else "loss", title, not regret, at, [v[0] for v in values], [v[1] for v in values])


def _curve_styles(found: Sequence[Group]) -> list[Style]:
    """Return a style per group: colours tell systems apart, dashes what is else different."""
    colours = styles(group.system for group in found)
    before = [[other.system for other in found[:k]].count(group.system) for k, group in enumerate(found)]
    return [
        Style(colours[group.system].colour, colours[group.system].marker, DASHES[again % len(DASHES)])
        for group, again in zip(found, before, strict=True)
    ]


def _at_first(study: Study, found: Sequence[Group]) -> list[bool]:
    if len(found) <= _MANY:
        return [True] * len(found)
    first = settings(study, found)[0]
    names = {group.label for group in (*first.groups, *first.free)}
    return [group.label in names for group in found]


def _drawing(view: View, found: Sequence[Group], drawn: Sequence[Style], size: str) -> Html:
    width, height = _SIZES[size]
    tops = np.concatenate([mean + sd for mean, sd in zip(view.means, view.deviations, strict=True)])
    feet = np.concatenate([mean - sd for mean, sd in zip(view.means, view.deviations, strict=True)])
    low, high = float(np.nanmin(feet)), float(np.nanmax(tops))
    low = min(low, 0.0) if view.name == "regret" else low
    room = 0.04 * (high - low) or 1.0
    ends = view.at[0], view.at[-1] if view.at.size > 1 else view.at[0] + 1
    x = Scale(ends[0] if view.logs else 0.0, ends[1], _LEFT, width - _RIGHT, view.logs)
    y = Scale(low - room, high + room, height - _BOTTOM, _TOP)
    curves = [_curve(view, k, style, x, y) for k, style in enumerate(drawn)]
    end = "; ".join(f"{group.label}: {_last(mean):.4g}" for group, mean in zip(found, view.means, strict=True))
    name = f"chart-{view.name}-{size}"
    return tag(
        "svg",
        tag("title", view.title, id=f"{name}-title"),
        tag("desc", f"Curves over {view.at[-1]:,.0f} rounds. At the end: {end}.", id=f"{name}-words"),
        _axes(x, y, width, height, 5 if size == "wide" else 4),
        *curves,
        tag("line", class_="cursor", y1=str(_TOP), y2=str(height - _BOTTOM), x1="-9", x2="-9"),
        class_=size,
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_labelledby=f"{name}-title {name}-words",
        data_x=json.dumps([x.low, x.high, x.first, x.last, int(x.logs)]),
        data_y=json.dumps([y.low, y.high, y.first, y.last]),
    )


def _last(values: Floats) -> float:
    return float(values[np.isfinite(values)][-1])


def _axes(x: Scale, y: Scale, width: int, height: int, many: int) -> Html:
    parts = []
    for value in y.ticks(many):
        at = f"{y(value):.1f}"
        parts.append(tag("line", class_="grid", x1=str(_LEFT), x2=str(width - _RIGHT), y1=at, y2=at))
        parts.append(tag("text", tick(value), x=str(_LEFT - 8), y=at, dy="0.35em", text_anchor="end"))
    foot = height - _BOTTOM
    parts.append(tag("line", class_="axis", x1=str(_LEFT), x2=str(width - _RIGHT), y1=str(foot), y2=str(foot)))
    for value in x.ticks(many):
        at = f"{x(value):.1f}"
        parts.append(tag("line", class_="axis", x1=at, x2=at, y1=str(foot), y2=str(foot + 5)))
        parts.append(tag("text", tick(value), x=at, y=str(foot + 19), text_anchor="middle"))
    middle = f"{(_LEFT + width - _RIGHT) / 2:.0f}"
    parts.append(tag("text", "rounds", x=middle, y=str(height - 6), text_anchor="middle"))
    return tag("g", *parts)


def _curve(view: View, k: int, style: Style, x: Scale, y: Scale) -> Html:
    there = np.isfinite(view.means[k])
    at, mean, sd = x(view.at[there]), view.means[k][there], view.deviations[k][there]
    band = _points(np.append(at, at[::-1]), y(np.append(mean + sd, (mean - sd)[::-1])))
    colour = _colour(style)
    return tag(
        "g",
        tag("polygon", points=band, fill=colour, class_="band") if sd.any() else "",
        tag("polyline", points=_points(at, y(mean)), stroke=colour, stroke_dasharray=_dashes(style), class_="curve"),
        tag("circle", class_="dot", r="4", fill=colour, cx="-9", cy="-9"),
        data_series=str(k),
    )


def _points(x: Floats, y: Floats) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _colour(style: Style) -> str:
    return "currentColor" if style.colour == INK else style.colour


def _dashes(style: Style) -> str | None:
    return " ".join(f"{2 * part:g}" for part in style.dash) or None


def _sample(style: Style) -> Html:
    line = tag("line", x1="1", x2="27", y1="6", y2="6", stroke=_colour(style), stroke_dasharray=_dashes(style))
    return tag("svg", line, class_="sample", viewBox="0 0 28 12", aria_hidden="true")


def _choice(views: Sequence[View]) -> Html:
    if len(views) < 2:
        return Html("")
    names = {"regret": "regret", "loss": "mean loss"}
    buttons = [
        tag(
            "label",
            tag("input", type="radio", name="view", value=view.name, checked=k == 0, autocomplete="off"),
            names[view.name],
        )
        for k, view in enumerate(views)
    ]
    return tag("fieldset", tag("legend", "Show"), *buttons, class_="choice scripted", hidden=True)


def _cursor(places: int) -> Html:
    slider = tag(
        "input", type="range", min="0", max=str(places - 1), value=str(places - 1), class_="slider", autocomplete="off"
    )
    return tag("label", "Round", slider, class_="cursor-label")


def _data(views: Sequence[View], found: Sequence[Group]) -> Html:
    """Return the numbers behind the curves; no text in them can end the script element."""

    def rounded(values: Floats) -> list[float | None]:
        return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values]

    numbers = {
        view.name: {
            "at": view.at.astype(int).tolist(),
            "mean": [rounded(one) for one in view.means],
            "sd": [rounded(one) if one[np.isfinite(one)].any() else None for one in view.deviations],
        }
        for view in views
    }
    text = json.dumps({"labels": [group.label for group in found], "views": numbers}, separators=(",", ":"))
    return Html(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
