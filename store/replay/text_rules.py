"""How sources that have no error flag say "error" in the text of a result.

These rules belong to the recorded source and are never applied to a live tool.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

SHELL_CHARACTERS: Final = 400
"""How much of an observation the shell rule looks at."""

_SHELL = re.compile(
    r"command not found|Traceback \(most recent call last\)|EXECUTION TIMED OUT|BUILD FAIL|No such file or directory"
    r"|^(?:bash: |/bin/bash: |Usage: |Your proposed edit has introduced|Error\b|ERROR|error:"
    r"|(?:File|Directory) \S+ not found|No file open|Interactive operation|No replacement was performed|Invalid"
    r"|Syntax ?Error|fatal: |E: )",
    re.MULTILINE,
)
_SERVICE = re.compile(r"unauthorized|too many requests|timed out", re.IGNORECASE)
_SERVICE_CHARACTERS: Final = 300
_IS_ERROR = re.compile(r"isError=(True|False)")


def shell_failed(observation: str) -> bool:
    """Return whether a shell's *observation* reads like a failure (SWE-agent, and InterCode without its flag)."""
    return _SHELL.search(observation[:SHELL_CHARACTERS]) is not None


def starts_with_error(text: str) -> bool:
    """Return whether *text* starts with ``Error``, as tau-bench's environment and many frameworks write it."""
    return text.startswith("Error")


def mcp_client_failed(text: str) -> bool:
    """Return what the last ``isError=…`` in *text* says, else whether the call timed out (LiveMCPBench)."""
    said = _IS_ERROR.findall(text)
    return said[-1] == "True" if said else text.startswith("Tool call timed out")


def error_object(text: str) -> bool:
    """Return whether *text* is a JSON object with an ``error`` that is not empty."""
    value = parsed_object(text)
    return value is not None and bool(value.get("error"))


def service_failed(text: str) -> bool:
    """Return whether a ToolBench service answered with an error object or with one of its known refusals."""
    return error_object(text) or _SERVICE.search(text[:_SERVICE_CHARACTERS]) is not None


def parsed_object(text: str) -> dict[str, Any] | None:
    """Return *text* as a JSON object, or ``None`` when it is none."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
