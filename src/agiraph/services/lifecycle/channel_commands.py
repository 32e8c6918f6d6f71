"""Channel commands: runs the slash commands that a person may send on a channel, such as
`/teams`."""

from datetime import timedelta

from agiraph.domain.acts import describe
from agiraph.domain.agents import Team
from agiraph.domain.channels import ChannelState
from agiraph.domain.errors import NotFound
from agiraph.domain.messages import Message
from agiraph.services.lifecycle import client_turns, undoing
from agiraph.services.mail import deliveries
from agiraph.store import deliveries as rows
from agiraph.store import inbox_items, teams
from agiraph.store.channels import CHANNELS
from agiraph.store.teams import AGENTS, TEAMS
from agiraph.store.tx import Tx

HELP = (
    "/teams lists your teams, /to TEAM or /to TEAM/AGENT chooses whom you write to, /inbox counts "
    "what waits for you, /undo takes back the last thing that a reply did, /mute HOURS and "
    "/unmute hold messages back."
)
MOST_TEAMS = 30
MOST_HOURS = 24 * 14


def open_teams(tx: Tx) -> list[Team]:
    """Return the teams that can be written to, oldest first."""
    return [team for team in teams.every(tx, limit=10_000) if team.status != "archived"]


def ask_recipient(tx: Tx) -> str:
    """Return the text that asks the person for the recipient of their message, with the teams to
    choose from."""
    names = [f"- {team.name}" for team in open_teams(tx)][-MOST_TEAMS:]
    if not names:
        return 'There is no team yet. Make one with: agiraph new "GOAL"'
    listed = "\n".join(names)
    return f"To whom? Write /to NAME first, or reply to a message of theirs.\n{listed}"


def run(tx: Tx, channel: ChannelState, text: str) -> str | None:
    """Carry out a command; return what to say about it, or None if the text is not a command.

    The caller holds the lock of the channel's row.
    """
    word, _, rest = text.strip().partition(" ")
    match word.lower().partition("@")[0]:  # Telegram adds the bot's name in some menus
        case "/start" | "/help":
            return HELP
        case "/teams":
            chosen = None if channel.agent_id is None else AGENTS.find(tx, channel.agent_id)
            now = "" if chosen is None else f"You write to {_name(tx, chosen.id)}.\n"
            return now + "\n".join(f"- {team.name}" for team in open_teams(tx)[-MOST_TEAMS:])
        case "/to":
            return _choose(tx, channel, rest.strip())
        case "/inbox":
            asked = inbox_items.InboxFilter(person_id=channel.person_id)
            count = len(inbox_items.waiting_for_person(tx, asked, limit=100))
            return f"Questions and requests that wait for you: {count}."
        case "/mute":
            return _mute(tx, channel, rest.strip())
        case "/unmute":
            CHANNELS.update(tx, channel.name, muted_until=None)
            deliveries.reschedule(tx, channel.person_id)
            return "Messages come at once again."
        case _:
            return None


def undo_last(tx: Tx, channel: ChannelState, text: str, about: Message | None) -> str:
    """Carry out `/undo` or `/undo N`, of the reply that it answers, else of the last one on this
    channel; return what to say about it, or nothing if the text is another one."""
    word, _, number = text.strip().partition(" ")
    if word.lower().partition("@")[0] != "/undo":
        return ""
    reply = about if about is not None else rows.last_with_acts(tx, channel.name)
    if reply is None or not reply.acts:
        return "There is nothing to undo: that reply did nothing."
    number = number.strip() or str(len(reply.acts))
    known = {str(place): place - 1 for place in range(1, len(reply.acts) + 1)}
    if number not in known:
        return f"Write /undo N with 1 to {len(reply.acts)}."
    return undo(tx, channel, reply, known[number])


def undo(tx: Tx, channel: ChannelState, reply: Message, place: int) -> str:
    """Undo what a reply to the channel's person did; return what to say about it."""
    if reply.recipient != channel.person_id or not 0 <= place < len(reply.acts):
        return "There is no such reply any more."
    return describe(undoing.undo(tx, reply.id, place).acts[place])


def _choose(tx: Tx, channel: ChannelState, name: str) -> str:
    try:
        agent = client_turns.find_agent(tx, name)
    except NotFound:
        return f"There is no {name!r}.\n{ask_recipient(tx)}"
    CHANNELS.update(tx, channel.name, agent_id=agent.id)
    return f"You write to {_name(tx, agent.id)} now."


def _mute(tx: Tx, channel: ChannelState, hours: str) -> str:
    count = int(hours) if hours.isascii() and hours.isdigit() and len(hours) < 5 else 0
    if not 1 <= count <= MOST_HOURS:
        return f"Write /mute HOURS with 1 to {MOST_HOURS} hours."
    until = tx.now + timedelta(hours=count)
    CHANNELS.update(tx, channel.name, muted_until=until)
    deliveries.reschedule(tx, channel.person_id)
    return f"Muted until {until:%Y-%m-%d %H:%M} UTC. Replies to what you write still come."


def _name(tx: Tx, agent_id: str) -> str:
    agent = AGENTS.get(tx, agent_id)
    return f"{agent.name} of {TEAMS.get(tx, agent.team_id).name!r}"
