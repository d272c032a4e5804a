"""Saving: objects as one checked file, without pickle and without running anything on the way back."""

from reticent.saving._format import body_of, pack, read_file, thing_of, unpack
from reticent.saving._parts import is_callers
from reticent.saving._write import write_file

__all__ = ["body_of", "is_callers", "pack", "read_file", "thing_of", "unpack", "write_file"]
