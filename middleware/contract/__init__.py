"""The contract between a tool and the agent that calls it: codes, errors, and the shapes they travel in."""

from .codes import CODES, CONTRACT_VERSION, Category, CodeSpec, NextAction
from .dialects import Dialect, envelope, mcp, render, wrap_success
from .empty import Empty
from .error import ContractError, ToolError

__all__ = [
    "CODES",
    "CONTRACT_VERSION",
    "Category",
    "CodeSpec",
    "ContractError",
    "Dialect",
    "Empty",
    "NextAction",
    "ToolError",
    "envelope",
    "mcp",
    "render",
    "wrap_success",
]
