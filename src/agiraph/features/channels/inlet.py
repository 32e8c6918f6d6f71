"""Inlet: reads the two-way channels and processes what the paired person writes there.

This installation polls each channel, so it need not be reachable from outside. If several processes
run, one reads a channel: two would take each other's messages.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial

from agiraph.core.domain.agents import Agent, Team
from agiraph.core.domain.errors import Conflict, Refused, StoreUnavailable
from agiraph.core.domain.ids import AgentId, MessageId, new_id
from agiraph.core.domain.messages import NEEDS_ANSWER, Message, option_with_number
from agiraph.core.domain.records.acts import describe
from agiraph.core.domain.records.channels import (
    Channel,
    ChannelState,
    Choice,
    DeliveryFailed,
    Incoming,
    TwoWayChannel,
    is_two_way,
)
from agiraph.core.domain.times.time import Clock
from agiraph.core.domain.value import value
from agiraph.core.runtime.background.periodic import PeriodicTasks, Wait
from agiraph.core.services.lifecycle import answers, conversation, routing
from agiraph.core.services.mail import deliveries
from agiraph.core.services.members import roster
from agiraph.core.store import channels, teams
from agiraph.core.store import deliveries as delivery_rows
from agiraph.core.store.channels import CHANNELS
from agiraph.core.store.database import Store
from agiraph.core.store.lists import inbox_items
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.teams import AGENTS, TEAMS
from agiraph.core.store.tx import Tx
from agiraph.faultpoints import fault
from agiraph.features.channels import pairing

READING_FOR = timedelta(minutes=3)
"""How long a process's claim on a channel lasts. It is longer than one wait for messages; after a
crash other processes wait this long before they read the channel."""
LATE_AFTER = timedelta(minutes=10)
"""If a message arrives later than this after it was sent, the agent is told when it was sent."""
PAIRED = (
    "Paired: messages from your agents come here, and what you write here goes to them. Reply to a "
    "message to answer it. {help}"
)
ON_THE_CARD = (
    "Only a button under the whole request decides, or the card in the inbox. Words approve "
    "nothing; your agent was told what you wrote."
)
TOO_LATE = "The work that asked has ended. You are asked what to do with your answer."
WHICH = (
    "That message lists several questions, so this was not passed on. Reply to it with /answer, "
    "the number of one of them and your words, or answer in the inbox."
)
NOT_HERE = "This request can be decided in the inbox only: the message does not show all of it."
HELP = (
    "/teams lists your teams, /to TEAM or /to TEAM/AGENT chooses whom you write to, /inbox counts "
    "what waits for you, /undo takes back the last thing that a reply did, /mute HOURS and "
    "/unmute hold messages back."
)
MOST_TEAMS = 30
MOST_HOURS = 24 * 14


@value
class Taken:
    """A message of the paired person was processed."""

    notice: str = ""
    """What the channel replies to the person; empty: nothing."""


def claim_reading(tx: Tx, name: str, *, reader: str) -> ChannelState | None:
    """Return the state of a channel that this process reads; None while another one does."""
    if not channels.claim_reading(tx, name, reader=reader, until=tx.now + READING_FOR):
        return None
    return CHANNELS.get(tx, name)


def advance(tx: Tx, name: str, cursor: str, *, dropped: int = 0) -> None:
    """Record the cursor up to which a channel was read, and add the dropped messages of unpaired
    senders. Every message before the cursor was processed."""
    channel = CHANNELS.get(tx, name, lock=True)
    CHANNELS.update(tx, name, cursor=cursor, dropped=channel.dropped + dropped)


def take(tx: Tx, name: str, incoming: Incoming) -> Taken | None:
    """Process one message; return None if its sender is not paired or it was processed before.

    A message with the pairing code pairs its sender. Raise `Refused` if the message cannot be
    carried out; the caller then records it with `refuse`. Locks the channel's row.
    """
    channel = CHANNELS.get(tx, name, lock=True)
    if channels.is_received(tx, name, incoming.key):
        return None
    if pairing.redeem(tx, channel, incoming):
        channels.record(tx, name, incoming.key, None)
        return Taken(notice=PAIRED.format(help=HELP))
    answered = delivery_rows.by_receipt(tx, name, incoming.replies_to)
    # A sender's address can be forged where the channel does not check it. Only the recipient of
    # a message of ours knows its receipt.
    is_proven = incoming.is_proven or answered is not None
    if channel.address is None or incoming.sender != channel.address or not is_proven:
        CHANNELS.update(tx, name, dropped=channel.dropped + 1)
        return None
    if incoming.choice is not None:
        taken, said = _choose(tx, channel, incoming.choice), None
    else:
        about = None if answered is None else MESSAGES.get(tx, answered.message_id)
        taken, said = _hear(tx, channel, incoming, about)
    channels.record(tx, name, incoming.key, said)
    return taken


def refuse(tx: Tx, name: str, incoming: Incoming) -> None:
    """Record a message that could not be carried out, so that it is not tried again."""
    if not channels.is_received(tx, name, incoming.key):
        channels.record(tx, name, incoming.key, None)


def _choose(tx: Tx, channel: ChannelState, choice: Choice) -> Taken:
    """Answer a question, or decide on an approval, by a button under the message that shows it."""
    about = MESSAGES.find(tx, choice.message_id)
    if choice.act is not None and about is not None:
        return Taken(notice=_undo(tx, channel, about, choice.act))
    if about is None or about.recipient != channel.person_id or about.kind not in NEEDS_ANSWER:
        return Taken(notice="There is no such question any more.")
    sent = [d for d in delivery_rows.of_message(tx, about.id) if d.channel == channel.name]
    is_closed = about.answered_at is not None
    may_decide = choice.decision is not None and any(d.may_decide for d in sent)
    if about.kind == "approval" and not may_decide and not is_closed:
        return Taken(notice=NOT_HERE)
    text = ""
    if about.kind == "question":
        if choice.option is None or not 0 <= choice.option < len(about.options):
            return Taken(notice="There is no such option; reply in words.")
        text = about.options[choice.option]
    decision = choice.decision if about.kind == "approval" else None
    person_id = channel.person_id
    try:
        late = answers.answer_question(tx, about.id, text, person_id=person_id, decision=decision)
    except Conflict as error:
        return Taken(notice=str(error))
    if late:
        return Taken(notice=TOO_LATE)
    done = {"approve": "Approved.", "deny": "Denied."}
    return Taken(notice=done[decision] if decision else f"Answered: {text}")


def _hear(
    tx: Tx, channel: ChannelState, incoming: Incoming, about: Message | None
) -> tuple[Taken, MessageId | None]:
    """Process a text: an answer to a question, a command for the channel, or a message to an
    agent."""
    # An answer cannot hold files, so a text with files is a message to the agent.
    if about is not None and (listed := _listed(tx, channel, about)):
        return Taken(notice=_answer_listed(tx, channel, incoming.text, listed)), None
    if about is not None and _is_answer(tx, about, incoming):
        said = option_with_number(about.options, incoming.text) or incoming.text
        answers.answer_question(tx, about.id, said, person_id=channel.person_id)
        return Taken(), None
    if notice := _undo_last(tx, channel, incoming.text, about):
        return Taken(notice=notice), None
    if about is None and (notice := _run_command(tx, channel, incoming.text)) is not None:
        return Taken(notice=notice), None
    agent = _addressee(tx, channel, about)
    if agent is None:
        return Taken(notice=_ask_recipient(tx)), None
    said = conversation.say(
        tx,
        agent.id,
        _dated(tx, incoming),
        person_id=channel.person_id,
        client_id=f"{channel.name}:{incoming.key}",
        attachments=incoming.attachments,
    )
    is_request = about is not None and about.kind == "approval"
    return Taken(notice=ON_THE_CARD if is_request else ""), said.id


def _listed(tx: Tx, channel: ChannelState, about: Message) -> list[MessageId]:
    """Return the questions that stand in one message of the channel with this one, by their
    numbers; none if it stands alone."""
    sent = [d for d in delivery_rows.of_message(tx, about.id) if d.channel == channel.name]
    receipt = sent[0].receipt if sent else None
    found = [] if receipt is None else delivery_rows.of_receipt(tx, channel.name, receipt)
    return [each.message_id for each in found] if len(found) > 1 else []


def _answer_listed(tx: Tx, channel: ChannelState, text: str, listed: Sequence[MessageId]) -> str:
    """Answer the question that `/answer NUMBER WORDS` names; return what to say about it. Words
    without a number answer none of several questions."""
    command, _, rest = text.strip().partition(" ")
    number, _, words = rest.strip().partition(" ")
    numbers = {str(MESSAGES.get(tx, each).seq): each for each in listed}
    if command.lower().partition("@")[0] != "/answer" or not words.strip():
        return WHICH
    if (identity := numbers.get(number.rstrip(".:"))) is None:
        return WHICH
    question = MESSAGES.get(tx, identity)
    said = option_with_number(question.options, words) or words.strip()
    if _needs_option(question) and said not in question.options:
        return f"Choose one of these by its number: {', '.join(question.options)}."
    try:
        late = answers.answer_question(tx, identity, said, person_id=channel.person_id)
    except Conflict:
        return f"Question {number} is answered already; the first answer stands."
    return TOO_LATE if late else f"Answered: {said}"


def _is_answer(tx: Tx, about: Message, incoming: Incoming) -> bool:
    if about.kind != "question" or not incoming.text.strip() or incoming.attachments:
        return False
    said = option_with_number(about.options, incoming.text) or incoming.text
    if _needs_option(about) and said not in about.options:
        return False
    return inbox_items.is_waiting(tx, about.id) or about.closed_at is not None


def _needs_option(question: Message) -> bool:
    """Whether words that are none of its options answer nothing: it asks about a late answer."""
    return question.topic == "late_answer"


def _dated(tx: Tx, incoming: Incoming) -> str:
    """Return the text, with the time at which it was sent if that is long ago."""
    if tx.now - incoming.sent_at <= LATE_AFTER:
        return incoming.text
    minutes = round((tx.now - incoming.sent_at).total_seconds() / 60)
    late = f"{minutes} minutes" if minutes < 120 else f"{minutes // 60} hours"
    when = f"{incoming.sent_at:%Y-%m-%d %H:%M} UTC"
    return f"(Sent {when}; it arrives {late} later.)\n{incoming.text}"


def _addressee(tx: Tx, channel: ChannelState, about: Message | None) -> Agent | None:
    """Return the agent that a text is for: the sender of the message that it replies to, the one
    chosen on the channel, or the coordinator of the only team; None if that is not clear."""
    identity = channel.agent_id if about is None else AgentId(about.sender)
    agent = None if identity is None else teams.AGENTS.find(tx, identity)
    if agent is not None and teams.TEAMS.get(tx, agent.team_id).status == "archived":
        if about is not None:
            raise Refused("That team is archived; nobody there can receive messages.")
        agent = None
    if agent is not None:
        return agent if agent.retired_at is None else teams.coordinator(tx, agent.team_id)
    open_teams = _open_teams(tx)
    return teams.coordinator(tx, open_teams[0].id) if len(open_teams) == 1 else None


def _open_teams(tx: Tx) -> list[Team]:
    """Return the teams that can be written to, oldest first."""
    return [team for team in teams.every(tx, limit=10_000) if team.status != "archived"]


def _ask_recipient(tx: Tx) -> str:
    """Return the text that asks the person for the recipient of their message, with the teams to
    choose from."""
    names = [f"- {team.name}" for team in _open_teams(tx)][-MOST_TEAMS:]
    if not names:
        return 'There is no team yet. Make one with: agiraph new "GOAL"'
    listed = "\n".join(names)
    return f"To whom? Write /to NAME first, or reply to a message of theirs.\n{listed}"


def _run_command(tx: Tx, channel: ChannelState, text: str) -> str | None:
    """Carry out a command; return what to say about it, or None if the text is not a command.

    The caller holds the lock of the channel's row.
    """
    word, _, rest = text.strip().partition(" ")
    match word.lower().partition("@")[0]:  # Telegram adds the bot's name in some menus
        case "/start" | "/help":
            return HELP
        case "/teams":
            chosen = None if channel.agent_id is None else AGENTS.find(tx, channel.agent_id)
            now = "" if chosen is None else f"You write to {_name_and_team(tx, chosen.id)}.\n"
            return now + "\n".join(f"- {team.name}" for team in _open_teams(tx)[-MOST_TEAMS:])
        case "/to":
            return _choose_agent(tx, channel, rest.strip())
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


def _undo_last(tx: Tx, channel: ChannelState, text: str, about: Message | None) -> str:
    """Carry out `/undo` or `/undo N`, of the reply that it answers, else of the last one on this
    channel; return what to say about it, or nothing if the text is another one."""
    word, _, number = text.strip().partition(" ")
    if word.lower().partition("@")[0] != "/undo":
        return ""
    reply = about if about is not None else delivery_rows.last_with_acts(tx, channel.name)
    if reply is None or not reply.acts:
        return "There is nothing to undo: that reply did nothing."
    number = number.strip() or str(len(reply.acts))
    known = {str(place): place - 1 for place in range(1, len(reply.acts) + 1)}
    if number not in known:
        return f"Write /undo N with 1 to {len(reply.acts)}."
    return _undo(tx, channel, reply, known[number])


def _undo(tx: Tx, channel: ChannelState, reply: Message, place: int) -> str:
    """Undo what a reply to the channel's person did; return what to say about it."""
    if reply.recipient != channel.person_id or not 0 <= place < len(reply.acts):
        return "There is no such reply any more."
    return describe(routing.undo(tx, reply.id, place).acts[place])


