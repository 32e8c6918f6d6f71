"""MCP toolbox: the tools of MCP servers as tools of an agent.

The prompt names the servers alone, `mcp__NAME`. That tool lists what a server has, and reads its
resources and prompts. A tool of a server is called as `mcp__NAME__TOOL`. Its description and its
arguments are untrusted text: `tool_help` shows them, inside a fence.
"""

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import orjson
from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from agiraph.core.domain.agents import Team
from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.errors import AgiraphError, Refused
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.provenance.labels import CLEAN, Label, of_mcp
from agiraph.core.domain.provenance.sinks import WayOut
from agiraph.core.domain.text.fence import enclose_foreign
from agiraph.core.domain.tools import ON_DEMAND, Reach, ToolProperties
from agiraph.core.domain.value import dataclass
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.parts import Installation, Part
from agiraph.core.services.mail.bus import report_once
from agiraph.core.tools.base import NO_TEXT, WAIT, Form, Tool, tool
from agiraph.core.tools.calls.added import leaving
from agiraph.faultpoints import fault
from agiraph.features.mcp import pins
from agiraph.features.mcp.pins import PinnedTool, Pins
from agiraph.features.mcp.servers import McpServers
from agiraph.features.mcp.settings import McpServer

if TYPE_CHECKING:
    from mcp import Client


