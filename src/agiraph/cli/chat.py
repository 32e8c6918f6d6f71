"""`agiraph chat`: a conversation with an agent, at a terminal or through a pipe."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click
from rich.console import Console
from rich.text import Text

from agiraph import location
from agiraph.cli.asking import deadline, decide, question_lines
from agiraph.cli.costs import of_cost
from agiraph.cli.inbox import everything, show
from agiraph.cli.session import (
    CONNECTION_LOST,
    clean,
    command,
    connected,
    plain_console,
    shown,
    table,
)
from agiraph.cli.talk import Activity, act_line, find_agent, find_reply, looked
from agiraph.cli.teams import AGENTS, BOARD
from agiraph.client import Client, ConnectionLost, ReplyDelta, Resync
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.events import Event
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.records.doubts import as_text, sentences
from agiraph.redaction import environment

if TYPE_CHECKING:  # loaded at a terminal only: see the module
    from agiraph.api.views import AgentView, MessageView
    from agiraph.cli.line_editor import LineEditor

PIPED_LINE_BYTES = 16 * 1024 * 1024
"""The longest line that is read from a pipe."""
EARLIER_MESSAGES = 10
"""The number of earlier messages that are shown first."""
ACTS_SHOWN = "What a reply did stands under it, after \u2192. Without such a line it did nothing."
HELP = {
    "/board": "list the team's tasks",
    "/inbox": "list questions, approvals and reports",
    "/agents": "list the team's agents",
    "/work": "show what is under way, with its progress",
    "/switch NAME": "talk with another agent of the team, or with another team",
    "/cost": "show the team's cost",
    "/nudge TEXT": "add TEXT to the agent's current work; it does not reply",
    "/undo N": "undo what the reply under number N did; without N, the last",
    "/secret NAME": "keep a password under NAME; write `secret NAME` instead of it",
    "/skip": "leave the question open, and go on with the conversation",
    "/stop": "cancel the team's unfinished tasks",
    "/help": "show this list",
    "/quit": "leave; the team keeps working (Ctrl-D does the same)",
}
_IDLE_STATUSES = ("idle", "waiting_for_you", "left")


@click.command()
@click.argument("agent")
@click.option("--team", help="The team of the AGENT, if AGENT is a name.")
@command
async def chat(agent: str, team: str | None) -> None:
    """Talk with an AGENT, and answer its questions.

    AGENT is an agent's id, its name with --team, or a team's name for its coordinator. /help lists
    the commands. From a pipe, a line is sent when the agent has replied to the line before and is
    idle.
    """
    console = plain_console()
    history = location.find(environment()).home / "history"
    async with connected() as client:
        found = await find_agent(client, agent, team)
        async with Prompt(console, history, [name.split()[0] for name in HELP]) as prompt:
            talking: AgentView | None = found
            while talking is not None:
                talking = await Chat(client, talking, prompt).run()


class Chat:
    """One conversation: a task reads lines, another shows the team's events."""

    def __init__(self, client: Client, agent: AgentView, prompt: Prompt) -> None:
        self._client = client
        self._agent = agent
        self._prompt = prompt
        self._team = agent.team_id
        self._questions: dict[str, MessageView] = {}
        """Open questions, oldest first."""
        self._late: set[str] = set()
        """Questions that arrived while a line was being typed: that line is not their answer."""
        self._skipped: set[str] = set()
        self._streamed = ""
        """The part of the current reply that was streamed to the terminal."""
        self._last_shown = 0
        """The number of the newest event that was shown."""
        self._acts: list[tuple[str, int]] = []
        """What replies did, as shown: message and place of each. Its number counts from 1."""
        self._changed = asyncio.Event()
        self._interrupted = prompt.interrupted
        self._activity = Activity(client, agent)
        self._next: AgentView | None = None
        """The agent to talk with from now on, if the person has switched."""

    async def run(self) -> AgentView | None:
        """Talk until the person leaves; return the agent that they switched to, if they did."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._interrupted.set)
        self._last_shown = (await self._client.team(self._team)).head
        await self._greet()
        tasks = [
            asyncio.create_task(self._show_events()),
            asyncio.create_task(self._converse()),
        ]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()
        return self._next

    async def _greet(self) -> None:
        if self._prompt.is_terminal:
            name = f"[bold]{shown(self._agent.name)}[/] [dim]{self._agent.id}[/]"
            self._prompt.print(f"{name}  [dim]/help lists commands, Ctrl-D leaves[/]")
            self._prompt.print(f"[dim]{ACTS_SHOWN}[/]")
            for message in await self._client.conversation(self._agent.id, limit=EARLIER_MESSAGES):
                if message.kind not in ("question", "approval"):
                    self._show(message.sender, message.text)
                    self._show_doubts(sentences(message.doubts))
                    self._show_acts(message.id, [act_line(act) for act in message.acts])
        for item in await everything(self._client):
            if item.needs_answer and item.message.team_id == self._team:
                self._ask(item.message)
        await self._mark_read()

    def _show(self, sender: str, text: str) -> None:
        who = "[green]you[/]" if is_person(sender) else f"[bold]{shown(self._agent.name)}[/]"
        self._prompt.print(f"{who}  {shown(text)}")

    def _show_doubts(self, points: Sequence[str]) -> None:
        if points:
            self._prompt.print(shown(as_text(points)))

    def _show_acts(self, message: str, acts: Sequence[str]) -> None:
        """Show what a reply did, each with the number by which `/undo` knows it."""
        for place, act in enumerate(acts):
            self._acts.append((message, place))
            self._prompt.print(f"  [dim]\u2192 {shown(act)}  /undo {len(self._acts)}[/]")

    # Lines of the person

    async def _converse(self) -> None:
        while (line := await self._line()) is not None and line not in ("/quit", "/exit"):
            try:
                await self._handle(line)
            except Refused as error:
                self._prompt.print(f"[red]{shown(str(error))}[/]")
            if self._next is not None:
                return
            if self._prompt.is_terminal and (status := await self._activity.status()):
                self._prompt.print(f"[dim]{status}[/]")

    async def _handle(self, line: str) -> None:
        if line.startswith("/"):
            await self._run_command(line)
        elif question := self._question():
            await self._answer(question, line)
        elif line:
            await self._say(line)

    async def _line(self) -> str | None:
        """Return the next line; None after Ctrl-C, after Ctrl-D and at the end of a pipe."""
        for identity in self._late & self._questions.keys():
            self._late.discard(identity)
            self._print_question(self._questions[identity])
        return await self._or_interrupted(self._prompt.line())

    def _question(self) -> MessageView | None:
        not_now = self._late | self._skipped
        return next((q for q in self._questions.values() if q.id not in not_now), None)

    async def _answer(self, question: MessageView, line: str) -> None:
        text, decision = decide(question, line)
        await self._client.answer(question.id, text, decision=decision)
        self._questions.pop(question.id, None)
        if not self._prompt.is_terminal:
            await self._until_idle()

    async def _say(self, text: str) -> None:
        message = await self._client.send(self._agent.id, text)
        if self._agent.kind != "llm":
            self._prompt.print(
                f"[dim]{shown(self._agent.name)} reads this before its next step.[/]"
            )
            return
        if await self._until(lambda: find_reply(self._client, message)):
            await self._catch_up()
        await self._mark_read()
        if not self._prompt.is_terminal:
            await self._until_idle()

    async def _until_idle(self) -> None:
        """Wait until the agent is idle or asks a question, then show all events so far."""

        async def is_idle() -> bool:
            agent = await self._client.agent(self._agent.id)
            return self._question() is not None or agent.status in _IDLE_STATUSES

        if await self._until(is_idle):
            await self._catch_up()

    async def _catch_up(self) -> None:
        """Wait until all events so far are shown: a reply is stored before its event arrives."""
        head = (await self._client.team(self._team)).head

        async def is_shown() -> bool:
            return self._last_shown >= head

        await self._until(is_shown)

    async def _until(self, condition: Callable[[], Awaitable[Any]]) -> bool:
        """Check the condition after every event until it holds; return False after Ctrl-C."""
        while True:
            # Before the check: an event that arrives while the condition is read sets it again.
            self._changed.clear()
            if await condition():
                return True
            if await self._or_interrupted(self._changed.wait()) is None:
                self._interrupted.clear()
                self._prompt.print("[dim]The agent keeps working; its reply will appear here.[/]")
                return False

    async def _or_interrupted(self, awaited: Awaitable[Any]) -> Any:
        """Return the awaited value, or None after Ctrl-C."""
        wanted = asyncio.ensure_future(awaited)
        stopped = asyncio.create_task(self._interrupted.wait())
        try:
            await asyncio.wait({wanted, stopped}, return_when=asyncio.FIRST_COMPLETED)
            return wanted.result() if wanted.done() else None
        finally:
            wanted.cancel()
            stopped.cancel()
            # A cancelled line puts the terminal back as it was before anything else is printed.
            await asyncio.gather(wanted, stopped, return_exceptions=True)

    async def _run_command(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        client, team = self._client, self._team
        match name:
            case "/board":
                self._prompt.print(table(await client.board(team), BOARD))
            case "/inbox":
                items = await everything(client)
                self._prompt.print_above(lambda console: show(console, items))
            case "/agents":
                self._prompt.print(table(await client.agents(team), AGENTS))
            case "/cost":
                named = (await client.team(team)).name
                self._prompt.print(of_cost(named, await client.cost(team)))
            case "/work":
                self._prompt.print(
                    *(await self._activity.cards() or ["[dim]Nothing is under way.[/]"])
                )
            case "/switch" if rest.strip():
                self._next = await self._other(rest.strip())
            case "/switch":
                raise Refused("Say with whom: /switch NAME. /agents lists the team's agents.")
            case "/nudge" if rest.strip():
                await client.send(self._agent.id, rest.strip(), mode="nudge")
                self._prompt.print("[dim]It reads this before its next step.[/]")
            case "/secret":
                await self._enter_secret(rest.strip())
            case "/undo":
                await self._undo(rest.strip())
            case "/skip":
                self._skip()
            case "/stop":
                await client.stop(team)
                self._prompt.print("[dim]The team was stopped. Send a message to start again.[/]")
            case "/help":
                for each, meaning in HELP.items():
                    self._prompt.print(f"  {each:12} [dim]{meaning}[/]")
            case _:
                raise Refused(f"There is no command {line!r}. /help lists the commands.")

    async def _undo(self, number: str) -> None:
        """Undo what a reply did: the act with this number, or the last that was shown."""
        numbers = {str(place): act for place, act in enumerate(self._acts, 1)}
        chosen = numbers.get(number or str(len(self._acts)))
        if chosen is None:
            raise Refused("No reply shown here did that. The lines with an arrow have the numbers.")
        await self._client.undo_act(*chosen)
        await self._catch_up()

    def _skip(self) -> None:
        """Leave the question open that the next line would answer."""
        if (question := self._question()) is None:
            return self._prompt.print("[dim]No question is open.[/]")
        self._skipped.add(question.id)
        later = f'agiraph answer {question.id} "TEXT"'
        return self._prompt.print(f"[dim]Left open. Answer it later with: {later}[/]")

    async def _enter_secret(self, name: str) -> None:
        """Ask for a secret without showing it, and keep it under this name."""
        if not name or " " in name:
            raise Refused("Write /secret NAME alone; you are asked for the secret itself then.")
        value = await self._or_interrupted(self._prompt.line(secret=f"secret {name}: "))
        if not value:
            return self._prompt.print("[dim]Nothing was kept.[/]")
        await self._client.enter_secret(name, value)
        said = f"Kept, and hidden from now on. Write `secret {shown(name)}` where you mean it."
        return self._prompt.print(f"[dim]{said}[/]")

    async def _other(self, name: str) -> AgentView:
        """Return the agent of this team with that name, else the coordinator of that team."""
        try:
            return await find_agent(self._client, name, self._team)
        except Refused:
            return await find_agent(self._client, name, None)

    # Events of the team

    async def _show_events(self) -> None:
        async with contextlib.aclosing(self._client.watch(self._team, self._last_shown)) as frames:
            async for frame in frames:
                match frame:
                    case ReplyDelta() if frame.lane == "reply" and frame.agent_id == self._agent.id:
                        self._stream(frame)
                    case Event():
                        await self._show_event(frame)
                        self._shown_up_to(frame.seq)
                    case ConnectionLost():
                        self._prompt.print(CONNECTION_LOST)
                    case Resync():
                        self._shown_up_to(frame.head)
                    case ReplyDelta():
                        pass  # of another agent, or of work

    def _shown_up_to(self, seq: int) -> None:
        self._last_shown = seq
        self._changed.set()

    def _stream(self, words: ReplyDelta) -> None:
        if self._prompt.is_typing:
            return  # the whole message is shown when it is complete
        if words.offset == 0 and not words.is_draft:
            self._streamed = ""
        # After a reconnect the server sends the whole text so far; only what was not printed yet is
        # new.
        fresh = words.text[max(0, len(self._streamed) - words.offset) :]
        if fresh and not self._streamed:
            self._prompt.end_stream()
            self._prompt.stream(f"{clean(self._agent.name)}  ")
        self._prompt.stream(clean(fresh))
        self._streamed += fresh

    async def _show_event(self, event: Event) -> None:
        data = event.data
        match event.type:
            case "message.sent" if data["sender"] == self._agent.id and is_person(
                data["recipient"]
            ):
                self._show_message(data["text"])
                self._show_doubts(data.get("doubts") or ())
                self._show_acts(data["message_id"], data.get("acts") or ())
                if read := data.get("consulted"):
                    self._prompt.print(f"  [dim]before that: {shown(looked(read))}[/]")
            case "question.asked" if is_person(data["recipient"]):
                item = await self._client.item(data["message_id"])
                if item.needs_answer:
                    self._ask(item.message)
            case "reply.act_undone" if data["sender"] == self._agent.id:
                self._prompt.print(f"  [dim]\u2192 {shown(data['text'])}[/]")
                if data["kind"] == "answered":
                    self._ask((await self._client.item(data["about"])).message)
            case "question.answered":
                self._questions.pop(data["message_id"], None)
            case _ if self._prompt.is_terminal and (lines := await self._activity.lines(event)):
                self._prompt.print(*lines)
            case _:
                pass

    def _show_message(self, text: str) -> None:
        """Show a complete message, without the part that was streamed."""
        streamed, self._streamed = self._streamed, ""
        if streamed and text.startswith(streamed.strip()):
            self._prompt.stream(clean(text[len(streamed.strip()) :]))
            self._prompt.end_stream()
        else:
            self._show(self._agent.id, text)

    def _ask(self, question: MessageView) -> None:
        if question.id in self._questions:
            return
        self._questions[question.id] = question
        if self._prompt.has_begun:
            self._late.add(question.id)  # the line that is being typed is not its answer
        self._print_question(question)

    def _print_question(self, question: MessageView) -> None:
        sign = Text.from_markup(f"[bold yellow]?[/] [bold]{shown(question.sender_name)}[/]  ")
        width = self._prompt.console.width
        lines: list[str | Text] = [*question_lines(question, width, before=sign, indent="    ")]
        if waits := deadline(question.waits_until):
            lines.append(f"    [dim]{waits}[/]")
        if question.kind == "approval":
            lines.append("    [dim]type approve or deny, then a note if you like[/]")
        if self._prompt.is_terminal:
            lines.append("  [dim]Your next line is the answer; /skip leaves the question open.[/]")
        self._prompt.print(*lines)

    async def _mark_read(self) -> None:
        said = await self._client.conversation(self._agent.id, limit=1)
        if said and is_person(said[-1].recipient):
            await self._client.read_up_to(self._agent.id, said[-1].seq)


# The terminal or the pipe


class Prompt:
    """Reads lines and prints output; output never mixes with the line that is being typed."""

    def __init__(self, console: Console, history: Path, words: Sequence[str]) -> None:
        self.console = console
        self.is_terminal: bool = sys.stdin.isatty() and sys.stdout.isatty()
        self.interrupted: asyncio.Event = asyncio.Event()
        """Set when the person presses Ctrl-C between two lines."""
        self._history = history
        self._words = words
        self._editor: LineEditor | None = None
        self._pipe: asyncio.StreamReader | None = None
        self._is_typing = False
        self._is_midline = False

    async def __aenter__(self) -> Self:
        if self.is_terminal:
            from agiraph.cli.line_editor import LineEditor

            self._editor = LineEditor(self._history, self._words, self.interrupted.set).__enter__()
        else:
            self._pipe = await _open_pipe()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._editor is not None:
            self._editor.__exit__()
        self.end_stream()

    async def line(self, *, secret: str = "") -> str | None:
        """Return the next line without its margins; None when there are no more lines. One that is
        asked for as `secret` is neither shown nor kept in the history."""
        self.end_stream()
        if self._editor is None:
            assert self._pipe is not None, "a prompt is entered before it is read"
            read = await self._pipe.readline()
            return read.decode(errors="replace").strip() if read else None
        self._is_typing = True
        try:
            line = await (self._editor.secret(secret) if secret else self._editor.line())
        finally:
            self._is_typing = False
        return None if line is None else line.strip()

    @property
    def has_begun(self) -> bool:
        """Whether the person has typed part of a line."""
        return self._is_typing and self._editor is not None and bool(self._editor.text)

    @property
    def is_typing(self) -> bool:
        """Whether the prompt waits for a line at a terminal."""
        return self._is_typing

    def print(self, *things: Any) -> None:
        """Print whole lines, above the line that is being typed."""

        def print_each(console: Console) -> None:
            for thing in things:  # tables fit themselves into the width
                console.print(thing, soft_wrap=isinstance(thing, str | Text))

        self.print_above(print_each)

    def print_above(self, write: Callable[[Console], None]) -> None:
        """Let `write` print whole lines, above the line that is being typed."""
        self.end_stream()
        # Printing straight to the terminal would tear apart the line that is being typed.
        if self._editor is not None and self._is_typing:
            self._editor.print_above(lambda: self._write(write))
        else:
            self._write(write)

    def _write(self, write: Callable[[Console], None]) -> None:
        write(self.console)
        self.console.file.flush()

    def stream(self, text: str) -> None:
        """Print a piece of a line that is still arriving. Call this only while nobody types."""
        if text:
            self.console.print(text, markup=False, end="")
            self.console.file.flush()
            self._is_midline = not text.endswith("\n")

    def end_stream(self) -> None:
        """End the line that `stream` began, if there is one."""
        if self._is_midline:
            self._is_midline = False
            self.console.print()


async def _open_pipe() -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=PIPED_LINE_BYTES)
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or sys.stdin.isatty():
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    else:  # files and /dev/null never block; epoll refuses them, and uvloop aborts the process
        reader.feed_data(sys.stdin.buffer.read())
        reader.feed_eof()
    return reader
