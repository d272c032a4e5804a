"""The plan of P-COMW: every parameter of a run, the guarantees that are claimed for it, and its doubling epochs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar

from reticent._core import _names
from reticent._core._check import integer, positive, real
from reticent._core._tags import saved, tag_of
from reticent.domains import Domain
from reticent.privacy._account import Account, Certificate
from reticent.privacy._events import distribution_of, event_of
from reticent.privacy._exposure import Exposure
from reticent.privacy._group import group_factor
from reticent.privacy._posterior import group
from reticent.systems._checks import (
    ADVERSARIES,
    NEIGHBORS,
    check_body,
    check_scale,
)
from reticent.systems._persons import Cap, check_cap
from reticent.systems._plan import BasePlan
from reticent.systems._units import LEFT_OUT, changed, ordinary, sentences
from reticent.systems._words import claim_rows, number, size_rows, switch_and_regret
from reticent.systems.pcomw._account import exposure, theorem

BY_HAND = "written by hand"
_NEIGHBORS = {
    "replace": "streams that differ in one round, whose loss is replaced by any other",
    "zero-out": "streams that differ in one round, whose loss is replaced by a constant",
}
_ADVERSARIES = {
    "adaptive": "losses may be chosen after seeing the decisions released so far",
    "oblivious": "losses must not depend on the decisions",
}
_OLD_PLANNER = re.compile(r"\['reticent\.planning\._\w+', '(\w+)',")
_LARGEST_PHI = 1e300  # coins reckon with exponentials up to exp(700)
# The distance from exact that a plan without a privacy claim allows for: far below any statistical effect.
_NEAR_EXACT = 1e-9


_CERTIFIED = (
    *("domain", "horizon", "lipschitz", "beta", "lam", "p", "phi", "budget", "batch", "draws", "epsilon", "delta"),
    *("expected_switches", "regret_bound", "neighbors", "adversary", "distance", "first_epoch"),
)


@saved("plan of P-COMW")
@dataclass(frozen=True)
class Plan(BasePlan):
    """Parameters of P-COMW beside the domain, the horizon and the Lipschitz constant of the losses.

    Presets and planners make plans; one can also be written by hand, and then claims only what is written.
    `beta` and `lam` shape the measure, `p` is the forced switching rate, `phi` the scale of the coin, `budget` a cap on
    the switches (`None`: no cap), `batch` the rounds per coin, `draws` the auxiliary draws averaged per coin.
    `distance` is the largest distance from exact of a draw (as a Gaussian trade-off) that the claims allow for:
    unless given, 0 for a private plan and 1e-9 otherwise. `constant_work` makes a learner do the same draws at every
    coin, so that its running time does not show which coins were close. A `horizon` of `None` means doubling epochs,
    the first of `first_epoch` rounds: `epoch(k)` has the plan of each.

    >>> from reticent.domains import Interval
    >>> plan = Plan(Interval(-1.0, 1.0), 1000, 1.0, beta=0.1, lam=30.0, p=0.0, phi=1.2)
    >>> plan.coins, plan.private
    (1000, False)
    """

    system: ClassVar[str] = _names.PCOMW
    work: ClassVar[str] = "draws"
    reference: ClassVar[str] = "Agarwal, Kale, Singh and Thakurta 2024"

    domain: Domain
    horizon: int | None
    lipschitz: float
    _: KW_ONLY
    beta: float
    lam: float
    p: float
    phi: float
    budget: int | None = None
    batch: int = 1
    draws: int = 1
    epsilon: float | None = None
    delta: float | None = None
    expected_switches: float | None = None
    regret_bound: float | None = None
    neighbors: str = "replace"
    adversary: str = "adaptive"
    # None until __post_init__ has run, a number for every reader: hence the type.
    distance: float = None  # type: ignore[assignment]
    constant_work: bool = False
    first_epoch: int = 1024
    max_rows: int | None = None
    window: int | None = None
    source: str = BY_HAND
    remarks: tuple[str, ...] = ()
    recipe: Callable[..., Plan] | None = field(default=None, compare=False, repr=False)
    seal: str | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check every value, and make each of the type that its name promises."""
        check_body(self.domain)
        self._set(lipschitz=positive("lipschitz", self.lipschitz))
        check_scale(self.domain, self.lipschitz)
        self._set(beta=positive("beta", self.beta), lam=positive("lam", self.lam))
        self._set(p=real("p", self.p), phi=real("phi", self.phi))
        if not 0 <= self.p <= 1:
            raise ValueError(f"p must be a probability from 0 to 1, got {self.p!r}")
        if self.phi < 1:
            raise ValueError(f"phi must be at least 1, got {self.phi!r}; phi = 1 makes the coin say 'keep' always")
        if self.phi > _LARGEST_PHI:
            raise ValueError(f"phi must be at most {_LARGEST_PHI:g}, got {self.phi!r}; p = 1 switches at every coin")
        self._set(batch=integer("batch", self.batch, least=1), draws=integer("draws", self.draws, least=1))
        if not isinstance(self.constant_work, bool):
            raise ValueError(f"constant_work must be True or False, got {self.constant_work!r}")
        self._set(first_epoch=integer("first_epoch", self.first_epoch, least=1))
        cap = check_cap(self.max_rows, self.window)
        if cap is not None:
            self._set(max_rows=cap.rows, window=cap.window)
        if self.budget is not None:
            self._set(budget=integer("budget", self.budget, least=0))
        if self.horizon is not None:
            self._set(horizon=integer("horizon", self.horizon, least=1))
        self._check_words()
        self._check_claims()
        if self.seal is not None and self.seal != self._fingerprint():
            self._set(seal=None, source=f"edited by hand; it was: {self.source}")

    def _check_words(self) -> None:
        for name, allowed in (("neighbors", NEIGHBORS), ("adversary", ADVERSARIES)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be {' or '.join(map(repr, allowed))}, got {getattr(self, name)!r}")
        if not isinstance(self.source, str):
            raise ValueError(f"source must be text, got {self.source!r}")
        if isinstance(self.remarks, str) or not all(isinstance(remark, str) for remark in self.remarks):
            raise ValueError(f"remarks must be a tuple of texts, got {self.remarks!r}; write ('...',) for one remark")
        self._set(remarks=tuple(self.remarks))
        if self.recipe is not None and (self.horizon is not None or not callable(self.recipe)):
            raise ValueError(
                "recipe must be None, or a preset that takes horizon= in a plan with horizon=None, "
                f"got {self.recipe!r} with horizon={self.horizon!r}; for another horizon, ask the preset for a plan"
            )

    def _check_claims(self) -> None:
        if (self.epsilon is None) != (self.delta is None):
            given, missing = ("delta", "epsilon") if self.epsilon is None else ("epsilon", "delta")
            raise ValueError(
                f"epsilon and delta go together, got {given}={getattr(self, given)!r} and {missing}=None; "
                f"give {missing} as well, or neither for a plan without a privacy claim"
            )
        if self.epsilon is not None and self.delta is not None:
            self._set(epsilon=positive("epsilon", self.epsilon), delta=real("delta", self.delta))
            if not 0 < self.delta < 1:
                raise ValueError(f"delta must be greater than 0 and less than 1, got {self.delta!r}")
            if self.horizon is None and self.recipe is None:
                raise ValueError(
                    "horizon must be a number of rounds for a plan by hand that claims epsilon="
                    f"{self.epsilon!r}, got None: the same parameters reveal more in a longer epoch; give a horizon, "
                    "use a preset with horizon=None, or leave epsilon and delta out"
                )
        if self.max_rows is not None and self.regret_bound is not None:
            raise ValueError(
                f"regret_bound must be None in a plan for persons, got {self.regret_bound!r} with "
                f"max_rows={self.max_rows}: {LEFT_OUT}"
            )
        for name in ("expected_switches", "regret_bound"):
            value = getattr(self, name)
            if value is None:
                continue
            if self.horizon is None:
                raise ValueError(f"{name} must be None without a horizon, got {value!r}: it differs for each epoch")
            self._set(**{name: positive(name, value, zero=True)})
        distance: float | None = self.distance
        if distance is None:
            distance = 0.0 if self.private else _NEAR_EXACT
        self._set(distance=positive("distance", distance, zero=True))

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _fingerprint(self) -> str:
        """Return everything that a certificate is about, as text that is the same in every process."""
        # The planner behind the epochs by its name, wherever it lives.
        inner = getattr(self.recipe, "func", self.recipe)
        made = [None if inner is None else tag_of(inner), getattr(inner, "__qualname__", None)]
        made += [getattr(self.recipe, name, None) for name in ("args", "keywords")]
        if self.max_rows is not None:
            made += [self.max_rows, self.window]
        return repr([*(getattr(self, name) for name in _CERTIFIED), made])

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a saved state of any version.

        Seals of older ones name the module that the planner of epochs lived in, and their plans for persons state a
        bound on regret.
        """
        super().__setstate__(state)
        if self.seal is not None:
            self._set(seal=_OLD_PLANNER.sub(r"['\1', '\1',", self.seal))
        if self.max_rows is not None and self.regret_bound is not None:
            whole = self.seal == self._fingerprint()
            self._set(regret_bound=None)
            if whole:
                self._set(seal=self._fingerprint())

    def sealed(self) -> Plan:
        """Return the plan marked as a planner's own: an edited copy (`dataclasses.replace`) loses the mark."""
        return replace(self, seal=self._fingerprint())

    @property
    def coins(self) -> int:
        """The number of full batches, each of which ends with a coin."""
        if self.horizon is None:
            raise ValueError("a plan without a horizon has coins in every epoch; ask plan.epoch(k).coins")
        return self.horizon // self.batch

    @property
    def max_switches(self) -> int | None:
        """The budget, which is never exceeded; None without one, and where every epoch has one of its own."""
        return None if self.horizon is None else self.budget

    @property
    def adaptive_privacy(self) -> bool:
        """Whether what is claimed of privacy holds for losses that react to decisions."""
        return self.adversary == "adaptive"

    @property
    def adaptive_regret(self) -> bool:
        """Whether the regret bound holds for losses that react to decisions: it does not (docs/theory, P6)."""
        return False

    def epoch(self, k: int) -> Plan:
        """Return the plan of epoch `k` (from 0), of `first_epoch * 2**k` rounds, of a plan without a horizon.

        >>> from reticent.domains import Interval
        >>> Plan(Interval(-1.0, 1.0), None, 1.0, beta=0.1, lam=30.0, p=0.0, phi=1.2).epoch(2).horizon
        4096
        """
        if self.horizon is not None:
            raise ValueError(f"only a plan with horizon=None has epochs, got a horizon of {self.horizon}")
        rounds = self.first_epoch * 2 ** integer("k", k, least=0)
        if self.recipe is None:
            return replace(self, horizon=rounds)
        # What is claimed here is claimed for every epoch, whatever the recipe says.
        claim = {name: getattr(self, name) for name in ("epsilon", "delta", "neighbors", "adversary")}
        if self.max_rows is not None:
            claim |= {"max_rows": self.max_rows, "window": self.window, "regret_bound": None}
        return replace(self.recipe(horizon=rounds), **claim)

    def for_group(self, epsilon: float, delta: float, cap: Cap) -> Plan | None:
        """Return the plan with a claim for persons, by the bound for groups; None if its account does not show it.

        Without a horizon every epoch has the claim of its recipe, of which the bound for groups is a function.
        """
        k, near = cap.at_stake, 1 + 1e-9
        if self.horizon is None:
            if self.epsilon is None or self.delta is None or k * self.epsilon > epsilon * near:
                return None
            if self.delta * group_factor(self.epsilon, k) > delta * near:
                return None
        claim: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "max_rows": cap.rows, "window": cap.window}
        found = replace(self, **claim, regret_bound=None, seal=None).sealed()
        if self.horizon is not None and found.account().epsilon(delta) > epsilon * near:
            return None
        return found

    def account(self, rounds: int | None = None, method: str = "pld") -> Certificate:
        """Return what the first `rounds` rounds (all, unless given) can reveal about any one of them.

        For a plan with `max_rows`, about all rows of a person that count, by the bound for groups.
        """
        return group(self._account(rounds, method), self.at_stake)

    def _account(self, rounds: int | None, method: str) -> Account:
        found = exposure(self, rounds)
        if rounds is not None and self.horizon is not None and rounds > self.horizon:
            raise ValueError(
                f"rounds must be at most the horizon of {self.horizon}, got {rounds}; plan a longer horizon"
            )
        count = self.horizon if rounds is None else rounds
        assert count is not None
        if method == "theorem":
            # The theorem says nothing of a part of the run but what it says of the whole.
            return Account(method, "oblivious", self.neighbors, count, found, theorem(self))
        return Account(method, self.adversary, self.neighbors, count, found)

    def dp_event(self) -> Any:
        """Return an event of dp_accounting that bounds what a run reveals, for composing with others.

        It is a valid upper bound, looser than the certificate: about 17 percent in epsilon for the plans of
        `plan_private`, more if coins dominate (docs/theory, Q10).
        """
        return event_of(self._exact())

    def distribution(self, interval: float = 1e-4) -> Any:
        """Return a privacy loss distribution of dp_accounting for a whole run; see `rt.privacy.distribution`."""
        return distribution_of(self._exact(), interval)

    def _exact(self) -> Exposure:
        if self.at_stake > 1:
            raise ValueError(
                f"a plan for persons by the bound for groups has no event, got max_rows={self.max_rows!r}: no stock "
                "event stands for one; use plan.account(), or a learner of the gate (rt.private_learner)"
            )
        if self.distance > 0:
            claim = "" if self.private else "this plan makes no privacy claim (plan_private plans one that does), and "
            raise ValueError(
                f"{claim}draws must be exact (distance=0) for an event, got distance={self.distance:g}: no stock event "
                "stands for one that is only nearly exact; dataclasses.replace(plan, distance=0.0), or account(plan)"
            )
        return exposure(self)

    @property
    def certified_by(self) -> str:
        """Who says that the privacy claim holds."""
        if self.seal is None:
            return "claimed by hand, unchecked"
        return super().certified_by if self.counts_rounding else "by the paper's theorem, for real numbers"

    @property
    def counts_rounding(self) -> bool:
        """Whether what is claimed of privacy counts what the machine adds: a theorem does not."""
        return not self.source.startswith("Theorem")

    def horizon_in_words(self) -> str:
        """Say how many rounds the plan is for."""
        if self.horizon is not None:
            return super().horizon_in_words()
        text = f"unknown: doubling epochs, the first of {self.first_epoch:,} rounds"
        return text if self.recipe is None else f"{text} (parameters below are those of the first)"

    def changes_in_words(self) -> str:
        """Say how often the decision changes."""
        every = "after every round" if self.batch == 1 else f"after every {self.batch:,} rounds"
        start = "" if self.horizon is not None else " (parameters of the first epoch)"
        if self.p >= 1:
            text = f"A fresh decision is drawn {every}{start}"
        else:
            text = f"A coin decides {every}{start} whether the decision changes"
        where = "in all" if self.horizon is not None else "per epoch"
        text += ", without a cap" if self.budget is None else f", and never more than {self.budget:,} times {where}"
        if self.horizon is not None and self.expected_switches is not None:
            share = self.expected_switches / self.horizon
            text += f"; in expectation at most {self.expected_switches:,.6g} times, in {100 * share:.3g}% of the rounds"
        if self.budget is not None and self.budget > 0:
            text += ". Once that number is reached the last decision stays"
        return text + "."

    def losses_in_words(self) -> str:
        """Say for which losses the regret bound holds."""
        return "This holds for every sequence of convex losses that does not depend on the decisions."

    def exactness_in_words(self) -> str:
        """Say what the method itself takes for granted."""
        if self.distance == 0:
            return "every draw has exactly the law that is asked for: the library's samplers are exact or refuse;"
        return f"every draw is within {self.distance:g} of the law that is asked for (Gaussian trade-off);"

    def parameters(self) -> list[tuple[str, str]]:
        """Return the parameters of P-COMW, as labels and texts for the table."""
        log_phi = math.log(self.phi)
        return [
            ("beta", number(self.beta)),
            ("lam", number(self.lam)),
            ("p", number(self.p)),
            ("phi", f"{self.phi:.12g} (log phi {number(log_phi)})"),
            ("budget", "no cap on switches" if self.budget is None else f"at most {self.budget:,} switches"),
            ("batch", f"{self.batch:,} {'round' if self.batch == 1 else 'rounds'} per coin"),
            ("draws", f"{self.draws:,} auxiliary {'draw' if self.draws == 1 else 'draws'} per coin that needs one"),
            (
                "distance",
                "0 (exact draws only)" if self.distance == 0 else f"{number(self.distance)} from exact at most",
            ),
        ]

    def rows(self) -> list[tuple[str, str]]:
        """Return the plan as labels and texts, for a table."""
        rows = [("plan", self.source), ("domain", repr(self.domain)), *size_rows(self), *self.parameters()]
        rows += [*switch_and_regret(self), *self._privacy()]
        rows += [("remark", remark) for remark in self.remarks]
        return rows + ([("remark", self.vacuous_in_words())] if self.vacuous else [])

    def _privacy(self) -> list[tuple[str, str]]:
        rows = claim_rows(self, "" if self.seal is not None else " (claimed by hand, not certified)")
        if self.private:
            change = f"{self.neighbors}: {_NEIGHBORS[self.neighbors]}"
            rows.append(("neighbors", change if self.max_rows is None else self.neighbors))  # the unit says it there
            rows.append(("adversary", f"{self.adversary}: {_ADVERSARIES[self.adversary]}"))
        if not ordinary(self):
            rows.append(("unit", f"{changed(self)}. {sentences(self)}"))
        return rows


def doubling(recipe: Callable[..., Plan], least: float, *remarks: str) -> Plan:
    """Return the plan with `horizon=None` whose epochs come from `recipe(horizon=...)`.

    The first epoch has the least power of two of rounds that is at least 1024 and at least `least`.
    """
    rounds = 1024
    while rounds < least:
        rounds *= 2
    first = recipe(horizon=rounds)
    return replace(
        first,
        horizon=None,
        expected_switches=None,
        regret_bound=None,
        first_epoch=rounds,
        remarks=remarks,
        recipe=recipe,
        seal=None,
    ).sealed()


def per_epoch(kind: str, switches: int) -> str:
    """Return the remark of a plan whose bound on switches holds for each epoch.

    >>> per_epoch("at most", 3)
    'Every epoch switches at most 3 times: the bound is one per epoch, and the start of an epoch is one more change.'
    """
    return (
        f"Every epoch switches {kind} {switches:,} times: the bound is one per epoch, "
        "and the start of an epoch is one more change."
    )
