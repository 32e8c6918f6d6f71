"""Foreground tools: the tools of a reply to a person.

Those that act carry the person's message to the letter: the model chooses where it goes, and adds
words only where the tool says so.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, NamedTuple

from pydantic import Field

from agiraph.core.domain.chat import Turn
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.features import brought
from agiraph.core.domain.messages import Message
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.provenance.labels import CLEAN, Label, join
from agiraph.core.domain.records.acts import Act
from agiraph.core.domain.text import quotations
from agiraph.core.domain.text.fence import enclose_words, one_line, without_fences
from agiraph.core.domain.text.passages import search_words, sections
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.work import WorkNode
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import labels, planning, texts
from agiraph.core.services.board.confided import Confided
from agiraph.core.services.board.feature_verbs import verbs_of
from agiraph.core.services.lifecycle import conversation, routing
from agiraph.core.services.members import roster
from agiraph.core.store import messages, nodes, spend, teams, threads
from agiraph.core.store.lists import team_threads
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.core.tools import passages, scheduling, team
from agiraph.core.tools.base import Tool, tool
from agiraph.core.tools.delegation import hirer
from agiraph.core.tools.files import files
from agiraph.core.tools.files.file_labels import label_of

PAGE_CHARACTERS = 12_000
MAX_TURNS = 400
"""The newest turns of a thread that are shown."""
ANSWER_CHARACTERS, LAST_ANSWER_CHARACTERS = 600, 6000
"""Characters of a call's answer: of an older one, and of each of the last two."""
FILE_BYTES = 400_000
MAX_STEPS, MAX_MESSAGES = 8, 8
"""Steps and messages that one search finds."""
HIT_CHARACTERS = 500

Page = Annotated[int, Field(ge=1, le=1000, description="1 is the newest")]


@tool(effect="transaction", looks_up=True, polls=True, counts_as_work=False)
def look_into(
    tx: Tx,
    ctx: RunContext,
    what: Annotated[str, Field(min_length=1, description="A task's id, or a teammate's name")],
    page: Page = 1,
) -> Answer:
    """See what a task or a teammate is doing or did: the task, its steps, its last answers, its
    result. You only look; the work does not notice.
    """
    node = routing.find_work(tx, ctx.agent, what)
    label = labels.of_nodes(tx, [node.id]) | node.label
    confided = Confided(tx, ctx.agent)
    who = "nobody yet" if node.assignee_id is None else planning.name_of(tx, node.assignee_id)
    head = confided.hide(_head(tx, node))
    steps = _steps(tx, node, confided)
    pages = _pages(steps, PAGE_CHARACTERS - (len(head) if page == 1 else 0))
    if page > max(len(pages), 1):
        raise Refused(f"{node.id} has {counted(len(pages), 'page')} of steps.")
    body = "\n".join(pages[page - 1] if pages else ["(no steps yet)"])
    text = f"{head}\n\n{body}" if page == 1 else body
    if page < len(pages):
        text += f'\n(earlier steps: look_into("{node.id}", page={page + 1}))'
    state = f"{node.id}, {who}: {node.status}."
    if label:
        source = ctx.describe(label)
        retold = passages.retold(f"{state}\n{text}", label, ctx.lease.thread_id, source=source)
        return Done(retold, label=label, is_fenced=True)
    fenced = enclose_words(text, thread=ctx.lease.thread_id, author=who, kind="the record of it")
    return Done(f"{state}\n{fenced}", is_fenced=True)


def _head(tx: Tx, node: WorkNode) -> str:
    """Return what a task is and how it stands, without its steps."""
    used = spend.total(tx, node.id)
    told = [
        f"Title: {texts.title_of(node)}",
        f"Task: {texts.truncate(node.task.strip(), 2000)}",
        *texts.done_means(node),
        f"Spent so far: {used.calls} model calls, {used.tokens:,} tokens, ${used.usd:.2f}",
    ]
    if node.waiting_reason:
        told.append(f"Waits: {node.waiting_reason}")
    if node.checkpoint:
        told.append(f"Last checkpoint: {node.checkpoint}")
    if below := nodes.children(tx, node.id):
        listed = [f"{texts.title_of(n)} ({n.id}): {n.status}" for n in below]
        told.append("Tasks below it: " + texts.join_limited(listed))
    if node.result:
        more = f' … (all of it: read_report("{node.id}"))' if len(node.result) > 3000 else ""
        told.append(f"Result: {node.result[:3000]}{more}")
    if node.manifest:
        named = ", ".join(f"nodes/{node.id}/published/{name}" for name in sorted(node.manifest))
        told.append(f"Files: {texts.truncate(named, texts.NAMES)}")
    if node.doubts:
        told.append(f"Not confirmed: {texts.not_confirmed(node, most=texts.DOUBTS)}")
    return "\n".join(told)


