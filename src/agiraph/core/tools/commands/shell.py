"""Shell tool: runs commands under a supervisor, which records their end even if we crash."""

import asyncio
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from agiraph.core.domain.agents import Trust
from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.provenance.grants import Grant
from agiraph.core.domain.provenance.labels import CLEAN, Label, join
from agiraph.core.domain.provenance.sinks import Sink, WayOut, verdict
from agiraph.core.domain.text.fence import enclose_foreign
from agiraph.core.domain.tools import EVERY_ROLE
from agiraph.core.home.layout import UPLOADS
from agiraph.core.run_context import RunContext
from agiraph.core.store import grants, threads
from agiraph.core.store.texts import file_labels
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import NO_TEXT, Known, tool
from agiraph.core.tools.commands import command_gate, private_sends
from agiraph.core.tools.commands.command_gate import CommandGate
from agiraph.core.tools.files import given_folders
from agiraph.core.tools.files.file_labels import PAGES, RESULTS
from agiraph.late_patterns import late
from agiraph.sandbox import commands, sandbox
from agiraph.sandbox.command_output import SHOWN_BYTES
from agiraph.sandbox.commands import CommandResult
from agiraph.sandbox.folders.git_guard import Guard
from agiraph.sandbox.sandbox import NetworkKind, Spec
from agiraph.web import links

Network = Literal["none", "packages", "hosts", "open"]
FROM_NETWORK = Label(("network:unknown",))
"""The label of what an unconfined command brings in: nobody knows which hosts it talked to."""
SINKS: dict[Network, Sink] = {
    "packages": Sink.PACKAGES_COMMAND,
    "hosts": Sink.HOSTS_COMMAND,
    "open": Sink.NETWORK_COMMAND,
}
WHY: dict[Network, str] = {
    "packages": "the names of the packages that it asks for can tell their owners something",
    "hosts": "whatever this agent knows can be sent to the hosts that commands may reach",
    "open": "the command would reach the network",
}

_MEANS_OPEN = frozenset({"true", "yes", "on", "1", "all", "full", "internet"})
_MEANS_NONE = frozenset({"false", "no", "off", "0"})
_NOT_NAMED = frozenset({"null", "default", ""})


def _read(given: object) -> object:
    """Return the word for what a model wrote; earlier calls said true or false."""
    if given is None:
        return None
    if isinstance(given, bool):
        return "open" if given else "none"
    word = given.strip().lower() if isinstance(given, str) else given
    if isinstance(word, str) and word in _NOT_NAMED:
        return None
    if isinstance(word, str) and word in _MEANS_OPEN | _MEANS_NONE:
        return "open" if word in _MEANS_OPEN else "none"
    return word


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)  # every request repeats the schema, and the tool says it in words


NetworkArgument = Annotated[
    Network | None,
    BeforeValidator(_read),
    Field(json_schema_extra=_without_default),
]


def network_of(named: Network | None, *, is_labelled: bool, trust: Trust) -> Network:
    """Return the network of a command: what its call names, else packages.

    Where packages would ask a person, a call that names no network has none: most commands need
    none, and a person must not be asked for each of them.
    """
    if named is not None:
        return named
    is_free = not is_labelled or verdict(Sink.PACKAGES_COMMAND, trust) == "free"
    return "packages" if is_free else "none"


HOW_TO_ASK = (
    "(It ran without network. If it needs the network, make the same call with "
    'network="{network}"{asked}.)'
)
PROXY_ONLY = (
    '(network="{network}" goes through the HTTP proxy in the variables http_proxy and https_proxy '
    "alone. What does not use it, such as ssh, has no network.)"
)
NO_GATE = (
    "(Commands here have no network: the sandbox of this machine has no network of its own to put "
    "a gate into. `agiraph doctor` says why.)"
)
READS_AND_SENDS = (
    "Not run: it could reach the network, and files within its reach hold words from {label}. Read "
    "these files first, then make this call again: the human is asked."
)
HIDDEN = (
    "(Files that hold untrusted text were hidden from it. A command without network that names "
    "their path, from ../ on, sees them; read_file shows them, too.)"
)

