"""MCP launching: what the program of an MCP server sees, and its way to the network.

It is confined like a command of an agent. It sees the system, its own files, a folder of its own in
the home and the folders that a person gave it: no team, no token, no database.
"""

import logging
import os
import shutil
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from agiraph.core.domain.agents import split_access
from agiraph.core.home.layout import Home
from agiraph.features.mcp.connection import ServerFailed
from agiraph.features.mcp.pins import FOLDER
from agiraph.features.mcp.settings import McpServer
from agiraph.sandbox import commands, sandbox
from agiraph.sandbox import credentials as program_credentials
from agiraph.sandbox.folders import git_guard, given_folders
from agiraph.sandbox.folders.git_guard import Guard
from agiraph.sandbox.gate import environment
from agiraph.sandbox.gate.rules import Rules
from agiraph.sandbox.gate.server import Gate, Reached
from agiraph.sandbox.levels import CommandRules
from agiraph.sandbox.parsing import Parser
from agiraph.sandbox.piped_commands import Launch
from agiraph.sandbox.sandbox import SYSTEM, Mount, Spec
from agiraph.web.access import Web

log: logging.Logger = logging.getLogger("agiraph.mcp")
SCRIPTS = frozenset({".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".jar"})


def folder_of(home: Home, server: McpServer) -> Path:
    """Return the folder of a server's program, its HOME; it is created if needed."""
    home.folder.sub(f"{FOLDER}/{server.name}", create=True).close()
    return (home.path / FOLDER / server.name).resolve()


def gate_of(server: McpServer, web: Web, rules: CommandRules) -> Gate | None:
    """Return the server's only way to the network; None if it has none."""
    if server.network == "none" or not rules.confinement.has_gate:
        return None
    return Gate(
        Rules(network=server.network, reachable=frozenset(server.hosts), team="TEAM"),
        policy=web.fetcher.policy,
        indexes=web.indexes,
        note=_note,
        converter=Parser.of_team(rules, _AS_TEAM),
        port=sandbox.GATE_PORT,
    )


async def _note(reached: Reached) -> None:
    """Do nothing. The gate reports each host; an answer of the server is labelled with its name
    alone."""


@contextmanager
def guarded(home: Home, server: McpServer) -> Generator[dict[str, Guard]]:
    """Yield what the server's program may not change of the folders that it may write to."""
    with ExitStack() as running:
        given = given_folders.check(home.path, server.folders)
        yield {
            one.name: running.enter_context(git_guard.running(git_guard.find(one.path)))
            for one in given
            if one.is_writable
        }


def switch_off(guards: Mapping[str, Guard]) -> None:
    """Make git not see the repositories that a program has made: the person who uses git there
    would run what they hold."""
    for guard in guards.values():
        if made := git_guard.switch_off(guard):
            log.warning("an MCP server made a repository in a given folder: %s", made)


def launch(
    home: Home,
    server: McpServer,
    rules: CommandRules,
    gate: Gate | None,
    guards: Mapping[str, Guard],
) -> Launch:
    """Return how the server's program is started."""
    own = folder_of(home, server)
    variables = dict(server.env)
    if gate is not None:
        variables = environment.of_command(gate.rules.network, sandbox.GATE_PORT) | variables
    return Launch(
        name=server.name,
        words=server.command,
        cwd=own,
        env=commands.child_environment(own, variables),
        spec=_spec(home, server, rules, own, guards, has_gate=gate is not None),
        limits=rules.limits,
        serve=None if gate is None else gate.serve,
    )


def _spec(
    home: Home,
    server: McpServer,
    rules: CommandRules,
    own: Path,
    guards: Mapping[str, Guard],
    *,
    has_gate: bool,
) -> Spec | None:
    """Return what the program sees; None is everything. Raise `ServerFailed` on a machine that
    cannot confine commands, unless a person said that the server may see everything."""
    confinement = rules.confinement
    if not confinement.is_confined:
        if not server.unconfined:
            raise ServerFailed(
                f"The MCP server {server.name!r} is not started: this machine does not confine "
                "commands, so its program would see all your files. A person may allow that: "
                f"unconfined = true in [mcp.{server.name}] of agiraph.toml."
            )
        return None
    given = given_folders.check(home.path, server.folders)
    # A file inside a given folder is seen with the folder. On its own it would be read-only, in a
    # folder that the program may write to: a database that its first start made, for example.
    whole = [*(Path(one.path) for one in given), own]
    mounts = [
        Mount(source=path, target=path)
        for path in _files_of(server.command)
        if not any(path.is_relative_to(folder) for folder in whole)
    ]
    shared, held = sandbox.of_folders(given, guards, confinement.level)
    mounts += shared
    mounts.append(Mount(source=own, target=own, is_writable=True))
    # Landlock has no gate: there `open` means the machine's own network.
    is_open = server.network == "open" and not confinement.has_gate
    return Spec(
        level=confinement.level,
        mounts=tuple(mounts),
        held=held,
        readable=rules.readable,
        masked=(home.path.resolve(), *rules.masked),
        network="gate" if has_gate else "open" if is_open else "none",
        unix=not given and not is_open,
        user=sandbox.spare_user(_AS_TEAM) if confinement.has_spare_user else 0,
    )


_AS_TEAM = sandbox.TeamId("mcp")


def _files_of(words: Iterable[str]) -> list[Path]:
    """Return the folders that hold the program and the scripts that its arguments name, and the
    other files that they name."""
    program, *arguments = words
    found = program_credentials.folders_of(program, os.environ.get("PATH", ""))
    if (path := shutil.which(program)) is not None:
        found += _environment_of(Path(path))
    for word in arguments:
        script = Path(word).expanduser()
        if script.is_absolute() and script.is_file():
            found += [_shown_for(script.resolve()), *_environment_of(script)]
    user = Path.home().resolve()
    return [
        folder
        for folder in dict.fromkeys(one.resolve() for one in found)
        # A program that lies directly in the user's home must not expose the whole home.
        if not user.is_relative_to(folder) and not _is_system(folder)
    ]


def _shown_for(file: Path) -> Path:
    """Return what a program sees for a file that an argument names: the folder of a script, which
    may import its neighbours; of another file, such as a key, nothing but the file."""
    user = Path.home().resolve()
    inside = file.parent.relative_to(user).parts if file.is_relative_to(user) else ()
    is_hidden = any(part.startswith(".") for part in inside)
    return file.parent if file.suffix in SCRIPTS and not is_hidden else file


def _environment_of(program: Path) -> list[Path]:
    """Return the virtual environment of a Python program, and the Python that it was made from."""
    root = program.parent.parent
    settings = root / "pyvenv.cfg"
    if not settings.is_file():
        return []
    lines = settings.read_text(errors="replace").splitlines()
    pairs = (line.partition("=") for line in lines)
    base = next((value.strip() for key, _, value in pairs if key.strip() == "home"), "")
    return [root, *([Path(base).parent] if base else [])]


def _is_system(folder: Path) -> bool:
    return any(folder.is_relative_to(path) for path in SYSTEM)


def unseen_paths(server: McpServer) -> list[str]:
    """Return the arguments that name folders which the program does not see, to warn the person."""
    given = [Path(split_access(text)[0]).expanduser().resolve() for text in server.folders]
    found: list[str] = []
    for word in server.command[1:]:
        path = Path(word).expanduser()
        if path.is_absolute() and path.is_dir():
            real = path.resolve()
            if not any(real.is_relative_to(one) for one in given) and not _is_system(real):
                found.append(word)
    return found
