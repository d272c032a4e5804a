"""Quantiles for river: of the targets, or of the targets given features, private."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reticent.estimators._plans import PRIVATE
from reticent.estimators.river._linear import CHECKED, Regression
from reticent.estimators.river._model import Private
from reticent.losses import Pinball


class PrivateQuantile(Private, Regression):
    """A quantile of the targets that is differentially private.

    Without features (the default) it tracks one number that a share `q` of the targets stays below; with features it
    is a quantile regression, linear in them. The whole sequence of weights is (`epsilon`, `delta`)-differentially
    private in the rows; what that means and what it does not cover is said at `PrivateLogisticRegression`.

    Parameters
    ----------
    q
        The level of the quantile: 0.5 for the median.
    target_bounds
        The range `(low, high)` of the targets. Targets beyond are clipped, and so is the quantile. Unless given,
        targets must lie in [-1, 1].
    features
        0 for none, the names of the features in a tuple, or a number of slots to hash them to. More than ten are slow
        with P-COMW, and more than twenty refused.
    bounds
        The range `(low, high)` of all features, or a tuple or dictionary with one for each declared feature.
    epsilon
        How much the sequence may reveal about one row.
    delta
        The chance that may be left out of this; far below one over the number of people.
    horizon
        How many rows will come; more are refused, and nothing of them is recorded. None stands for any number (with
        P-COMW in epochs of 1024 rows and then twice as many each time).
    radius
        The largest length of the weight vector, in units; without features it is 1, the range of the targets.
    system
        "filtered gate", made for ordinary data (`rt.private_learner`); "P-COMW", which certifies regret in the worst
        case and changes its weights rarely; or "DP-FTRL", which needs a horizon.
    seed
        None for a cryptographic generator, which privacy needs; a number for tests and experiments.
    fill
        What counts where a declared feature is missing: a dictionary of public values by name. Without one, the middle
        of its bounds, or no category.

    Examples
    --------
    >>> import random
    >>> from reticent.estimators.river import PrivateQuantile

    >>> latencies = random.Random(0)
    >>> model = PrivateQuantile(q=0.9, target_bounds=(0.0, 500.0), horizon=20_000, seed=1)
    >>> for _ in range(20_000):
    ...     model.learn_one({}, latencies.expovariate(0.01))
    >>> 150.0 < model.predict_one({}) < 350.0  # the true one is 230
    True

    """

    def __init__(
        self,
        q: float = 0.5,
        target_bounds: Any = None,
        features: tuple[Any, ...] | int = 0,
        bounds: Any = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        horizon: int | None = None,
        radius: float = 4.0,
        system: str = PRIVATE[0],
        seed: int | None = None,
        fill: Any = None,
    ) -> None:
        self.q, self.target_bounds = q, target_bounds
        self.features, self.bounds, self.fill = features, bounds, fill
        self.epsilon, self.delta, self.horizon = epsilon, delta, horizon
        self.radius, self.system, self.seed = radius, system, seed
        self._set_up()

    def _check(self) -> None:
        super()._check()
        try:
            Pinball(self.q)
        except ValueError:
            raise ValueError(f"q must lie strictly between 0 and 1, got {self.q!r}; 0.5 is the median") from None

    @property
    def _loss(self) -> Pinball:
        return Pinball(self.q)

    @property
    def _lipschitz(self) -> float:
        return max(self.q, 1.0 - self.q)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"target_bounds": CHECKED["target_bounds"], "horizon": 20_000}
        yield {**CHECKED, "q": 0.9, "horizon": 20_000}
