"""Tool: a function that a model may call, with everything the runtime must know of it.

The JSON schema comes from the function's signature, the description from its docstring, and effect
and properties from the `@tool` decorator.
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cached_property, update_wrapper
from typing import Any, Literal, TypedDict, Unpack

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from agiraph.core.domain.chat import ToolCall, ToolSpec
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.provenance.sinks import WayOut
from agiraph.core.domain.tools import Reach, ToolProperties, WorkDecision
from agiraph.core.domain.value import dataclass
from agiraph.core.run_context import RunContext
from agiraph.core.tools.calls.schemas import Schema, short_schema

Effect = Literal["transaction", "repeatable", "once"]
"""What a crash during a call means.

transaction: the tool's rows commit with its answer, so a call happens exactly once.
repeatable: the call is made again.
once: the runtime never makes the call again; it asks the tool what happened (`resolve`), or tells
the model that the call may or may not have happened."""

Known = dict[str, Any]
"""What a `once` tool stores with its intent, so that `resolve` can find out what happened."""

AnyTool = Callable[..., Any]

Foresee = Callable[..., Known]
Resolve = Callable[[RunContext, ToolCall, Known], Awaitable[Answer | None]]
Brings = Callable[..., Awaitable[Label]]
WayOutOf = Callable[[RunContext, ToolCall], Awaitable[WayOut | None]]
Describe = Callable[[RunContext], Done]

CUT_OFF = "Not called: cut off by the output limit; write it in smaller pieces."

WAIT = "wait"
"""The argument by which a call waits for the person who decides on it."""
_NO = frozenset({"", "0", "false", "no", "none", "null"})

NO_TEXT = "\N{REPLACEMENT CHARACTER}"
"""Replaces bytes that are not text, and NUL, which PostgreSQL cannot store."""


class Form:
    """What a tool's calls contain, made at its first use: few tools of a process are ever shown."""

    def __init__(self, make: Callable[[], type[BaseModel]], schema: Schema | None = None) -> None:
        """`schema` is what models are shown; None: all arguments."""
        self._make, self._shown = make, schema
        self._validated: tuple[object, BaseModel] | None = None

    @cached_property
    def arguments(self) -> type[BaseModel]:
        return self._make()

    def validated(self, given: dict[str, Any]) -> BaseModel:
        """Return the validated arguments, or raise `ValidationError`. A call's arguments are wanted
        twice: when its reply is read, and when it is made."""
        known = self._validated
        if known is None or known[0] is not given:
            self._validated = known = (given, self.arguments.model_validate(given))
        return known[1]

    @cached_property
    def schema(self) -> Schema:
        return short_schema(self.arguments) if self._shown is None else self._shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function that a model may call."""

    name: str
    description: str
    form: Form
    effect: Effect
    act: AnyTool
    """The function: `def act(tx, ctx, …)` of a transaction tool, else `async def act(ctx, …)`."""
    foresee: Foresee | None = None
    """Returns what to store with the intent, from the context and the call's arguments."""
    resolve: Resolve | None = None
    """Finds out the answer of a call that a crash cut off; returns None if nobody can know."""
    way_out: WayOutOf | None = None
    """Returns the way out of the thread that a call takes; None for a call that takes none."""
    brings: Brings | None = None
    """Returns the label of what a call of a `once` tool may leave in the thread and its folder,
    from the context and the arguments. It is stored with the intent, before the tool acts."""
    describe: Describe | None = None
    """Returns the answer of `tool_help`, for a tool whose description is untrusted text. Neither
    its spec nor a refusal of a call repeats that text."""
    is_for: Callable[[str], bool] | None = None
    """Whether agents of a role, or specialists of a name, get the tool; None: by its properties."""
    properties: ToolProperties = ToolProperties()
    is_shown: bool = True
    """Whether its agent sees the schema; if not, a refusal of a wrong call contains it."""

    @property
    def arguments(self) -> type[BaseModel]:
        return self.form.arguments

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description=self.description, schema=self.form.schema)

    def read(self, call: ToolCall) -> dict[str, Any]:
        """Return the call's validated arguments; raise `Refused` with what is wrong with them."""
        if call.refusal is not None:
            raise Refused(call.refusal)
        if call.is_cut_off:
            raise Refused(f"{self.name}: {CUT_OFF}")
        if call.malformed is not None:
            raise Refused(self.not_an_object(call.malformed))
        try:
            given = self.form.validated(call.arguments)
        except ValidationError as error:
            raise Refused(f"{self.name}: {_faults(error)}. {self.usage()}") from error
        return {**vars(given)}

    def without_wait(self, given: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """Return the arguments without `wait`, and whether the model wants to wait for a person.

        Every call that a person may have to decide on takes `wait`, which is in no schema. A tool
        with an argument of that name keeps it.
        """
        if WAIT not in given or self.way_out is None or WAIT in self.arguments.model_fields:
            return given, False
        rest = {name: value for name, value in given.items() if name != WAIT}
        return rest, str(given[WAIT]).strip().lower() not in _NO

    def not_an_object(self, text: str) -> str:
        """Return the answer to a call with this text in place of its arguments."""
        return (
            f"The arguments of {self.name} were not a JSON object but: {text[:200]!r}"
            f"{_place_of_fault(text)}. {self.usage()}"
        )

    def usage(self) -> str:
        """Return a sentence with the names of the arguments."""
        if self.describe is not None:
            return f'tool_help(name="{self.name}") shows its arguments.'
        if not self.is_shown:
            schema = orjson.dumps(self.spec.schema).decode()
            return f"Its arguments, as a JSON schema: {schema}"
        required = self.spec.schema.get("required", ())
        names = self.arguments.model_fields
        shown = [name if name in required else f"{name} (optional)" for name in names]
        return f"It takes: {', '.join(shown) or 'nothing'}."


def _place_of_fault(text: str) -> str:
    """Return where a text stops being JSON, if that is not among its first characters."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if error.pos > 100:
            near = text[error.pos - 40 : error.pos + 40]
            return f" (JSON no longer at character {error.pos}, near {near!r})"
    except RecursionError:
        return " (nested too deeply)"
    return ""


def _faults(error: ValidationError) -> str:
    faults: list[str] = []
    for fault in error.errors(include_url=False):
        where = ".".join(str(part) for part in fault["loc"])
        match fault["type"]:
            case "missing":
                faults.append(f"{where!r} is missing")
            case "extra_forbidden":
                faults.append(f"there is no argument {where!r}")
            case "value_error" if not where:
                faults.append(fault["msg"].removeprefix("Value error, "))
            case _:
                faults.append(f"{where!r} is wrong ({fault['msg']})")
    return "; ".join(faults)


class Properties(TypedDict, total=False):
    """The fields of `ToolProperties`, as keywords of `@tool`."""

    roles: frozenset[str]
    in_sight: frozenset[str]
    rare: frozenset[str]
    basic_for: frozenset[str]
    always_granted: bool
    leads: bool
    ends_node: bool
    sets_acceptance: bool
    counts_as_work: bool
    polls: bool
    looks_up: bool
    decides_work: WorkDecision
    runs_commands: bool
    saves: str
    writes_files: bool
    opens_address: bool
    asks_person: bool
    asks_teammate: bool
    delegates: bool
    reads_file: bool
    gives_addresses: bool
    outside: Reach


def tool(
    *,
    effect: Effect = "once",
    description: str = "",
    foresee: Foresee | None = None,
    resolve: Resolve | None = None,
    way_out: WayOutOf | None = None,
    brings: Brings | None = None,
    **properties: Unpack[Properties],
) -> Callable[[AnyTool], Tool]:
    """Make a tool of a function; the keywords say all that the runtime must know of it.

    Its description is the function's docstring, unless one is given.
    """

    def make(act: AnyTool) -> Tool:
        leading = 2 if effect == "transaction" else 1
        act, form = _form_of(act, leading)
        return Tool(
            name=act.__name__,
            description=description or _joined(inspect.getdoc(act) or ""),
            form=form,
            effect=effect,
            act=act,
            foresee=foresee,
            resolve=resolve,
            way_out=way_out,
            brings=brings,
            properties=ToolProperties(**properties),
        )

    return make


def _form_of(act: AnyTool, leading: int) -> tuple[AnyTool, Form]:
    """Return a function that takes a call's arguments by name, and their form.

    They are the parameters after the leading ones, or the fields of the one dataclass that stands
    there.
    """
    parameters = list(inspect.signature(act).parameters.values())[leading:]
    hints = inspect.get_annotations(act, eval_str=True)
    given: Any = hints[parameters[0].name] if len(parameters) == 1 else None
    if not (isinstance(given, type) and is_dataclass(given)):
        defaults = {one.name: one.default for one in parameters}
        return act, Form(lambda: _model(act, hints, defaults, inspect.Parameter.empty))

    def with_record(*before: Any, **named: Any) -> Any:
        return act(*before, given(**named))

    def of_record() -> type[BaseModel]:
        defaults = {one.name: one.default for one in fields(given)}
        return _model(act, inspect.get_annotations(given, eval_str=True), defaults, MISSING)

    return update_wrapper(with_record, act), Form(of_record)


def _model(
    act: AnyTool, hints: Mapping[str, Any], defaults: Mapping[str, Any], absent: Any
) -> type[BaseModel]:
    """Return the model of these arguments; those whose default is `absent` must be given."""
    taken_as: dict[str, Any] = {
        name: (hints[name], ... if default is absent else default)
        for name, default in defaults.items()
    }
    # A misspelt argument must not be ignored: the tool would run with a default that nobody chose.
    config = ConfigDict(extra="forbid")
    return create_model(act.__name__, __config__=config, **taken_as)


def _joined(text: str) -> str:
    """Return the text with each paragraph on one line."""
    return "\n".join(" ".join(part.split("\n")) for part in text.split("\n\n"))
