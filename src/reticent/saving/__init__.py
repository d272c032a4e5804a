"""Saving: objects as one checked file, without pickle and without running anything on the way back."""

from reticent.saving._format import body_of, pack, read_file, thing_of, unpack
from reticent.saving._key import Key, key_bytes
from reticent.saving._parts import is_callers
from reticent.saving._twin import check_array, check_rows, check_twin, refuse_unless
from reticent.saving._write import write_file

__all__ = [
    "Key",
    "body_of",
    "check_array",
    "check_rows",
    "check_twin",
    "is_callers",
    "key_bytes",
    "pack",
    "read_file",
    "refuse_unless",
    "thing_of",
    "unpack",
    "write_file",
]
