"""Mutants: bugs planted on purpose. Each passes a clean run; the sweep must catch every one."""

import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from agiraph.core.domain.chat import Lease, Thread, ToolCall, Transcript, Turn
from agiraph.core.domain.ids import AgentId, MessageId, NodeId, TriggerId, new_id
from agiraph.core.domain.messages import Draft, Message
from agiraph.core.domain.outcomes import Done, Finished
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.stages import Stage
from agiraph.core.domain.triggers import Trigger
from agiraph.core.domain.work import Timer, WaitingOn
from agiraph.core.home import safe_folder
from agiraph.core.home.node_folder import NodeFolder
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.calls import ToolCaller
from agiraph.core.runtime.steps import Steps
from agiraph.core.services.board import requests, waiting
from agiraph.core.services.lifecycle import (
    answers,
    conversation,
    endings,
    journal,
    overspending,
    removal,
    timers,
)
from agiraph.core.services.mail import bus
from agiraph.core.services.triggers import due, firing
from agiraph.core.store import messages, spend, teams, threads, waits
from agiraph.core.store.engine.sqlite import SqliteStore
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import Tool
from agiraph.core.tools.files import file_labels, kept_writes
from agiraph.faultpoints import fault
from agiraph.features.knowledge.verbs import items, reflection
from agiraph.features.programs import runs as program_runs
from agiraph.features.research import kind
from agiraph.features.research.verbs import delivery
from agiraph.sandbox.folders import git_commits


def silent_rerun() -> None:
    """An interrupted command is run again without a report."""
    Transcript.intent = lambda self, call_id: None  # type: ignore[method-assign]
    from agiraph.core.tools.commands import shell

    original = shell._spool_name
    shell._spool_name = lambda ctx, call_id: f"{original(ctx, call_id)}-{os.getpid()}"


def late_intent() -> None:
    """The intent is written after the command instead of before it."""
    call = ToolCaller._call

    async def late(self: ToolCaller, ctx: RunContext, tool: Tool, made: ToolCall) -> Any:
        if tool.effect != "once" or ctx.transcript.intent(made.id):
            return await call(self, ctx, tool, made)
        done = await tool.act(ctx, **tool.read(made))
        ctx.add_turns(await ctx.store.write(journal.intend, ctx.lease, made, {}))
        return await self._record(ctx, made, done)

    ToolCaller._call = late  # type: ignore[method-assign]
    from agiraph.core.tools.commands import shell

    original = shell._spool_name
    shell._spool_name = lambda ctx, call_id: f"{original(ctx, call_id)}-{os.getpid()}"


def reruns_program() -> None:
    """A program that a crash interrupted is started again without asking."""

    async def again(ctx: RunContext, run: program_runs.Run) -> None:
        return None

    program_runs.decide = again


def split_send() -> None:
    """A message and the answer of the call that sent it commit one after the other."""
    _split("send_message")


def split_delegation() -> None:
    """A task and the wait for it commit one after the other."""
    _split("assign_task")


def split_extension() -> None:
    """More room for a task and the answer of the call that gave it commit one after the other."""
    _split("extend_task")


def _split(name: str) -> None:
    call = ToolCaller._call

    async def split(self: ToolCaller, ctx: RunContext, tool: Tool, made: ToolCall) -> Any:
        if tool.name != name:
            return await call(self, ctx, tool, made)

        def send(tx: Tx) -> Any:
            return tool.act(tx, ctx, **tool.read(made))

        return await self._record(ctx, made, await ctx.store.write(send))

    ToolCaller._call = split  # type: ignore[method-assign]


