"""Move an agent's tools from ad-hoc errors to a structured error contract, and prove that it worked.

import changeover

@changeover.tool
def find_order(order_id: str) -> dict: ...

with changeover.session("conv-42"):
    find_order("O-7")
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .config import ConfigurationError
    from .contract import CODES, CONTRACT_VERSION, ContractError, Dialect, Empty, NextAction, ToolError
    from .options import OptionError
    from .runtime import configure, flush
    from .session import Session, SessionError, session
    from .wrap import tool, wrap

__all__ = [
    "CODES",
    "CONTRACT_VERSION",
    "ConfigurationError",
    "ContractError",
    "Dialect",
    "Empty",
    "NextAction",
    "OptionError",
    "Session",
    "SessionError",
    "ToolError",
    "__version__",
    "configure",
    "flush",
    "session",
    "tool",
    "wrap",
]

# Found when first asked for, so that a program that imports one name pays for one module.
_HOMES: Final = {
    "CODES": "contract",
    "CONTRACT_VERSION": "contract",
    "ConfigurationError": "config",
    "ContractError": "contract",
    "Dialect": "contract",
    "Empty": "contract",
    "NextAction": "contract",
    "OptionError": "options",
    "Session": "session",
    "SessionError": "session",
    "ToolError": "contract",
    "configure": "runtime",
    "flush": "runtime",
    "session": "session",
    "tool": "wrap",
    "wrap": "wrap",
}

__version__: str


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version(__name__)
    elif name in _HOMES:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """Two public functions live in modules of their own name; importing the module must not hide the function."""

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and name in _HOMES:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