DEEPEST = 16
"""Levels of a schema that are checked."""
MOST_NAMED = 10
_KEPT = frozenset(
    {"type", "enum", "const", "required", "dependentRequired", "minLength", "maxLength"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minItems", "maxItems", "minProperties", "maxProperties"}
)
"""Keywords that take no schema and whose check is quick."""


def form_of(name: str, schema: Mapping[str, Any]) -> type[BaseModel]:
    """Return a pydantic class that accepts the arguments that the schema allows.

    Its error messages are agiraph's own, because the server wrote the texts in the schema.
    """
    properties = schema.get("properties")
    order = list(cast(dict[str, Any], properties)) if isinstance(properties, dict) else []

    class Arguments(BaseModel):
        model_config = ConfigDict(extra="allow")

        @model_validator(mode="before")
        @classmethod
        def check(cls, given: Any) -> Any:
            if fault := fault_in(schema, cast(dict[str, Any], given)):
                raise ValueError(fault)
            return given

        def model_post_init(self, context: Any, /) -> None:
            # `Tool.read` takes the attributes. A rule of the team looks at the first of them, in
            # the order of the schema.
            own = vars(self)
            if own.get(WAIT, ...) is None:
                del own[WAIT]
            every = {**own, **(self.__pydantic_extra__ or {})}
            own.clear()
            own.update({key: every[key] for key in order if key in every})
            own.update(every)

        @classmethod
        def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
            return dict(schema)

    if WAIT not in order:
        return Arguments
    # An argument of this name belongs to the server's tool, not to the runtime.
    return create_model(name, __base__=Arguments, **{WAIT: (Any, None)})  # pyright: ignore


def fault_in(schema: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """Return what is wrong with the arguments; empty if nothing is wrong, or if the schema is
    invalid."""
    from jsonschema import Draft202012Validator
    from referencing import Registry

    try:
        # An empty registry never fetches the address that a schema names.
        checker: Any = Draft202012Validator(checkable(schema), registry=Registry())
        faults: list[Any] = sorted(checker.iter_errors(given), key=lambda e: len(e.path))
    except Exception:  # an invalid schema: the server checks the arguments
        return ""
    if not faults:
        return ""
    first = faults[0]
    where = ".".join(str(part) for part in first.absolute_path if _is_plain(part))
    inside = f" in {where!r}" if where else ""
    if first.validator == "required":
        missing = [one for one in first.validator_value if one not in (first.instance or {})]
        named = ", ".join([repr(one) for one in missing if _is_plain(one)][:MOST_NAMED])
        return f"{named or 'an argument'} is missing{inside}"
    if first.validator == "additionalProperties":
        return f"there is an argument that the tool does not know{inside}"
    return f"{where or 'an argument'!r} does not fit the schema ({first.validator})"


def checkable(schema: Any, depth: int = 0) -> Any:
    """Return the part of a server's schema that is checked here. It accepts whatever the schema
    accepts, and more.

    A regular expression or a reference that a server chose could keep the runtime busy without
    end, so they are left out; the server checks its arguments itself. So is each keyword under
    which a weaker schema would accept less (`not`, `if`).
    """
    if not isinstance(schema, dict):
        return schema if isinstance(schema, bool) else True
    if depth > DEEPEST:
        return True
    given = cast(dict[str, Any], schema)
    made = {key: value for key, value in given.items() if key in _KEPT}
    if isinstance(properties := given.get("properties"), dict):
        named = cast(dict[str, Any], properties)
        made["properties"] = {name: checkable(one, depth + 1) for name, one in named.items()}
    for key in ("items", "additionalProperties"):
        if key in given:
            made[key] = checkable(given[key], depth + 1)
    if "patternProperties" in given:
        made.pop("additionalProperties", None)
    for key in ("prefixItems", "allOf", "anyOf"):
        if isinstance(given.get(key), list):
            made[key] = [checkable(one, depth + 1) for one in given[key]]
    if isinstance(given.get("oneOf"), list):
        # Two schemas may both fit once they are weaker.
        any_of = {"anyOf": [checkable(one, depth + 1) for one in given["oneOf"]]}
        made["allOf"] = [*made.get("allOf", ()), any_of]
    return made


def is_plain_name(name: object) -> bool:
    """Whether a name that a server chose may stand in a sentence of ours."""
    if not isinstance(name, str) or len(name) > 40:
        return False
    return name.isascii() and name.replace("-", "_").isidentifier()


def _is_plain(part: object) -> bool:
    return isinstance(part, int) or is_plain_name(part)


log: logging.Logger = logging.getLogger("agiraph.mcp")

PREFIX = "mcp__"
MOST_CHARACTERS = 64
"""The longest name of a tool that vendors take."""
OFF = (
    "The server has changed this tool since a person accepted it, so it is off. Do it another way; "
    "a person confirms the change with `agiraph mcp confirm {server}`."
)
LONGEST = 200_000
"""Characters of one answer; more is cut. The runtime writes a long answer to a file."""
_NO_WORD = re.compile(r"[^A-Za-z0-9_-]")


def tool_name(server: str, tool: str) -> str:
    """Return the name under which agents call a tool of a server. One that had to be changed ends
    with a hash, so that `a.b` and `a_b` are two tools."""
    plain = _NO_WORD.sub("_", tool)
    name = f"{PREFIX}{server}__{plain}"
    if plain == tool and len(name) <= MOST_CHARACTERS:
        return name
    return f"{name[: MOST_CHARACTERS - 9]}_{hashlib.sha256(tool.encode()).hexdigest()[:8]}"


class McpTools(Part):
    """The source of the tools of MCP servers."""

    def __init__(self, servers: McpServers) -> None:
        self.servers: McpServers = servers
        self._made: dict[str, tuple[McpServer, Pins | None, tuple[Tool, ...]]] = {}

    async def start(self) -> None:
        self.servers.start()

    async def stop(self) -> None:
        await self.servers.close()

    async def offered(self, team: Team) -> tuple[Tool, ...]:
        """Return the tools of the team's servers; the same objects while nothing changes."""
        found: list[Tool] = []
        for name, server in self.servers.servers.items():
            if server.fault or not server.serves(team.id, team.name):
                continue
            try:
                known = self.servers.pins(name)
            except AgiraphError as error:
                log.warning("%s", error)
                continue
            if pins.unconfirmed(server, known):
                continue
            made = self._made.get(name)
            if made is None or made[0] is not server or made[1] is not known:
                made = self._made[name] = (server, known, self._make(server, known))
            found += made[2]
        return tuple(found)

    def _make(self, server: McpServer, known: Pins | None) -> tuple[Tool, ...]:
        of_server = _OfServer(self.servers, server)
        tools = () if known is None else known.tools.values()
        # Of two tools that come to the same name, however a server did that, none is offered.
        names = Counter(tool_name(server.name, one.name) for one in tools)
        named = [(tool_name(server.name, one.name), one) for one in tools]
        found = (of_server.tool(name, one) for name, one in named if names[name] == 1)
        return (of_server.server_tool(known), *found)


async def open_part(given: Installation) -> McpTools:
    """Return the tools of the servers that the settings name; none is started."""
    named = given.settings.get("mcp", {})
    return McpTools(McpServers(named, given.home, given.rules, given.web, given.secrets))


@dataclass(frozen=True, slots=True)
class _OfServer:
    """Makes the tools of one server."""

    servers: McpServers
    server: McpServer

    def label(self, ctx: RunContext) -> Label:
        return of_mcp(self.server.name).without(ctx.trusted)

    def tool(self, called: str, pinned: PinnedTool) -> Tool:
        """Return a tool of the server. Its spec does not hold the server's description, because
        specs get into prompts and the description is untrusted text."""
        reach = self.server.reach_of(pinned.name)

        async def act(ctx: RunContext, /, **given: Any) -> Answer:
            return await self._call(ctx, pinned, given)

        made = Tool(
            name=called,
            description=f"A tool of the MCP server {self.server.name}.",
            form=Form(lambda: form_of(called, pinned.schema), {"type": "object", "properties": {}}),
            effect="repeatable" if reach == "reads" else "once",
            act=act,
            describe=lambda ctx: self._describe(ctx, called, pinned),
            is_for=lambda role: self.server.allows(pinned.name, role),
            properties=ToolProperties(
                in_sight=ON_DEMAND, outside=reach, listed_by=f"{PREFIX}{self.server.name}"
            ),
        )
        return leaving(made, reach)

    def server_tool(self, known: Pins | None) -> Tool:
        """Return the tool that lists what the server offers, for roles that may call at least one
        tool of it."""
        names = ("",) if known is None or not known.tools else tuple(known.tools)

        def is_for(role: str) -> bool:
            return any(self.server.allows(one, role) for one in names)

        async def look(
            ctx: RunContext,
            show: Literal["tools", "resources", "prompts"] = "tools",
            resource: Annotated[str, Field(description="Address of a resource to read")] = "",
            prompt: Annotated[str, Field(description="Name of a prompt to read")] = "",
            arguments: dict[str, str] | None = None,
        ) -> Answer:
            return await self._look(ctx, show, resource, prompt, arguments or {})

        name = self.server.name
        made = tool(
            effect="repeatable",
            description=f"List the tools, resources or prompts of the MCP server {name}, or read a "
            "resource or a prompt of it. Call its tools with call_tool.",
            in_sight=ON_DEMAND,
            counts_as_work=False,
            outside="reads",
        )(look)
        return self._leaving(replace(made, name=f"{PREFIX}{name}", is_for=is_for))

    def _leaving(self, made: Tool) -> Tool:
        """Return the server's tool with its way out. A list tells the server nothing; the address
        of a resource and the arguments of a prompt are words of the model, so they send unless a
        person declared "resource:*" or "prompt:*"."""

        async def way_out(ctx: RunContext, call: ToolCall) -> WayOut | None:
            given = call.arguments
            reaches: set[Reach] = {
                self.server.reach_of_reading(key, str(given[key]))
                for key in _READ
                if given.get(key)
            }
            if {key for key, value in call.arguments.items() if value} - _LOOKS:
                reaches.add("sends")  # a misspelt argument is taken for the one that was meant
            reach: Reach = "changes" if "changes" in reaches else "reads"
            reach = "sends" if "sends" in reaches else reach
            found = leaving(made, reach).way_out
            return None if found is None else await found(ctx, call)

        return replace(made, way_out=way_out)

    async def _call(self, ctx: RunContext, pinned: PinnedTool, given: dict[str, Any]) -> Answer:
        from mcp import MCPError

        connection = self.servers.connection(self.server.name)

        async def make(client: "Client") -> Any:
            # After the server has started, which compares its tools with the accepted ones.
            known = self.servers.pins(self.server.name)
            if known is None or known.usable.get(pinned.name) != pinned:
                raise Refused(OFF.format(server=self.server.name))
            fault("fx:before:mcp")
            result = await client.call_tool(pinned.name, given)
            fault("fx:after:mcp")
            return result

        try:
            result = await connection.use(make)
        except Refused:
            await self._tell(ctx)
            raise
        except MCPError as error:
            return Done(bounded(error.message), failed=True, label=self.label(ctx))
        return Done(text_of(result), failed=bool(result.is_error), label=self.label(ctx))

    async def _tell(self, ctx: RunContext) -> None:
        """Put what is to be confirmed into the person's inbox, if it is not there yet."""
        known = self.servers.pins(self.server.name)
        if known is not None and known.changes:
            notice = pins.notice_of(self.server.name, known)
            await ctx.store.write(report_once, ctx.node, [notice])

    async def _look(
        self, ctx: RunContext, show: str, resource: str, prompt: str, arguments: dict[str, str]
    ) -> Answer:
        if not resource and not prompt and show == "tools":
            return await self._list_tools(ctx)
        from mcp import MCPError

        async def ask(client: "Client") -> str:
            if resource:
                return resource_text(await client.read_resource(resource))
            if prompt:
                return prompt_text(await client.get_prompt(prompt, arguments))
            if show == "resources":
                return listed((await client.list_resources()).resources, key="uri")
            return listed((await client.list_prompts()).prompts, key="name")

        try:
            text = await self.servers.connection(self.server.name).use(ask)
        except MCPError as error:
            return Done(bounded(error.message), failed=True, label=self.label(ctx))
        return Done(text, label=self.label(ctx))

    async def _list_tools(self, ctx: RunContext) -> Answer:
        known = self.servers.pins(self.server.name)
        if known is None or known.is_unasked:
            known = await self.servers.look(self.server.name)
        usable = {
            tool_name(self.server.name, name): pinned
            for name, pinned in known.usable.items()
            if self.server.allows(name, ctx.agent.role)
        }
        lines = [f"- {called}: {pinned.summary}" for called, pinned in usable.items()]
        if not lines:
            return Done(f"The MCP server {self.server.name!r} has no tool that you may call.")
        return self._fenced(ctx, "\n".join(lines), known, after=_HOW)

    def _describe(self, ctx: RunContext, called: str, pinned: PinnedTool) -> Done:
        known = self.servers.pins(self.server.name)
        if known is None or known.usable.get(pinned.name) != pinned:
            return Done(OFF.format(server=self.server.name), failed=True)
        schema = orjson.dumps(cast(dict[str, Any], pinned.schema)).decode()
        text = f"{pinned.description}\nArguments, as a JSON schema: {schema}"
        required = cast(object, pinned.schema.get("required"))
        names = cast(list[object], required) if isinstance(required, list) else []
        plain = [one for one in names if is_plain_name(one)][:MOST_NAMED]
        shown = ", ".join(f'"{one}": …' for one in plain)
        after = f'Call it with call_tool(name="{called}", arguments={{{shown}}}).'
        return self._fenced(ctx, text, known, after=after)

    def _fenced(self, ctx: RunContext, text: str, known: Pins, *, after: str) -> Done:
        """Return a description inside a fence. One that a person has seen and accepted does not
        label the thread; the pins make sure that it is the same."""
        source = f"the MCP server {self.server.name}"
        fenced = enclose_foreign(bounded(text), thread=ctx.lease.thread_id, source=source)
        label = CLEAN if known.is_seen else self.label(ctx)
        return Done(f"{fenced}\n{after}", label=label, is_fenced=True)


_READ: tuple[Literal["resource", "prompt"], ...] = ("resource", "prompt")
_LOOKS = {"show", "resource", "prompt", "arguments", WAIT}
_HOW = "tool_help(name=…) shows the arguments of one, call_tool(name=…, arguments={…}) calls it."


def text_of(result: Any) -> str:
    """Return the answer of a tool call as text. `result` is the SDK's `CallToolResult`."""
    parts = [_block(block) for block in result.content]
    structured = getattr(result, "structured_content", None)
    # The specification asks servers to repeat structured content as text; some do not.
    if structured is not None and not any(part.strip() for part in parts):
        parts = [orjson.dumps(structured, option=orjson.OPT_INDENT_2).decode()]
    return bounded("\n".join(parts)) or "(an empty answer)"


def resource_text(result: Any) -> str:
    """Return the contents of a resource as text. `result` is the SDK's `ReadResourceResult`."""
    return bounded("\n".join(_contents(one) for one in result.contents)) or "(an empty resource)"


def prompt_text(result: Any) -> str:
    """Return the messages of a prompt as text. `result` is the SDK's `GetPromptResult`."""
    said = (f"{message.role}: {_block(message.content)}" for message in result.messages)
    return bounded("\n\n".join(said)) or "(an empty prompt)"


def listed(things: Iterable[Any], *, key: str) -> str:
    """Return one line for each resource or prompt: its address or name, and what it is."""
    lines: list[str] = []
    for thing in things:
        about = " ".join(str(getattr(thing, "description", "") or thing.name or "").split())
        lines.append(f"- {getattr(thing, key)}: {about[:200]}")
    return bounded("\n".join(lines)) or "(none)"


def bounded(text: str) -> str:
    """Return the text, cut if it is too long."""
    text = text.replace("\0", NO_TEXT)
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}\n… {len(text) - LONGEST:,} more characters were left out."


def _block(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            return f"({block.type}, {block.mime_type}, {_size(block.data)} bytes: not shown)"
        case "resource":
            return _contents(block.resource)
        case "resource_link":
            return f"(resource {block.uri}: read it as a resource of this server)"
        case _:
            return f"({block.type}: not shown)"


def _contents(contents: Any) -> str:
    if (text := getattr(contents, "text", None)) is not None:
        return str(text)
    return f"({contents.uri}, {contents.mime_type}, {_size(contents.blob)} bytes: not shown)"


def _size(encoded: str) -> int:
    return len(encoded) * 3 // 4
