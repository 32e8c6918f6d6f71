"""Own tools: makes a tool of the runtime from a person's function."""

import asyncio
import hashlib
import logging
import re
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any

from agiraph.core.domain.errors import Misconfigured, Refused
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.tools import EVERY_ROLE, ON_DEMAND, ToolProperties
from agiraph.core.home.layout import spool_name
from agiraph.core.run_context import RunContext
from agiraph.core.tools.base import Form, Tool
from agiraph.core.tools.calls import added
from agiraph.core.tools.calls.synonyms import folded
from agiraph.core.tools.commands.shell import SHORTEST_S, home_of_command, reach_of
from agiraph.core.tools.own_code import (
    LONGEST_TIMEOUT_S,
    CommandOutput,
    Secrets,
    ToolContext,
    ToolDeclaration,
)
from agiraph.core.tools.toolsets import BUILT_IN
from agiraph.features.extensions.own_threads import (
    OwnThreads,
    Raised,
    TookTooLong,
    as_text,
    error_text,
)
from agiraph.features.extensions.signatures import signature_of
from agiraph.sandbox import commands, sandbox
from agiraph.sandbox.commands import CommandResult

NOT_CONFINED = (
    "Commands cannot be confined on this machine, so tools may not run any. `agiraph doctor` says "
    "why."
)


async def run(
    ctx: RunContext, command: str, *, timeout_s: float, number: int
) -> tuple[CommandResult, Label]:
    """Run a command and return how it ended, with the label of what it could read.

    A call that is made again after a crash gets the results of the commands that had ended.
    """
    confinement, rules = ctx.command_rules.confinement, ctx.command_rules
    if not confinement.is_confined:
        raise Refused(NOT_CONFINED)
    reach = await ctx.store.read(reach_of, ctx, command, "none")
    digest = hashlib.sha256(command.encode(errors="replace")).hexdigest()[:16]
    name = f"{ctx.lease.thread_id}-{ctx.current_call_id}-{number}-{digest}"
    # `spool_name` hashes a long name. The thread's id is put in front of the hash, because deleting
    # a team finds the output files of its commands by that prefix.
    spool = name if (plain := spool_name(name)) == name else f"{ctx.lease.thread_id}-{plain}"
    left = ctx.seconds_left
    result = await commands.run(
        ctx.home.spool(spool),
        command=command,
        cwd=ctx.home.node_path(ctx.team.id, ctx.node.id) / "scratch",
        timeout=timeout_s if left is None else min(timeout_s, max(left, SHORTEST_S)),
        env=commands.child_environment(home_of_command(ctx, scratch_only=True)),
        spec=sandbox.spec_of(
            ctx.home,
            ctx.scope,
            level=confinement.level,
            has_spare_user=confinement.has_spare_user,
            masked=rules.masked,
            readable=rules.readable,
            refs=ctx.node.refs.values(),
            skills=ctx.skills,
            scratch_only=True,
            hidden=reach.hidden,
        ),
        limits=rules.limits,
        team=ctx.team.id,
    )
    return result, reach.label


log: logging.Logger = logging.getLogger("agiraph.features.extensions")

_NAME = re.compile(r"[a-z][a-z0-9_]{1,47}")
IN_DOUBT = "It may or may not have happened; find out before you call it again."
_PATIENCE_S = 20.0
"""How much longer than a command's own time limit the tool waits for its result."""


def make_tool(declared: ToolDeclaration, secrets: Secrets, threads: OwnThreads) -> Tool:
    """Return the tool of a declaration, guarded and labelled by what it touches; raise `Refused` if
    the declaration is wrong."""
    check(declared)
    name = declared.name
    signature = signature_of(name, declared.act)

    async def act(ctx: RunContext, /, **given: Any) -> Answer:
        return await _Call(declared, secrets, threads, ctx).answer(
            given, has_context=signature.takes_context
        )

    roles = frozenset(declared.roles)
    made = Tool(
        name=name,
        description=signature.description,
        form=Form(lambda: signature.arguments, signature.schema),
        effect=declared.effect,
        act=act,
        properties=ToolProperties(
            roles=roles,
            in_sight=roles if declared.is_shown else ON_DEMAND,
            outside=declared.touches,
        ),
    )
    return added.guarded(made)


