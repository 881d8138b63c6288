"""What an error looks like on the command line: one line that says what to do, and an exit code.

Exit codes: 0 done, 1 a check said no, 2 bad usage or input, 70 a fault of ours, 130 interrupted by Ctrl-C, 141 the
reader of a pipe went away.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECK_FAILED: Final = 1
BAD_INPUT: Final = 2
OUR_FAULT: Final = 70
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141

DEBUG: Final = "changeover.debug"
"""Key in ``click.Context.meta`` that holds whether tracebacks are wanted."""

_FOR_PEOPLE: Final = frozenset(
    {"ConfigurationError", "ContractError", "FlagError", "ReplayError", "ServeError", "StoreError"}
)
"""Errors of ours whose message is written for people.

They are told by name, not by class: importing the classes would import the store on every start.
"""


_DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


class Refused(click.ClickException):
    """Something the user gave cannot be used; the message names it and says what to do. Exit code 2."""

    exit_code = BAD_INPUT


class _OurFault(click.ClickException):
    exit_code = OUR_FAULT


def show(error: click.ClickException) -> None:
    """Print *error* as one line on standard error, with the way to more help where it was about usage."""
    message = one_line(error.format_message()).rstrip(".")
    if isinstance(error, click.UsageError) and error.ctx is not None and not message.endswith("?"):
        message += f" (see '{error.ctx.command_path} --help')"
    with suppress(BrokenPipeError):
        click.echo(f"changeover: {message}", err=True)


def one_line(text: str) -> str:
    """Return *text* with every run of whitespace as one space, and control characters made visible."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(text.split()))


@contextmanager
def guarded(ctx: click.Context) -> Iterator[None]:
    """Turn whatever escapes from a command into the ending that the command line promises.

    Raises:
        click.ClickException: for errors that are shown as one line.
        click.exceptions.Exit: when the command line ends quietly: interrupted, or nobody reads its output any more.
    """
    try:
        yield
        if sys.stdout is not None:  # it is when the shell closed it: `>&-`
            sys.stdout.flush()
    except (click.ClickException, click.exceptions.Exit):
        raise
    except (KeyboardInterrupt, click.Abort):
        raise click.exceptions.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        _detach_stdout()
        raise click.exceptions.Exit(PIPE_CLOSED) from None
    except Exception as error:
        if ctx.meta.get(DEBUG):
            raise
        raise as_one_line(error) from error


def as_one_line(error: Exception) -> click.ClickException:
    """Return what *error* looks like to the user: something to set right, or a fault of ours."""
    if _is_for_people(error):
        return Refused(str(error))
    if isinstance(error, OSError) and error.errno in _DISK_FULL:
        return Refused(f"{error.filename or 'the output'} cannot be written: the disk is full; make room and try again")
    if type(error).__module__.startswith("sqlalchemy.") and getattr(error, "orig", None) is not None:
        return Refused(f"the store refused: {error.orig}; check --store, or run again with --debug")  # type: ignore[attr-defined]
    return _OurFault(
        f"{type(error).__name__}: {error} - this is a fault of changeover, not of your input; "
        "run again with --debug to see where, and please report it"
    )


def _is_for_people(error: Exception) -> bool:
    return any(
        kind.__name__ in _FOR_PEOPLE and kind.__module__.partition(".")[0] == "changeover"
        for kind in type(error).__mro__
    )


def _detach_stdout() -> None:
    # The interpreter flushes standard output once more at exit, which would complain about the same closed pipe.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