def _steps(tx: Tx, node: WorkNode, confided: Confided) -> list[str]:
    """Return the steps of a node's thread in order, one text each; prompts are left out."""
    last = None if node.thread_id is None else threads.last(tx, node.thread_id)
    if last is None or node.thread_id is None:
        return []
    newest = threads.turns(tx, node.thread_id, after=max(0, last.seq - MAX_TURNS))
    turns = [replace(turn, text=confided.hide(turn.text)) for turn in newest]
    answered = [turn.seq for turn in turns if turn.role == "tool"][-2:]
    return [step for turn in turns if (step := _step(turn, is_last=turn.seq in answered))]


def _step(turn: Turn, *, is_last: bool) -> str:
    at = f"[{turn.at:%H:%M}]"
    match turn.role:
        case "assistant":
            calls = [f"{call.name}({_arguments(call.arguments)})" for call in turn.calls]
            said = [texts.truncate(turn.text.strip(), 2000)] if turn.text.strip() else []
            return f"{at} said: " + " ; ".join([*said, *calls]) if said or calls else ""
        case "tool":
            most = LAST_ANSWER_CHARACTERS if is_last else ANSWER_CHARACTERS
            how = "failed" if turn.failed else "answer"
            return f"{at} {how}: {texts.truncate(_unframed(turn.text), most)}"
        case "user" if turn.ref != "assignment":
            return f"{at} was told: {texts.truncate(_unframed(turn.text), ANSWER_CHARACTERS)}"
        case _:
            return ""


_FRAME = re.compile(r"^(?:<<<|>>>) [0-9a-f]{16}: [^\n]*\n?", re.MULTILINE)


def _unframed(text: str) -> str:
    """Return a text without the marks of fences in it: the whole record is inside one."""
    return _FRAME.sub("", text).strip()


def _arguments(given: dict[str, object]) -> str:
    return texts.truncate(", ".join(f"{k}={one_line(str(v))}" for k, v in given.items()), 400)


def _pages(steps: Sequence[str], first: int) -> list[list[str]]:
    """Return the steps in pages, the newest page first; in each page the oldest step first."""
    pages: list[list[str]] = []
    room = max(first, 1000)
    for step in reversed(steps):
        if not pages or len(step) > room:
            room = max(first, 1000) if not pages else PAGE_CHARACTERS
            pages.append([])
        pages[-1].insert(0, step)
        room -= len(step) + 1
    return pages


class _Text(NamedTuple):
    """A report or a result that can be read."""

    name: str
    text: str
    label: Label
    file: str = ""
    """A published file that holds the report, if the text itself is short."""
    sources: str = ""
    """What it rests on, as sections."""


@tool(effect="repeatable", looks_up=True)
async def read_report(
    ctx: RunContext,
    id: Annotated[str, Field(min_length=1, description="Of a task or a report; or id/file.md")],
    section: Annotated[str, Field(max_length=200, description="A heading, or what about")] = "",
    page: Annotated[int, Field(ge=1, le=1000)] = 1,
) -> Answer:
    """Read a report or a result in full: all of it in pages, or the sections about something. A
    research report comes with the quotations that it rests on.
    """
    name, _, file = id.strip().removeprefix("nodes/").partition("/")
    found = await ctx.store.read(_find_text, ctx, name, file.removeprefix("published/"))
    text, label = found.text, found.label
    if found.file:
        label |= await label_of(ctx, found.file)
        written = await asyncio.to_thread(_file, ctx, found.file)
        # The result of a research is its report.
        text = written if text.strip() == written.strip() else f"{text}\n\n{written}".strip()
    text += found.sources
    if not text:
        return Done(f"{found.name} has no result yet; look_into shows how it stands.")
    shown = _about(text, section) if section.strip() else text
    start = (page - 1) * PAGE_CHARACTERS
    part = shown[start : start + PAGE_CHARACTERS]
    if not part:
        raise Refused(f"{found.name} ends before page {page}.")
    more = ""
    if start + PAGE_CHARACTERS < len(shown):
        more = f'\n(more: read_report("{id}", section="{section}", page={page + 1}))'
    thread = ctx.lease.thread_id
    if label:
        retold = passages.retold(part, label, thread, source=ctx.describe(label))
        return Done(f"{retold}{more}", label=label, is_fenced=True)
    fenced = enclose_words(part, thread=thread, author="whoever did it", kind=found.name)
    return Done(f"{fenced}{more}", is_fenced=True)


