"""`agiraph tail`: the events of a team, live."""

import contextlib
from collections.abc import AsyncGenerator

import click
import orjson
from rich.console import Console
from rich.markup import escape

from agiraph.api.views import TeamView
from agiraph.cli.progress import Progress
from agiraph.cli.session import CONNECTION_LOST, command, connected, shown
from agiraph.client import Client, ConnectionLost, Frame, ReplyDelta, Resync
from agiraph.domain.events import Event
from agiraph.domain.persons import is_person
from agiraph.domain.visible import visible

EARLIER_EVENTS = 30
"""The number of earlier events that are shown first."""


@click.command()
@click.argument("team")
@click.option("--after", type=click.IntRange(0), help="Begin after the event with this number.")
@click.option("--no-follow", is_flag=True, help="Exit after the newest event.")
@click.option("--json", "json_", is_flag=True, help="Print one event a line, for programs.")
@command
async def tail(team: str, after: int | None, no_follow: bool, json_: bool) -> None:
    """Show the events of a TEAM (its id or name), live. Ctrl-C exits; the team keeps working.

    After a lost connection, the events continue where they stopped, without a gap.
    """
    async with connected() as client:
        found = await client.team(team)
        begin = max(0, found.head - EARLIER_EVENTS) if after is None else after
        frames = (
            _stored_events(client, found, begin) if no_follow else client.watch(found.id, begin)
        )
        async with contextlib.aclosing(frames):
            if json_:
                await _print_lines(frames)
            else:
                await _show(client, found, frames)


async def _stored_events(client: Client, team: TeamView, after: int) -> AsyncGenerator[Frame]:
    while page := await client.events(team.id, after=after):
        for event in page:
            yield event
        after = page[-1].seq
        if after >= team.head:
            return


async def _print_lines(frames: AsyncGenerator[Frame]) -> None:
    async for frame in frames:
        match frame:
            case Event():
                click.echo(orjson.dumps(frame).decode())
            case Resync():
                click.echo(
                    f"agiraph: some events were skipped; continuing at event {frame.head}", err=True
                )
            case ReplyDelta() | ConnectionLost():
                pass


async def _show(client: Client, team: TeamView, frames: AsyncGenerator[Frame]) -> None:
    console = Console(highlight=False, emoji=False, soft_wrap=True)
    with Progress(console, activity="watching") as progress:
        for agent in await client.agents(team.id, all=True):
            progress.add_name(agent.id, agent.name)
        async for frame in _without_copies(frames):
            match frame:
                case Event():
                    _print_event(console, frame)
                    progress.show(frame)
                case ReplyDelta():
                    progress.show_delta(frame.text)
                case ConnectionLost():
                    console.print(CONNECTION_LOST)
                case Resync():
                    console.print(
                        f"[yellow]![/] some events were skipped; continuing at event {frame.head}"
                    )


async def _without_copies(frames: AsyncGenerator[Frame]) -> AsyncGenerator[Frame]:
    """Yield a broadcast once: it is a message for each member, all sent at the same moment."""
    last: object = None
    async for frame in frames:
        if isinstance(frame, Event) and frame.type == "message.sent":
            said = (frame.at, frame.data["sender"], frame.data["text"])
            if said == last:
                continue
            last = said
        yield frame


def _print_event(console: Console, event: Event) -> None:
    """Print messages, questions and changes of the team; `Progress` prints the work itself."""
    data = event.data
    match event.type:
        case "message.sent" if is_person(data["sender"]):
            console.print(f"[green]you[/] {shown(data['text'])}")
        case "message.sent" if is_person(data["recipient"]) and data["kind"] != "message":
            console.print(f"[magenta]✉[/] {data['kind']}: {shown(data['text'])}")
        case "reply.act_undone":
            console.print(f"[green]you[/] [dim]\u2192 {shown(data['text'])}[/]")
        case "question.asked":
            console.print(f"[bold yellow]?[/] {escape(visible(data['text']))}")
            is_approval = data["kind"] == "approval"
            if is_approval:  # a decision needs the whole call, not the tool's name alone
                console.print("  [dim]agiraph inbox --open shows the whole call[/]")
            answer = "approve|deny" if is_approval else '"TEXT"'
            console.print(f"  [dim]agiraph answer {data['message_id']} {answer}[/]")
        case "question.answered" if data.get("is_closed"):
            console.print(f"[dim]? {shown(data['text'])}[/]")
        case "question.answered":
            console.print(f"[green]you[/] {shown(data['decision'] or data['text'])}")
        case (
            "team.paused" | "team.resumed" | "team.stopped" | "team.completed"
            | "team.archived" | "team.deleted"
        ):  # fmt: skip
            console.print(f"[blue]■[/] the team is {event.type.removeprefix('team.')}")
        case "work.stopped" | "work.resumed":
            console.print(f"[blue]■[/] all work was {event.type.removeprefix('work.')}")
        case "team.restored":
            console.print("[blue]■[/] the team was taken out of the archive")
        case "team.changed":
            console.print("[blue]■[/] the team's settings were changed")
        case "trigger.fired":
            console.print("[blue]◷[/] a trigger fired")
        case _:
            pass