_PROGRAMS = late(
    r"(?:^|[\s;&|(`/])(?:curl|wget|pip3?|pipx|uv|npm|npx|yarn|pnpm|cargo|gem|apt|apt-get|apk|dnf"
    r"|yum|brew|go\s+(?:get|install|mod)|git\s+(?:\S+\s+){0,6}?(?:clone|pull|fetch|push|ls-remote"
    r"|submodule)|ssh|scp|sftp|rsync|ftp|nc|ncat|telnet|ping|dig|nslookup|host|docker|podman"
    r"|kubectl|gh|aws|gcloud|az|psql|mysql|redis-cli)(?=\s|$)"
)
_FAILURES = late(
    r"could not resolve|couldn't resolve|name or service not known|name resolution"
    r"|network is unreachable|network unreachable|no route to host|failed to connect"
    r"|connection refused|getaddrinfo|enotfound|eai_again|econnrefused|enetunreach"
    r"|temporary failure resolving|unable to access|max retries exceeded|proxy",
    re.IGNORECASE,
)


_NO_ROUTE = late(
    r"could not resolve|couldn't resolve|name or service not known|name resolution"
    r"|network is unreachable|network unreachable|no route to host|getaddrinfo|enotfound|eai_again",
    re.IGNORECASE,
)


def missed_proxy(output: str) -> bool:
    """Whether a program of a command with a gate probably looked for the network elsewhere."""
    return _NO_ROUTE.search(output) is not None


def needs_network(command: str, output: str) -> bool:
    """Whether a command that failed without network probably failed for want of it."""
    return bool(_PROGRAMS.search(command) or _FAILURES.search(output))


def advice(command: str, *, sources: str) -> str:
    """Return how to make the call again with network. `sources` names those of a labelled
    thread's words."""
    installs = re.search(r"\b(?:pip3?|pipx|uv|npm|yarn|pnpm|cargo|gem)\b", command)
    asked = f"; the human is asked, because this thread holds words from {sources}"
    return HOW_TO_ASK.format(
        network="packages" if installs else "open", asked=asked if sources else ""
    )


_LOCAL = frozenset(
    {
        "[", "basename", "cat", "cd", "chmod", "comm", "cp", "cut", "date", "diff",
        "dirname", "du", "echo", "expr", "false", "file", "grep", "head", "jq", "ls",
        "md5sum", "mkdir", "mv", "nl", "paste", "printf", "pwd", "realpath", "rm", "rmdir",
        "seq", "sha256sum", "sort", "stat", "tac", "tail", "test", "touch", "tr", "tree",
        "true", "uniq", "wc", "which",
    }
)  # fmt: skip
"""Programs that reach no network, whatever their arguments."""
_RUNS_OTHERS = late(r"\$\(|`|<\(|>\(|/dev/(?:tcp|udp)")


def may_use_network(command: str) -> bool:
    """Whether an unconfined command can have reached the network: all but plain file commands."""
    if _RUNS_OTHERS.search(command):
        return True
    try:
        lexer = shlex.shlex(command.replace("\n", ";"), posix=True, punctuation_chars=True)
        lexer.commenters = ""  # a comment would hide the lines after it
        words = list(lexer)
    except ValueError:
        return True
    is_first = True
    for word in words:
        if set(word) <= set(";&|()"):
            is_first = True
        elif is_first and word not in _LOCAL:
            return True
        else:
            is_first = False
    return False


LONGEST_S = 3600
SHORTEST_S = 0.1
READ_ONLY = "(It could write only here, since this thread holds words from {label}.)"
WHOSE_LIMIT = (
    "Do it with less, or ask the human to raise the limit ([command_limits] in agiraph.toml)"
)
INSTEAD = 'Without a person: network="hosts" reaches {hosts}.'
NOT_CONFINED = "commands are not confined here, so it could read and change all that your user can"
_OUTSIDE = ("..", "nodes", "node_", "published", UPLOADS)
"""Words by which a command names files outside of its own folder. A path that the command puts
together while it runs is missed; in a clean thread labelled files are then hidden from it."""
MAX_OUTPUTS = 20
"""Long outputs of earlier commands that a command can read, the newest ones."""


def _spool_name(ctx: RunContext, call_id: str) -> str:
    # The same name after a restart, so that `_resolve` finds what the supervisor recorded.
    return f"{ctx.lease.thread_id}-{call_id}"


