"""MCP settings: the servers of agiraph.toml and of `.mcp.json` files, as a person wrote them.

A server that a person wrote down here may be started; nothing else names one. A `.mcp.json` in a
folder that a team was given is never read.
"""

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import field, fields, replace
from fnmatch import fnmatchcase
from itertools import pairwise, product
from pathlib import Path
from typing import Annotated, Any, Literal, cast
from urllib.parse import parse_qsl, unquote

import orjson
from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from agiraph import redaction, secret_variables
from agiraph.config import Picker, Settings
from agiraph.core.domain.agents import split_access
from agiraph.core.domain.errors import Misconfigured
from agiraph.core.domain.sections import Section, entry
from agiraph.core.domain.tools import Reach
from agiraph.core.domain.value import dataclass
from agiraph.core.home.named_secrets import NamedSecrets

TABLE = "mcp"
FILES_KEY = "mcp_files"
FILE = ".mcp.json"
FILE_BYTES = 2**20
Network = Literal["none", "packages", "hosts", "open"]
Kind = Literal["stdio", "http", "sse"]
NAME = re.compile(r"(?!.*__)[a-z0-9](?:[a-z0-9_-]{0,22}[a-z0-9])?")
"""Without two underscores in a row, which stand between the names of a server and a tool: else a
tool of one server could take the name of another server's tool."""
INSTALLERS = frozenset({"npx", "uvx", "pipx", "bunx", "pnpm", "uv", "npm"})
"""Programs that download the server before they run it: they get the package indexes."""
_OPEN = frozenset({"accept", "accept-language", "content-type", "user-agent"})
"""Headers that hold no secret."""
_SECRET_OPTIONS = frozenset({"token", "key", "apikey", "secret", "password", "passwd", "pat"})
"""The last word of options whose value is a secret, such as `--api-key`."""
_READING = ("resource:", "prompt:")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_-]*)(?::-([^}]*))?\}")


def digest_of(said: object) -> str:
    """Return the hash by which a person's consent to this is recognised."""
    return hashlib.sha256(orjson.dumps(said, option=orjson.OPT_SORT_KEYS)).hexdigest()


_Text = Annotated[str, StringConstraints(min_length=1)]
_Seconds = Annotated[float, Field(gt=0, le=24 * 3600)]


