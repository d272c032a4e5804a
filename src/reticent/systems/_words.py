"""A plan in words: an aligned table, and plain sentences on what is promised, to whom, under which assumptions."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from reticent.privacy._meaning import Meaning, beliefs_in_words, groups_in_words, guessed, meaning
from reticent.privacy._posterior import ACCOUNTANT as ACCOUNTANT
from reticent.privacy._posterior import best_guess
from reticent.systems._units import UNBOUND, changed, ordinary, sentences, span

if TYPE_CHECKING:
    from reticent.systems._plan import BasePlan


_LABEL = 20
_WIDTH = 100
_OFTEN = "How often the decision changes"
_MOVED = "Rounds that are put in or left out, so that later ones move"


def labelled(rows: list[tuple[str, str]]) -> str:
    """Return labels and texts as lines, long texts wrapped."""
    return "\n".join(_row(label, text) for label, text in rows)


def _row(label: str, text: str) -> str:
    lines = textwrap.wrap(text, _WIDTH - _LABEL, break_long_words=False, break_on_hyphens=False) or [""]
    return "\n".join(f"{label if i == 0 else '':<{_LABEL}}{line}" for i, line in enumerate(lines))


def size_rows(plan: BasePlan) -> list[tuple[str, str]]:
    """Return the horizon and the Lipschitz constant."""
    return [("horizon", plan.horizon_in_words()), ("lipschitz", number(plan.lipschitz))]


def switch_and_regret(plan: BasePlan) -> list[tuple[str, str]]:
    """Return the certificates: expected switches and regret."""
    if plan.horizon is None:
        told = plan.without_end()
        return [("expected switches", told.switches), ("regret bound", told.regret)]
    switches, regret = "not stated", "not stated" if plan.max_rows is None else UNBOUND
    if plan.expected_switches is not None:
        share = plan.expected_switches / plan.horizon
        switches = f"at most {number(plan.expected_switches)} ({100 * share:.3g}% of the rounds)"
    if plan.regret_bound is not None:
        regret = f"{number(plan.regret_bound)} ({number(plan.regret_bound / plan.horizon)} per round)"
        regret += " in expectation" + (
            "" if plan.adaptive_regret else ", for losses that do not depend on the decisions"
        )
    return [("expected switches", switches), ("regret bound", regret)]


def claim_rows(plan: BasePlan, more: str) -> list[tuple[str, str]]:
    """Return what is claimed of privacy, with `more` said of it, or that nothing is."""
    if plan.epsilon is None or plan.delta is None:
        return [("privacy", "none: this plan makes no privacy claim")]
    claim = f"epsilon {number(plan.epsilon)}, delta {number(plan.delta)}{more}"
    return [("privacy", claim), ("attacker", guessed(plan, "row" if plan.max_rows is None else "person"))]


def texts_of(plan: BasePlan, names: list[str]) -> list[tuple[str, str]]:
    """Return fields of a plan as labels and texts."""
    return [(name, _text(getattr(plan, name))) for name in names]


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return number(value)


def number(value: float) -> str:
    """Return a number for people: six digits, thousands grouped."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.6g}" if 1e-4 <= abs(value) < 1e9 else f"{value:.6g}"


def explain(plan: BasePlan) -> str:
    """Return the paragraphs of `plan.explain()`.

    >>> from reticent.domains import Ball
    >>> from reticent.planning import Plan
    >>> print(explain(Plan(Ball(2), 1000, 1.0, beta=0.01, lam=400.0, p=0.2, phi=1.1)).splitlines()[0])
    What is promised about privacy. Nothing: this plan makes no privacy claim.
    """
    parts = [_about_privacy(plan), *_people(plan), (_OFTEN, plan.changes_in_words()), _regret(plan)]
    text = [textwrap.fill(f"{head}. {body}", _WIDTH) for head, body in parts]
    points = [
        textwrap.fill(point, _WIDTH, initial_indent="  * ", subsequent_indent="    ") for point in _assumptions(plan)
    ]
    return "\n\n".join([*text, "\n".join(["All of this assumes:", *points])])


def _about_privacy(plan: BasePlan) -> tuple[str, str]:
    head = "What is promised about privacy"
    if plan.epsilon is None or plan.delta is None:
        return head, "Nothing: this plan makes no privacy claim."
    epsilon, delta = plan.epsilon, plan.delta
    what = "the round that changes" if plan.max_rows is None else "what the person does"
    return head, (
        f"Epsilon = {epsilon:g} and delta = {delta:g} ({plan.certified_by}). Take any stream of losses and "
        f"{changed(plan)}. Whatever somebody looks for in the whole sequence of published decisions is at most "
        f"{_times(epsilon)} times as likely with the one stream as with the other, up to a probability of {delta:g}. "
        + _change(plan)
        + (
            f" The losses may even be chosen by somebody who watches the decisions, and so may {what}."
            if plan.adaptive_privacy
            else f" The losses and {what} must not depend on the published decisions: somebody who "
            "reacts to them, or whose behaviour is influenced by them, is outside this promise; "
            "adversary='adaptive' covers that."
        )
        + (f" {plan.without_end().privacy}" if plan.horizon is None else "")
    )


def _times(epsilon: float) -> str:
    return f"exp({epsilon:g}) = {math.exp(epsilon):.3g}"


def _change(plan: BasePlan) -> str:
    if not ordinary(plan):
        return sentences(plan)
    if plan.neighbors == "replace":
        return "The changed round may carry any other loss that is no steeper than the Lipschitz constant."
    return (
        "The changed round carries a constant loss instead, as if nobody had come; two different people in that round "
        "can be told apart with up to twice this epsilon (and a delta larger by a factor of 1 + exp(epsilon))."
    )