def _choose_agent(tx: Tx, channel: ChannelState, name: str) -> str:
    if (agent := roster.find_by_path(tx, name)) is None:
        return f"There is no {name!r}.\n{_ask_recipient(tx)}"
    CHANNELS.update(tx, channel.name, agent_id=agent.id)
    return f"You write to {_name_and_team(tx, agent.id)} now."


def _mute(tx: Tx, channel: ChannelState, hours: str) -> str:
    count = int(hours) if hours.isascii() and hours.isdigit() and len(hours) < 5 else 0
    if not 1 <= count <= MOST_HOURS:
        return f"Write /mute HOURS with 1 to {MOST_HOURS} hours."
    until = tx.now + timedelta(hours=count)
    CHANNELS.update(tx, channel.name, muted_until=until)
    deliveries.reschedule(tx, channel.person_id)
    return f"Muted until {until:%Y-%m-%d %H:%M} UTC. Replies to what you write still come."


def _name_and_team(tx: Tx, agent_id: str) -> str:
    agent = AGENTS.get(tx, agent_id)
    return f"{agent.name} of {TEAMS.get(tx, agent.team_id).name!r}"


log: logging.Logger = logging.getLogger("agiraph.channels")

OTHER_READS_S = 20.0
"""Seconds between two checks whether another process still reads the channel."""