def _find_text(tx: Tx, ctx: RunContext, identity: str, file: str) -> _Text:
    """Return the text with this id: a message to a person, or the result of a task."""
    message = MESSAGES.find(tx, identity)
    if message is not None and _may_read(ctx, message):
        if not message.node_id or len(message.text) >= texts.LONGEST:
            return _Text(f"{message.kind} {message.id}", message.full_text, message.label)
        found = _of_node(tx, nodes.find(tx, ctx.team.id, message.node_id), file, message.text)
        return found._replace(label=found.label | message.label)
    try:
        node = routing.find_work(tx, ctx.agent, identity)
    except NotFound as unknown:
        raise Refused(f"{unknown} read_report takes the id of a task or of a report.") from unknown
    return _of_node(tx, node, file, node.result or "")


def _may_read(ctx: RunContext, message: Message) -> bool:
    """Whether a message to a person is this agent's own, or was delivered to them as a report."""
    is_own = message.sender == ctx.agent.id and is_person(message.recipient)
    is_delivered = message.kind in ("result", "failure", "report", "briefing")
    return message.team_id == ctx.team.id and (
        is_own or (is_delivered and is_person(message.recipient))
    )


def _of_node(tx: Tx, node: WorkNode, file: str, text: str) -> _Text:
    label = labels.of_nodes(tx, [node.id]) | node.label
    if file and file not in node.manifest:
        # A stranger may have chosen the names, and a refusal stands in no fence.
        known = f'look_into("{node.id}") lists them' if label else ", ".join(sorted(node.manifest))
        raise Refused(f"{node.id} has published no file {file!r}. Its files: {known or 'none'}.")
    written = [name for name in sorted(node.manifest) if name.lower().endswith((".md", ".txt"))]
    reports = [name for name in written if "report" in name.lower()] or written
    chosen = file or (reports[0] if len(reports) == 1 else "")
    path = f"nodes/{node.id}/published/{chosen}" if chosen else ""
    sources, theirs = ("", CLEAN) if file else verbs_of(node).sources(tx, node)
    named = f"the result of {node.id}"
    return _Text(named, "" if file else text, label | theirs, path, sources)


def _file(ctx: RunContext, path: str) -> str:
    folder, name = ctx.scope.resolve(path, "r")
    with folder:
        return folder.read(name, limit=FILE_BYTES).decode(errors="replace")


def _about(text: str, section: str) -> str:
    """Return the sections whose heading names something, else those whose text does, else the list
    of headings."""
    wanted = search_words(section)
    parts = sections(text)
    for searched in ([p.title for p in parts], [p.text for p in parts]):
        hits = [sum(word in text.lower() for word in wanted) for text in searched]
        if best := max(hits, default=0):
            kept = [p.text for p, count in zip(parts, hits, strict=True) if count == best]
            return "\n\n".join(kept)
    named = "\n".join(f"- {p.title}" for p in parts if p.title) or "(it has no headings)"
    return f"Nothing in it is about {section!r}. Its headings:\n{named}"


@tool(effect="repeatable", looks_up=True)
async def search(ctx: RunContext, query: passages.Query) -> Answer:
    """Search all that the team has: this conversation, steps of the work, notes, insights, pages
    read, reports. The answer says what each hit is and when it was written.
    """
    terms = search_words(query)
    if not terms:
        raise Refused("There is no word in that query; name what you look for in a few words.")
    for refresh in brought("refreshes"):
        await refresh(ctx)
    found = await passages.find_passages(ctx, query, ("note", "page", "insight", "report"))
    said, steps = await ctx.store.read(_said_and_done, ctx, terms)
    thread = ctx.lease.thread_id
    shown = [passages.as_hit(n, hit, thread) for n, hit in enumerate(found, start=1)]
    label = join(hit.label for hit in found)
    for hit in (*said, *steps):
        label |= hit.label
        fence = passages.retold if hit.is_of_team else passages.foreign
        shown.append(fence(hit.text, hit.label, thread))
    if not shown:
        return Done("Nothing holds any of these words. Try others, or say that you do not know.")
    return Done(passages.join_hits(shown), label=label, is_fenced=True)


