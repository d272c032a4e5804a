"""A client of `reticent serve`, with nothing but the standard library; `reticent.client.openfeature` has flags."""

from reticent.client._client import Client, Fleet, Learner
from reticent.client._http import ServiceError
from reticent.client._values import Decision, History, Receipt, Spent

__all__ = ["Client", "Decision", "Fleet", "History", "Learner", "Receipt", "ServiceError", "Spent"]
