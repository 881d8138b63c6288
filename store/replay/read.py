"""Read one recorded file, recognising its format by content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from . import chat, claude_code, intercode, livemcpbench, swe_agent, tau, toolbench
from .model import RecordedSession, Recording, ReplayError, StructureError
from .source import Source, load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Format(NamedTuple):
    """One recorded format.

    Attributes:
        recognise: whether a file looks like it; looks at shape only, and never raises.
        read: the sessions in it; raises ``StructureError`` where a value is wrong.
    """

    recognise: Callable[[Source], bool]
    read: Callable[[Source], list[RecordedSession]]


# The first that recognises a file reads it, so the most particular shapes come first.
FORMATS: Final[dict[str, Format]] = {
    claude_code.NAME: Format(claude_code.recognise, claude_code.read),
    tau.NAME_2: Format(tau.recognise_2, tau.read_2),
    tau.NAME: Format(tau.recognise, tau.read),
    livemcpbench.NAME: Format(livemcpbench.recognise, livemcpbench.read),
    toolbench.NAME: Format(toolbench.recognise, toolbench.read),
    intercode.NAME: Format(intercode.recognise, intercode.read),
    swe_agent.NAME: Format(swe_agent.recognise, swe_agent.read),
    chat.ANTHROPIC: Format(chat.recognise_anthropic, chat.read),
    chat.OPENAI: Format(chat.recognise_openai, chat.read),
}
"""Every format that can be replayed, by the name that ``--format`` takes."""


def read(path: Path, form: str | None = None) -> Recording:
    """Read the recording at *path*.

    Args:
        path: a file, plain or gzip.
        form: a name of [`FORMATS`][changeover.store.replay.read.FORMATS]; recognised by content when left out.

    Raises:
        ReplayError: when it cannot be read, is of no known format, or breaks somewhere.
    """
    source = load(path)
    name = _recognised(source) if form is None else form
    try:
        if not FORMATS[name].recognise(source):
            raise ReplayError(path, f"is no {name} recording")
        sessions = FORMATS[name].read(source)
    except StructureError as error:
        raise ReplayError(path, str(error)) from None
    except RecursionError:
        raise ReplayError(path, "is nested too deeply") from None
    with_calls = tuple(session for session in sessions if session.calls)
    return Recording(path, name, source.digest, source.modified_ns, with_calls)


def _recognised(source: Source) -> str:
    for name, form in FORMATS.items():
        if form.recognise(source):
            return name
    raise ReplayError(source.path, f"is no recording of a known format ({', '.join(FORMATS)})")
