"""Own code: how a person's Python file marks tools, engines, channels and providers, and what it
is handed.

The decorators leave a function or class as it is and only mark it, so that a test can call it
directly. Nothing is registered: what loads such files looks for the marks in those that a person
has enabled.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.tools import Reach
from agiraph.core.domain.value import dataclass

MARK = "__agiraph__"
"""The attribute of a marked function or class that holds its declaration."""
TOOL_TIMEOUT_S = 60.0
ENGINE_TIMEOUT_S = 20.0
CHANNEL_TIMEOUT_S = 30.0
LONGEST_TIMEOUT_S = 3600.0

OwnEffect = Literal["repeatable", "once"]
Kind = Literal["tools", "engines", "channels", "providers"]
KINDS: tuple[Kind, ...] = ("tools", "engines", "channels", "providers")
"""The kinds of extensions: folders of a home, and the ends of the groups of entry points."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declared:
    name: str
    act: Callable[..., Any]
    secrets: tuple[str, ...] = ()
    """The names of the secrets that the code may read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDeclaration(_Declared):
    """A function that models may call."""

    touches: Reach
    effect: OwnEffect
    timeout_s: float = TOOL_TIMEOUT_S
    roles: tuple[str, ...] = ("coordinator", "worker")
    is_shown: bool = True
    """Whether each request contains it; if not, agents find it by its name and call it on
    demand."""

    kind: Kind = "tools"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDeclaration(_Declared):
    """A function `(query, limit)` that searches and returns hits."""

    timeout_s: float = ENGINE_TIMEOUT_S
    usd_per_1000: float = 0.0
    """Dollars for a thousand searches."""

    kind: Kind = "engines"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelDeclaration(_Declared):
    """A function `(message)` that sends a message to a person, or a class of a channel."""

    timeout_s: float = CHANNEL_TIMEOUT_S

    kind: Kind = "channels"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderDeclaration(_Declared):
    """A function `(model)` that returns an object with the method `reply`."""

    kind: Kind = "providers"


Declaration = ToolDeclaration | EngineDeclaration | ChannelDeclaration | ProviderDeclaration


def tool(
    *,
    touches: Reach = "sends",
    effect: OwnEffect | None = None,
    secrets: Sequence[str] = (),
    timeout_s: float = TOOL_TIMEOUT_S,
    roles: Sequence[str] = ("coordinator", "worker"),
    shown: bool = True,
    name: str = "",
) -> Callable[[T], T]:
    """Mark a function, sync or async, as a tool for models.

    `touches` says what a call does outside of the team: nothing; it reads, changes or sends. If an
    agent has read untrusted text, a person must approve a call that sends, and a call that changes
    unless the team's trust is open. `effect` says what happens after a crash: a `repeatable` call
    is made again, one that is `once` never is. By default, calls that change or send are `once`.
    """
    kept: OwnEffect = "once" if touches in ("changes", "sends") else "repeatable"

    return _marker(
        ToolDeclaration,
        name,
        secrets,
        touches=touches,
        effect=effect or kept,
        timeout_s=timeout_s,
        roles=tuple(roles),
        is_shown=shown,
    )


def engine(
    name: str = "",
    *,
    secrets: Sequence[str] = (),
    timeout_s: float = ENGINE_TIMEOUT_S,
    usd_per_1000: float = 0.0,
) -> Callable[[T], T]:
    """Mark a function `(query: str, limit: int)`, sync or async, as a search engine.

    It returns a list of `Hit`. `[search] provider = "own:NAME"` in agiraph.toml selects it.
    """
    return _marker(EngineDeclaration, name, secrets, timeout_s=timeout_s, usd_per_1000=usd_per_1000)


def channel(
    name: str = "", *, secrets: Sequence[str] = (), timeout_s: float = CHANNEL_TIMEOUT_S
) -> Callable[[T], T]:
    """Mark a function `(message: OutgoingMessage)`, sync or async, as a channel to a person.

    It raises an error if the message was not taken; it is sent again later then. A class has the
    method `send(message)`, and to receive also `receive(cursor, paired)`,
    `edit(message, receipt)` and `acknowledge(incoming, notice)`.
    `[channels.X] type = "own:NAME"` in agiraph.toml selects it.
    """
    return _marker(ChannelDeclaration, name, secrets, timeout_s=timeout_s)


def provider(name: str = "", *, secrets: Sequence[str] = ()) -> Callable[[T], T]:
    """Mark a function or class `(model: str)` as a provider of models.

    It returns an object with `async def reply(request, on_delta=None) -> Reply`. Models named
    `NAME/…` are then asked of it.
    """
    return _marker(ProviderDeclaration, name, secrets)


def declaration_of(marked: object) -> Declaration | None:
    """Return what a function or class was declared as; None if it has no mark of its own."""
    # Not `getattr`: a class must not inherit the mark, and objects of others may run code for it.
    try:
        found = object.__getattribute__(marked, "__dict__").get(MARK)
    except (AttributeError, TypeError):
        return None
    return found if isinstance(found, Declaration) else None


def _marker(
    make: Callable[..., Declaration], name: str, secrets: Sequence[str], **more: Any
) -> Callable[[T], T]:
    """Return the decorator that marks a function or class with its declaration."""

    def mark(act: T) -> T:
        if not callable(act):
            raise TypeError(f"{act!r} is not a function; put the decorator above a function.")
        called = name or str(getattr(act, "__name__", ""))
        setattr(act, MARK, make(name=called, act=act, secrets=tuple(secrets), **more))
        return act

    return mark


Secrets = Callable[[str], str]
"""Returns the value of a secret by its name."""


class CommandOutput(NamedTuple):
    """The result of a command that a tool ran."""

    exit_code: int | None
    """None if the command did not end by itself, such as after its time limit."""
    output: str
    """Standard output and error, in the order in which they were written."""


class Context:
    """Given to an extension's code; returns the secrets that the extension declares."""

    def __init__(self, name: str, secrets: tuple[str, ...], get: Secrets) -> None:
        self._name = name
        self._secrets = secrets
        self._get = get

    def secret(self, name: str) -> str:
        """Return the value of a secret that the declaration names.

        agiraph.toml's `[secrets]` says where it is, or a person has entered it. It is kept out of
        logs, threads and answers.
        """
        if name not in self._secrets:
            raise Refused(
                f"{self._name!r} may not read the secret {name!r}: its declaration does not name "
                f'it. Write secrets=["{name}"] into its decorator.'
            )
        return self._get(name)


Run = Callable[[str, float], CommandOutput]


class ToolContext(Context):
    """Given to a tool for one call, as its first argument, if the tool's signature asks for it."""

    def __init__(
        self,
        name: str,
        secrets: tuple[str, ...],
        get: Secrets,
        *,
        team: str = "",
        agent: str = "",
        call_id: str = "",
        run: Run | None = None,
    ) -> None:
        super().__init__(name, secrets, get)
        self.team: str = team
        """The name of the team that the calling agent is on."""
        self.agent: str = agent
        """The name of the calling agent."""
        self.call_id: str = call_id
        """The same for a call that is made again after a crash: an idempotency key."""
        self._run = run

    def run(self, command: str, *, timeout_s: float = 60.0) -> CommandOutput:
        """Run a shell command in the agent's sandbox and wait for its end.

        It sees the agent's scratch folder, which is its working folder, and has no network.
        """
        if self._run is None:
            raise Refused("There is no sandbox here to run commands in.")
        return self._run(command, timeout_s)