def inplace_write() -> None:
    """A file is overwritten in place, in two pieces."""

    def write(self: safe_folder.Folder, rel: str, data: bytes, *, synced: bool = True) -> None:
        with self._parent(tuple(rel.split("/")), create=True) as parent:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            file = os.open(rel.split("/")[-1], flags, 0o600, dir_fd=parent)
            os.write(file, data[: len(data) // 2])
            fault("fx:in:write")
            os.write(file, data[len(data) // 2 :])
            os.close(file)

    safe_folder.Folder.write = write  # type: ignore[method-assign]


def move_publish() -> None:
    """Files are published one after the other, visible to readers meanwhile."""

    def publish(self: NodeFolder, summary: str, partial: bool = False) -> dict[str, str]:
        before = (
            self._published_before() if self.folder.exists("published/_manifest.json") else None
        )
        if before is not None:
            return before.files
        if self.folder.exists("published"):
            self.folder.remove("published")
        manifest = self._stage(summary, partial)
        stage = next(e.name for e in self.folder.list() if "stage" in e.name)
        self.folder.sub("published", create=True).close()
        for entry in self.folder.sub(stage).walk():
            name = entry.name
            self.folder.sub("/".join(["published", *name.split("/")[:-1]]), create=True).close()
            self.folder.rename(f"{stage}/{name}", f"published/{name}")
            fault("fx:staged:publish")
        self.folder.remove(stage)
        return manifest.files

    NodeFolder.publish = publish  # type: ignore[method-assign]


def split_answer() -> None:
    """A question is closed in one transaction, and its asker gets the answer in the next."""
    write = SqliteStore.write

    async def split(self: SqliteStore, verb: Any, *args: Any, **kwargs: Any) -> Any:
        if verb is not answers.answer_question:
            return await write(self, verb, *args, **kwargs)
        question_id: MessageId = args[0]
        given: dict[str, Any] = {"decision": None, **kwargs}
        question = await write(self, bus.record_answer, question_id, args[1], **given)
        if question.kind == "question":
            return await write(self, waiting.settle, WaitingOn("answer", question_id), args[1])
        return await write(self, waiting.settle, WaitingOn("approval", question_id), None)

    SqliteStore.write = split  # type: ignore[method-assign]


def split_end() -> None:
    """The answer of the call that ends a node and the node's end commit one after the other."""
    record = ToolCaller._record

    async def split(self: ToolCaller, ctx: RunContext, call: ToolCall, answer: Any) -> Any:
        if not (isinstance(answer, Done) and answer.outcome is not None):
            return await record(self, ctx, call, answer)
        await ctx.store.write(journal.answer, ctx.lease, [(call, Done(answer.text))])

        def end(tx: Tx, lease: Lease, outcome: Finished) -> None:
            journal.end(tx, lease, outcome)

        await ctx.store.write(end, ctx.lease, answer.outcome)
        return answer

    ToolCaller._record = split  # type: ignore[method-assign]


def popped_mail() -> None:
    """Messages are marked as seen in one transaction and added to the thread in the next."""
    catch_up = Steps.catch_up

    async def split(self: Steps, ctx: RunContext, *extra: Any) -> None:
        def pop(tx: Tx) -> list[Any]:
            unseen = messages.unseen(tx, ctx.agent.id)
            messages.mark_seen(tx, [m.id for m in unseen])
            return [(str(m.id), bus.thread_text(tx, m, ctx.lease.thread_id)) for m in unseen]

        popped = await ctx.store.write(pop)
        notes = [journal.SystemNote(ref, text) for ref, text in popped]
        if notes:
            heard = await ctx.store.write(journal.catch_up, ctx.lease, notes=notes)
            ctx.add_turns(*heard.turns)
        await catch_up(self, ctx, *extra)

    Steps.catch_up = split  # type: ignore[method-assign]


def unpaid_losses() -> None:
    """A model call that a crash interrupted is not charged."""
    spend.lose = lambda tx, lease, **_: None


def split_reply() -> None:
    """A reply and its cost commit one after the other."""
    think = Steps.think
    settle = spend.settle

    async def split(self: Steps, ctx: RunContext) -> Turn:
        spend.settle = lambda tx, lease, **_: None
        turn = await think(self, ctx)

        def pay(tx: Tx) -> None:
            settle(tx, ctx.lease, purpose="work", model=turn.model or "", usage=turn.usage)

        await ctx.store.write(pay)
        return turn

    Steps.think = split  # type: ignore[method-assign]


def skipped_place() -> None:
    """A thread skips a number when it is continued."""
    check_lease = threads.check_lease
    seen: set[str] = set()

    def gapped(tx: Tx, lease: Lease) -> threads.AppendPoint:
        page = check_lease(tx, lease)
        fresh = lease.thread_id not in seen and page.head > 0
        seen.add(lease.thread_id)
        return page._replace(head=page.head + 1) if fresh else page

    threads.check_lease = gapped


def split_conversation() -> None:
    """A person's request becomes a node in one transaction, and is answered in the next."""
    write = SqliteStore.write

    async def split(self: SqliteStore, verb: Any, *args: Any, **kwargs: Any) -> Any:
        if verb is not conversation.end_reply:
            return await write(self, verb, *args, **kwargs)
        kept: list[tuple[Draft, dict[str, Any]]] = []
        send = bus.send

        def keep(tx: Tx, draft: Draft, **how: Any) -> Message:
            if not is_person(draft.recipient):
                return send(tx, draft, **how)
            kept.append((draft, how))
            said: dict[str, Any] = {name: getattr(draft, name) for name in bus._DRAFTED}
            return Message(**said, id=MessageId(new_id("msg")), seq=0, created_at=tx.now)

        bus.send = keep
        try:
            await write(self, verb, *args, **kwargs)
        finally:
            bus.send = send
        return await write(self, bus.send, kept[0][0], **kept[0][1])

    SqliteStore.write = split  # type: ignore[method-assign]


def split_harvest() -> None:
    """Insights are stored in one transaction, and their thread is marked in the next."""
    write = SqliteStore.write
    items._identity = lambda agent_id, thread_id, content: new_id("insight")

    async def split(self: SqliteStore, verb: Any, *args: Any, **kwargs: Any) -> Any:
        if verb is not reflection.store_insights:
            return await write(self, verb, *args, **kwargs)
        mark = reflection._mark
        reflection._mark = lambda *_, **__: None
        try:
            await write(self, verb, *args, **kwargs)
        finally:
            reflection._mark = mark
        return await write(self, verb, args[0], ())

    SqliteStore.write = split  # type: ignore[method-assign]


def split_firing() -> None:
    """A timer is taken in one transaction, and its trigger fires in the next."""
    write = SqliteStore.write

    def take(tx: Tx) -> list[Timer]:
        return [timer for timer in waits.due(tx) if waits.take_due_timer(tx, timer)]

    def fire(tx: Tx, timers: list[Timer]) -> None:
        for timer in timers:
            due.fire_due(tx, TriggerId(timer.subject))

    async def split(self: SqliteStore, verb: Any, *args: Any, **kwargs: Any) -> Any:
        if verb is not timers.fire_due:
            return await write(self, verb, *args, **kwargs)
        return await write(self, fire, await write(self, take))

    SqliteStore.write = split  # type: ignore[method-assign]


def split_allowance() -> None:
    """What a person allows commits after their answer."""
    write, decide = SqliteStore.write, overspending.decide_on_day

    async def split(self: SqliteStore, verb: Any, *given: Any, **named: Any) -> Any:
        if verb is not answers.answer_question:
            return await write(self, verb, *given, **named)
        later: list[Any] = []

        def only_record(tx: Tx, day: str, text: str, **more: Any) -> None:
            row = spend.lock(tx, day)
            bus.record_answer(tx, row.question_id, text, **more)  # type: ignore[arg-type]
            later.append(row)

        def allow(tx: Tx) -> None:
            [row] = later
            spend.DAILY_LIMITS.update(tx, row.day, allowed_usd=row.offered_usd)
            waiting.resume(tx, WaitingOn("day", row.day))

        overspending.decide_on_day = only_record
        try:
            await write(self, verb, *given, **named)
        finally:
            overspending.decide_on_day = decide
        if later:
            await write(self, allow)
        return None

    SqliteStore.write = split  # type: ignore[method-assign]


def late_label() -> None:
    """The label of a file is stored after the file is written."""
    record = file_labels.record

    async def late(ctx: RunContext, path: str, data: bytes, **more: Any) -> None:
        kept_writes.put(ctx, kept_writes.Change(path=path, after=data))
        await record(ctx, path, data, **more)

    file_labels.record = late


def split_grant() -> None:
    """A grant commits before the calls that wait for it go on."""
    write = SqliteStore.write

    async def split(self: SqliteStore, verb: Any, *given: Any, **named: Any) -> Any:
        if verb is answers.allow:
            await write(self, answers.make_grant, *given, **named)
        return await write(self, verb, *given, **named)

    SqliteStore.write = split  # type: ignore[method-assign]


def split_report() -> None:
    """The job is marked as ended before its report is delivered."""
    write = SqliteStore.write

    async def split(self: SqliteStore, verb: Any, *given: Any, **named: Any) -> Any:
        if verb is not kind._end:
            return await write(self, verb, *given, **named)
        lease, outcome, label = given
        await write(self, delivery.close, lease, label)
        return await write(self, journal.end, lease, outcome)

    SqliteStore.write = split  # type: ignore[method-assign]


def late_stage_end() -> None:
    """The end of a stage that nobody waits for is told in a transaction of its own."""
    write, tell = SqliteStore.write, endings.tell_stage_end
    later: list[Stage] = []

    def postpone(tx: Tx, stage: Stage | None) -> str | None:
        if stage is None:
            return None
        later.append(stage)
        return NODES.get(tx, stage.node_id).assignee_id

    async def split(self: SqliteStore, verb: Any, *given: Any, **named: Any) -> Any:
        done = await write(self, verb, *given, **named)
        while later:
            await write(self, tell, later.pop())
        return done

    endings.tell_stage_end = postpone
    SqliteStore.write = split  # type: ignore[method-assign]


def late_words() -> None:
    """What a stopped agent has not read becomes work in a transaction of its own."""
    write, turn = SqliteStore.write, endings._turn_late_mail_into_work
    later: list[tuple[AgentId, NodeId]] = []

    def turn_into_work(tx: Tx, agent_id: AgentId, ended: NodeId) -> None:
        turn(tx, teams.lock(tx, agent_id), ended)

    async def split(self: SqliteStore, verb: Any, *given: Any, **named: Any) -> Any:
        done = await write(self, verb, *given, **named)
        while later:
            await write(self, turn_into_work, *later.pop())
        return done

    endings._turn_late_mail_into_work = lambda tx, agent, ended: later.append((agent.id, ended))
    SqliteStore.write = split  # type: ignore[method-assign]


def late_task() -> None:
    """The firing of a promise is recorded in one transaction, and its task created in the next."""
    write, wake = SqliteStore.write, firing._wake
    later: list[tuple[Any, Any]] = []

    def postpone(tx: Tx, trigger: Trigger, cause: Any) -> Any:
        later.append((trigger, cause))
        return SimpleNamespace(id=None)

    async def split(self: SqliteStore, verb: Any, *given: Any, **named: Any) -> Any:
        done = await write(self, verb, *given, **named)
        while later:
            await write(self, wake, *later.pop())
        return done

    firing._wake = postpone
    SqliteStore.write = split  # type: ignore[method-assign]


def split_ask() -> None:
    """A request commits before its call waits, and is not looked for until it is decided."""
    write, find = SqliteStore.write, requests.find_about

    def find_decided(tx: Tx, node_id: NodeId, call: ToolCall) -> Message | None:
        found = find(tx, node_id, call)
        return None if found is None or found.answered_at is None else found

    async def split(self: SqliteStore, verb: Any, *given: Any, **named: Any) -> Any:
        if verb is not journal.ask_permission:
            return await write(self, verb, *given, **named)
        lease, call, ask = given
        answer = await write(self, ask)
        return await write(self, verb, lease, call, lambda tx: answer)

    requests.find_about = find_decided
    SqliteStore.write = split  # type: ignore[method-assign]


def second_commit() -> None:
    """A commit is made again without a look at what an earlier run has left."""
    commit = git_commits.commit

    async def again(*given: Any, spool: Path, **named: Any) -> git_commits.Committed:
        fresh = spool.with_name(f"{spool.name}-{os.getpid()}")
        return await commit(*given, spool=fresh, **named)

    git_commits.commit = again
    compares = 'if [ -n "$base" ] && [ "$tree" ='
    assert compares in git_commits.SCRIPT
    blind = git_commits.SCRIPT.replace(compares, 'if false && [ "$tree" =')
    git_commits.SCRIPT = blind  # type: ignore[assignment]


def early_marks() -> None:
    """All ended threads are marked for removal, and those that are not old spared afterwards."""
    write = SqliteStore.write

    def spare(tx: Tx, marked: list[Thread], before: datetime) -> list[Thread]:
        old = [thread for thread in marked if thread.closed_at and thread.closed_at < before]
        for thread in marked:
            if thread not in old:
                threads.THREADS.update(tx, thread.id, pruned_at=None)
        return old

    async def split(self: SqliteStore, verb: Any, *given: Any, **named: Any) -> Any:
        if verb is not removal.mark_old_threads:
            return await write(self, verb, *given, **named)
        [before] = given
        marked = await write(self, verb, before + timedelta(days=365), **named)
        return await write(self, spare, marked, before)

    SqliteStore.write = split  # type: ignore[method-assign]


class Planted(NamedTuple):
    arm: Callable[[], None]
    where: str
    """The scenario in which the sweep must catch it."""
    first: str = ""
    """The prefix of the fault points that are tried first."""


ALL: dict[str, Planted] = {
    "silent_rerun": Planted(silent_rerun, "effects", "fx:after:command"),
    "late_intent": Planted(late_intent, "effects", "fx:after:command"),
    "reruns_program": Planted(reruns_program, "program", "db:after:_send_all"),
    "split_send": Planted(split_send, "effects", "db:after:send"),
    "split_delegation": Planted(split_delegation, "teamwork"),
    "split_extension": Planted(split_extension, "endings", "db:after:send"),
    "inplace_write": Planted(inplace_write, "effects", "fx:in:write"),
    "move_publish": Planted(move_publish, "publishing", "fx:staged:publish"),
    "split_answer": Planted(split_answer, "questions", "db:after:record_answer"),
    "split_end": Planted(split_end, "plain", "db:before:end"),
    "popped_mail": Planted(popped_mail, "messages", "db:after:pop"),
    "unpaid_losses": Planted(unpaid_losses, "plain"),
    "split_reply": Planted(split_reply, "plain", "db:before:pay"),
    "skipped_place": Planted(skipped_place, "plain"),
    "split_conversation": Planted(split_conversation, "life", "db:after:end_reply"),
    "split_harvest": Planted(split_harvest, "life", "db:after:store_insights"),
    "split_allowance": Planted(split_allowance, "spent_day", "db:after:answer_question"),
    "late_label": Planted(late_label, "asking", "fx:after:write"),
    "split_grant": Planted(split_grant, "asking", "db:after:make_grant"),
    "split_firing": Planted(split_firing, "life", "db:after:take"),
    "split_report": Planted(split_report, "research", "db:after:close"),
    "late_stage_end": Planted(late_stage_end, "waits", "db:before:tell_stage_end"),
    "late_words": Planted(late_words, "stopping", "db:before:turn_into_work"),
    "late_task": Planted(late_task, "later", "db:before:_wake"),
    "split_ask": Planted(split_ask, "given_folder", "db:after:ask"),
    "second_commit": Planted(second_commit, "given_folder", "fx:after:command"),
    "early_marks": Planted(early_marks, "later", "db:after:mark_old_threads"),
}

ONE_OF_EACH_KIND = (
    "late_intent",  # an outside effect that is repeated
    "reruns_program",  # a program that is repeated
    "inplace_write",  # half a file
    "move_publish",  # half a folder
    "split_answer",  # two transactions instead of one
    "popped_mail",  # lost messages
    "unpaid_losses",  # lost costs
    "skipped_place",  # a gap in a thread
)
"""What an ordinary run plants; `make faults` plants all of them."""