class Inlet:
    def __init__(
        self, store: Store, clock: Clock, channels: Mapping[str, Channel], periodic: PeriodicTasks
    ) -> None:
        self._store = store
        self._clock = clock
        self._channels = {name: each for name, each in channels.items() if is_two_way(each)}
        self._periodic = periodic
        self._reader = new_id("inlet")
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start one reading task for each channel. The outbox must have registered the channels."""
        self._tasks = [
            self._periodic.start(f"reading {name}", partial(self._read, name, channel))
            for name, channel in self._channels.items()
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _read(self, name: str, channel: TwoWayChannel) -> Wait | None:
        """Wait for new messages of a channel and process them, if no other process reads it."""
        state = await self._store.write(claim_reading, name, reader=self._reader)
        if state is None:
            return partial(self._clock.sleep, OTHER_READS_S)
        received = await channel.receive(state.cursor, state.address)
        paired, unpaired = state.address, 0
        for message in received.messages:
            # Many messages of unpaired senders cost one write, not one each.
            if message.sender != paired and not pairing.may_hold_code(message.text):
                unpaired += 1
                continue
            taken = await self._take(name, channel, message)
            paired = message.sender if taken is not None else paired
        if received.cursor != state.cursor:
            # Last: after a crash before this they are received again, and known by their keys.
            await self._store.write(advance, name, received.cursor, dropped=unpaired)
        return None

    async def _take(self, name: str, channel: TwoWayChannel, message: Incoming) -> Taken | None:
        """Process one message and acknowledge it; return None if it was dropped."""
        fault("fx:before:receive")
        try:
            taken = await self._store.write_first(take, name, message)
        except StoreUnavailable:
            raise
        except Exception as error:  # one that cannot be taken must not block those after it
            is_refused = isinstance(error, Refused)
            log.warning("channel %s: a message cannot be processed", name, exc_info=not is_refused)
            await self._refuse(name, message)
            taken = Taken(notice=str(error) if is_refused else "That did not work; see the log.")
        fault("fx:after:receive")
        if taken is not None:
            await self._acknowledge(name, channel, message, taken.notice)
        return taken

    async def _refuse(self, name: str, message: Incoming) -> None:
        """Record that a message could not be processed.

        If that fails too, the error is logged, so that the cursor moves past the message. A
        database that is unavailable raises: the message is received again.
        """
        try:
            await self._store.write(refuse, name, message)
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("channel %s: a refused message cannot be recorded", name)

    async def _acknowledge(
        self, name: str, channel: TwoWayChannel, message: Incoming, notice: str
    ) -> None:
        try:
            await channel.acknowledge(message, notice)
        except DeliveryFailed as error:
            # The message is stored; only its acknowledgement is lost.
            log.warning("channel %s: a message was stored but not acknowledged: %s", name, error)