def _people(plan: BasePlan) -> list[tuple[str, str]]:
    if plan.epsilon is None or plan.delta is None:
        return []
    e, delta = plan.epsilon, plan.delta
    right = best_guess((e, delta))
    found = meaning(plan, delta)
    sharper = f" (at most {found.right:.4f} by the accountant's whole curve)" if found.right < right - 5e-5 else ""
    if plan.max_rows is not None:
        return _whole_persons(plan, right, sharper, found)
    replaced = plan.neighbors == "replace"
    known = (
        "every other round and both things that this round can have been, hold them for equally likely"
        if replaced
        else "every other round and what this round holds if it was not left out, hold either for equally likely"
    )
    length = "any number of rounds" if plan.horizon is None else f"all {plan.horizon:,} rounds together"
    change = "replaced by another" if replaced else "there or as good as empty"
    return [
        (
            "Who is protected, and for how long",
            f"Whoever is behind one round, which may be {change}, against everybody who sees all decisions of "
            f"{length}, now or later, whatever else they know. A second run on the same rounds comes on top; a "
            "ledger (rt.Ledger) adds up.",
        ),
        (
            "What that means for the person of one round",
            f"Let somebody know {known}, and guess after seeing all decisions: the guess is right with a chance of at "
            f"most {right:.4f}, where a coin would have 0.5{sharper}. What they believe of this round may rise, "
            f"{beliefs_in_words(found)} (rt.privacy.posterior has other numbers).",
        ),
        (
            "Several rounds of one person",
            f"A person with k rounds is protected k times less, or worse: {groups_in_words(found, 'rounds')} "
            "(rt.privacy.group).",
        ),
        (
            "What is not covered",
            ("How many rounds came" if plan.clock else f"{_MOVED} (only their content may differ)")
            + "; what was known, or can be learned from everybody else's rounds; and all that is shown beside "
            "decisions: see the list below.",
        ),
    ]


def _whole_persons(plan: BasePlan, right: float, sharper: str, found: Meaning) -> list[tuple[str, str]]:
    """Say what a plan for persons means for one."""
    length = "for ever" if plan.window is None else f"for what they do in any {span(plan)} in a row"
    covered = "How many rounds came; persons" if plan.clock else f"{_MOVED}; persons"
    replaced = plan.neighbors == "replace"
    known = "two things that this person can have done" if replaced else "what this person has done if they were there"
    return [
        (
            "Who is protected, and for how long",
            f"One person with all rounds of theirs that count, {length}, against everybody who sees all decisions, now "
            "or later, whatever else they know. A second run on the same rounds comes on top; a ledger (rt.Ledger) "
            "adds up.",
        ),
        (
            "What that means for one person",
            f"Let somebody know all that others do and {known}, hold {'them' if replaced else 'either'} for equally "
            f"likely, and guess after seeing all decisions: the guess is right with a chance of at most {right:.4f}, "
            f"where a coin would have 0.5{sharper}. What they believe may rise, {beliefs_in_words(found)} "
            "(rt.privacy.posterior has other numbers).",
        ),
        (
            "Several persons together",
            f"A household of k is protected k times less, or worse: {groups_in_words(found, 'persons')} "
            "(rt.privacy.group).",
        ),
        (
            "What is not covered",
            f"{covered} with several keys; what was known, or can be learned from everybody else's rounds; and all "
            "that is shown beside decisions: see the list below.",
        ),
    ]


def _regret(plan: BasePlan) -> tuple[str, str]:
    head = "How good the decisions are"
    if plan.horizon is None:
        return head, plan.without_end().quality
    if plan.regret_bound is None:
        return head, plan.without_bound()
    return head, (
        f"Against the best fixed decision in hindsight, the decisions cost at most {plan.regret_bound:,.6g} more over "
        f"{plan.horizon:,} rounds ({plan.regret_bound / plan.horizon:.4g} per round), on average over the learner's "
        f"own randomness. {plan.losses_in_words()}"
    )


def _assumptions(plan: BasePlan) -> list[str]:
    points = [f"every loss is convex, and no steeper on the domain than {plan.lipschitz:g} (the learner checks it);"]
    points.append(plan.exactness_in_words())
    if plan.on_grid:
        points.append(
            "decisions are released on a public grid of 2^-18 of half the width of the body, so that their last bits "
            "tell nothing; what rounding before it may do is assumed, not proved, to be within Assumption F of "
            "docs/theory, Q11 (each coordinate within 2^-18 of its law or less, as a Gaussian release), and that is "
            f"{'part of epsilon and delta' if plan.counts_rounding else 'not part of what the theorem states'}; "
            "randomness is perfect;"
        )
    elif plan.private and plan.domain.finite:
        points.append(
            "the chance of every coin and every expert is right to a factor of exp(2^-39), which is part of epsilon "
            "(docs/theory, Q11), and randomness is perfect;"
        )
    elif plan.private:
        points.append("randomness is perfect, where the machine has a generator;")
    else:
        points.append("real numbers and perfect randomness, where the machine has floating point and a generator;")
    if plan.private:
        points += [
            "decisions are all that is shown: not the auxiliary draws, the losses, a trace, an error, or which coins "
            "were looked at;",
            "nobody can time the learner: how long a round takes depends on the data and on the coins;",
            "the seed is secret and used once: leave seed=None.",
        ]
    points[-1] = points[-1].rstrip(";.") + "."
    return points
