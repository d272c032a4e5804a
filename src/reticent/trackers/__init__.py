"""Trackers of one number: a private quantile and a private mean, in two lines."""

from reticent.trackers._mean import PrivateMean
from reticent.trackers._quantile import PrivateQuantile

__all__ = ["PrivateMean", "PrivateQuantile"]