def as_answer(result: CommandResult) -> Done:
    """Return a command's result as the model reads it: how it ended, then its output."""
    match result.ended:
        case "exited":
            # No duration for short commands, so that the breaker sees equal outcomes as equal.
            took = f", {result.seconds:.0f} s" if result.seconds >= 10 else ""
            over = f": {result.limit}. {WHOSE_LIMIT}" if result.limit else ""
            how = f"[exit code {result.exit_code}{took}{over}]"
        case "timed_out":
            how = f"[ended after {result.seconds:.0f} s: it ran out of time]"
        case "cancelled":
            how = f"[cancelled after {result.seconds:.1f} s]"
        case "over_limit":
            how = f"[ended after {result.seconds:.1f} s: {result.limit}. {WHOSE_LIMIT}]"
        case "interrupted":
            how = (
                f"[interrupted after {result.seconds:.1f} s: the runtime was cut off and the "
                "command with it. It may have done part of its work; look before you repeat it.]"
            )
    output = result.output.replace("\0", NO_TEXT)
    code = result.exit_code if result.ended == "exited" else None
    return Done(f"{how}\n{output}".rstrip(), failed=result.exit_code != 0, exit_code=code)


def _as_labelled(ctx: RunContext, result: CommandResult, label: Label) -> Done:
    """Return a command's result with its output in a fence: it may hold untrusted text."""
    if result.output.strip():
        fenced = enclose_foreign(
            result.output, thread=ctx.lease.thread_id, source=ctx.describe(label)
        )
        result = replace(result, output=fenced)
    return replace(as_answer(result), label=label, is_fenced=True)


async def _resolve(ctx: RunContext, call: ToolCall, known: Known) -> Answer | None:
    """Answer a command that was running when the runtime crashed, from its spool."""
    spool = ctx.home.spool(_spool_name(ctx, call.id))
    result = await asyncio.to_thread(commands.resolve, spool)
    await given_folders.catch_up(ctx)
    if result is None:
        return Done(
            "The runtime was cut off before this command began. It did not run; call it again "
            "if you still want it.",
            failed=True,
        )
    # With the label of the intent, and of the hosts that the command reached before the crash.
    label = ctx.label | await ctx.store.read(threads.label_of, ctx.lease.thread_id)
    label = label.without(ctx.trusted)
    return as_answer(result) if not label else _as_labelled(ctx, result, label)


def unconfined_way_out(ctx: RunContext, command: str) -> WayOut | None:
    """Return the way out of every command that is not confined; None if this one is."""
    if ctx.command_rules.confinement.is_confined:
        return None
    return WayOut(sink=Sink.UNCONFINED_COMMAND, target=command, why=NOT_CONFINED)


async def _way_out(ctx: RunContext, call: ToolCall) -> WayOut | None:
    command = str(call.arguments.get("command", ""))
    if (unconfined := unconfined_way_out(ctx, command)) is not None:
        return unconfined
    named = call.arguments.get("network")
    seen = given_folders.label_of(ctx)
    network = network_of(named, is_labelled=bool(ctx.label | seen), trust=ctx.team.trust)
    if network == "none":
        return None
    also = f", and it can read {seen}" if seen and not ctx.label else ""
    instead = ""
    if network == "open" and (hosts := links.typed_hosts(command)):
        granted = await ctx.store.read(_granted_hosts, ctx, hosts)
        instead = INSTEAD.format(hosts=", ".join(sorted(hosts))) if granted == hosts else ""
    return WayOut(sink=SINKS[network], target=command, why=WHY[network] + also, instead=instead)


def _granted_hosts(tx: Tx, ctx: RunContext, hosts: set[str]) -> set[str]:
    """Return those of these hosts that a person lets commands reach."""
    return {host for host in hosts if grants.find(tx, ctx.team.id, "reach", host) is not None}


async def _brings(ctx: RunContext, command: str, timeout: int, network: Network | None) -> Label:
    """Return the label of what the command may print and leave in its folder before it reaches a
    host: the gate labels its thread for each host, before anything is sent there.

    Raise `Refused` if a command of a clean thread could send labelled files somewhere: a person is
    asked only in a thread that is labelled.
    """
    reach = await ctx.store.read(reach_of, ctx, command, network)
    is_possible = ctx.command_rules.confinement.is_confined
    is_free = reach.network == "none" or (verdict(SINKS[reach.network], ctx.team.trust) == "free")
    is_asked = ctx.label or ctx.is_confirmed
    if reach.label and not is_asked and not (is_possible and is_free):
        raise Refused(READS_AND_SENDS.format(label=ctx.describe(reach.label)))
    is_local = network is None and not may_use_network(command)
    if is_possible or is_local or reach.is_trusted:
        return reach.label
    return reach.label | FROM_NETWORK


class _Reach(NamedTuple):
    """What a command can read of files that hold untrusted text, and which network it has."""

    network: Network
    label: Label
    """Of the labelled files that the command can read."""
    hidden: tuple[str, ...]
    """Paths in the team's folder of those that it cannot."""
    grants: tuple[Grant, ...]
    """The grants of the team."""
    is_trusted: bool
    """Whether a person trusts what this very command prints."""


