"""An OpenFeature provider: flags whose values are decisions of a service, private and rarely changing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from reticent._core._errors import need
from reticent.client._client import Client, Fleet, Learner, _Decides
from reticent.client._http import ServiceError
from reticent.client._values import Decision

need("openfeature", "openfeature")

from openfeature.evaluation_context import EvaluationContext  # noqa: E402
from openfeature.exception import FlagNotFoundError, GeneralError, TargetingKeyMissingError, TypeMismatchError  # noqa: E402
from openfeature.flag_evaluation import FlagResolutionDetails, FlagValueType, Reason  # noqa: E402
from openfeature.provider import AbstractProvider, Metadata  # noqa: E402

__all__ = ["ReticentProvider"]

T = TypeVar("T")
Object = Sequence[FlagValueType] | Mapping[str, FlagValueType]


class ReticentProvider(AbstractProvider):
    """Flags from a service: a number for a learner of one coordinate, a list for one of several.

    `flags` says which learner or fleet a flag is; a flag that is not in it goes by the id of a learner. For a fleet the
    targeting key of the evaluation context is the key. A decision is asked for again after `fresh` seconds (with its
    ETag, so that hardly anything is sent where it has not changed); if the service does not answer, the last one stays
    in play and its reason is STALE. The variant is the number of changes, as in "v12".

    A numeric flag is true where `threshold` is given for it and the decision is above: a boolean flag with a private,
    lazy switch.

    >>> client = Client("http://127.0.0.1:8000", "rt_key")
    >>> provider = ReticentProvider(client, flags={"timeout": client.learner("p95")})
    >>> provider.get_metadata().name
    'reticent'
    """

    def __init__(
        self,
        client: Client,
        *,
        flags: Mapping[str, Learner | Fleet] | None = None,
        thresholds: Mapping[str, float] | None = None,
        fresh: float = 1.0,
    ) -> None:
        """Take a client whose key has the scope read."""
        super().__init__()
        self._client, self._flags, self._thresholds = client, dict(flags or {}), dict(thresholds or {})
        self._fresh = fresh
        self._known: dict[tuple[str, str | None], tuple[_Decides, Decision | None, float]] = {}

    def get_metadata(self) -> Metadata:
        """Name the provider."""
        return Metadata("reticent")

    def get_provider_hooks(self) -> list[Any]:
        """Return no hooks."""
        return []

    def resolve_float_details(
        self, flag_key: str, default_value: float, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[float]:
        """Return the decision of one coordinate."""
        decision, reason = self._decision(flag_key, evaluation_context)
        return _details(_number(decision), decision, reason)

    def resolve_integer_details(
        self, flag_key: str, default_value: int, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[int]:
        """Return the decision of one coordinate, rounded."""
        decision, reason = self._decision(flag_key, evaluation_context)
        return _details(round(_number(decision)), decision, reason)

    def resolve_boolean_details(
        self, flag_key: str, default_value: bool, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[bool]:
        """Say whether the decision of one coordinate is above the threshold of the flag."""
        if flag_key not in self._thresholds:
            raise TypeMismatchError(f"the flag {flag_key!r} has no threshold, and a decision is no boolean")
        decision, reason = self._decision(flag_key, evaluation_context)
        return _details(_number(decision) > self._thresholds[flag_key], decision, reason)

    def resolve_string_details(
        self, flag_key: str, default_value: str, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[str]:
        """Refuse: a decision is a number or several."""
        raise TypeMismatchError(f"the flag {flag_key!r} is a decision, which is no text")

    def resolve_object_details(
        self, flag_key: str, default_value: Object, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[Object]:
        """Return the decision as a list."""
        decision, reason = self._decision(flag_key, evaluation_context)
        value = decision.value if isinstance(decision.value, tuple) else (decision.value,)
        found: Object = list(value)
        return _details(found, decision, reason)

    def _decision(self, flag: str, context: EvaluationContext | None) -> tuple[Decision, Reason]:
        of = self._flags.get(flag) or self._client.learner(flag)
        target = None
        if isinstance(of, Fleet):
            target = context.targeting_key if context is not None else None
            if not target:
                raise TargetingKeyMissingError(f"the flag {flag!r} is of a fleet, whose key is the targeting key")
        decides, last, until = self._known.get((flag, target), (None, None, 0.0))
        if last is not None and time.monotonic() < until:
            return last, Reason.CACHED
        if decides is None:
            decides = of.key(target) if isinstance(of, Fleet) and target else of  # type: ignore[assignment]
        assert isinstance(decides, _Decides)
        try:
            found, reason = decides.decision(), Reason.TARGETING_MATCH if target else Reason.STATIC
        except ServiceError as error:
            if error.status == 404:
                raise FlagNotFoundError(error.detail) from None
            if last is None or error.status < 500:
                raise GeneralError(str(error)) from None
            found, reason = last, Reason.STALE
        except OSError as error:
            if last is None:
                raise GeneralError(str(error)) from None
            found, reason = last, Reason.STALE
        self._known[flag, target] = decides, found, time.monotonic() + self._fresh
        return found, reason


def _number(decision: Decision) -> float:
    value = decision.value if isinstance(decision.value, tuple) else (decision.value,)
    if len(value) != 1:
        raise TypeMismatchError(f"the decision has {len(value)} numbers; ask for an object")
    return value[0]


def _details(value: T, decision: Decision, reason: Reason) -> FlagResolutionDetails[T]:
    return FlagResolutionDetails(value, variant=f"v{decision.version}", reason=reason)
