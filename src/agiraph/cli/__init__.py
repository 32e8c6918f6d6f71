"""Command line: `agiraph …`. An error is one line that says what to do; 2 is wrong use."""

import asyncio
import sys

import click

from agiraph.cli.agents import agents, thread
from agiraph.cli.cost import cost
from agiraph.cli.database import db
from agiraph.cli.export import export
from agiraph.cli.inbox import answer, inbox
from agiraph.cli.run import run
from agiraph.cli.teams import board, teams
from agiraph.cli.up import serve, up, work
from agiraph.domain.errors import AgiraphError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="agiraph", message="agiraph %(version)s")
def agiraph() -> None:
    """Give a goal to a team of agents, watch it being worked on, and have it done.

    Nothing is lost when the process dies, and waiting costs nothing.
    """


for command in (
    up,
    serve,
    work,
    run,
    teams,
    board,
    agents,
    thread,
    inbox,
    answer,
    cost,
    export,
    db,
):
    agiraph.add_command(command)


def main() -> None:
    try:
        # What a command exits with is given back; no command returns anything else.
        sys.exit(agiraph.main(standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "agiraph"
        click.echo(f"agiraph: {error.format_message()} See: {where} --help", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt, asyncio.CancelledError):
        click.echo("Stopped.", err=True)
        sys.exit(130)
    except (AgiraphError, OSError) as error:
        click.echo(f"agiraph: {error}", err=True)
        sys.exit(1)
