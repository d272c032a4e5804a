"""What is promised of a learner or fleet, in numbers and in plain words."""

from __future__ import annotations

import math
from typing import Any

from reticent.service import _answers as answers
from reticent.service._shelf import FLEET, Resource

_WORLDS = {
    "replace": "replace one round by any other",
    "zero-out": "let one round count as nothing",
    "add-remove": "put one round in, or leave one out",
}


def described(resource: Resource, state: str | None = None) -> answers.Resource:
    """Return a learner or fleet as it is answered."""
    options, spec = resource.options, resource.spec
    return answers.Resource(
        id=resource.id,
        kind=resource.kind,
        name=resource.name,
        state=state or resource.state,
        created=resource.created,
        spec=spec.to_json(),
        columns=list(spec.columns),
        population=options["population"],
        max_keys=options["max_keys"],
        feedback_lag=options["feedback_lag"],
        promise=answers.Promise(*_numbers(spec.plan), words=_words(resource)),
        plan=plan_facts(resource),
    )


def plan_facts(resource: Resource) -> answers.PlanFacts:
    """Return the plan and its certificate."""
    plan = resource.spec.plan
    horizon = None if plan.horizon is None else int(plan.horizon)
    rows = [[str(name), str(text)] for name, text in plan.rows()]
    return answers.PlanFacts(*_numbers(plan), horizon=horizon, rows=rows, explained=str(plan.explain()))


def _numbers(plan: Any) -> tuple[str, float | None, float | None, str | None]:
    system = str(getattr(plan, "system", None) or getattr(plan, "what", type(plan).__name__))
    if plan.epsilon is None:
        return system, None, None, None
    return system, float(plan.epsilon), float(plan.delta), str(plan.neighbors)


def _words(resource: Resource) -> list[str]:
    _, epsilon, delta, neighbors = _numbers(resource.spec.plan)
    options, fleet = resource.options, resource.kind == FLEET
    if epsilon is None or delta is None:
        found = ["No privacy is claimed: the decision is lazy, and may tell of the rounds."]
    else:
        worlds = _WORLDS[str(neighbors)]
        of = "under one key" if fleet else "of the stream"
        chance = f", up to a probability of {delta:g}" if delta else ""
        found = [
            f"Take the rounds {of} and {worlds}: whatever somebody looks for in everything that is published, ever, is "
            f"at most {math.exp(epsilon):.3g} times as likely in the one world as in the other{chance}.",
            f"That is epsilon {epsilon:g} and delta {delta:g}. A person with k rounds is protected k times less.",
        ]
    if fleet and options["max_keys"]:
        found.append(
            f"One person stands under at most {options['max_keys']} keys: that is a statement of who sends the rounds."
        )
    if options["population"]:
        found.append(f"All of it was charged to {options['population']!r} in the ledger before the first round.")
    if options["seed"] is not None:
        found.append("It was made with a known seed, for tests: nothing of this is private.")
    return found
