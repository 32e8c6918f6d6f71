"""Signatures: turns a person's function into the argument schema that models see and calls are
checked by."""

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.value import dataclass
from agiraph.core.tools.calls.schemas import short_schema, whole_schema
from agiraph.core.tools.own_code import Context, Declaration, Secrets

MOST_ARGUMENTS = 20
LONGEST_DESCRIPTION = 2000
"""The most characters of a tool's description, which every request of its agents contains."""
_CONTEXT = "ctx"
_SECTION = re.compile(r"^(Args|Arguments|Parameters):\s*$")
_OTHER_SECTION = re.compile(r"^(Returns|Raises|Yields|Examples?|Notes?):\s*$")
_ENTRY = re.compile(r"^(\s+)(\*{0,2}\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
_SPHINX = re.compile(r"^\s*:param\s+(?:\w+\s+)?(\w+):\s*(.*)$")
_SPHINX_OTHER = re.compile(r"^\s*:(?:returns?|raises|rtype|type)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """The arguments of a function, and its description."""

    takes_context: bool
    arguments: type[BaseModel]
    schema: dict[str, Any]
    description: str


def takes_context(act: Callable[..., Any]) -> bool:
    """Whether the first parameter of a function, or of a class, is a `Context`: by its type, or
    by the name `ctx` if it has none."""
    parameters = list(inspect.signature(act).parameters.values())
    if not parameters:
        return False
    first = parameters[0]
    annotated = act.__init__ if isinstance(act, type) else act
    hint = inspect.get_annotations(annotated, eval_str=True).get(first.name)
    if isinstance(hint, type):
        return issubclass(hint, Context)
    return hint is None and first.name == _CONTEXT


def bound(declared: Declaration, secrets: Secrets) -> Callable[..., Any]:
    """Return a person's function or class, with a `Context` as its first argument if it takes
    one."""
    if not takes_context(declared.act):
        return declared.act
    return partial(declared.act, Context(declared.name, declared.secrets, secrets))


def signature_of(name: str, act: Callable[..., Any]) -> Signature:
    """Return the signature of a tool's function; raise `Refused` with what is wrong with it."""
    has_context = takes_context(act)
    about, described = _documented(inspect.getdoc(act) or "")
    if not about:
        raise Refused(f"the tool {name!r} has no docstring; say in one what it does and when.")
    if len(about) > LONGEST_DESCRIPTION:
        raise Refused(
            f"the description of the tool {name!r} has {len(about):,} characters; "
            f"{LONGEST_DESCRIPTION:,} are the most."
        )
    parameters = list(inspect.signature(act).parameters.values())[has_context:]
    if len(parameters) > MOST_ARGUMENTS:
        raise Refused(f"the tool {name!r} has more than {MOST_ARGUMENTS} arguments.")
    hints = inspect.get_annotations(act, eval_str=True)
    fields = {one.name: _field(name, one, hints, described) for one in parameters}
    # A misspelt argument must not be ignored: the tool would run with a default that nobody chose.
    config = ConfigDict(extra="forbid", protected_namespaces=(), arbitrary_types_allowed=False)
    try:
        arguments = create_model(name, __config__=config, **fields)
        whole_schema(arguments)
    except PydanticUserError as error:
        why = error.message.partition(". ")[0]
        raise Refused(
            f"the arguments of the tool {name!r} have no JSON schema: {why}. "
            "Use str, int, float, bool, lists, dictionaries, Literal or a pydantic model."
        ) from error
    return Signature(
        takes_context=has_context,
        arguments=arguments,
        schema=short_schema(arguments),
        description=about,
    )


def _field(
    tool: str, parameter: inspect.Parameter, hints: dict[str, Any], described: dict[str, str]
) -> Any:
    where = f"the argument {parameter.name!r} of the tool {tool!r}"
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise Refused(f"{where} takes any number of values; name each argument.")
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise Refused(f"{where} is positional only; remove the / from the signature.")
    if parameter.name.startswith("_"):
        raise Refused(f"{where} begins with an underscore; choose another name.")
    if parameter.name not in hints:
        raise Refused(f"{where} has no type; write {parameter.name}: str or another type.")
    hint = _with_description(hints[parameter.name], described.get(parameter.name, ""))
    return (hint, ... if parameter.default is parameter.empty else parameter.default)


def _with_description(hint: Any, from_docstring: str) -> Any:
    """Return the type with a description: `Annotated[str, "…"]`, or the docstring's."""
    if get_origin(hint) is not Annotated:
        said, base = "", hint
    else:
        base, *more = get_args(hint)
        if any(isinstance(one, FieldInfo) and one.description for one in more):
            return hint
        said, base = next((one for one in more if isinstance(one, str)), ""), hint
    said = " ".join((said or from_docstring).split())
    return Annotated[base, Field(description=said)] if said else hint


def _documented(text: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into the description and those of the arguments, by name."""
    about: list[str] = []
    found: dict[str, str] = {}
    at, name = "about", ""
    for line in text.splitlines():
        if match := _SPHINX.match(line):
            at, name = "argument", match[1]
            found[name] = match[2]
        elif _SPHINX_OTHER.match(line) or _OTHER_SECTION.match(line):
            at = "other"
        elif _SECTION.match(line):
            at, name = "arguments", ""
        elif at == "arguments" and (entry := _ENTRY.match(line)):
            name = entry[2].lstrip("*")
            found[name] = entry[3]
        elif at in ("arguments", "argument") and name and line.startswith((" ", "\t")):
            found[name] = f"{found[name]} {line.strip()}"
        elif at == "about":
            about.append(line)
    parts = "\n".join(about).strip().split("\n\n")
    return "\n".join(" ".join(part.split()) for part in parts if part.strip()), found
