"""Importing: runs the code of an enabled extension and returns what it declares.

A file is compiled from the very bytes that were hashed, not read again. Whatever the code does, it
does in a thread of its own with a time limit, so that a fault in it stops nothing else.
"""

import sys
from types import ModuleType
from typing import Any

from agiraph.domain.errors import Refused
from agiraph.extensions.declarations import Declaration, declaration_of
from agiraph.extensions.finding import Found
from agiraph.extensions.own_threads import OwnThreads, Raised, TookTooLong
from agiraph.extensions.results import error_text

TIMEOUT_S = 10.0
MOST_DECLARATIONS = 50


async def import_declared(
    found: Found, threads: OwnThreads, *, timeout_s: float = TIMEOUT_S
) -> tuple[Declaration, ...]:
    """Import an extension that a person has enabled; raise `Refused` with its fault."""
    try:
        declared: list[Declaration] = await threads.call(
            f"import of {found.id}", lambda: _import(found), timeout_s=timeout_s
        )
    except Raised as raised:
        raise Refused(_fault(raised.error)) from raised.error
    except TookTooLong:
        raise Refused(f"it was still importing after {timeout_s:g} seconds.") from None
    if not declared:
        raise Refused(
            f"it declares nothing for {found.kind}; mark a function with "
            f"@{found.kind.removesuffix('s')}(…)."
        )
    if len(declared) > MOST_DECLARATIONS:
        raise Refused(f"it declares more than {MOST_DECLARATIONS} things; split it.")
    return tuple(declared)


def _import(found: Found) -> list[Declaration]:
    if found.entry_point is not None:
        loaded: Any = found.entry_point.load()
    else:
        loaded = _module(found)
    if isinstance(loaded, ModuleType):
        marked: list[Any] = list(vars(loaded).values())
    else:
        marked = [loaded]
    declared = {id(one): one for one in map(declaration_of, marked) if one is not None}
    return [one for one in declared.values() if one.kind == found.kind]


def _module(found: Found) -> ModuleType:
    """Return the module of a file, made from the bytes that were hashed."""
    stem = found.id.rpartition("/")[2].removesuffix(".py")
    name = f"agiraph_own.{found.kind}.{stem}_{found.sha256[:8]}"
    module = ModuleType(name)
    module.__file__ = found.id
    code = compile(found.data, found.id, "exec", dont_inherit=True)
    # Registered under its name before it runs: dataclasses and pydantic look their module up.
    sys.modules[name] = module
    try:
        exec(code, vars(module))
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _fault(error: BaseException) -> str:
    match error:
        case SyntaxError():
            return f"it is not valid Python: {error.msg} (line {error.lineno})."
        case SystemExit():
            return "it ends the program while it is imported (SystemExit)."
        case ImportError():
            return f"it cannot be imported: {error_text(error)}. Install what it needs."
        case _:
            return f"it fails while it is imported: {error_text(error)}."
