"""Tool commands: runs a shell command for a person's own tool, in the sandbox of the calling agent.

The command sees what a command of the agent sees, but no folder that a person gave to the team. It
writes to the scratch folder only and has no network, so it can send nothing out.
"""

import hashlib

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.home.layout import spool_name
from agiraph.core.run_context import RunContext
from agiraph.core.tools.commands.shell import SHORTEST_S, home_of_command, reach_of
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
