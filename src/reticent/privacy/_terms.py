"""What a release is made of, in terms that can be written down, added up, charged to a filter and composed.

A release is a Gaussian one, (epsilon, delta)-private ones, a zCDP one, or an event of dp_accounting, or several of
these. Equal ones are counted, so that thousands of releases are a few terms. `compose` is the tight total: privacy
losses by dp_accounting, or Renyi divergences where something has no privacy loss distribution.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from reticent._core._check import integer, positive
from reticent.privacy._account import check_delta, lowest, smallest
from reticent.privacy._adaptive import Cost, Filter, Sums, pure_moment
from reticent.privacy._events import gaussian_events, losses_on_grid
from reticent.privacy._losses import Losses, gdp_of_bounded_range, hockey_stick
from reticent.privacy._serial import canonical, event_from_plain, event_to_plain

NEIGHBORS = ("replace", "zero-out", "add-remove")
"""One unit is replaced by any other, by a constant, or is there in one world only."""

_LEVELS = 64  # epsilons that are told apart in a composition; beyond, the next larger of as many counts
_FINE = 3_000  # steps of the grid of losses for one standard deviation of the whole
_STEPS = (1e-7, 1e-2)  # of the grid of losses, at least and at most
_MANY = 10**15  # units that change at once, at most: more is as good as everything
_MOST = 1e6  # of mu^2, rho and epsilon, that are composed: more promises nothing
_ABOVE = 1 + 1e-14  # what is read off others is raised by more than its rounding
_ORDERS = 1 + np.exp(np.arange(math.log(0.05), math.log(5e3), 0.1))


class Total(NamedTuple):
    """What releases cost together at one delta: by which method, and by how many compositions it was found."""

    epsilon: float
    method: str
    compositions: int


@dataclass(frozen=True)
class Terms:
    """The parts of a release, each both ways and for every past: equal ones are counted.

    `square` is the sum of mu^2 of the Gaussian parts, `rho` that of zCDP, `steps` are (epsilon, delta)-private parts
    with their counts, `events` are others, as canonical JSON with the neighbours that they are meant for.

    >>> Terms.of_cost(Cost(mu=0.5)).plus(Terms.of_cost(Cost(epsilon=0.1)))
    Terms(square=0.25, rho=0.0, steps={(0.1, 0.0): 1}, events={})
    """

    square: float
    rho: float
    steps: dict[tuple[float, float], int]
    events: dict[tuple[str, str], int]

    @classmethod
    def of_cost(cls, cost: Cost) -> Terms:
        """Return the parts of a stated cost."""
        steps = {(cost.epsilon, cost.delta): 1} if cost.epsilon or cost.delta else {}
        return cls(cost.mu * cost.mu, cost.rho, steps, {})

    @classmethod
    def of_event(cls, event: Any, neighbors: str) -> Terms:
        """Return the parts of an event of dp_accounting that is meant for these neighbours.

        Sensitivities are those of adding or removing one unit, as in dp_accounting's PLD accountant: where a unit is
        replaced, noise counts half.

        >>> from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
        >>> Terms.of_event(SelfComposedDpEvent(GaussianDpEvent(2.0), 8), "add-remove").square
        2.0
        """
        try:
            return cls._of_event(event, neighbors)
        except (ArithmeticError, AssertionError) as error:  # what dp_accounting makes of fields out of their range
            raise ValueError(
                f"{type(event).__name__} has fields that no release has, or that are too large: "
                f"{type(error).__name__} {error}"
            ) from error

    @classmethod
    def _of_event(cls, event: Any, neighbors: str) -> Terms:
        square, rho, steps, events = 0.0, 0.0, Counter[tuple[float, float]](), Counter[tuple[str, str]]()
        double = 2.0 if neighbors == "replace" else 1.0
        for one, count in _leaves(event, 1):
            name = type(one).__name__
            if name == "GaussianDpEvent":
                square += count * (double / _noise(one.noise_multiplier)) ** 2
            elif name == "ZCDpEvent" and one.xi == 0:
                # A promise, not a noise: it is for these neighbours already.
                rho += count * positive("rho of an event", one.rho, zero=True)
            elif name == "RandomizedResponseDpEvent" and neighbors != "add-remove":
                _check_response(one)
                chance = one.noise_parameter / one.num_buckets
                steps[math.log1p((1 - one.noise_parameter) / chance) * _ABOVE, 0.0] += count
            elif name in ("LaplaceDpEvent", "DiscreteLaplaceDpEvent") and double > 1:
                # Replaced units: the same release at twice the sensitivity.
                events[_written(_sharper(one)), "zero-out"] += count
            elif name == "NonPrivateDpEvent":
                raise ValueError("NonPrivateDpEvent has no finite cost, and cannot be charged to any budget")
            elif name != "NoOpDpEvent":
                events[_written(one), neighbors] += count
        found = cls(square, rho, dict(steps), dict(events))
        for text, of in found.events:
            _check_known(text, of)
        return found

    @classmethod
    def sum(cls, parts: Iterable[Terms]) -> Terms:
        """Return all parts together."""
        square, rho, steps, events = [0.0], [0.0], Counter[tuple[float, float]](), Counter[tuple[str, str]]()
        for part in parts:
            square.append(part.square)
            rho.append(part.rho)
            steps.update(part.steps)
            events.update(part.events)
        return cls(math.fsum(square), math.fsum(rho), dict(steps), dict(events))

    def plus(self, other: Terms) -> Terms:
        """Return both together."""
        return Terms.sum((self, other))

    def times(self, factor: int) -> Terms:
        """Return what the parts cost where so many units change at once: group privacy, part by part."""
        k = min(integer("factor", factor, least=1), _MANY)
        if k == 1:
            return self
        steps = Counter[tuple[float, float]]()
        for (text, _), count in self.events.items():
            exact = _pure(event_from_plain(json.loads(text)))
            if exact is None:
                raise ValueError(
                    f"a factor of {k} cannot be applied to {text}; state what it costs as Cost(mu=...) or "
                    "Cost(epsilon=..., delta=...)"
                )
            steps[k * exact, 0.0] += count
        for (epsilon, delta), count in self.steps.items():
            steps[k * epsilon * _ABOVE, min(1.0, delta * _group(epsilon, k) * _ABOVE)] += count
        return Terms(self.square * k**2 * _ABOVE, self.rho * k**2 * _ABOVE, dict(steps), {})

    def nearly(self, failure: float) -> Terms:
        """Return what a run costs that is within `failure`, in total variation, of one of these Gaussian parts.

        It adds to delta what the two curves differ by at the best place (docs/theory, Q14d).

        >>> near = Terms(0.04, 0.0, {}, {}).nearly(1e-12)
        >>> near.square, [f"{delta:.1g}" for _, delta in near.steps]
        (0.04, ['6e-12'])
        """
        if not failure:
            return self
        if self.rho or self.steps or self.events:
            raise ValueError("a run that is only nearly what was proved is charged where its parts are Gaussian alone")
        mu = math.sqrt(self.square) * _ABOVE

        def beyond(epsilon: float) -> float:
            return float(hockey_stick(mu, epsilon))

        place = lowest(beyond, failure)
        delta = (beyond(place) + (1 + math.exp(place)) * failure) / (1 - beyond(0.0)) * (1 + 1e-9)
        return self.plus(Terms.of_cost(Cost(delta=min(delta, 1.0))))

    def price(self, budget: Filter, spare: float) -> Sums:
        """Return what all parts add to the sums of a filter.

        Events that are not pure count with the Renyi divergence that dp_accounting has for them; where it has none, or
        the filter is Gaussian, as (epsilon, `spare`)-private.
        """
        if self.square or self.rho:
            found = budget.price(Cost(mu=math.sqrt(self.square) * _ABOVE, rho=self.rho))
        else:
            found = Sums()
        for (epsilon, delta), count in self.steps.items():
            found = found.plus(_often(budget.price(Cost(epsilon=epsilon, delta=delta)), count))
        for (text, of), count in self.events.items():
            event = event_from_plain(json.loads(text))
            exact = _pure(event)
            renyi = _renyi(event, of, np.array([budget.order])) if budget.kind == "renyi" else None
            if exact is not None:
                found = found.plus(_often(budget.price(Cost(epsilon=exact)), count))
            elif renyi is not None:
                found = found.plus(_often(Sums((budget.order - 1) * float(renyi[0]), 0.0, math.inf), count))
            elif spare:
                whole = compose(Terms(0.0, 0.0, {}, {(text, of): count}), spare).epsilon
                found = found.plus(budget.price(Cost(epsilon=whole * _ABOVE, delta=spare)))
            else:
                raise ValueError(f"{text} needs a delta of its own, and the filter has no slack for it; state its Cost")
        return found

    def keeps(self, epsilon: float, delta: float) -> bool:
        """Say whether all parts together are (epsilon, delta)-private, to nine digits.

        >>> Terms.of_cost(Cost(mu=0.64)).keeps(3.0, 1e-6), Terms.of_cost(Cost(mu=0.65)).keeps(3.0, 1e-6)
        (True, False)
        """
        return compose(self, delta).epsilon <= epsilon * (1 + 1e-9)

    @property
    def pure(self) -> float | None:
        """The epsilon of all parts together if none needs a delta; None otherwise."""
        exact = [(_pure(event_from_plain(json.loads(text))), count) for (text, _), count in self.events.items()]
        if self.square or self.rho or any(delta for _, delta in self.steps) or any(one is None for one, _ in exact):
            return None
        return math.fsum([epsilon * n for (epsilon, _), n in self.steps.items()] + [(e or 0.0) * n for e, n in exact])

    @property
    def zcdp(self) -> float | None:
        """The rho of all parts together as zCDP, if it is known; None otherwise."""
        if any(delta for _, delta in self.steps):
            return None
        parts = [self.square / 2, self.rho, *(epsilon**2 / 2 * count for (epsilon, _), count in self.steps.items())]
        for (text, _), count in self.events.items():
            exact = _pure(event_from_plain(json.loads(text)))
            if exact is None:
                return None
            parts.append(exact**2 / 2 * count)
        return math.fsum(parts)

    def dp_event(self) -> tuple[Any, float]:
        """Return a composed event of dp_accounting, and the delta to be added to whatever it is composed to.

        It is for ADD_OR_REMOVE_ONE or REPLACE_SPECIAL, the neighbours being in it already, and what is pure is a
        Gaussian event that reveals at least as much (docs/theory, R4): these mean the same to every accountant.
        """
        from dp_accounting import dp_event as events

        gaussian = [(math.sqrt(self.square), 1)]
        gaussian += [(gdp_of_bounded_range(2 * epsilon), count) for (epsilon, _), count in self.steps.items()]
        parts = [gaussian_events(gaussian)]
        parts += [events.ZCDpEvent(self.rho)] if self.rho else []
        for (text, _), count in self.events.items():
            parts.append(events.SelfComposedDpEvent(event_from_plain(json.loads(text)), count))
        delta = math.fsum(delta * count for (_, delta), count in self.steps.items())
        return (parts[0] if len(parts) == 1 else events.ComposedDpEvent(parts)), delta

    def to_plain(self) -> dict[str, Any]:
        """Return the parts as plain values, in a stable order."""
        return {
            "square": self.square,
            "rho": self.rho,
            "steps": [[*step, count] for step, count in sorted(self.steps.items())],
            "events": [[*event, count] for event, count in sorted(self.events.items())],
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Terms:
        """Return the parts that `to_plain` wrote.

        >>> terms = Terms.of_cost(Cost(mu=0.3, epsilon=0.1, delta=1e-9))
        >>> Terms.from_plain(terms.to_plain()) == terms
        True
        """
        steps = {(epsilon, delta): count for epsilon, delta, count in plain["steps"]}
        events = {(text, of): count for text, of, count in plain["events"]}
        return cls(plain["square"], plain["rho"], steps, events)


def compose(terms: Terms, delta: float) -> Total:
    """Return what releases fixed in advance cost together at `delta`, as tight as accountants have it.

    Privacy losses are composed on a grid, never understated; zCDP, events that dp_accounting knows by their Renyi
    divergence only, and more than 64 different events that are not pure make all of it a composition of Renyi
    divergences.

    >>> hundred = Terms(0.0, 0.0, {(0.1, 0.0): 100}, {})
    >>> round(compose(hundred, 1e-6).epsilon, 2), compose(hundred, 1e-6).compositions
    (4.77, 1)
    """
    goal = check_delta(delta)
    missing = -math.expm1(math.fsum(n * math.log1p(-min(d, 1 - 1e-16)) for (_, d), n in terms.steps.items()))
    rest = (goal - missing) / (1 - missing)
    if rest <= 0:
        return Total(math.inf, "none: the deltas of the parts are more", 0)
    if max(terms.square, terms.rho, *(epsilon for epsilon, _ in terms.steps), 0.0) > _MOST:
        only_steps = not (terms.square or terms.rho or terms.events)
        sure = math.fsum(e * n for (e, _), n in terms.steps.items()) if only_steps else math.inf
        return Total(sure, "none: a part is too large to be composed", 0)
    if not (terms.rho or terms.steps or terms.events):  # one normal law against another: no grid is needed
        mu = math.sqrt(terms.square)
        return Total(smallest(lambda e: float(hockey_stick(mu, e)), goal), "gaussian", 0)
    if len(terms.events) > _LEVELS:
        terms = _without_pure_events(terms)
    steps = _levels(terms.steps)
    found = None if terms.rho or len(terms.events) > _LEVELS else _by_losses(terms, steps, rest)
    epsilon, method, count = found or (_by_renyi(terms, steps, rest), "renyi", 0)
    if not (terms.square or terms.rho or terms.events):
        epsilon = min(epsilon, math.fsum(e * n for (e, _), n in terms.steps.items()))
    return Total(epsilon, method, count)


def _without_pure_events(terms: Terms) -> Terms:
    """Return the terms with events that are pure as steps of their epsilon, which reveal at least as much."""
    steps, rest = Counter(terms.steps), dict[tuple[str, str], int]()
    for key, count in terms.events.items():
        exact = _pure(event_from_plain(json.loads(key[0])))
        if exact is None:
            rest[key] = count
        else:
            steps[exact, 0.0] += count
    return Terms(terms.square, terms.rho, dict(steps), rest)


def _levels(steps: dict[tuple[float, float], int]) -> dict[float, int]:
    """Return epsilons with their counts; if they are too many, each as the next of 64 that grow by one factor."""
    found = Counter[float]()
    for (epsilon, _), count in steps.items():
        found[epsilon] += count
    found.pop(0.0, None)
    if len(found) <= _LEVELS:
        return dict(found)
    edges = np.geomspace(min(found), max(found), _LEVELS)
    merged = Counter[float]()
    for epsilon, count in found.items():
        merged[max(epsilon, float(edges[min(int(np.searchsorted(edges, epsilon)), _LEVELS - 1)]))] += count
    return dict(merged)


def _by_losses(terms: Terms, steps: dict[float, int], delta: float) -> Total | None:
    """Compose privacy loss distributions; None if an event has none."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    spread = math.sqrt(terms.square + math.fsum(n * epsilon**2 for epsilon, n in steps.items()))
    grid = min(max((spread or 1.0) / _FINE, _STEPS[0]), _STEPS[1])
    # Losses below the grid would grow on it: Gaussian ones that reveal at least as much take their place.
    small = math.fsum(n * gdp_of_bounded_range(2 * e) ** 2 for e, n in steps.items() if e < grid)
    square, parts = terms.square + small, []
    if square:
        parts.append(pld.from_gaussian_mechanism(1 / math.sqrt(square), value_discretization_interval=grid))
    for epsilon, count in steps.items():
        if epsilon >= grid:
            chance = 1 / (1 + math.exp(-epsilon))
            one = losses_on_grid(Losses.of([epsilon, -epsilon], [chance, 1 - chance]), grid)
            parts.append(one.self_compose(count))
    for (text, of), count in terms.events.items():
        found = _distribution(event_from_plain(json.loads(text)), of, count, grid)
        if found is None:
            return None
        parts.append(found)
    if not parts:
        return Total(0.0, "pld", 0)
    count = len(parts)
    while len(parts) > 1:  # small ones with small ones first
        parts = [one.compose(two) for one, two in zip(parts[::2], parts[1::2], strict=False)] + parts[
            len(parts) // 2 * 2 :
        ]
    return Total(float(parts[0].get_epsilon_for_delta(delta)), "pld", count)


