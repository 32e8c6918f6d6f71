"""Command gate: gives a shell command its network gate, and records and labels what it reaches."""

import asyncio
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import islice, takewhile
from pathlib import Path, PurePath
from urllib.parse import urlsplit

from agiraph.core.domain.chat import ToolCall, Turn
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.provenance.grants import Grant, GrantKind
from agiraph.core.domain.provenance.labels import CLEAN, Label, join, of_host
from agiraph.core.home.safe_folder import Folder
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import team_hosts
from agiraph.core.store import grants
from agiraph.core.store.texts import folder_changes
from agiraph.core.store.texts.folder_changes import FolderChange
from agiraph.core.tools.files import given_folders
from agiraph.sandbox import sandbox
from agiraph.sandbox.folders.folder_history import FolderHistory
from agiraph.sandbox.gate import environment, git_reading, vendors
from agiraph.sandbox.gate.package_names import PackageNames, installed_names, names_in
from agiraph.sandbox.gate.rules import GateNetwork, Rules
from agiraph.sandbox.gate.server import Gate, Reached
from agiraph.sandbox.gate_channel import Serve
from agiraph.sandbox.parsing import Parser

MOST_SENTENCES = 3
"""Refusals that are told under a command's output."""
_MANIFESTS = (
    "*requirements*.txt", "*constraints*.txt", "pyproject.toml", "setup.cfg", "setup.py", "Pipfile",
    "Pipfile.lock", "poetry.lock", "uv.lock", "package.json", "package-lock.json", "yarn.lock",
    "pnpm-lock.yaml", "Cargo.toml", "Cargo.lock",
)  # fmt: skip
GIT_SETTINGS = ".git/config"
_IN_FOLDERS = (*_MANIFESTS, GIT_SETTINGS)
MOST_MANIFESTS, MANIFEST_BYTES = 30, 2**20


class CommandGate:
    """The gate of one command, with what is told and labelled after it; without rules the command
    has no network."""

    def __init__(
        self,
        ctx: RunContext,
        rules: Rules | None,
        *,
        call_id: str,
        command: str,
        is_trusted: bool = False,
        variables: Mapping[str, str] = {},
    ) -> None:
        """`is_trusted`: a person trusts what this very command prints, so it gets no label."""
        self._ctx = ctx
        self._call_id = call_id
        self._command = command
        self._is_trusted = is_trusted
        self._variables = dict(variables)
        self._gate: Gate | None = None
        if rules is not None and ctx.command_rules.confinement.has_gate:
            self._gate = Gate(
                rules,
                policy=ctx.web.fetcher.policy,
                indexes=ctx.web.indexes,
                note=self._note,
                converter=Parser.of_team(ctx.command_rules, ctx.team.id),
                port=sandbox.GATE_PORT,
            )

    @property
    def is_open(self) -> bool:
        """Whether the command has a gate."""
        return self._gate is not None

    @property
    def serve(self) -> Serve | None:
        """Return the function that gets the listening socket in the command's network namespace and
        serves it; None without a gate."""
        return None if self._gate is None else self._gate.serve

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables by which the command's programs find the gate."""
        if self._gate is None:
            return {}
        found = environment.of_command(self._gate.rules.network, sandbox.GATE_PORT)
        return found | self._variables

    def write_settings(self, home: Path) -> None:
        """Let cargo find the gate: it takes another index from a file alone. A file that is there
        already is left as it is."""
        if self._gate is None or "cargo" not in self._command:
            return
        with Folder.open(home) as folder, suppress(Refused, OSError):
            settings = environment.cargo_settings(sandbox.GATE_PORT)
            folder.write_if_empty(".cargo/config.toml", settings.encode())

    @property
    def label(self) -> Label:
        """Return the label of what the command has received, without sources that a person
        trusts."""
        if self._is_trusted or self._gate is None:
            return CLEAN
        reached = join(of_host(reached.host) for reached in self._gate.reached)
        return reached.without(self._ctx.trusted)

    async def close(self) -> None:
        """End the command's connections, and record what was refused."""
        if self._gate is None:
            return
        await self._gate.close()
        if self._gate.refused:
            await self._ctx.store.write(
                team_hosts.record_refusals,
                self._ctx.lease,
                call_id=self._call_id,
                sentences=list(self._gate.refused),
            )

    def remark(self) -> str:
        """Return what was refused and how to allow it, for the model; empty if nothing was.

        An untrusted program may have asked for a host or a package, so its name stands here only if
        the command itself names it.
        """
        refused = list(self._gate.refused.values()) if self._gate is not None else []
        told = [d.sentence for d in refused if d.status != 404 and d.host in self._command]
        if hidden := sum(d.host not in self._command for d in refused):
            others = "another host or package" if hidden == 1 else f"{hidden} hosts or packages"
            told.append(f"It was refused {others}, which its words do not name.")
        return "\n".join(f"({sentence})" for sentence in told[:MOST_SENTENCES])

    async def _note(self, reached: Reached) -> None:
        await self._ctx.store.write(
            team_hosts.record,
            self._ctx.lease,
            call_id=self._call_id,
            host=reached.host,
            use=reached.use,
            label=CLEAN if self._is_trusted else of_host(reached.host),
        )