class _Hit(NamedTuple):
    """A message or a step that a search found."""

    text: str
    label: Label
    is_of_team: bool
    """Whether an agent wrote it, and not a person or a tool."""


def _said_and_done(tx: Tx, ctx: RunContext, terms: Sequence[str]) -> tuple[list[_Hit], list[_Hit]]:
    """Return messages and steps with these words, those with most of the words first."""
    words = sorted(terms, key=len, reverse=True)[:8]
    confided = Confided(tx, ctx.agent)
    found = messages.said_with(tx, ctx.team.id, ctx.agent.id, words, limit=40)
    said = [
        _Hit(f"({m.kind}, {m.created_at:%Y-%m-%d %H:%M}, {planning.name_of(tx, m.sender)}) "
             f"{_near(confided.hide(m.text), words)}", m.label, not is_person(m.sender))
        for m in found
        if m.reply_id != ctx.node.id
    ]  # fmt: skip
    done = team_threads.said_with(tx, ctx.team.id, words, limit=40)
    shown = [(turn, label, confided.hide(_words_of(turn))) for turn, label in done]
    steps = [
        _Hit(
            f"(step, {turn.at:%Y-%m-%d %H:%M}, {turn.node_id}) {_near(text, words)}",
            label,
            turn.role == "assistant",
        )
        for turn, label, text in shown
        if any(word in text.lower() for word in words)  # else only hidden words had one
    ]
    return _best(said, words)[:MAX_MESSAGES], _best(steps, words)[:MAX_STEPS]


def _words_of(turn: Turn) -> str:
    calls = [f"{call.name}({_arguments(call.arguments)})" for call in turn.calls]
    return one_line(" ".join([without_fences(turn.text) if not turn.label else turn.text, *calls]))


def _best(hits: list[_Hit], words: Sequence[str]) -> list[_Hit]:
    return sorted(hits, key=lambda hit: -sum(word in hit.text.lower() for word in words))


