"""A plan in plain words: what is promised, to whom, and under which assumptions."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from reticent.planning._system import SystemPlan

if TYPE_CHECKING:
    from reticent.planning._goal import AnyPlan

_WIDTH = 100


def explain(plan: AnyPlan) -> str:
    """Return the paragraphs of `plan.explain()`.

    >>> from reticent.domains import Ball
    >>> from reticent.planning import Plan
    >>> print(explain(Plan(Ball(2), 1000, 1.0, beta=0.01, lam=400.0, p=0.2, phi=1.1)).splitlines()[0])
    What is promised about privacy. Nothing: this plan makes no privacy claim.
    """
    parts = [_privacy(plan), *_people(plan), _changes(plan), _regret(plan)]
    text = [textwrap.fill(f"{head}. {body}", _WIDTH) for head, body in parts]
    points = [
        textwrap.fill(point, _WIDTH, initial_indent="  * ", subsequent_indent="    ") for point in _assumptions(plan)
    ]
    return "\n\n".join([*text, "\n".join(["All of this assumes:", *points])])


def _privacy(plan: AnyPlan) -> tuple[str, str]:
    head = "What is promised about privacy"
    if plan.epsilon is None or plan.delta is None:
        return head, "Nothing: this plan makes no privacy claim."
    epsilon, delta = plan.epsilon, plan.delta
    who = "by the paper's theorem" if _theorem(plan) else "by the accountant"
    if _by_hand(plan):
        who = "claimed by hand, unchecked"
    return head, (
        f"Epsilon = {epsilon:g} and delta = {delta:g} ({who}). Take any stream of losses and change one round. "
        "Whatever somebody looks for in the whole sequence of published decisions is at most "
        f"{_times(epsilon)} times as likely with the one stream as with the other, up to a probability of {delta:g}. "
        + _change(plan)
        + (
            " The losses may even be chosen by somebody who watches the decisions, and so may the round that changes."
            if isinstance(plan, SystemPlan) or plan.adversary == "adaptive"
            else " The losses and the round that changes must not depend on the published decisions: somebody who "
            "reacts to them, or whose behaviour is influenced by them, is outside this promise; "
            "adversary='adaptive' covers that."
        )
        + (
            " The run is made of epochs that share nothing, and the promise holds for all of it."
            if plan.horizon is None
            else ""
        )
    )


def _times(epsilon: float) -> str:
    return f"exp({epsilon:g}) = {math.exp(epsilon):.3g}"


def _change(plan: AnyPlan) -> str:
    if plan.neighbors == "replace":
        return "The changed round may carry any other loss that is no steeper than the Lipschitz constant."
    return (
        "The changed round carries a constant loss instead, as if nobody had come; two different people in that round "
        "can be told apart with up to twice this epsilon (and a delta larger by a factor of 1 + exp(epsilon))."
    )


def _people(plan: AnyPlan) -> list[tuple[str, str]]:
    if plan.epsilon is None or plan.delta is None:
        return []
    e, delta = plan.epsilon, plan.delta
    right = (1 + delta / math.exp(e)) / (1 + math.exp(-e))
    sharper = "" if _by_hand(plan) or _theorem(plan) else _sharper(plan, right)
    known = (
        "every other round and both things that this round can have been, hold them for equally likely"
        if plan.neighbors == "replace"
        else "every other round and what this round holds if it was not left out, hold either for equally likely"
    )
    return [
        (
            "What that means for the person of one round",
            f"Let somebody know {known}, and guess after seeing all decisions: the guess is right with a chance of at "
            f"most {right:.4f}, where a coin would have 0.5{sharper}. A person with k rounds is protected k times "
            f"less: epsilon {2 * e:g} for two rounds, with a delta of {delta * (1 + math.exp(e)):.3g}.",
        )
    ]


def _sharper(plan: AnyPlan, right: float) -> str:
    from reticent.privacy import account

    if plan.horizon is None:
        return ""  # every epoch has a curve of its own
    found = (1 + account(plan).delta(0.0)) / 2
    return f" (at most {found:.4f} by the accountant's whole curve)" if found < right else ""


def _changes(plan: AnyPlan) -> tuple[str, str]:
    head = "How often the decision changes"
    if isinstance(plan, SystemPlan):
        cap = "" if plan.max_switches is None else f"Never more than {plan.max_switches:,} times; in"
        return (
            head,
            f"{cap or 'In'} expectation at most {plan.expected_switches:,.6g} times in {plan.horizon:,} rounds.",
        )
    every = "after every round" if plan.batch == 1 else f"after every {plan.batch:,} rounds"
    start = "" if plan.horizon is not None else " (parameters of the first epoch)"
    if plan.p >= 1:
        text = f"A fresh decision is drawn {every}{start}"
    else:
        text = f"A coin decides {every}{start} whether the decision changes"
    where = "in all" if plan.horizon is not None else "per epoch"
    text += ", without a cap" if plan.budget is None else f", and never more than {plan.budget:,} times {where}"
    if plan.horizon is not None and plan.expected_switches is not None:
        share = plan.expected_switches / plan.horizon
        text += f"; in expectation at most {plan.expected_switches:,.6g} times, in {100 * share:.3g}% of the rounds"
    if plan.budget is not None and plan.budget > 0:
        text += ". Once that number is reached the last decision stays"
    return head, text + "."


def _regret(plan: AnyPlan) -> tuple[str, str]:
    head = "How good the decisions are"
    if plan.horizon is None:
        return head, "Each epoch has its own bound on regret: see plan.epoch(k).regret_bound."
    if plan.regret_bound is None:
        return head, "This plan states no bound on regret."
    return head, (
        f"Against the best fixed decision in hindsight, the decisions cost at most {plan.regret_bound:,.6g} more over "
        f"{plan.horizon:,} rounds ({plan.regret_bound / plan.horizon:.4g} per round), on average over the learner's "
        f"own randomness. {_whose(plan)}"
    )


def _whose(plan: AnyPlan) -> str:
    if not isinstance(plan, SystemPlan):
        return "This holds for every sequence of convex losses that does not depend on the decisions."
    whatever = "also ones that react to decisions" if plan.adversary == "adaptive" else "that do not react to decisions"
    return f"This holds for {plan.assumes}, {whatever} ({plan.system}: {plan.reference})."


def _assumptions(plan: AnyPlan) -> list[str]:
    points = [f"every loss is convex, and no steeper on the domain than {plan.lipschitz:g} (the learner checks it);"]
    if isinstance(plan, SystemPlan):
        points.append(f"losses are of the kind that the method is for: {plan.assumes};")
    elif plan.distance == 0:
        points.append("every draw has exactly the law that is asked for: the library's samplers are exact or refuse;")
    else:
        points.append(f"every draw is within {plan.distance:g} of the law that is asked for (Gaussian trade-off);")
    points.append(
        "real numbers and perfect randomness, where the machine has floating point and a generator: no theorem covers "
        "the last bits of a published number;"
    )
    if plan.private:
        points += [
            "decisions are all that is shown: not the auxiliary draws, the losses, a trace, an error, or which coins "
            "were looked at;",
            "nobody can time the learner: how long a round takes depends on the data and on the coins;",
            "the seed is secret and used once: leave seed=None.",
        ]
    points[-1] = points[-1].rstrip(";.") + "."
    return points


def _by_hand(plan: AnyPlan) -> bool:
    return not isinstance(plan, SystemPlan) and plan.seal is None


def _theorem(plan: AnyPlan) -> bool:
    return not isinstance(plan, SystemPlan) and plan.source.startswith("Theorem")
