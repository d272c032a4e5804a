"""The Gibbs measure of a stream of losses over a body, and draws from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reticent._check import integer, positive, vector
from reticent._errors import WorkLimitError
from reticent._random import Seed, generator
from reticent.domains import Domain
from reticent.losses import Custom, GeneralisedLinear, Linear, Loss, Squared

from ._draw import Draw

_BLOCK = 1 << 15  # rows prepared together: bounds temporary memory when a block is mapped from disk
_FEW = 256  # rounds up to which a kinked sum is simply evaluated
_TRIES = 20_000  # exact proposals before a draw without a fixed method turns to the certified chain


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
        of draws that are not exact, as a GDP number; `limit` is the most proposals that one draw may take.
        """
        if not isinstance(domain, Domain):
            raise ValueError(f"domain must be one of the bodies of reticent.domains, got {domain!r}")
        if not isinstance(loss, Loss):
            raise ValueError(f"loss must be one of the losses of reticent.losses, got {loss!r}")
        self.domain, self.loss = domain, loss
        self.beta, self.lam = positive("beta", beta), positive("lam", lam, zero=True)
        self.lipschitz = None if lipschitz is None else positive("lipschitz", lipschitz)
        if on_steep not in ("raise", "clip"):
            raise ValueError(f'on_steep must be "raise" or "clip", got {on_steep!r}')
        self.on_steep = on_steep
        self.distance = positive("distance", distance)
        self.limit = integer("limit", limit, least=1)
        self._history = self._new_history()
        self._samplers: dict[str, Any] = {}
        self._chosen = -1, ""

    def _new_history(self) -> Any:
        # Histories and samplers are compiled: they are imported when a measure is made, not with the package.
        if isinstance(self.loss, Linear | Squared):
            from ._sums import QuadraticHistory

            return QuadraticHistory(self.domain, isinstance(self.loss, Squared))
        if isinstance(self.loss, GeneralisedLinear):
            from ._history import RowHistory

            return RowHistory(self.domain, self.loss)
        if isinstance(self.loss, Custom):
            from ._objects import ObjectHistory

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
        general = ("tangent", "proximal")
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
            return ("tangent", "quartic", "proximal")
        return ("quartic", *general)

    def observe(self, *row: Any) -> None:
        """Add one round: a gradient for `Linear`, (features, target) or one object for the others.

        A round that is refused leaves the measure as it was.
        """
        if isinstance(self.loss, Custom):
            row = ([row[0]],) if len(row) == 1 else row
        elif row and np.ndim(row[0]) > 1:
            raise ValueError(f"observe takes one round, got an array of shape {np.shape(row[0])}; use observe_many")
        elif self.domain.dim == 1 and row and np.size(row[0]) != 1:
            raise ValueError(f"observe takes one round, got {np.size(row[0])} numbers; use observe_many")
        self.observe_many(*row)

    def observe_many(self, *block: Any) -> None:
        """Add a block of rounds, with the same result to the last bit as one at a time.

        Arrays may be mapped from disk: they are read in parts. If any round is refused, none is added.
        """
        history = self._history
        mark = history.mark()
        try:
            for part in self._parts(block):
                rows = self.loss.prepare(self.domain, *part, lipschitz=self.lipschitz, on_steep=self.on_steep)
                history.add(rows)
        except BaseException:
            history.restore(mark)
            raise

    def _parts(self, block: tuple[Any, ...]) -> Any:
        """Cut a long block of arrays into parts; anything else goes through as it is, to be checked whole."""
        arrays = [a for a in block if isinstance(a, np.ndarray) and a.ndim > 0]
        lengths = {len(a) for a in arrays}
        single = self.domain.dim > 1 and bool(arrays) and arrays[0].ndim == 1
        if len(arrays) != len(block) or len(lengths) != 1 or max(lengths) <= _BLOCK or single:
            return iter([block])
        size = lengths.pop()
        return ([a[i : i + _BLOCK] for a in block] for i in range(0, size, _BLOCK))

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
        random = generator(rng)
        if method is not None and method not in self.methods:
            raise ValueError(
                f"method must be one of {', '.join(self.methods)} for {self.loss!r} on {self.domain!r}, got {method!r}"
            )
        chosen = method or self._default()
        # Rejection that may be hopeless gives way to the certified chain after a while. An accepted proposal is exact
        # whatever came before it, so the draw is exact or as far off as the chain's certificate (docs/theory.md, S10).
        patience = self._patience(chosen) if method is None and self.lam > 0.0 else self.limit
        found = self._run(chosen, random, min(patience, self.limit))
        if found is None and patience < self.limit:
            chosen = "proximal"
            found = self._run(chosen, random, self.limit)
        return self._finish(found, chosen)

    def _default(self) -> str:
        """Return the method for the present rounds; asked again only when there are more."""
        if self._chosen[0] != self.rounds:
            self._chosen = self.rounds, self.methods[0]
        return self._chosen[1]

    def _patience(self, method: str) -> int:
        """Return how many proposals a method may take before another is tried."""
        if method == "tangent":
            # A proposal looks at every round; so does every step of the chain.
            return _TRIES if self.rounds < 10_000 else _TRIES // 20
        hard = method == "quartic" or (method == "curved" and not getattr(self.loss, "curved", False))
        return 20 * _TRIES if hard else self.limit

    def _finish(self, found: Any, method: str) -> Draw:
        if found is None:
            others = f"another of the methods ({', '.join(self.methods)})"
            if method == "quartic" and self._sampler(method).built is None:
                raise WorkLimitError(
                    f"a draw by 'quartic' after {self.rounds} rounds was given up: no quartic bound has a finite "
                    f"envelope here; choose {others}, a larger lam or a smaller beta, or fewer dimensions"
                )
            raise WorkLimitError(
                f"a draw by {method!r} after {self.rounds} rounds was given up: it needs more than "
                f"limit={self.limit} proposals; give Gibbs(..., limit=...) more, choose {others}, a larger lam or a "
                "smaller beta, or fewer dimensions"
            )
        point, proposals, reads, *distance = found
        return Draw(
            self.domain._from_chart(point),
            method,
            int(proposals),
            int(reads),
            float(distance[0]) if distance else 0.0,
        )

    def _run(self, method: str, rng: np.random.Generator, limit: int) -> Any:
        return self._sampler(method).draw(rng, limit)

    def _sampler(self, method: str) -> Any:
        """Return the sampler of a method; samplers keep what they learn about the past between draws."""
        if method not in self._samplers:
            self._samplers[method] = self._new_sampler(method)
        return self._samplers[method]

    def _new_sampler(self, method: str) -> Any:
        from . import _curved, _kinked_sampler, _kinks, _potential, _sums

        parts = self._history, self.beta, self.lam
        if method == "proximal":
            return _potential.ProximalSampler(*parts, self.distance, self._sampler("tangent"))
        if method == "line" and isinstance(self.loss, Custom):
            return _potential.LineSampler(*parts)
        kinds: dict[str, Any] = {
            "closed-form": _sums.GaussianSampler,
            "gaussian": _sums.GaussianSampler,
            "line": _kinks.LineSampler,
            "curved": _curved.CurvedSampler,
            "quartic": _kinked_sampler.KinkedSampler,
            "tangent": _potential.TangentSampler,
        }
        return kinds[method](*parts)