def _by_renyi(terms: Terms, steps: dict[float, int], delta: float) -> float:
    t = _ORDERS - 1
    moments = t * (t + 1) * (terms.square / 2 + terms.rho)
    for epsilon, count in steps.items():
        moments = moments + count * np.array([pure_moment(epsilon, step) for step in t])
    for (text, of), count in terms.events.items():
        event = event_from_plain(json.loads(text))
        exact, found = _pure(event), _renyi(event, of, _ORDERS)
        if exact is not None:
            moments = moments + count * np.array([pure_moment(exact, step) for step in t])
        elif found is None:
            raise ValueError(f"{text} has no Renyi divergence, and cannot be composed with zCDP; state it as a Cost")
        else:
            moments = moments + count * t * found
    # docs/theory, Q9b: the best order for each epsilon.
    constant = t * np.log1p(-1 / (1 + t)) - np.log1p(t)
    return smallest(lambda e: float(np.exp(np.minimum((moments - t * e + constant).min(), 0.0))), delta)


def _group(epsilon: float, k: int) -> float:
    """Return 1 + e^epsilon + ... + e^((k-1) epsilon), by which the delta of one grows for so many; at most 1e300.

    >>> round(_group(0.1, 3), 12) == round(1 + math.exp(0.1) + math.exp(0.2), 12), _group(0.0, 4), _group(5.0, 10**6)
    (True, 4.0, 1e+300)
    """
    if epsilon == 0 or k * epsilon < 1e-9:  # then each of them is below 1 + 2e-9
        return k * (1 + 2 * k * epsilon)
    return 1e300 if k * epsilon > 690 else math.expm1(k * epsilon) / math.expm1(epsilon)


