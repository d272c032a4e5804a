"""The plan: every parameter of a run, with the guarantees that are claimed for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from decimal import Decimal
from typing import Any

from reticent._check import integer, positive, real
from reticent.domains import Domain
from reticent.planning._table import table

BY_HAND = "written by hand"
NEIGHBORS = ("replace", "zero-out")
ADVERSARIES = ("adaptive", "oblivious")
_LARGEST_PHI = 1e300  # coins reckon with exponentials up to exp(700)
# The distance from exact that a plan without a privacy claim allows for: far below any statistical effect.
_NEAR_EXACT = 1e-9


_CERTIFIED = (
    *("domain", "horizon", "lipschitz", "beta", "lam", "p", "phi", "budget", "batch", "draws", "epsilon", "delta"),
    *("expected_switches", "regret_bound", "neighbors", "adversary", "distance", "first_epoch"),
)
_SMALLEST, _GREATEST = 1e-100, 1e100


def check_body(domain: Domain) -> None:
    """Refuse what is not a convex body."""
    if not isinstance(domain, Domain):
        raise ValueError(f"domain must be a domain such as Ball(dim=2), got {domain!r}")
    if domain.finite:
        raise ValueError(
            f"domain must be a convex body, got {domain!r}; take Simplex({domain.dim}), or a system for experts "
            "(rt.compare_plans lists them)"
        )


LONGEST = 1 << 53
"""Rounds beyond which counts are not exact in double precision."""


def check_rounds(name: str, value: int, most: int = LONGEST, instead: str = "") -> int:
    """Return a number of rounds; refuse what is not one, or too large, and say what can be done instead."""
    rounds = integer(name, value, least=1)
    if rounds > most:
        size = f"{Decimal(rounds):.6g}"  # a float may be too small for it
        raise ValueError(f"{name} must be at most {most:,} rounds, got {size}{instead}")
    return rounds


def check_horizon(value: int, most: int = LONGEST) -> int:
    """Return the horizon of a plan that could also do without one."""
    return check_rounds("horizon", value, most, "; take horizon=None for a run without an end")


def check_firm(name: str, value: float, domain: Domain, lipschitz: float) -> float:
    """Return a regulariser; refuse one so weak that decisions overflow on their way to the domain."""
    firm = positive(name, value)
    if firm * domain.radius < 1e-100 * lipschitz:
        raise ValueError(f"{name} must be at least 1e-100 * lipschitz / radius, got {value!r}")
    return firm


def check_scale(domain: Domain, lipschitz: float) -> None:
    """Refuse scales whose squares and products leave double precision."""
    for name, value in (("lipschitz", lipschitz), ("the radius of the domain", domain.radius)):
        if not _SMALLEST <= value <= _GREATEST:
            raise ValueError(f"{name} must be from 1e-100 to 1e100, got {value!r}; choose other units")


@dataclass(frozen=True)
class Plan:
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
        inner = getattr(self.recipe, "func", self.recipe)
        made = [getattr(inner, name, None) for name in ("__module__", "__qualname__")]
        made += [getattr(self.recipe, name, None) for name in ("args", "keywords")]
        return repr([*(getattr(self, name) for name in _CERTIFIED), made])

    def sealed(self) -> Plan:
        """Return the plan marked as a planner's own: an edited copy (`dataclasses.replace`) loses the mark."""
        return replace(self, seal=self._fingerprint())

    @property
    def private(self) -> bool:
        """Whether the plan makes a privacy claim."""
        return self.epsilon is not None

    @property
    def coins(self) -> int:
        """The number of full batches, each of which ends with a coin."""
        if self.horizon is None:
            raise ValueError("a plan without a horizon has coins in every epoch; ask plan.epoch(k).coins")
        return self.horizon // self.batch

    @property
    def vacuous(self) -> bool:
        """Whether the regret bound says no more than that a round costs at most `lipschitz * diameter`."""
        if self.regret_bound is None or self.horizon is None:
            return False
        return self.regret_bound >= self.lipschitz * self.domain.diameter * self.horizon

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
        return replace(self.recipe(horizon=rounds), **claim)

    def explain(self) -> str:
        """Say in plain words what is promised, to whom, and under which assumptions."""
        from reticent.planning._explain import explain

        return explain(self)

    def dp_event(self) -> Any:
        """Return an event of dp_accounting that bounds what a run reveals, for composing with others.

        It is a valid upper bound, looser than the certificate: about 17 percent in epsilon for the plans of
        `plan_private`, more if coins dominate (docs/theory.md, Q10).
        """
        from reticent.privacy import dp_event

        return dp_event(self)

    def __str__(self) -> str:
        """Lay the plan out as a table in plain text."""
        return table(self)
