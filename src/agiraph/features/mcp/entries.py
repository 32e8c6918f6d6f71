"""MCP entries: servers that a person adds to agiraph.toml and takes out of it, by command or in the
web UI, and what both ask them."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agiraph.core.domain.errors import Conflict, Misconfigured, NotFound, Refused
from agiraph.core.home import settings_file
from agiraph.core.home.layout import Home
from agiraph.core.home.named_secrets import NamedSecrets
from agiraph.features.mcp import launching, pins
from agiraph.features.mcp.settings import (
    NAME,
    TABLE,
    McpServer,
    digest_of,
    literals,
    servers,
)

CONSENT = (
    "This is your consent to start it. In a team that has read untrusted text, you are asked "
    "before each call, unless you say what its tools do."
)
START = "Start it, and ask for its tools?"
ACCEPT = "Accept this?"


def check_new(name: str, known: Mapping[str, McpServer]) -> None:
    """Raise `Refused` if the name is none for a server, `Conflict` if another server has it."""
    if not NAME.fullmatch(name):
        raise Refused(f"{name!r} cannot name a server: use at most 24 of a-z, 0-9, '-' and '_'.")
    if (other := known.get(name)) is not None:
        raise Conflict(f"There is an MCP server {name!r} already, in {other.origin}.")


def table_of(
    how: Sequence[str], env: Mapping[str, str], headers: Mapping[str, str], rules: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the table of a server. `how` is its address, or its program with the arguments;
    `rules` has the network and the lists hosts, folders, tools, teams, reads and changes."""
    is_url = len(how) == 1 and how[0].startswith(("http://", "https://"))
    effects = {tool: "reads" for tool in rules["reads"]}
    effects |= {tool: "changes" for tool in rules["changes"]}
    return {
        "url" if is_url else "command": how[0] if is_url else list(how),
        "env": dict(env),
        "headers": dict(headers),
        "network": rules["network"],
        **{key: list(rules[key]) for key in ("hosts", "folders", "tools", "teams")},
        "effects": effects,
    }


def words_of(line: str) -> list[str]:
    """Return the words of a command line, as a shell splits it; nothing is expanded."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise Refused("The command has a quotation mark without its other half.") from error


def address_of(url: str) -> list[str]:
    """Return an address as `table_of` takes it; what is none would be taken for a program."""
    if not url.startswith(("http://", "https://")):
        raise Refused(f"{url!r} is no address of a server: it begins with https:// or http://.")
    return [url]


def draft(home: Home, name: str, table: Mapping[str, Any], secrets: NamedSecrets) -> McpServer:
    """Return the server as it would stand in agiraph.toml, which is not changed; raise `Refused` if
    it cannot be used, or has a secret in it that should have a name."""
    written = {key: value for key, value in table.items() if value}
    try:
        server = servers(home.config_path, {name: written}, [], secrets.names)[name]
    except Misconfigured as error:
        raise Refused(settings_file.reason(home, error)) from error
    if server.fault:
        raise Refused(f"The MCP server {name!r} cannot be used: {server.fault}.")
    if found := literals(server):
        what = ", ".join(key.removeprefix(f"mcp {name} ") for key in found)
        raise Refused(
            f"This may be a secret: {what}. Keep it under a name, and write ${{NAME}} in its place."
        )
    return server


def write(home: Home, name: str, table: Mapping[str, Any]) -> None:
    """Add a server to agiraph.toml."""
    settings_file.add(home, TABLE, name, table)


def remove(home: Home, name: str, server: McpServer | None) -> Path | None:
    """Take a server out of agiraph.toml, and forget its tools and its sign-in. Return the folder in
    which its program has stored something."""
    if server is not None and not is_in_settings(home, server):
        raise Misconfigured(f"The MCP server {name!r} is in {server.origin}; take it out there.")
    if name not in settings_file.tables(home, TABLE):
        raise NotFound("MCP server", name, known="`agiraph mcp list` shows all.")
    settings_file.take_out(home, TABLE, name)
    pins.remove(home.folder, name)
    if (home.path / "mcp-tokens.json").exists():
        from agiraph.features.mcp import sign_in

        sign_in.TokenFile(home, name).forget()
    kept = home.path / pins.FOLDER / name
    return kept if kept.exists() else None


def is_in_settings(home: Home, server: McpServer) -> bool:
    """Whether agiraph.toml says how the server is reached, and no `.mcp.json`."""
    return Path(server.origin).resolve() == home.config_path.resolve()


def notes_on(server: McpServer) -> list[str]:
    """Return what else a person must know before the server is started, line by line."""
    if server.kind != "stdio":
        return []
    reaches = {
        "none": "Its program reaches no network.",
        "packages": "Its program reaches the package indexes, and nothing else.",
        "hosts": f"Its program reaches {', '.join(server.hosts)}, and nothing else.",
        "open": "Its program reaches all of the public internet.",
    }
    sees = [f"Its program sees the folder {folder}." for folder in server.folders]
    unseen = [
        f"Its program does not see {path!r}: to give it, name it under Folders."
        for path in launching.unseen_paths(server)
    ]
    return [reaches[server.network], *sees, *unseen]


def shown_hash(name: str, table: Mapping[str, Any]) -> str:
    """Return the hash of all that a person is shown of a server before it is added."""
    return digest_of([name, dict(table)])