async def rules_of(
    ctx: RunContext,
    network: GateNetwork,
    *,
    command: str,
    granted: Sequence[Grant],
    is_bound: bool,
) -> Rules:
    """Return what a command may reach. With `is_bound` it gets what untrusted text is allowed,
    because such text may have led to it."""
    now = ctx.clock.now()
    texts = await _texts_in_folders(ctx)
    settings = [text for name, text in texts if name == GIT_SETTINGS]

    def patterns(kind: GrantKind) -> frozenset[str]:
        return frozenset(g.pattern for g in granted if g.allows(kind, g.pattern, now=now))

    typed = {g.pattern for g in granted if g.is_typed}
    held_back = {host for host in typed if team_hosts.is_behind(ctx.label, host)}
    return Rules(
        network=network,
        reachable=patterns("reach") - held_back,
        readable=patterns("read"),
        repositories=frozenset(one for text in settings for one in remotes_in(text)),
        names=PackageNames(
            is_bound=is_bound and ctx.team.trust != "open",
            granted=patterns("packages"),
            declared=_declared(ctx, command, [text for _, text in texts], is_bound=is_bound),
        ),
        team=ctx.team.id,
        asks=bool(ctx.label) and ctx.team.trust != "open",
    )


async def of_program(
    ctx: RunContext,
    call: ToolCall,
    command: str,
    environ: Mapping[str, str] | None,
    allowed: frozenset[str] | None = None,
) -> CommandGate:
    """Return the gate of a program that works as an agent; `environ` is what the settings give it,
    None for a command that a model wrote. `allowed` binds it to these hosts.

    A vendor's agent reaches its vendor. Any other program reaches what is public: one that a thread
    with untrusted text in it starts asks a person first.
    """
    name = "" if environ is None else vendors.program_of(command)
    endpoints = vendors.reachable(name, environ or {})
    granted = await ctx.store.read(grants.of_team, ctx.team.id)
    network = "packages" if endpoints else "open"
    rules = await rules_of(ctx, network, command=command, granted=granted, is_bound=bool(ctx.label))
    rules = rules if allowed is None else rules.bound_to(allowed)
    return CommandGate(
        ctx,
        replace(rules, endpoints=endpoints),
        call_id=call.id,
        command=command,
        variables=vendors.environment(name, environ or {}, sandbox.GATE_PORT),
    )


def _declared(
    ctx: RunContext, command: str, texts: Sequence[str], *, is_bound: bool
) -> Callable[[], Iterable[str]]:
    """Return a function that reads the names of packages that the team has declared.

    They stand in manifests and install commands that the thread wrote before its first labelled
    turn, and in `texts`, the manifests of the team's folders as a person left them; in a clean
    thread also in the command itself and, unless it is bound, in the manifests of its own folder.
    Other words do not count: what the team knows stands in them, too.
    """
    turns = tuple(ctx.transcript.turns)
    is_clean = not ctx.label_before_call
    own = ctx.home.node_path(ctx.team.id, ctx.node.id) / "scratch"

    def read() -> set[str]:
        found = {name for call in _clean_calls(turns) for name in _declared_by(call)}
        found |= installed_names(command) if is_clean else set()
        left = [] if is_bound else [_text(data) for _, data in _found(own, _MANIFESTS)]
        return found | {name for text in (*texts, *left) for name in names_in(text)}

    return read