# Events of dp_accounting, one by one.


def _leaves(event: Any, count: int) -> Iterable[tuple[Any, int]]:
    """Go through the parts of an event, each with how often it happens."""
    name = type(event).__name__
    if name == "SelfComposedDpEvent":
        yield from _leaves(event.event, count * integer("count of an event", event.count, least=0))
    elif name == "ComposedDpEvent":
        for part in event.events:
            yield from _leaves(part, count)
    elif count:
        yield event, count


def _written(event: Any) -> str:
    return canonical(event_to_plain(event))


def _noise(value: float) -> float:
    if not value > 0:
        raise ValueError(f"noise of an event must be greater than 0 for it to be private, got {value!r}")
    return float(value)


def _check_response(event: Any) -> None:
    if not 0 < event.noise_parameter <= 1 or event.num_buckets < 2:
        raise ValueError(
            "randomised response needs a noise_parameter above 0 and at most 1, and at least 2 buckets, got "
            f"{event.noise_parameter!r} and {event.num_buckets!r}"
        )


def _sharper(event: Any) -> Any:
    """Return a Laplace event at twice the sensitivity."""
    kind = type(event)
    if hasattr(event, "sensitivity"):
        return kind(event.noise_parameter, 2 * event.sensitivity)
    return kind(event.noise_multiplier / 2)


