"""Own tools: builds the tool of a function marked with `agiraph.tool`, for tests."""

from collections.abc import Callable, Mapping
from typing import Any

from agiraph.core.domain.errors import Misconfigured
from agiraph.core.tools.base import Tool
from agiraph.features.extensions.declarations import ToolDeclaration, declaration_of
from agiraph.features.extensions.own_threads import OwnThreads
from agiraph.features.extensions.own_tools import make_tool
from agiraph.redaction import keep


def own_tool(marked: Callable[..., Any], secrets: Mapping[str, str] | None = None) -> Tool:
    """Return the tool that models get from a marked function; raise `Refused` with its fault.

    `secrets` are the values that it is handed by name, as `[secrets]` in agiraph.toml would.
    """
    declared = declaration_of(marked)
    if not isinstance(declared, ToolDeclaration):
        raise TypeError(f"{marked!r} is not a tool; put @tool(…) above it.")
    values = dict(secrets or {})

    def secret(name: str) -> str:
        if name not in values:
            raise Misconfigured(f"There is no secret {name!r}: give it in `secrets`.")
        keep({f"secret {name}": values[name]})
        return values[name]

    return make_tool(declared, secret, OwnThreads())