async def _texts_in_folders(ctx: RunContext) -> list[tuple[str, str]]:
    """Return name and text of the manifests and settings of git in given folders, as a person left
    them: untrusted text may be behind what the team has changed since."""
    if not ctx.team.folders:
        return []
    changes = await ctx.store.read(folder_changes.of_names, ctx.team.id, _IN_FOLDERS)
    return await asyncio.to_thread(_read_folders, ctx, changes)


def _read_folders(ctx: RunContext, changes: Sequence[FolderChange]) -> list[tuple[str, str]]:
    texts: list[tuple[str, str]] = []
    for given in ctx.team.folders:
        history = given_folders.history_of(ctx, given)
        for path, data in _found(Path(given.path), _IN_FOLDERS):
            made = [c for c in changes if (c.folder, c.path) == (given.name, str(path))]
            with suppress(NotFound):
                left = _as_person_left(history, made, data) if made else data
                texts.append((_name_of(path), _text(left)))
    return texts


def _as_person_left(history: FolderHistory, made: Sequence[FolderChange], data: bytes) -> bytes:
    """Return what a file held before the team's changes (`made`, newest first) that nobody else has
    changed since; raise `NotFound` if the team made the file or there is no copy."""
    if len(data) > MANIFEST_BYTES:
        raise NotFound("file", "of a person", known="It is too long to be compared.")
    now = hashlib.sha256(data).hexdigest()
    held: str | None = now
    for change in made:
        if held is None or change.after is None or change.after.split(" ")[-1] != held:
            break
        before = change.before
        held = None if before is None else before.split(" ")[-1]
    if held is None:
        raise NotFound("file", "of a person", known="An agent made it.")
    return data if held == now else history.content(f"file 644 {held}")


def _text(data: bytes) -> str:
    return data[:MANIFEST_BYTES].decode(errors="replace")


def remotes_in(settings: str) -> set[str]:
    """Return the repositories that settings of git name as remotes, as `GitRequest.repository`."""
    found: set[str] = set()
    section = ""
    for line in settings.splitlines():
        key, _, value = line.strip().partition("=")
        if key.startswith("["):
            section = key.casefold()
        elif section.startswith('[remote "') and key.strip().casefold() == "url":
            parts = urlsplit(value.strip())
            if parts.scheme in ("http", "https"):
                found.add(git_reading.repository(parts.netloc.rpartition("@")[2], parts.path))
    return found


def _clean_calls(turns: Iterable[Turn]) -> list[ToolCall]:
    before = takewhile(lambda turn: not turn.label, turns)
    return [call for turn in before for call in turn.calls]


def _declared_by(call: ToolCall) -> frozenset[str]:
    """Return the packages that a call declares: it writes a manifest, or installs them."""
    name = PurePath(str(call.arguments.get("path", ""))).name
    if any(fnmatchcase(name, pattern) for pattern in _MANIFESTS):
        return names_in("\n".join(v for v in call.arguments.values() if isinstance(v, str)))
    return installed_names(str(call.arguments.get("command", "")))


def _found(folder: Path, names: Sequence[str]) -> list[tuple[PurePath, bytes]]:
    """Return path and content of each file with one of these names, in a folder or one below it."""
    texts: list[tuple[PurePath, bytes]] = []
    patterns = [*names, *(f"*/{name}" for name in names)]
    found = (path for pattern in patterns for path in folder.glob(pattern))
    for path in islice(found, MOST_MANIFESTS):
        below = path.relative_to(folder)
        # A link in its place could lead to a file that is not the person's.
        if not any((folder / parent).is_symlink() for parent in below.parents):
            with suppress(OSError):
                texts.append((below, _read_regular(path)))
    return texts


def _name_of(path: PurePath) -> str:
    return GIT_SETTINGS if path.parts[-2:] == (".git", "config") else path.name


def _read_regular(path: Path) -> bytes:
    # The command runs meanwhile, and a FIFO that it puts here would block this thread.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return b""
        return opened.read(MANIFEST_BYTES + 1)
