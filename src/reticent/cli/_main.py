"""The way in: run a command, turn mistakes into one sentence and an exit code."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

from reticent._core._errors import MissingExtra, WorkLimitError, need
from reticent.cli._show import mute, say

_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
USAGE = 2
INTERRUPTED = 130
UNREAD = 141


def main(argv: list[str] | None = None) -> int:
    """Run the command line with these words (those of the process unless given) and return its exit code.

    0: done. 1: an audit found a violation. 2: the input was wrong; one sentence on standard error says what and what to
    do. 130: Ctrl-C, and what was finished is kept. 141: whoever read the output has gone.

    >>> main(["--version"])  # doctest: +ELLIPSIS
    reticent ...
    0
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (until the process ends)
    if sys.stdout is None:
        return _tell("error: standard output is closed; send it to a file, or to /dev/null", USAGE)
    return _written(_code(sys.argv[1:] if argv is None else argv))


def _code(words: list[str]) -> int:
    """Run a command and return the exit code, with a sentence on standard error for what went wrong."""
    try:
        need("typer", "lab")
        need("rich", "lab")
        done = _run(words)
        return done if isinstance(done, int) else 0
    except KeyboardInterrupt:
        return _tell("interrupted; what was finished is kept", INTERRUPTED)
    except BrokenPipeError:
        return UNREAD
    except SystemExit as done:
        if not isinstance(done.__context__, BrokenPipeError):
            raise
        return UNREAD  # that is how rich leaves a reader that has gone
    except (ValueError, OSError, MissingExtra, WorkLimitError) as error:
        return _tell(f"error: {sentence(error)}", USAGE)
    except MemoryError as error:
        size = f" ({sentence(error)})" if str(error) else ""
        return _tell(f"error: there is not enough memory for this{size}; ask for less, or use a larger machine", USAGE)
    except Exception as error:
        message = _usage(error)
        if message is None:
            raise
        return _tell(f"error: {message}", USAGE)


def _written(code: int) -> int:
    """Return an exit code once all results are out: a mistake of the command's own counts for more than theirs."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        mute(sys.stdout)
        return code or UNREAD
    except OSError as error:
        mute(sys.stdout)
        return code or _tell(f"error: {sentence(error)}", USAGE)
    return code


def _run(words: list[str]) -> Any:
    """Run a command and return what it returns; mistakes come out as exceptions, whoever finds them."""
    import typer
    from typer.main import get_command

    from reticent.cli._app import app

    command = get_command(app)
    try:
        with command.make_context("reticent", list(words), obj=list(words)) as context:
            return command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None


def _usage(error: Exception) -> str | None:
    """Return the sentence for a mistake that the parser of the command line found; None for anything else."""
    # Typer brings its own click, or uses the one that is installed: its errors are known by what they can do.
    if not (hasattr(error, "format_message") and hasattr(error, "exit_code")):
        return None
    sentence = " ".join(str(error.format_message()).split()).rstrip(".").replace(". Did", "; did")
    sentence = sentence[:1].lower() + sentence[1:]
    if sentence.endswith("?"):
        return sentence
    context = getattr(error, "ctx", None)
    where = "reticent" if context is None else context.command_path
    return f"{sentence}; `{where} --help` shows what there is"


def sentence(error: BaseException) -> str:
    """Return what an error says, on one line.

    >>> sentence(OSError(28, "No space left on device", "study.json"))
    'study.json: no space left on device'
    """
    if isinstance(error, OSError) and error.strerror:
        # Whatever writes files names them; what is left is print.
        name = "standard output" if error.filename is None and error.errno in _WRITING else error.filename
        if name is not None:
            return f"{name}: {error.strerror.lower()}"
    return " ".join(str(error).split()) or type(error).__name__


def _tell(message: str, code: int) -> int:
    say(message)
    return code
