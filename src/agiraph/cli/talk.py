"""`agiraph say`, `agiraph broadcast`: send messages to agents; and look up agents and replies."""

import contextlib
from typing import TYPE_CHECKING

import click

from agiraph.api.views import ActView, AgentView, MessageView
from agiraph.cli.session import as_json, clean, command, connected, is_missing
from agiraph.cli.teams import json_option
from agiraph.client import Client
from agiraph.domain.errors import NotFound, Refused

if TYPE_CHECKING:
    from agiraph.cli.local import Local

SEARCHED_MESSAGES = 200
"""The number of newest messages that `find_reply` searches."""


def act_line(act: ActView) -> str:
    """Return what a reply did, in a line that says whether it was undone."""
    return f"{act.text} (undone)" if act.is_undone else act.text


async def find_agent(client: "Client | Local", name: str, team: str | None) -> AgentView:
    """Return the agent with that id, the agent of the team with that name, whether it has left or
    not, or the coordinator of the team with that name."""
    if team is not None:
        return await _named(client, (await client.team(team)).id, name)
    try:
        if name.startswith("agent_"):
            return await client.agent(name)
        found = await client.team(name)
    except Refused as error:
        if not is_missing(error):
            raise
        known = "Name a team for its coordinator, an agent by its id, or one by name with --team."
        raise NotFound("agent or team", name, known=known) from error
    if found.coordinator_id is None:
        raise NotFound("agent", name, known=f"All agents have left the team {found.name!r}.")
    return await client.agent(found.coordinator_id)


async def _named(client: "Client | Local", team: str, name: str) -> AgentView:
    """Return the agent with that name, else with that id, else the member with that role. Agents
    that have left keep their names."""
    members = await client.agents(team)
    wanted = name.lower()
    for key in ("name", "id", "role"):
        for agent in members:
            if getattr(agent, key).lower() == wanted:
                return agent
    for agent in await client.agents(team, all=True):
        if wanted in (agent.name.lower(), agent.id.lower()):
            return agent
    raise NotFound("teammate", name, known=f"On this team: {', '.join(a.name for a in members)}.")


async def find_reply(client: Client, message: MessageView) -> MessageView | None:
    """Return the reply to a message or to a later one: a reply answers all messages before it."""
    said = await client.conversation(message.recipient, limit=SEARCHED_MESSAGES)
    place = {each.id: index for index, each in enumerate(said)}
    for each in said:
        is_reply = each.sender == message.recipient and each.in_reply_to is not None
        # If the message is no longer among the newest ones, its place counts as behind all of them:
        # rather no reply than that of an earlier message.
        if is_reply and place.get(each.in_reply_to or "", -1) >= place.get(
            message.id, SEARCHED_MESSAGES
        ):
            return each
    return None


async def reply_to(client: Client, message: MessageView, head: int) -> MessageView:
    """Wait for the reply to a message that was sent after the event `head`."""
    async with contextlib.aclosing(client.follow(message.team_id, head)) as events:
        async for event in events:
            is_said = event.type == "message.sent" and event.data["sender"] == message.recipient
            if is_said and (reply := await find_reply(client, message)):
                return reply
    raise AssertionError("events never end")


@click.command()
@click.argument("agent")
@click.argument("text")
@click.option("--team", help="The team of the AGENT, if AGENT is a name.")
@click.option(
    "--nudge", is_flag=True, help="Add TEXT to the agent's current work; it does not reply."
)
@click.option("--wait", "waits", is_flag=True, help="Wait for the reply and print it.")
@json_option
@command
async def say(
    agent: str, text: str, team: str | None, nudge: bool, waits: bool, json_: bool
) -> None:
    """Send TEXT to an AGENT.

    AGENT is an agent's id, its name with --team, or a team's name for its coordinator.
    """
    if nudge and waits:
        raise click.UsageError("A nudge gets no reply: leave out --wait or --nudge.")
    async with connected() as client:
        found = await find_agent(client, agent, team)
        if waits and found.kind != "llm":
            raise Refused(f"{found.name!r} is a program and does not reply: leave out --wait.")
        # Read before the message is sent: the reply may be there before the first event is
        # requested.
        head = (await client.team(found.team_id)).head
        message = await client.send(found.id, text, mode="nudge" if nudge else "send")
        if waits:
            message = await reply_to(client, message, head)
    if json_:
        return click.echo(as_json(message))
    if waits:
        click.echo(clean(message.text))
        for act in message.acts:
            click.echo(f"\u2192 {clean(act_line(act))}")
        if message.acts:
            click.echo(f"Undo it in: agiraph chat {found.id}")
        return None
    then = (
        "It reads this before its next step."
        if nudge
        else f"Read the reply: agiraph chat {found.id}"
    )
    click.echo(f"Sent to {clean(found.name)}. {then}")


@click.command()
@click.argument("team")
@click.argument("text")
@json_option
@command
async def broadcast(team: str, text: str, json_: bool) -> None:
    """Send TEXT to every agent of a TEAM (its id or name).

    The coordinator acts on it; the others read it when they next work.
    """
    async with connected() as client:
        found = await client.team(team)
        sent = await client.broadcast(found.id, text)
        names = {agent.id: agent.name for agent in await client.agents(found.id)}
    if json_:
        return click.echo(as_json(sent))
    told = ", ".join(names.get(each.recipient, each.recipient) for each in sent)
    click.echo(f"Sent to {clean(told) or 'nobody: all agents have left'}.")