@entry
class McpRules:
    """What agents may do with a server, and what it may do."""

    folders: tuple[_Text, ...] = ()
    """Folders of the machine that the program sees, as PATH[:ro|rw]."""
    tools: tuple[_Text, ...] = ("*",)
    """Patterns of the tools that agents may call."""
    roles: Mapping[str, tuple[_Text, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Patterns of the tools by role. A role without an entry may call all of `tools`, but if there
    is any entry, roles without one get none."""
    effects: Mapping[str, Literal["reads", "changes", "sends"]] = field(
        default_factory=dict[str, Literal["reads", "changes", "sends"]]
    )
    """What tools do outside of the team, by pattern; a tool that matches none sends."""
    teams: tuple[_Text, ...] = ()
    """Ids or names of the teams that may use the server; none: all."""
    unconfined: bool = False
    """Whether it may be started on a machine that cannot confine commands."""
    timeout_s: _Seconds = 60.0
    """The longest time that a call may take."""
    start_s: _Seconds = 60.0
    idle_s: _Seconds = 300.0
    """After this time without a call the program is ended, or the connection closed."""


@entry
class _Entry(McpRules):
    """A table of agiraph.toml."""

    command: _Text | Annotated[tuple[_Text, ...], Field(min_length=1)] = ()
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict[str, str])
    url: _Text = ""
    type: Literal["stdio", "http", "streamable-http", "sse"] | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    network: Network | None = None
    hosts: tuple[_Text, ...] | None = None


MCP: Section[_Entry] = Section(
    TABLE,
    _Entry,
    '[mcp.NAME] with command = ["PROGRAM", "ARGUMENT"], or url = "https://…"; besides: env, '
    "headers, network, hosts, folders, tools, roles, effects, teams, unconfined, timeout_s, idle_s",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileEntry:
    """A server as Claude Code and others write it. What we do not know of it is ignored."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict[str, str])
    url: str = ""
    type: str = ""
    headers: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer(McpRules):
    """An MCP server that a person wrote down."""

    name: str
    kind: Kind = "stdio"
    command: tuple[str, ...] = ()
    """The program and its arguments, of a server that we start."""
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    network: Network = "none"
    """What the program may reach: nothing; package indexes; named hosts; all that is public."""
    hosts: tuple[str, ...] = ()
    origin: str = ""
    """The file that names it."""
    is_from_file: bool = False
    """Whether a `.mcp.json` says how it is reached. Other programs write such files, so a person
    confirms it."""
    fault: str = ""
    """Why it cannot be used; empty if it can."""

    @property
    def description(self) -> str:
        """Return how it is reached, without secrets."""
        if self.fault:
            return f"cannot be used: {self.fault}"
        if self.kind == "stdio":
            hosts = f" ({', '.join(self.hosts)})" if self.network == "hosts" else ""
            return f"{' '.join(self.command)} (network {self.network}{hosts})"
        return re.sub(r"(?<=://)[^/@]*@", "…@", self.url.partition("?")[0])

    @property
    def reached_hash(self) -> str:
        """Return the hash of how it is reached, with `${NAME}` as it is written."""
        how = [self.kind, self.command, self.env, self.url, self.headers]
        return digest_of(how)

    def allows(self, tool: str, role: str) -> bool:
        """Whether agents of this role may call this tool."""
        if not _matches(tool, self.tools):
            return False
        return not self.roles or _matches(tool, self.roles.get(role, ()))

    def reach_of(self, tool: str) -> Reach:
        """Return what a call of this tool does outside of the team, as a person declared it."""
        # A server may call a tool "resource:x": what was declared for resources is not for it.
        effects: dict[str, Reach] = {
            k: v for k, v in self.effects.items() if not k.startswith(_READING)
        }
        return self._reach(tool, effects)

    def reach_of_reading(self, kind: Literal["resource", "prompt"], name: str) -> Reach:
        """Return what it does outside of the team to read this resource or prompt."""
        return self._reach(f"{kind}:{name}", self.effects)

    def _reach(self, name: str, effects: Mapping[str, Reach]) -> Reach:
        for pattern, reach in effects.items():
            if fnmatchcase(name, pattern):
                return reach
        return "sends"

    def serves(self, team_id: str, team_name: str) -> bool:
        return not self.teams or team_id in self.teams or team_name in self.teams


def _matches(tool: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in patterns)


def read(pick: Picker) -> dict[str, McpServer]:
    """Return the MCP servers that a person wrote down, and record them."""
    path, written = pick.path, pick.written
    given = map(split_access, written.get("folders", {}).values())
    writable = [folder for folder, access in given if access == "rw"]
    named = written.get(TABLE, {}), written.get(FILES_KEY, [])
    found = servers(path, *named, pick.secrets.names, writable)
    for name, server in found.items():
        redaction.keep(literals(server))
        pick.show(f"{TABLE}.{name}", server.description, server.origin)
    return found


def servers_of(settings: Settings) -> dict[str, McpServer]:
    """Return the MCP servers of an installation by name."""
    return settings.features[TABLE]


def servers(
    path: Path,
    written: Any,
    files: Any,
    declared: Collection[str],
    writable: Collection[str] = (),
) -> dict[str, McpServer]:
    """Return the servers of agiraph.toml (at `path`) and of the `.mcp.json` files.

    Of a server that a file names, agiraph.toml may set everything but how it is reached. `declared`
    are the names in [secrets]: `${NAME}` stands for no other variable, and gets its value when the
    server is started (`expanded`). `writable` are folders that teams may be given for writing.
    """
    entries = MCP.read_each(path, written)
    if wrong := [name for name in entries if not NAME.fullmatch(name)]:
        raise Misconfigured(
            f"{path}: [{TABLE}.{wrong[0]}]: the name of a server is short, in lower case: letters, "
            "digits, '-' and single '_', at most 24."
        )
    found: dict[str, McpServer] = {}
    for file in (path.parent / FILE, *_files(path, files, writable)):
        for name, given in _in_file(file).items():
            made = _from_file(name, given, file)
            free = _free(made.name, found)
            found[free] = replace(made, name=free)
    for name, table in entries.items():
        found[name] = _from_table(path, name, table, found.get(name))
    return {name: _checked(server, declared) for name, server in sorted(found.items())}


def _free(name: str, taken: Mapping[str, object]) -> str:
    """Return the name, with a number if another server has it."""
    number = 1
    made = name
    while made in taken:
        number += 1
        made = f"{name[:21]}-{number}"
    return made


def _files(path: Path, named: Any, writable: Collection[str]) -> list[Path]:
    if isinstance(named, str):
        named = [named]
    if not isinstance(named, list) or not all(isinstance(one, str) for one in cast(Any, named)):
        raise Misconfigured(f'{path}: {FILES_KEY} is a list of files: ["~/project/{FILE}"].')
    found = [Path(one).expanduser() for one in cast(list[str], named)]
    for file, folder in product(found, (str(path.parent / "teams"), *writable)):
        if file.resolve().is_relative_to(Path(folder).expanduser().resolve()):
            raise Misconfigured(
                f"{path}: {FILES_KEY} names {str(file)!r}, which lies in {folder!r}: agents may "
                f"write there, and so add servers. Move the file, for example to "
                f"{path.parent / FILE}."
            )
    if missing := [str(one) for one in found if not one.is_file()]:
        raise Misconfigured(
            f"{path}: {FILES_KEY} names {missing[0]!r}, and there is no such file. Correct the "
            "path or remove it."
        )
    return found


def _in_file(file: Path) -> dict[str, Any]:
    """Return the servers of a `.mcp.json` file; raise `Misconfigured` if it is none."""
    try:
        data = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise Misconfigured(f"Cannot read {file}: {error.strerror}.") from error
    try:
        if len(data) > FILE_BYTES:
            raise ValueError("it is too large")
        named = orjson.loads(data)["mcpServers"]
        if not isinstance(named, dict):
            raise ValueError("its mcpServers is not an object")
        return cast(dict[str, Any], named)
    except (ValueError, KeyError, TypeError) as error:
        said = "it has no mcpServers" if isinstance(error, KeyError) else str(error)
        raise Misconfigured(
            f'{file} is not a list of MCP servers: {said}. It is {{"mcpServers": {{"NAME": …}}}}.'
        ) from error


def _from_file(name: str, written: Any, file: Path) -> McpServer:
    """Return a server of a `.mcp.json` file. What is wrong with it stops no other server."""
    plain = re.sub(r"[^a-z0-9_-]+|__+", "-", name.lower()).strip("-_")[:24].strip("-_")
    made = McpServer(name=plain or "server", origin=str(file), is_from_file=True)
    try:
        given = TypeAdapter(_FileEntry).validate_python(written)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors(include_url=False)[0]["loc"])
        return replace(made, fault=f"{where or name} in {file} is not as in other clients")
    return _reached(made, given)


def _from_table(path: Path, name: str, table: _Entry, known: McpServer | None) -> McpServer:
    if table.command or table.url:
        made = _reached(McpServer(name=name, origin=str(path)), table)
    elif known is None:
        raise Misconfigured(
            f"{path}: [{TABLE}.{name}] has neither command nor url. Write {MCP.example}."
        )
    else:
        made = known
    rules = {one.name: getattr(table, one.name) for one in fields(McpRules)}
    network = table.network or (made.network if table.hosts is None else "hosts")
    return replace(made, network=network, hosts=table.hosts or (), **rules)


def _reached(made: McpServer, given: _Entry | _FileEntry) -> McpServer:
    """Return the server with how it is reached."""
    if bool(given.command) == bool(given.url):
        return replace(made, fault="it needs either a command or a url")
    if given.url:
        if not re.match(r"https?://[^\s/]", given.url):
            return replace(made, fault="its url is not an http address")
        own: Kind = "sse" if given.type == "sse" else "http"
        return replace(made, kind=own, url=given.url, headers=given.headers)
    command = (given.command,) if isinstance(given.command, str) else given.command
    loads = Path(command[0]).name in INSTALLERS
    return replace(
        made,
        command=(*command, *given.args),
        env=given.env,
        network="packages" if loads else "none",
    )


def _checked(server: McpServer, declared: Collection[str]) -> McpServer:
    """Return the server, with a fault if it uses a secret that is not declared."""
    missing = [name for name, default in _used(server) if default is None and name not in declared]
    if not missing or server.fault:
        return server
    names = ", ".join(f"${{{name}}}" for name in dict.fromkeys(missing))
    fault = f"it uses {names}, which [secrets] in agiraph.toml does not declare"
    return replace(server, fault=fault)


def _used(server: McpServer) -> list[tuple[str, str | None]]:
    """Return the secrets that stand in a server's settings by name, with their defaults."""
    texts = (*server.command, *server.env.values(), server.url, *server.headers.values())
    return [(one[1], one[2]) for text in texts for one in _VARIABLE.finditer(text)]


def secrets_of(server: McpServer) -> list[str]:
    """Return the names of the secrets that the server is handed."""
    return sorted({name for name, _ in _used(server)})


def literals(server: McpServer) -> dict[str, str]:
    """Return the values in a server's settings that may be secrets, each under a name that cannot
    be a variable's: headers, what is before `@` and in the query of its url, and variables and
    options of its program that are called or look like a secret."""
    found = {f"header {name}": v for name, v in server.headers.items() if name.lower() not in _OPEN}
    found |= {f"word of {name}": text.rpartition(" ")[2] for name, text in found.items()}
    found |= {
        f"variable {name}": text
        for name, text in server.env.items()
        if secret_variables.is_secret(name) or redaction.looks_secret(text)
    }
    found |= _options(server.command)
    found |= {f"query {name}": text for name, text in parse_qsl(server.url.partition("?")[2])}
    authority = server.url.partition("://")[2].partition("/")[0]
    user, _, password = authority.rpartition("@")[0].partition(":")
    found |= {"user": unquote(user), "password": unquote(password)}
    shortest = redaction.SHORTEST_SECRET
    return {
        f"mcp {server.name} {name}": text
        for name, text in found.items()
        if len(text) >= shortest and not _VARIABLE.search(text)
    }


def _options(command: tuple[str, ...]) -> dict[str, str]:
    """Return the arguments of a program that may be secrets: `--token X`, `--token=X`, or what
    looks like one."""
    found: dict[str, str] = {}
    for number, (before, word) in enumerate(pairwise(command)):
        name, equals, value = word.partition("=")
        is_one_word = name.startswith("-") and bool(equals)
        option, value = (name, value) if is_one_word else (before, word)
        is_option = option.startswith("-") and not value.startswith(("-", "/", "~"))
        kind = re.split("[-_]", option.lower())[-1]
        if (is_option and kind in _SECRET_OPTIONS) or redaction.looks_secret(value):
            found[f"argument {number}"] = value
    return found


def expanded(server: McpServer, secrets: NamedSecrets) -> McpServer:
    """Return the server with `${NAME}` replaced by the secret of this name; raise `Misconfigured`
    if it cannot be read."""

    def value_of(found: re.Match[str]) -> str:
        name, default = found.groups()
        return secrets.get(name) if secrets.knows(name) else default or ""

    def all_of(texts: Mapping[str, str]) -> dict[str, str]:
        return {name: _VARIABLE.sub(value_of, text) for name, text in texts.items()}

    return replace(
        server,
        command=tuple(_VARIABLE.sub(value_of, word) for word in server.command),
        env=all_of(server.env),
        url=_VARIABLE.sub(value_of, server.url),
        headers=all_of(server.headers),
    )
