"""Command line: the `agiraph` commands. An error is one line; exit code 2 means wrong usage."""

import ast
import asyncio
import gc
import importlib
import os
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import click
from click.shell_completion import CompletionItem

from agiraph.core.domain.errors import AgiraphError
from agiraph.core.domain.features import installed

SECTIONS: dict[str, dict[str, str]] = {
    "Run agiraph": {"up": "up", "serve": "up", "work": "up", "run": "run"},
    "Give work and talk": {
        "new": "settings", "say": "talk", "broadcast": "talk", "chat": "chat",
        "research": "", "inbox": "inbox", "answer": "inbox", "rate": "inbox",
        "confirm": "inbox",
    },
    "Watch": {
        "teams": "teams", "board": "teams", "agents": "teams", "tail": "progress",
        "thread": "teams", "memories": "teams", "insights": "teams", "triggers": "triggers",
        "cost": "costs", "evidence": "", "changes": "settings", "status": "teams",
    },
    "Control": {
        "set": "settings", "goal": "settings", "pause": "teams", "resume": "teams",
        "stop": "teams", "delete": "teams", "cancel": "teams", "retry": "teams",
        "extend": "teams", "schedule": "triggers", "undo": "settings", "away": "access",
        "zone": "access", "grants": "inbox", "grant": "inbox", "revoke": "inbox",
    },
    "Maintain": {
        "models": "models", "tools": "", "skills": "", "mcp": "",
        "prompts": "prompts", "doctor": "doctor", "backup": "", "restore": "",
        "export": "", "link": "access", "tokens": "access", "channels": "",
        "db": "up", "completion": "session",
    },
}  # fmt: skip
"""The commands in the order of the help, each with its module; without one a feature brings it."""


@cache
def places() -> dict[str, str]:
    """Return the module of each command that there is, in the order of the help."""
    brought = {name: place for one in installed() for name, place in one.commands.items()}
    places = {
        name: f"agiraph.cli.{module}" if module else brought.get(name, "")
        for section in SECTIONS.values()
        for name, module in section.items()
    }
    return {name: place for name, place in places.items() if place}


SHORT_HELP = 85
"""The longest short help of a command, in characters, as `agiraph --help` lists it."""


@cache
def _docstrings(module: str) -> dict[str, str]:
    """Return the docstrings of a module's functions, read from its source: an import would load all
    that its commands need. Without the source (in a zip, or compiled alone) they are imported."""
    try:
        path = Path(__file__).parents[1].joinpath(*module.split(".")[1:])
        source = path.with_suffix(".py").read_text(encoding="utf-8")
    except OSError:
        members = vars(importlib.import_module(module))
        found = {name: one for name, one in members.items() if isinstance(one, click.Command)}
        return {name: command.help or "" for name, command in found.items()}
    parsed = ast.parse(source)
    functions = (n for n in parsed.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    return {function.name: ast.get_docstring(function) or "" for function in functions}


def _short_help(name: str) -> str:
    described = click.Command(name, help=_docstrings(places()[name])[name])
    return described.get_short_help_str(limit=SHORT_HELP)


def _imported(place: str) -> ModuleType:
    """Import a module with the garbage collector off: what an import makes is kept for good."""
    if (known := sys.modules.get(place)) is not None:
        return known
    gc.disable()
    try:
        return importlib.import_module(place)
    finally:
        gc.freeze()
        gc.enable()


class Commands(click.Group):
    """A group that imports a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(places())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if (place := places().get(cmd_name)) is None:
            return None
        return getattr(_imported(place), cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args[0] not in names and not args[0].startswith("-"):
            raise click.exceptions.NoSuchCommand(args[0], possibilities=names, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        longest = max(len(name) for name in self.list_commands(ctx))
        for title, section in SECTIONS.items():
            names = (name for name in section if name in places())
            rows = [(name.ljust(longest), _short_help(name)) for name in names]
            with formatter.section(title):
                formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [CompletionItem(name, help=_short_help(name)) for name in names] + options


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="agiraph", message="agiraph %(version)s")
def agiraph() -> None:
    """Give a goal to a team of agents, watch them work, and get the result.

    Work survives a crash or a restart. A team that waits for you costs nothing.
    """


def main() -> None:
    try:
        # With standalone_mode off, click returns the exit code; commands return nothing else.
        sys.exit(agiraph.main(prog_name="agiraph", standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "agiraph"
        click.echo(f"agiraph: {error.format_message()} See: {where} --help", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt, asyncio.CancelledError):
        click.echo("Stopped.", err=True)
        # The shell's convention for a program that Ctrl-C ended: 128 plus the signal's number.
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output (such as `head`) has exited. Python would report it again when
        # it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (AgiraphError, OSError) as error:
        click.echo(f"agiraph: {error}", err=True)
        sys.exit(1)