def reach_of(tx: Tx, ctx: RunContext, command: str, named: Network | None) -> _Reach:
    """Return what a command sees of labelled files. In a clean thread it sees those of other nodes
    and of the team only if its words name their folders, and it can talk to no host."""
    granted = grants.of_team(tx, ctx.team.id)
    is_trusted = any(g.allows("trust", command.strip(), now=tx.now) for g in granted)
    own = {ctx.node.id, ctx.scope.reviewed, *_referred(ctx)}
    nodes, files = threads.labelled(tx, ctx.team.id), file_labels.under(tx, ctx.team.id)
    near = join(label for node, label in nodes if node in own)
    near |= join(f.label for f in files if _node_of(f.path) in own or _is_given(f.path))
    near = (near | given_folders.label_of(ctx)).without(ctx.trusted)
    is_named = any(word in command for word in (*_OUTSIDE, str(ctx.home.path)))
    is_confined = ctx.command_rules.confinement.is_confined
    is_mute = named in (None, "none", "packages") or not is_confined
    far, hidden = CLEAN, ()
    if ctx.label_before_call or (is_named and is_mute):
        far = join([*(label for _, label in nodes), *(file.label for file in files)])
    elif nodes or files:
        desk = f"agents/{ctx.agent.name}"
        hidden = (
            *(f"nodes/{node}" for node, _ in nodes if node not in own),
            *(f.path for f in files if _node_of(f.path) not in own and not _is_given(f.path)),
            *(f"{desk}/{PAGES}", f"{desk}/{RESULTS}"),
        )
    label = near | far
    is_labelled = bool(ctx.label_before_call or label)
    network = network_of(named, is_labelled=is_labelled, trust=ctx.team.trust)
    return _Reach(network, label, hidden, tuple(granted), is_trusted)


def _appeared(
    tx: Tx, ctx: RunContext, command: str, named: Network | None, hidden: tuple[str, ...]
) -> Label:
    """Return the label of what a command may have read that came while it ran: files that its words
    name, and uploads. Only `hidden`, the labelled files of its beginning, was hidden from it."""
    uploads = file_labels.under(tx, ctx.team.id, f"{UPLOADS}/")
    seen = join(file.label for file in uploads if file.path not in hidden)
    return seen | reach_of(tx, ctx, command, named).label


def _referred(ctx: RunContext) -> set[str]:
    """Return the nodes whose results this node was given to read."""
    return {_node_of(path) for path in ctx.node.refs.values()}


def _is_given(path: str) -> bool:
    """Whether a labelled path is in a folder that a person gave to the team."""
    return path.startswith("folders/")


def _node_of(path: str) -> str:
    """Return the id of the node that a path in the team's folder belongs to; else nothing."""
    return path.split("/")[1] if path.startswith("nodes/") else ""


@tool(
    effect="once",
    runs_commands=True,
    way_out=_way_out,
    brings=_brings,
    resolve=_resolve,
    basic_for=EVERY_ROLE,
)
async def bash(
    ctx: RunContext,
    command: Annotated[str, Field(min_length=1)],
    timeout: Annotated[int, Field(ge=1, le=LONGEST_S, description="Seconds")] = 120,
    network: NetworkArgument = None,
) -> Answer:
    """Run a shell command in scratch/, to see its exit code and output. It gets no input; what it
    leaves running is ended; a pipe fails if any part does. A file keeps output that is cut.
    network: none, packages (default), hosts (allowed), open (may ask).
    """
    node, left = ctx.home.node_path(ctx.team.id, ctx.node.id), ctx.seconds_left
    # With the label that this command brings: `_brings` has put it on the intent.
    label = ctx.label
    is_offline = bool(label) and not ctx.is_confirmed
    reach = await ctx.store.read(reach_of, ctx, command, network)
    gate = await _gate(ctx, command, reach)
    async with given_folders.watched(ctx) as watched:
        try:
            result = await commands.run(
                ctx.home.spool(_spool_name(ctx, ctx.current_call_id)),
                command=commands.reporting(command),
                cwd=node / "scratch",
                # No command outlives the node's deadline. One that would have no time left still
                # gets a moment, so that the model is told "out of time" and not an odd error.
                timeout=timeout if left is None else min(timeout, max(left, SHORTEST_S)),
                env=await _environment(ctx, gate, scratch_only=is_offline),
                spec=spec(
                    ctx,
                    scratch_only=is_offline,
                    network="gate" if gate.is_open else "none",
                    hidden=reach.hidden,
                    guards=watched.guards,
                ),
                limits=ctx.command_rules.limits,
                team=ctx.team.id,
                serve=gate.serve,
            )
        finally:
            await gate.close()
            watched.label = gate.label
    label |= reach.label | gate.label  # another node may have read untrusted text since
    label |= await ctx.store.read(_appeared, ctx, command, network, reach.hidden)
    answer = _as_labelled(ctx, result, label) if label else as_answer(result)
    of_folders = watched.remark("" if result.exit_code == 0 else result.output)
    remark = f"{_remark(ctx, command, reach, result, gate)}\n{of_folders}".strip()
    return replace(answer, text=f"{answer.text}\n{remark}") if remark else answer


