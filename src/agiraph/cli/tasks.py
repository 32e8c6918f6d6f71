"""`agiraph cancel`, `retry` and `extend`: end a task, try it again, give it more of its limits."""

from typing import TYPE_CHECKING

import click

from agiraph.api.views import NodeDetail
from agiraph.cli.session import clean, command, connected, is_missing, source
from agiraph.client import Client
from agiraph.domain.errors import NotFound, Refused
from agiraph.domain.work import Extension

if TYPE_CHECKING:
    from agiraph.cli.local import Local


@click.command()
@click.argument("task")
@command
async def cancel(task: str) -> None:
    """Cancel a TASK by its id, and all tasks below it. The rest of the team goes on."""
    async with connected() as client:
        found = await _task(client, task)
        await client.cancel_node(found.id)
    if found.status.is_final:
        below = "What was still open below it is cancelled."
        return click.echo(f"{clean(found.title)!r} is {found.status} already. {below}")
    click.echo(f"Cancelled {clean(found.title)!r}.")


@click.command()
@click.argument("task")
@command
async def retry(task: str) -> None:
    """Try a failed or partial TASK again, by its id. It goes on where it stopped."""
    async with connected() as client:
        tried = await client.retry_node((await _task(client, task)).id)
    click.echo(f"Trying {clean(tried.title)!r} again. Watch it with: agiraph tail {tried.team_id}")


async def _task(client: Client, task: str) -> NodeDetail:
    try:
        return await client.node(task)
    except Refused as error:
        if not is_missing(error):
            raise
        raise NotFound("task", task, known="`agiraph board TEAM` lists them.") from error


@click.command()
@click.argument("node")
@click.option("--turns", type=click.IntRange(1), help="How many more turns.")
@click.option("--tokens", type=click.IntRange(1), help="How many more tokens.")
@click.option(
    "--budget",
    "--usd",
    "usd",
    type=click.FloatRange(min=0, min_open=True),
    help="How many more dollars.",
)
@click.option(
    "--seconds", type=click.FloatRange(min=0, min_open=True), help="How many more seconds."
)
@command
async def extend(
    node: str, turns: int | None, tokens: int | None, usd: float | None, seconds: float | None
) -> None:
    """Raise the limits of a NODE: the id of a task, or a team for its goal.

    A task that a limit ended goes on where it stopped; one that still works gets more room.
    """
    if turns is None and tokens is None and usd is None and seconds is None:
        raise click.UsageError(
            "Say how much more it gets: --turns, --tokens, --budget (dollars) or --seconds."
        )
    async with source(to_write=True) as found:
        node_id = node if node.startswith("node_") else await _goal_of(found, node)
        more = Extension(
            turns=turns or 0, tokens=tokens or 0, usd=usd or 0.0, seconds=seconds or 0.0
        )
        extended = await found.extend_node(node_id, more)
        is_running = isinstance(found, Client)
    team = extended.team_id
    watch = f"agiraph tail {team}" if is_running else f"agiraph run --resume {team}"
    how = "Watch it with" if is_running else "Continue with"
    click.echo(f"Extended {clean(extended.title)!r}. {how}: {watch}")


async def _goal_of(found: "Client | Local", name: str) -> str:
    """Return the id of the node of a team's newest goal."""
    team = await found.team(name)
    goals = [n for n in await found.board(team.id) if n.source == "system" and not n.parent_id]
    if not goals:
        raise Refused(f"{team.name!r} has no task for its goal; name a task by its id.")
    return max(goals, key=lambda goal: goal.id).id
