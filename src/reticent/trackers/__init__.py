"""Trackers: private quantiles, a private mean, and prediction intervals, in two lines and without an end."""

from reticent.trackers._intervals import PrivateIntervals
from reticent.trackers._mean import PrivateMean
from reticent.trackers._quantile import PrivateQuantile
from reticent.trackers._quantiles import PrivateQuantiles

__all__ = ["PrivateIntervals", "PrivateMean", "PrivateQuantile", "PrivateQuantiles"]
