"""Optional packages, as the lab asks for them."""

from reticent._extras import MissingExtra, need

__all__ = ["MissingExtra", "need"]