def check(declared: ToolDeclaration) -> None:
    """Raise `Refused` if something in a tool's declaration is wrong."""
    name = declared.name
    if not _NAME.fullmatch(name):
        raise Refused(
            f"the tool's name {name!r} is not made of 2 to 48 small letters, digits and _ ."
        )
    if folded(name) in map(folded, BUILT_IN):
        raise Refused(f"the name {name!r} belongs to a tool of agiraph; choose another.")
    if declared.touches not in ("nothing", "reads", "changes", "sends"):
        raise Refused(
            f"the tool {name!r} touches {declared.touches!r}; write nothing, reads, changes or "
            "sends."
        )
    if declared.effect not in ("repeatable", "once"):
        raise Refused(
            f"the tool {name!r} has the effect {declared.effect!r}; write repeatable or once."
        )
    if unknown := sorted(set(declared.roles) - EVERY_ROLE):
        raise Refused(f"the tool {name!r} names roles that do not exist: {', '.join(unknown)}.")
    check_timeout(f"the tool {name!r}", declared.timeout_s)


def check_timeout(what: str, timeout_s: float) -> None:
    if not 0 < timeout_s <= LONGEST_TIMEOUT_S:
        raise Refused(f"{what} has timeout_s={timeout_s!r}; give seconds, up to 3600.")


class _Call:
    """One call of a person's function by an agent."""

    def __init__(
        self, declared: ToolDeclaration, secrets: Secrets, threads: OwnThreads, ctx: RunContext
    ) -> None:
        self._declared = declared
        self._threads = threads
        self._ctx = ctx
        self._loop = asyncio.get_running_loop()
        self._commands: list[Future[Any]] = []
        self._is_over = False
        self._label: Label = CLEAN
        """The label of all that the call's commands could read."""
        self._context = ToolContext(
            declared.name,
            declared.secrets,
            secrets,
            team=ctx.team.name,
            agent=ctx.agent.name,
            call_id=ctx.current_call_id,
            run=self._run,
        )

    async def answer(self, given: dict[str, Any], *, has_context: bool) -> Answer:
        """Make the call. Return its result, or an error text, as the model reads it."""
        declared, name = self._declared, self._declared.name
        first = (self._context,) if has_context else ()
        act = partial(declared.act, *first, **given)
        try:
            text = await self._threads.call(
                name, act, timeout_s=declared.timeout_s, finish=partial(as_text, name)
            )
            return self._labelled(Done(text))
        except Raised as raised:
            return self._labelled(self._failed(raised.error))
        except TookTooLong:
            late = f"{name} did not return within {declared.timeout_s:g} seconds."
            return self._labelled(self._doubtful(late))
        except Refused as refusal:  # too many calls still run
            return self._labelled(Done(str(refusal), failed=True))
        finally:
            self._is_over = True
            for command in self._commands:
                command.cancel()

    def _failed(self, error: BaseException) -> Done:
        name = self._declared.name
        if isinstance(error, Misconfigured):
            return Done(f"{name} failed: {error} Only the human can fix that.", failed=True)
        # `as_text` refuses a result; a context refuses what the tool may not do.
        said = str(error) if isinstance(error, Refused) else f"{name} failed: {error_text(error)}"
        log.warning("%s", said)
        return self._doubtful(said)

    def _doubtful(self, text: str) -> Done:
        is_once = self._declared.effect == "once"
        return Done(f"{text} {IN_DOUBT}" if is_once else text, failed=True)

    def _labelled(self, answer: Done) -> Done:
        # `added.guarded` labels an answer with the tool's name only if the answer has no label. So
        # the label of the commands and that of the tool are joined here.
        if not self._label:
            return answer
        label = self._label | added.label_of(self._declared.name, self._declared.touches)
        return replace(answer, label=label)

    def _run(self, command: str, timeout_s: float) -> CommandOutput:
        """Run a command in the sandbox. Called in the tool's own thread."""
        if self._is_over:  # its thread may still run after the time limit
            raise Refused(f"{self._declared.name}: the call has ended; no command was run.")
        number = len(self._commands)
        ran = asyncio.run_coroutine_threadsafe(
            run(self._ctx, command, timeout_s=timeout_s, number=number), self._loop
        )
        self._commands.append(ran)
        result, label = ran.result(timeout_s + _PATIENCE_S)
        self._label |= label
        return CommandOutput(result.exit_code, result.output)
