"""Program set-up: what a program of the settings gets before it runs, and gives back afterwards."""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from agiraph.core.domain.agents import Command
from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.text.command_words import executable_of
from agiraph.core.run_context import RunContext
from agiraph.core.tools.commands import command_gate, private_sends, shell
from agiraph.sandbox import commands
from agiraph.sandbox import credentials as program_credentials
from agiraph.sandbox.credentials import PRESETS
from agiraph.sandbox.folders.git_guard import Guard
from agiraph.sandbox.gate import vendors
from agiraph.sandbox.gate_channel import Serve
from agiraph.sandbox.sandbox import SYSTEM, Mount, Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUp:
    """What a program is started with: command, environment, sandbox, and its network gate."""

    command: str
    env: Mapping[str, str]
    spec: Spec | None
    serve: Serve | None


@asynccontextmanager
async def prepared(
    ctx: RunContext, call: ToolCall, named: Command | None, guards: Mapping[str, Guard]
) -> AsyncGenerator[SetUp]:
    """Yield how the agent's program is started. One that the settings name, and that we know, gets
    the person's sign-in; a renewed one is taken back at the end.

    `named` is None for a command that a model wrote. `guards` say what it may not change of given
    folders.
    """
    command = named.command if named else ctx.agent.command or ""
    given = dict(named.environment) if named else None
    allowed = None if named else await private_sends.bounds(ctx, command)
    gate = await command_gate.of_program(ctx, call, command, given, allowed)
    home = shell.home_of_command(ctx)
    name = vendors.program_of(command) if named else ""
    lent = await asyncio.to_thread(program_credentials.lend, name, Path.home(), home)
    preset: Mapping[str, str] = PRESETS[name].environment if name in PRESETS else {}
    spec = shell.spec(ctx, network="gate" if gate.is_open else "none", guards=guards)
    try:
        yield SetUp(
            command=command,
            env=commands.child_environment(home, {**preset, **(given or {}), **gate.environment}),
            spec=spec if named is None else _with_program(spec, command),
            serve=gate.serve,
        )
    finally:
        await gate.close()
        await asyncio.to_thread(program_credentials.take_back, lent)


def _with_program(spec: Spec | None, command: str) -> Spec | None:
    """Show a program of the settings its own files, which may lie in the home of a person."""
    if spec is None:
        return None
    path = os.environ.get("PATH", "")
    folders = program_credentials.folders_of(executable_of(command), path)
    # A program that lies in a home itself must not show the whole of it.
    shown = (one for one in folders if not Path.home().is_relative_to(one) and not _is_system(one))
    mounts = (Mount(source=folder, target=folder) for folder in shown)
    return replace(spec, mounts=(*mounts, *spec.mounts))


def _is_system(folder: Path) -> bool:
    return any(folder.is_relative_to(path) for path in SYSTEM)