def _near(text: str, words: Sequence[str]) -> str:
    """Return the part of a text around the first of these words."""
    text = one_line(_unframed(text))
    places = [place for word in words if (place := text.lower().find(word)) >= 0]
    start = max(min(places, default=0) - HIT_CHARACTERS // 3, 0)
    part = text[start : start + HIT_CHARACTERS]
    return f"{'…' if start else ''}{part}{'…' if start + HIT_CHARACTERS < len(text) else ''}"


NOW_ANSWER = "Now answer the human in a sentence."

WorkId = Annotated[str, Field(min_length=1, description="A task's id or a teammate's name")]


@tool(
    effect="transaction",
    decides_work="new_work",
)
def start_work(
    tx: Tx,
    ctx: RunContext,
    task: Annotated[str, Field(max_length=100_000)] = "",
    continues: Annotated[
        str | None,
        Field(description="An ended task, or who did it: it goes on there, knowing what it knew"),
    ] = None,
) -> Answer:
    """Put what the human wants into your work queue, in your own words: all they want of it, as
    the one who does the work sees this text and the last messages. Without a task their message
    is the task.
    """
    if continues is not None and continues.strip():
        return _continue(tx, ctx, continues, task)
    asked = messages.to_answer(tx, ctx.node.id)
    _refuse_second(tx, ctx, asked, task)
    node = conversation.start_work(tx, ctx.agent, ctx.node.id, task, label=ctx.label)
    did = Act(kind="started", about=node.id, name=texts.subject_of(node))
    return Done(f"Queued as {node.id}. {NOW_ANSWER}", did=did)


def _refuse_second(tx: Tx, ctx: RunContext, asked: Sequence[Message], task: str) -> None:
    """Raise `Refused` if this reply, or open work of the team, has the very same task."""
    wanted = task.strip() or "\n\n".join(message.text for message in asked)
    made = [NODES.get(tx, m.node_id) for m in asked if m.node_id is not None]
    for node in made:
        if not task.strip() or quotations.is_same(node.task, wanted):
            raise Refused(f"Queued already, as {node.id}. {NOW_ANSWER}")
    for node in nodes.still_open(tx, ctx.team.id):
        if quotations.is_same(node.task, wanted):
            raise Refused(
                f'{node.id} works on this already. Call tell("{node.id}") to add something to it, '
                "or answer from what it has so far."
            )


def _continue(tx: Tx, ctx: RunContext, identity: str, task: str) -> Answer:
    """Give the person's message to the agent of an ended task, in the thread of that task."""
    earlier = routing.find_work(tx, ctx.agent, identity)
    if not earlier.status.is_final:
        raise Refused(
            f'{earlier.id} is still {earlier.status}: tell("{earlier.id}") reaches its worker.'
        )
    asked = messages.to_answer(tx, ctx.node.id)
    taken_up = verbs_of(earlier).taken_up(tx, earlier, hirer(ctx), asked, ctx.web)
    if taken_up is not None:
        routing.mark_heard(tx, asked)
        did = Act(kind="started", about=taken_up.id, name=texts.subject_of(taken_up))
        told = f"{earlier.id} goes on as {taken_up.id}; the report goes to their inbox."
        return Done(told, did=did)
    if earlier.thread_id is None or earlier.assignee_id is None:
        raise Refused(f"Nobody ever began {earlier.id}; call start_work without continues.")
    roster.reinstate(tx, teams.lock(tx, earlier.assignee_id))
    node = conversation.start_work(
        tx, ctx.agent, ctx.node.id, task, label=ctx.label, earlier=earlier
    )
    worker = teams.AGENTS.get(tx, earlier.assignee_id).name
    did = Act(kind="started", about=node.id, name=f"{worker} goes on: {node.title}")
    return Done(f"{worker} goes on with {earlier.id} as {node.id}, in the same thread.", did=did)


Words = Annotated[
    str,
    Field(max_length=20_000, description="The part of their message that is meant; else all"),
]


@tool(effect="transaction", decides_work="about_work")
def tell(tx: Tx, ctx: RunContext, node_id: WorkId, words: Words = "") -> Answer:
    """Give their message, word for word, to work that is under way. It is read at the next step."""
    return routing.tell(tx, ctx.agent, ctx.node.id, node_id, words)


@tool(effect="transaction", decides_work="answer")
def answer(tx: Tx, ctx: RunContext, question_id: str = "", words: Words = "") -> Answer:
    """Answer an open question with their message, word for word. Without an id: the newest that
    you asked them.
    """
    acts = [turn.did for turn in ctx.transcript.turns if turn.did is not None]
    return routing.answer(tx, ctx.agent, ctx.node.id, question_id, words, acts=acts)


@tool(effect="transaction", decides_work="stop")
def stop_work(tx: Tx, ctx: RunContext, node_id: WorkId) -> Answer:
    """Stop work that they want to end, with all below it. Only this stops it."""
    return routing.stop(tx, ctx.agent, ctx.node.id, node_id)


@tool(effect="transaction", decides_work="chat")
def no_work_needed(
    tx: Tx,
    ctx: RunContext,
    reason: Annotated[str, Field(max_length=2000)] = "",
) -> Answer:
    """Say that nothing is to be done: thanks, small talk, or a question that your reply settles."""
    return Done("Then nothing is queued.")


LOOKING: tuple[Tool, ...] = (look_into, read_report, search)
"""The tools that read the work of the team."""

BROUGHT: tuple[Tool, ...] = tuple(tool for tools in brought("reply_tools") for tool in tools)
"""The tools that features bring to replies."""
FOREGROUND: Mapping[str, Tool] = {
    made.name: made
    for made in (
        *LOOKING,
        files.read_file,
        team.check_board,
        team.job_status,
        tell,
        answer,
        stop_work,
        start_work,
        *(tool for tool in BROUGHT if tool.properties.decides_work),
        no_work_needed,
        *(tool for tool in BROUGHT if not tool.properties.decides_work),
        scheduling.promise,
    )
}
UNSHOWN = frozenset({"job_status"})
"""Tools of a reply that do what others do: their calls are made, but no request contains them."""
BASIC: Mapping[str, Tool] = {
    made.name: made
    for made in (
        *(look_into, tell, answer, stop_work, start_work, no_work_needed),
        *(tool for tool in BROUGHT if "reply" in tool.properties.basic_for),
    )
}
"""The tools of a reply whose model has a small window."""
