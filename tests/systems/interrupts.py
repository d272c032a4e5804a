"""Ctrl-C at a chosen place, for tests of what it leaves behind."""

import sys


def interrupted(call, after):
    """Do a call, raising KeyboardInterrupt at the entry of the function number `after`; say whether there was one."""
    seen = 0

    def trace(frame, event, _):
        nonlocal seen
        if event == "call" and "/reticent/" in frame.f_code.co_filename:
            seen += 1
            if seen == after:
                raise KeyboardInterrupt

    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return seen >= after