def _pure(event: Any) -> float | None:
    """Return the epsilon of events that are pure."""
    name = type(event).__name__
    if name == "LaplaceDpEvent":
        return 1 / _noise(event.noise_multiplier) * _ABOVE
    if name == "DiscreteLaplaceDpEvent":
        return float(event.noise_parameter * event.sensitivity) * _ABOVE
    return None


def _relation(neighbors: str) -> Any:
    from dp_accounting import NeighboringRelation as Relation

    known = dict(
        zip(NEIGHBORS, (Relation.REPLACE_ONE, Relation.REPLACE_SPECIAL, Relation.ADD_OR_REMOVE_ONE), strict=True)
    )
    return known[neighbors]


def _renyi(event: Any, neighbors: str, orders: Any) -> Any:
    """Return the Renyi divergences of an event by dp_accounting; None where it has none to rely on."""
    from dp_accounting.rdp import RdpAccountant

    # For replaced units its divergences are those of one removed, but for these.
    if neighbors == "replace" and type(event).__name__ not in ("SampledWithoutReplacementDpEvent", "ZCDpEvent"):
        return None
    accountant = RdpAccountant(orders=orders, neighboring_relation=_relation(neighbors))
    if not accountant.supports(event):
        return None
    found = accountant.compose(event)._rdp  # there is no public way to the divergences themselves
    return found if np.isfinite(found).any() else None


def _distribution(event: Any, neighbors: str, count: int, grid: float) -> Any:
    """Return the privacy loss distribution of an event, so many times, by dp_accounting; None where it has none."""
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(_relation(neighbors), grid)
    if not accountant.supports(event):
        return None
    return accountant.compose(event, count)._pld  # there is no public way to the distribution itself


def _check_known(text: str, neighbors: str) -> None:
    event = event_from_plain(json.loads(text))
    if _renyi(event, neighbors, _ORDERS[:1]) is None and _distribution(event, neighbors, 1, 1e-2) is None:
        raise ValueError(
            f"dp_accounting cannot say what {text} costs for neighbours {neighbors!r}; give other neighbours, or state "
            "the cost: Cost(mu=...), Cost(rho=...) or Cost(epsilon=..., delta=...)"
        )


def _often(price: Sums, count: int) -> Sums:
    """Return the price of so many equal releases, rounded upwards."""
    return price if count == 1 else Sums(*(count * part * _ABOVE for part in price))