async def _environment(ctx: RunContext, gate: CommandGate, *, scratch_only: bool) -> dict[str, str]:
    home = home_of_command(ctx, scratch_only=scratch_only)
    await asyncio.to_thread(gate.write_settings, home)
    return commands.child_environment(home, gate.environment)


async def _gate(ctx: RunContext, command: str, reach: _Reach) -> CommandGate:
    rules = None
    if reach.network != "none":
        # A person who has allowed this very call has seen which packages it names.
        is_bound = bool(ctx.label_before_call or reach.label) and not ctx.is_confirmed
        rules = await command_gate.rules_of(
            ctx, reach.network, command=command, granted=reach.grants, is_bound=is_bound
        )
        if (
            reach.network == "open"
            and (hosts := await private_sends.bounds(ctx, command)) is not None
        ):
            rules = rules.bound_to(hosts)
    return CommandGate(
        ctx, rules, call_id=ctx.current_call_id, command=command, is_trusted=reach.is_trusted
    )


def _remark(
    ctx: RunContext, command: str, reach: _Reach, result: CommandResult, gate: CommandGate
) -> str:
    """Return what the model must know of the command's network and files, if anything."""
    if refused := gate.remark():
        return refused
    if result.exit_code == 0 or not ctx.command_rules.confinement.is_confined:
        return ""
    if gate.is_open and missed_proxy(result.output):
        return PROXY_ONLY.format(network=reach.network)
    if not gate.is_open and needs_network(command, result.output):
        has_none = reach.network == "none"
        return advice(command, sources=ctx.describe(ctx.label)) if has_none else NO_GATE
    if ctx.label and not ctx.is_confirmed:
        return READ_ONLY.format(label=ctx.describe(ctx.label))
    return HIDDEN if reach.hidden and "No such file" in result.output else ""


def home_of_command(ctx: RunContext, *, scratch_only: bool = False) -> Path:
    """Return the folder that is HOME for a command of this node; it is created if needed."""
    node = ctx.home.node_path(ctx.team.id, ctx.node.id)
    level = ctx.command_rules.confinement.level
    return sandbox.home_folder(node, level=level, scratch_only=scratch_only)


def spec(
    ctx: RunContext,
    *,
    network: NetworkKind,
    scratch_only: bool = False,
    hidden: Iterable[str] = (),
    guards: Mapping[str, Guard] | None = None,
) -> Spec | None:
    """Return what a command of this node sees; None (all) if commands are not confined here.

    `guards` say what it may not change of given folders; it can change none without a guard.
    """
    # Where commands are not confined, none runs without a person's word (`_way_out`), and what came
    # of it is labelled (`_brings`).
    confinement = ctx.command_rules.confinement
    if not confinement.is_confined:
        return None
    return sandbox.spec_of(
        ctx.home,
        ctx.scope,
        level=confinement.level,
        has_spare_user=confinement.has_spare_user,
        masked=ctx.command_rules.masked,
        readable=ctx.command_rules.readable,
        refs=ctx.node.refs.values(),
        outputs=_long_outputs(ctx),
        folders=given_folders.seen_by(ctx),
        guards=guards,
        skills=ctx.skills,
        scratch_only=scratch_only,
        network=network,
        hidden=hidden,
    )


def _long_outputs(ctx: RunContext) -> list[Path]:
    """Return the files of outputs that were cut: the model was told their names."""
    calls = [c.id for turn in ctx.transcript.turns for c in turn.calls if c.name == bash.name]
    spools = (ctx.home.spool(_spool_name(ctx, call_id)) for call_id in reversed(calls))
    files = (spool / "output" for spool in spools)
    is_long = (file for file in files if file.exists() and file.stat().st_size > SHOWN_BYTES)
    return list(islice(is_long, MAX_OUTPUTS))
