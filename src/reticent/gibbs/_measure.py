"""The Gibbs measure of a stream of losses over a body, and draws from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from reticent._core._check import Array, integer, positive, vector
from reticent._core._errors import WorkLimitError
from reticent._core._random import Seed, generator
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.losses import Custom, GeneralisedLinear, Linear, Loss, Squared
from reticent.losses._gate import Gate


@dataclass(frozen=True, slots=True)
class Draw:
    """A point drawn from the measure, and how.

    `distance` is the distance of its law from the measure as a GDP number: 0 for an exact draw, else w such that
    telling the two apart is no easier than N(0, 1) from N(w, 1). `losses_read` counts past losses looked at,
    `proposals` the candidates tried.
    """

    point: Array
    method: str
    proposals: int
    losses_read: int
    distance: float = 0.0


# The Gibbs measure of a stream of losses over a body, and draws from it.

_METHODS = ("closed-form", "gaussian", "line", "curved", "quartic", "tangent", "proximal")
_FEW = 256  # rounds up to which a kinked sum is simply evaluated
_TRIES = 20_000  # exact proposals before a draw without a fixed method turns to the certified chain


@saved("measure")
class Gibbs:
    """The measure with density proportional to exp(-beta (sum of losses + lam/2 |x - center|^2)) on the domain.

    Draws are exact, or their distance from exact comes with them; `method` names how, in `draw`, and is chosen by
    the kind of loss and the dimension unless given:

    - `"closed-form"`: linear and squared losses where the coordinates separate or the body is a ball;
    - `"gaussian"`: other squared losses, exact by tilted rejection;
    - `"line"`: one dimension, exact; kinked losses cost O(log t) per density evaluation;
    - `"curved"`: logistic and Huber losses, exact: a Gaussian below the curvature and a coin that reads a few losses;
    - `"quartic"`: absolute, pinball and hinge losses in two dimensions or more, exact: quartic lower bounds;
    - `"tangent"`: any loss, exact, by rejection from one tangent; good for few rounds or a strong regulariser;
    - `"proximal"`: any loss, certified: a chain as long as `distance` asks for.

    >>> import reticent as rt
    >>> measure = rt.Gibbs(rt.Ball(dim=2), rt.Logistic(), beta=1.0, lam=1.0)
    >>> measure.observe_many([[0.6, 0.8], [1.0, 0.0]], [1, -1])
    >>> draw = measure.draw(0)
    >>> draw.method, draw.distance, rt.Ball(dim=2).contains(draw.point)
    ('curved', 0.0, True)
    """

    _moves: ClassVar[tuple[str, ...]] = ("_history", "_samplers", "_chosen")

    def __init__(
        self,
        domain: Domain,
        loss: Loss,
        beta: float,
        lam: float,
        *,
        lipschitz: float | None = None,
        on_steep: str = "raise",
        distance: float = 1e-6,
        limit: int = 1_000_000,
    ) -> None:
        """Start with no losses.

        `lipschitz` bounds the slope of every round (`on_steep` says what happens to steeper ones); `distance` is asked
        of draws that are not exact, as a GDP number, and 0 allows exact draws only; `limit` is the most proposals that
        one draw may take (of curved losses also by rows read: 64 for each of them, and 2^24).
        """
        if not isinstance(domain, Domain) or domain.finite:
            raise ValueError(f"domain must be one of the convex bodies of reticent.domains, got {domain!r}")
        if not isinstance(loss, Loss):
            raise ValueError(f"loss must be one of the losses of reticent.losses, got {loss!r}")
        self.domain, self.loss = domain, loss
        self.beta, self.lam = positive("beta", beta), positive("lam", lam, zero=True)
        self.lipschitz = None if lipschitz is None else positive("lipschitz", lipschitz)
        self.on_steep = on_steep
        self.gate = Gate(domain, loss, self.lipschitz, on_steep)
        self.distance = positive("distance", distance, zero=True)
        self.limit = integer("limit", limit, least=1)
        self._history = self._new_history()
        self._samplers: dict[str, Any] = {}
        self._chosen = -1, ""

    def emptied(self) -> Gibbs:
        """Return a measure like this one that has seen nothing."""
        options = {name: getattr(self, name) for name in ("lipschitz", "on_steep", "distance", "limit")}
        return Gibbs(self.domain, self.loss, self.beta, self.lam, **options)

    def _catch_up(self, found: Gibbs) -> None:
        """Have the samplers that a loaded measure has."""
        self._samplers = {method: self._sampler(method) for method in found._samplers}

    def _check_moved(self) -> None:
        at, method = self._chosen
        possible = ("", *self.methods) if at == self.rounds else ("", *_METHODS)  # others may have been, before
        if not -1 <= at <= self.rounds or method not in possible:
            raise ValueError(f"its measure has chosen {method!r} at round {at}")

    def _new_history(self) -> Any:
        # Histories and samplers are compiled: they are imported when a measure is made, not with the package.
        if isinstance(self.loss, Linear | Squared):
            from reticent.gibbs._sums import QuadraticHistory

            return QuadraticHistory(self.domain, isinstance(self.loss, Squared))
        if isinstance(self.loss, GeneralisedLinear):
            from reticent.gibbs._history import RowHistory

            return RowHistory(self.domain, self.loss)
        if isinstance(self.loss, Custom):
            from reticent.gibbs._history import ObjectHistory

            return ObjectHistory(self.domain, self.loss)
        raise ValueError(f"no sampler knows the loss {self.loss!r}; wrap it in Custom(value, subgradient)")

    @property
    def rounds(self) -> int:
        """The number of losses observed."""
        return len(self._history)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that apply to this loss and body, the one chosen by default first."""
        one = self.domain.chart_dim == 1
        if isinstance(self.loss, Linear | Squared):
            return ("closed-form",) if self._sampler("gaussian").closed_form() else ("gaussian",)
        chain = ("proximal",) if self.distance > 0.0 else ()
        general = ("tangent", *chain)
        if isinstance(self.loss, Custom):
            return ("line", *general) if one else general
        curved = ("curved",) if self._history.curved else ()
        if self._history.loss.pieces() is None:
            return (*curved, *general)
        if one:
            return ("line", *curved, *general)
        if curved:
            return (*curved, *general)
        if self.rounds <= _FEW or self.lam == 0.0:
            return ("tangent", "quartic", *chain)
        return ("quartic", *general)

    def observe(self, *row: Any) -> None:
        """Add one round: a gradient for `Linear`, (features, target) or one object for the others.

        A round that is refused leaves the measure as it was.
        """
        for rows in self.gate.prepare_one(*row):
            self.add(rows)

    def observe_many(self, *block: Any) -> None:
        """Add a block of rounds, with the same result to the last bit as one at a time.

        Arrays may be mapped from disk: they are read in parts. If any round is refused, none is added.
        """
        for rows in self.gate.prepare(*block):
            self.add(rows)

    def add(self, rows: Any) -> None:
        """Add rounds that `gate.prepare` has returned, or a part of them."""
        self._history.add(rows)

    def log_density(self, x: ArrayLike) -> float:
        """Return the logarithm of the density at x, up to a constant; -inf outside the domain.

        >>> import reticent as rt
        >>> rt.Gibbs(rt.Interval(0.0, 2.0), rt.Linear(), beta=2.0, lam=1.0).log_density([0.0])
        -1.0
        """
        point = vector("x", x, self.domain.dim)
        if not self.domain.contains(point):
            return -np.inf
        u = self.domain.to_chart(point)
        return -self.beta * (float(self._history.value(u)) + 0.5 * self.lam * float(u @ u))

    def draw(self, rng: Seed = None, method: str | None = None) -> Draw:
        """Return a point drawn from the measure, with the method used and the distance of its law from exact.

        `rng` is a numpy Generator, an integer seed, or None for a cryptographic generator.
        """
        if method is not None and method not in self.methods:
            raise ValueError(
                f"method must be one of {', '.join(self.methods)} for {self.loss!r} on {self.domain!r}, got {method!r}"
            )
        u, used, proposals, reads, distance = self.draw_in_chart(generator(rng), method)
        return Draw(self.domain._from_chart(u), used, proposals, reads, distance)

    def draw_in_chart(self, rng: np.random.Generator, method: str | None = None) -> tuple[Array, str, int, int, float]:
        """Return what `draw` does, as (chart point, method, proposals, losses read, distance)."""
        rungs = [(method, self.limit)] if method else self._ladder()
        for chosen, patience in rungs:
            found = self._run(chosen, rng, patience)
            if found is not None:
                point, proposals, reads, *distance = found
                return point, chosen, int(proposals), int(reads), float(distance[0]) if distance else 0.0
        raise WorkLimitError(self.why_given_up(rungs[-1][0]))

    def _ladder(self) -> list[tuple[str, int]]:
        """Return the methods to try in turn, with the most proposals of each.

        Rejection that may be hopeless gives way after a while: to the certified chain where that is allowed, otherwise
        to tangents, slow but sure. An accepted proposal is exact whatever came before it, so the draw is exact or as
        far off as the chain's certificate; a chain that was given up is gone on with first (docs/theory, S10).
        """
        if "proximal" in self._samplers and self._samplers["proximal"].halfway:
            return [("proximal", self.limit)]
        first = self._default()
        patience = min(self._patience(first), self.limit)
        if patience < self.limit and self.lam > 0.0 and self.distance > 0.0:
            return [(first, patience), ("proximal", self.limit)]
        if first == "quartic":
            return [(first, patience), ("tangent", self.limit)]
        return [(first, self.limit)]

    def draws_in_chart(self, rng: np.random.Generator, count: int) -> Array:
        """Return the chart points of so many independent draws; they share the work of an envelope where they can."""
        rungs = self._ladder()
        sampler = self._sampler(rungs[0][0])
        if len(rungs) > 1 or not hasattr(sampler, "draw_many"):
            return np.array([self.draw_in_chart(rng)[0] for _ in range(count)])
        found = sampler.draw_many(rng, count, self.limit)
        if found is None:
            raise WorkLimitError(self.why_given_up(rungs[0][0]))
        points: Array = found[0]
        return points

    def compiled(self) -> Any:
        """Return the sampler of all draws to come, whatever the rounds, if its kernel can work alone; else None."""
        rungs = self._ladder()
        alone = isinstance(self.loss, GeneralisedLinear) and len(rungs) == 1 and rungs[0][0] in ("line", "curved")
        return self._sampler(rungs[0][0]) if alone else None

    def _default(self) -> str:
        """Return the method for the present rounds; asked again only when there are more."""
        # Linear losses change no curvature, a line stays a line: what holds of them once holds for good.
        settled = self._chosen[1] and (isinstance(self.loss, Linear) or self._chosen[1] in ("line", "curved"))
        if not settled and self._chosen[0] != self.rounds:
            self._chosen = self.rounds, self.methods[0]
        return self._chosen[1]

    def _patience(self, method: str) -> int:
        """Return how many proposals a method may take before another is tried."""
        if method == "tangent":
            # A proposal looks at every round; so does every step of the chain.
            return _TRIES if self.rounds < 10_000 else _TRIES // 20
        hard = method == "quartic" or (method == "curved" and not getattr(self.loss, "curved", False))
        return 20 * _TRIES if hard else self.limit

    def why_given_up(self, method: str | None = None) -> str:
        """Return what to say of a draw that needs more proposals than it may take, by the default method or another."""
        method = method or self._default()
        others = (
            f"another of the methods ({', '.join(self.methods)})" if len(self.methods) > 1 else "a distance above 0"
        )
        start = f"a draw by {method!r} after {self.rounds} rounds was given up: "
        if method == "quartic" and self._sampler(method).built is None:
            return (
                f"{start}no quartic bound has a finite envelope here; choose {others}, a larger lam or a smaller beta, "
                "or fewer dimensions"
            )
        return (
            f"{start}it needs more than limit={self.limit} proposals, or far more rows; give Gibbs(..., limit=...) "
            f"more, choose {others}, a larger lam or a smaller beta, or fewer dimensions"
        )

    def _run(self, method: str, rng: np.random.Generator, limit: int) -> Any:
        return self._sampler(method).draw(rng, limit)

    def _sampler(self, method: str) -> Any:
        """Return the sampler of a method; samplers keep what they learn about the past between draws."""
        if method not in self._samplers:
            self._samplers[method] = self._new_sampler(method)
        return self._samplers[method]

    def _new_sampler(self, method: str) -> Any:
        from reticent.gibbs import _curved, _kinked, _kinks, _potential, _sums

        parts = self._history, self.beta, self.lam
        if method == "proximal":
            return _potential.ProximalSampler(*parts, self.distance, self._sampler("tangent"))
        if method == "line" and isinstance(self.loss, Custom):
            return _potential.LineSampler(*parts)
        kinds: dict[str, Any] = {
            "closed-form": _sums.GaussianSampler,
            "gaussian": _sums.GaussianSampler,
            "line": _kinks.KinkSampler,
            "curved": _curved.CurvedSampler,
            "quartic": _kinked.KinkedSampler,
            "tangent": _potential.TangentSampler,
        }
        return kinds[method](*parts)
