"""Loading: the extensions that a person has enabled, imported and ready for the runtime.

A file is compiled from the very bytes that were hashed, not read again. Whatever its code does, it
does in a thread of its own with a time limit, so that a fault in it stops nothing else.

Files and consents are looked at again at the beginning of each run: an extension that is enabled,
disabled or changed while the runtime works counts from the next run on.
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from agiraph.config import Settings
from agiraph.core.domain.agents import Team
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.messages import Notice
from agiraph.core.domain.records.channels import Channel, WantedChannel
from agiraph.core.domain.records.skills import Skill
from agiraph.core.domain.tools import ON_DEMAND
from agiraph.core.domain.value import dataclass
from agiraph.core.home.layout import Home
from agiraph.core.home.named_secrets import NamedSecrets
from agiraph.core.runtime.parts import Installation, Part
from agiraph.core.tools.base import Tool
from agiraph.core.tools.calls.on_demand import description
from agiraph.core.tools.own_code import (
    KINDS,
    ChannelDeclaration,
    Declaration,
    EngineDeclaration,
    Kind,
    ProviderDeclaration,
    ToolDeclaration,
    declaration_of,
)
from agiraph.features.extensions import pinned
from agiraph.features.extensions.configured import ToolRule
from agiraph.features.extensions.finding import (
    PACKAGE,
    ExtensionStatus,
    Found,
    find,
    find_one,
    status,
)
from agiraph.features.extensions.own_services import (
    OwnEngine,
    OwnProvider,
    check_engine,
    check_provider,
    make_channel,
)
from agiraph.features.extensions.own_threads import OwnThreads, Raised, TookTooLong, error_text
from agiraph.features.extensions.own_tools import check_timeout, make_tool
from agiraph.features.extensions.pinned import Consents, Notices
from agiraph.features.extensions.skills import Skills
from agiraph.models.registry import ModelFactory

log: logging.Logger = logging.getLogger("agiraph.features.extensions")

TIMEOUT_S = 10.0
MOST_DECLARATIONS = 50
MOST_SHOWN, SHOWN_CHARACTERS = 8, 4000
"""The most own tools that every request of an agent contains, and the most characters of their
descriptions and schemas. Further tools, in the order of their names, are called on demand."""

_Stamp = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Imported:
    """An extension whose code has run, or failed to."""

    sha256: str
    declared: tuple[Declaration, ...] = ()
    tools: tuple[Tool, ...] = ()
    problem: str = ""


@dataclass(slots=True, kw_only=True)
class Extensions(Part):
    """The enabled extensions and skills of a home; a source of tools."""

    home: Home
    secrets: NamedSecrets = field(default_factory=NamedSecrets)
    rules: Mapping[str, ToolRule] = field(default_factory=dict[str, ToolRule])
    import_timeout_s: float = TIMEOUT_S
    threads: OwnThreads = field(default_factory=OwnThreads)
    statuses: tuple[ExtensionStatus, ...] = ()
    problem: str = ""
    """Why `consents.json` could not be read; empty if it could."""
    notices: Notices = field(default_factory=Notices)
    declared: dict[tuple[Kind, str], Declaration] = field(
        default_factory=dict[tuple[Kind, str], Declaration]
    )
    """What the extensions that are on declare, by kind and name."""
    _imported: dict[str, _Imported] = field(default_factory=dict[str, _Imported])
    _tools: tuple[Tool, ...] = ()
    _stamp: _Stamp = ()
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _skills: Skills = field(init=False)
    _consents: Path = field(init=False)
    _folders: tuple[Path, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._skills = Skills(home=self.home, notices=self.notices)
        self._consents = self.home.path / pinned.FILE
        self._folders = tuple(self.home.path / kind for kind in KINDS)

    async def skills(self, team: Team) -> tuple[Skill, ...]:
        """Return the skills that a person has enabled for a team."""
        return await self._skills.offered(team)

    @property
    def providers(self) -> Mapping[str, ModelFactory]:
        """Return the own providers of models by name."""
        return {
            declared.name: OwnProvider(declared=declared, secrets=self.secrets.get)
            for declared in self.declared.values()
            if isinstance(declared, ProviderDeclaration)
        }

    def engine(self, name: str) -> OwnEngine | None:
        """Return the search engine that an enabled file declares by this name."""
        declared = self.declared.get(("engines", name))
        if not isinstance(declared, EngineDeclaration):
            return None
        return OwnEngine(declared=declared, secrets=self.secrets.get, threads=self.threads)

    def channel(self, wanted: WantedChannel) -> Channel | None:
        """Return the channel that an enabled file declares by this name."""
        declared = self.declared.get(("channels", wanted.own_name))
        if not isinstance(declared, ChannelDeclaration):
            return None
        return make_channel(wanted, declared, self.secrets.get, self.threads)

    def tool(self, marked: Callable[..., Any]) -> Tool | None:
        """Return the tool of a function that `agiraph.tool` has marked; raise `Refused` with its
        fault."""
        declared = declaration_of(marked)
        if not isinstance(declared, ToolDeclaration):
            return None
        return make_tool(declared, self.secrets.get, self.threads)

    def take_notices(self) -> list[Notice]:
        """Return and clear what the person is to be told of what is off now."""
        return self.notices.take()

    async def offered(self, team: Team) -> tuple[Tool, ...]:
        """Return the own tools that this team's agents may be given."""
        await self.refresh()
        return tuple(tool for tool in self._tools if self._rule(tool.name).is_for(team))

    async def refresh(self) -> None:
        """Import the extensions that a person has enabled since the last call, and drop those that
        are off."""
        if self._look() == self._stamp:
            return
        async with self._lock:
            # Taken before the files are read, so that a later change is noticed by the next call.
            stamp = self._look()
            if stamp == self._stamp:
                return
            consents = pinned.read(self.home)
            # Listing packages is slow, so it is done only if a person has enabled one.
            has_packages = any(one.startswith(PACKAGE) for one in consents.enabled)
            found = await asyncio.to_thread(find, self.home, packages=has_packages)
            await self._take(found, consents)
            self._stamp = stamp

    async def listed(self) -> list[ExtensionStatus]:
        """Return the status of every extension, including packages that nobody has enabled."""
        await self.refresh()
        known = {one.id for one in self.statuses}
        found = await asyncio.to_thread(find, self.home)
        more = [status(one, state="off") for one in found if one.id not in known]
        return [*self.statuses, *more]

    async def enable(self, identity: str, *, sha256: str = "", at: datetime) -> ExtensionStatus:
        """Enable an extension as a person wants it; raise `Refused` if it cannot be used.

        `sha256` is the hash that the person has seen. The code is imported before the consent is
        written: a file that fails, or that ends the process, is not enabled.
        """
        await self.refresh()
        found = await asyncio.to_thread(find_one, self.home, identity)
        identity = found.id
        found.check(sha256)
        imported = await self._imported_once(found)
        is_on = any(one.id == identity and one.state == "on" for one in self.statuses)
        if fault := imported.problem or ("" if is_on else self._clash(imported)):
            raise Refused(f"{identity} was not enabled: {fault}")
        self._imported[identity] = imported
        await asyncio.to_thread(pinned.keep_copy, self.home, found)
        await asyncio.to_thread(pinned.enable, self.home, identity, found.sha256, at=at)
        await self.refresh()
        return next(one for one in self.statuses if one.id == identity)

    async def disable(self, identity: str) -> None:
        """Remove the consent to an extension; raise `Refused` if there was none."""
        await asyncio.to_thread(pinned.disable, self.home, identity)
        await self.refresh()

    def _look(self) -> _Stamp:
        """Return a value that changes whenever the consents or the files do. It costs a few stat
        calls."""
        files: list[object] = [pinned.stamp(self._consents)]
        for folder in self._folders:
            try:
                names = sorted(path for path in folder.iterdir() if path.suffix == ".py")
            except OSError:
                continue
            files += [(name, pinned.stamp(name)) for name in names]
        return tuple(files)

    async def _take(self, found: list[Found], consents: Consents) -> None:
        enabled = [one for one in found if consents.allows(one)]
        made = await asyncio.gather(*(self._imported_once(one) for one in enabled))
        self._imported = {one.id: part for one, part in zip(enabled, made, strict=True)}
        self.problem = consents.problem
        self.declared.clear()
        self.statuses = tuple(self._status(one, consents) for one in found)
        self._tools = self._ordered()
        for one in self.statuses:
            if one.state in ("changed", "faulty"):
                self.notices.add(one, command="tools")
                log.warning("%s is off: %s", one.id, one.summary)

    async def _imported_once(self, found: Found) -> _Imported:
        known = self._imported.get(found.id)
        if known is not None and known.sha256 == found.sha256 and not known.problem:
            return known
        try:
            declared = await import_declared(found, self.threads, timeout_s=self.import_timeout_s)
            tools = await self._made(found, declared)
        except Refused as fault:
            return _Imported(sha256=found.sha256, problem=str(fault))
        return _Imported(sha256=found.sha256, declared=declared, tools=tools)

    async def _made(self, found: Found, declared: tuple[Declaration, ...]) -> tuple[Tool, ...]:
        """Check the declarations of a file and return its tools. This runs in a thread with a time
        limit, because type hints may run the file's code."""

        def make() -> tuple[Tool, ...]:
            made = (self._checked(one) for one in declared)
            return tuple(tool for tool in made if tool is not None)

        try:
            return await self.threads.call(
                f"check of {found.id}", make, timeout_s=self.import_timeout_s
            )
        except Raised as raised:
            error = raised.error
            said = str(error) if isinstance(error, Refused) else f"{error_text(error)}."
            raise Refused(said) from error
        except TookTooLong:
            raise Refused("its type hints take too long to read.") from None

    def _checked(self, declared: Declaration) -> Tool | None:
        match declared:
            case ToolDeclaration():
                return make_tool(declared, self.secrets.get, self.threads)
            case EngineDeclaration():
                check_engine(declared)
            case ProviderDeclaration():
                check_provider(declared)
            case _:
                check_timeout(f"the channel {declared.name!r}", declared.timeout_s)
        return None

    def _status(self, found: Found, consents: Consents) -> ExtensionStatus:
        given, imported = consents.enabled.get(found.id), self._imported.get(found.id)
        if given is None:
            return status(found, state="off")
        if imported is None:
            return status(found, state="changed", given=given)
        problem = imported.problem or self._clash(imported)
        if problem:
            self._imported[found.id] = replace(imported, tools=(), problem=problem)
            return status(found, state="faulty", problem=problem, given=given)
        self.declared |= {(one.kind, one.name): one for one in imported.declared}
        return status(found, state="on", given=given, declared=imported.declared)

    def _clash(self, imported: _Imported) -> str:
        """Return why an extension clashes with those loaded before it; empty if it does not."""
        names = [(one.kind, one.name) for one in imported.declared]
        taken = [name for kind, name in names if (kind, name) in self.declared]
        taken += [name for kind, name in set(names) if names.count((kind, name)) > 1]
        if not taken:
            return ""
        return f"another extension, or itself, declares {taken[0]!r} already; rename one of them."

    def _ordered(self) -> tuple[Tool, ...]:
        """Return the tools by name, with the settings applied. Only the first few are in every
        request."""
        made = [tool for part in self._imported.values() for tool in part.tools]
        shown, left, tools = 0, SHOWN_CHARACTERS, list[Tool]()
        for tool in sorted(made, key=lambda tool: tool.name):
            rule, known = self._rule(tool.name), tool.properties
            roles = known.roles if rule.roles is None else rule.roles
            is_shown = bool(known.in_sight) if rule.shown is None else rule.shown
            size = len(description(tool.spec))
            is_shown = is_shown and shown < MOST_SHOWN and size <= left
            shown, left = shown + is_shown, left - size * is_shown
            kept = replace(known, roles=roles, in_sight=roles if is_shown else ON_DEMAND)
            tools.append(replace(tool, properties=kept))
        return tuple(tools)

    def _rule(self, name: str) -> ToolRule:
        return self.rules.get(name, ToolRule())


def unopened(settings: Settings) -> Extensions:
    """Return the extensions that these settings name, of which none is imported yet."""
    home, rules = Home.open(settings.home), settings.features["extensions"]
    return Extensions(home=home, secrets=settings.secrets, rules=rules)


async def open_part(installation: Installation) -> Extensions:
    """Return the extensions of a home, with those imported that a person has enabled."""
    rules = installation.settings.get("extensions", {})
    made = Extensions(home=installation.home, secrets=installation.secrets, rules=rules)
    await made.refresh()
    return made


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
    code = compile(found.files[found.id], found.id, "exec", dont_inherit=True)
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
