"""Objections: everything that speaks against a result when its agent ends the node.

The first time they send the result back in one refusal. The second time the node ends with them as
its doubts. Nothing here reads what the summary says, but for the names of files and addresses in it
and its last character.
"""

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from agiraph.core.domain.errors import AgiraphError, SentBack
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.records.doubts import Doubt, DoubtKind, sentence
from agiraph.core.domain.text.spoken import ends_in_question
from agiraph.core.domain.text.visible import is_blank
from agiraph.core.domain.work import NodeStatus, Reached, WorkNode
from agiraph.core.home.safe_folder import Entry, Folder
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import texts
from agiraph.core.services.triggers import promises
from agiraph.core.store import messages, nodes
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.core.tools import acceptance
from agiraph.core.tools.acceptance import base, in_backticks, in_text
from agiraph.core.tools.web import addresses

CHECKED_BYTES = 65_536
"""Of a longer file only its beginning is looked at."""
COPY_LETTERS = 20
"""Letters of a text from which on a file that repeats it is a copy, and no short answer."""
NOT_SAID = "nobody said whether it was reached"
ASKS = "it ends with a question that nobody was asked"
ADVICE: dict[DoubtKind, str] = {
    "unsaid": ' Say it with `reached`: "yes", "partly" or "no".',
    "question": " Ask with ask_human or send_message, or end without a question.",
    "no_evidence": (
        ' Give `evidence` for each line, in order: ["file:NAME", "ran:COMMAND"], or words.'
    ),
}
"""What is added to an objection where an agent reads it. A person reads the objection alone."""
_EMPTY = " \t\r\n\ufeff.:+|\u2026_*#=~-\u2013\u2014"
_UNFINISHED = frozenset({"todo", "tbd", "tba", "fixme", "xxx", "loremipsum"})
"""Marks that writers put where the text is missing, in any language."""


class _Rows(NamedTuple):
    node: WorkNode
    """As it is now, with the lines that were added since."""
    tasks: list[WorkNode]
    """What it gave away; reviews of its result are none."""
    unread: frozenset[NodeId]
    """Those of them about whose end its agent has an unread message."""
    published: frozenset[str]
    """The names of the files that other work has published, as far as they may be its input."""
    is_promise: bool


async def doubts(
    ctx: RunContext,
    summary: str,
    evidence: Sequence[str],
    reached: Reached | None,
    *,
    ending: str,
) -> tuple[Doubt, ...]:
    """Return what speaks against the result, or nothing; the first time, raise `Refused` for it.

    A goal without acceptance lines is sent back, too, because its agent could set some; that
    nobody has set any is no doubt about the result.
    """
    rows = await ctx.store.look(_load, ctx.node)
    node = rows.node
    named = in_text("\n".join((node.task, *node.lines_to_prove)))
    files, inputs = await asyncio.to_thread(_files, ctx, rows, named, evidence)
    known = inputs | rows.published
    found = [
        *([Doubt(kind="unsaid", words=NOT_SAID)] if reached is None else []),
        *([Doubt(kind="question", words=ASKS)] if ends_in_question(summary) else []),
        *_about_tasks(rows),
        *_about_lines(ctx, rows, files, evidence, known),
        *_as_doubts(
            "file",
            _about_named_files(node, files, known)
            + _missing_files(ctx, "\n".join((summary, *evidence)), files, known, rows.tasks),
        ),
        *_as_doubts("address", _about_addresses(ctx, summary)),
    ]
    found = tuple(dict.fromkeys(found))
    lacks_lines = _lacks_lines(ctx, node) and reached != "no"
    if (found or lacks_lines) and not acceptance.was_sent_back(ctx):
        raise SentBack(_sent_back(ctx, found, ending, lacks_lines=lacks_lines))
    return found


def _as_doubts(kind: DoubtKind, found: Sequence[str]) -> list[Doubt]:
    return [Doubt(kind=kind, words=words) for words in found]


def _lacks_lines(ctx: RunContext, node: WorkNode) -> bool:
    """Whether nobody has said what done means. A goal without end has no state that is done."""
    return node.is_goal and ctx.team.mode == "finite" and not node.acceptance


def _sent_back(ctx: RunContext, found: Sequence[Doubt], ending: str, *, lacks_lines: bool) -> str:
    told = [sentence(doubt, with_id=True) for doubt in found]
    kinds = {doubt.kind for doubt in found}
    advice = "".join(how for kind, how in ADVICE.items() if kind in kinds)
    if lacks_lines:
        told, advice = [*told, acceptance.NO_LINES], advice + acceptance.HOW_TO_SET_LINES
    used, most = ctx.consumed.turns, ctx.node.budget.turns
    otherwise = (
        "and say in the summary why it cannot be done; then the work ends with these doubts, and "
        "whoever asked for it reads them."
        if found
        else "to end the work without them."
    )
    return (
        f"{acceptance.NOT_ACCEPTED} {'; '.join(told)}.{advice} Put it right ({used} of {most} "
        f"turns are used), or call {ending} again {otherwise}"
    )


def _load(tx: Tx, node: WorkNode) -> _Rows:
    tasks = [n for n in nodes.children(tx, node.id) if not n.is_step]
    # A goal is asked for files of its own; other work may be about those of earlier work.
    others = [task.manifest for task in tasks]
    if not node.is_goal:
        others = nodes.newest_manifests(tx, node.team_id, limit=200)
    return _Rows(
        node=NODES.get(tx, node.id),
        tasks=tasks,
        unread=frozenset(task.id for task in tasks if _is_unread(tx, node, task)),
        published=frozenset(base(name) for manifest in others for name in manifest),
        is_promise=promises.is_kept_in(tx, node),
    )


def _is_unread(tx: Tx, node: WorkNode, task: WorkNode) -> bool:
    told = [] if task.stage_id is None else messages.about(tx, "stage", task.stage_id)
    of_stage = [m for m in told if m.recipient == node.assignee_id and m.seen_at is None]
    return bool(of_stage or messages.unread_endings(tx, node.assignee_id or "", task.id))


def _files(
    ctx: RunContext, rows: _Rows, named: Sequence[str], evidence: Sequence[str]
) -> tuple[dict[str, str], frozenset[str]]:
    """Return the files in scratch/, as `_delivered` does, and the named ones outside of it."""
    files = _delivered(ctx, rows, [*named, *evidence])
    return files, _inputs(ctx, named, files)


def _delivered(ctx: RunContext, rows: _Rows, named: Sequence[str]) -> dict[str, str]:
    """Return the files in scratch/, each with what is wrong with it, if it is named and anything
    is."""
    node = rows.node
    task = "".join((node.task, *node.acceptance))
    own = {_letters(text) for text in (node.task, task, ctx.team.goal, _spec(ctx))}
    folder, _ = ctx.scope.resolve("scratch", "w")
    with folder:
        return {
            entry.name: _fault(folder, entry, own)
            if any(base(entry.name) in text.casefold() for text in named)
            else ""
            for entry in folder.walk()
        }


def _spec(ctx: RunContext) -> str:
    with suppress(AgiraphError):
        folder, name = ctx.scope.resolve("_spec.md", "r")
        with folder:
            return folder.read(name, limit=CHECKED_BYTES).decode(errors="replace")
    return ""


def _fault(folder: Folder, entry: Entry, own: Collection[str]) -> str:
    """Return what is wrong with a delivered file as any machine sees it; nothing if it has words of
    its own."""
    text = folder.read(entry.name, limit=CHECKED_BYTES).decode(errors="replace")
    letters = _letters(text)
    if is_blank(text.strip(_EMPTY)):
        return "is empty"
    if letters.casefold() in _UNFINISHED or letters.casefold().startswith("loremipsum"):
        return "holds only a placeholder"
    return "only repeats the task" if len(letters) > COPY_LETTERS and letters in own else ""


def _inputs(ctx: RunContext, named: Sequence[str], files: Mapping[str, str]) -> frozenset[str]:
    """Return which of these files exist outside of scratch/: given to the work, or part of the
    team's folder."""
    delivered = {base(name) for name in files}
    missing = [name for name in named if base(name) not in delivered]
    if not missing:
        return frozenset()
    used = _arguments(ctx)
    folders = [f"folders/{folder.name}/" for folder in ctx.team.folders]
    found = {base(name) for name in (*ctx.node.refs, *ctx.node.refs.values())}
    for name in missing:
        paths = [value for value in used if base(value) == base(name)]
        paths += [prefix + name for prefix in ("", "uploads/", *folders)]
        if any(_exists(ctx, path) for path in paths) or (
            # A command may have worked on it anywhere in a folder of the person.
            folders and any(base(name) in value.casefold() for value in used if " " in value)
        ):
            found.add(base(name))
    return frozenset(found)


def _arguments(ctx: RunContext) -> list[str]:
    """Return the paths and commands of the node's successful calls."""
    return [
        value
        for call, answer in acceptance.answered(ctx)
        for known in [acceptance.properties(ctx, call)]
        if not answer.failed and not known.delegates and not known.ends_node
        for name, value in call.arguments.items()
        if isinstance(value, str) and (name == "path" or known.runs_commands)
    ]


def _exists(ctx: RunContext, path: str) -> bool:
    with suppress(AgiraphError, ValueError):
        folder, rest = ctx.scope.resolve(path, "r")
        with folder:
            found = folder.find(rest)
            return found is not None and found.kind == "file"
    return False


def _about_lines(
    ctx: RunContext,
    rows: _Rows,
    files: Mapping[str, str],
    evidence: Sequence[str],
    known: Collection[str],
) -> list[Doubt]:
    """Return what is missing for the acceptance lines; without lines, whether anything was done."""
    node = rows.node
    if node.acceptance:
        return acceptance.missing_evidence(ctx, node, files, evidence, known=known)
    # What an agent set itself to do may be over at once; of a promise, the words are the result.
    is_asked = is_person(node.creator_id) and not rows.is_promise
    is_owed = node.is_goal or node.parent_id is not None or is_asked
    if not is_owed or acceptance.has_effect(ctx, files):
        return []
    return [Doubt(kind="nothing_done", words=acceptance.NO_EFFECT)]


def _about_named_files(
    node: WorkNode, files: Mapping[str, str], known: Collection[str]
) -> list[str]:
    """Return the files that the task names and that do not exist, or have nothing in them."""
    if node.source == "trigger":
        return []  # its task is mostly the runtime's own text
    faults = {base(name): fault for name, fault in files.items()}
    found: list[str] = []
    for name in in_text(node.task):
        told = "a file that the task names" if node.label else f"the file {name!r} of the task"
        if base(name) in faults:
            found += [f"{told} {fault}"] if (fault := faults[base(name)]) else []
        elif base(name) not in known:
            found.append(f"{told} does not exist")
    return found


_ABOUT_TASKS: dict[DoubtKind, str] = {
    "task_cancelled": "was cancelled",
    "task_open": "is not done yet, and cannot end before this",
    "task_unread": "has a result that was not read",
    "task_failed": "has failed",
    "task_partial": "ended in part",
    "task_doubted": "is done, with doubts",
}
"""What follows the title of a task. What is doubted of its own result is told with that alone."""


def _about_tasks(rows: _Rows) -> list[Doubt]:
    """Return the delegated tasks that are open, not done, doubted, or whose result was not read.

    Not those that were given up by name, and not those that a later task has made good.
    """
    return [
        Doubt(kind=kind, words=_ABOUT_TASKS[kind], node_id=task.id, title=texts.title_of(task))
        for task in rows.tasks
        if (kind := _wrong_with(task, rows.unread)) is not None
        and task.given_up is None
        and not any(_makes_good(task, later) for later in rows.tasks)
    ]


def _wrong_with(task: WorkNode, unread: Collection[NodeId]) -> DoubtKind | None:
    if task.cancel_requested:
        return "task_cancelled"
    if task.status is NodeStatus.COMPLETED:
        doubted = "task_doubted" if task.doubts else None
        return "task_unread" if task.id in unread else doubted
    return _UNDONE.get(task.status, "task_open")


_UNDONE: dict[NodeStatus, DoubtKind] = {
    NodeStatus.CANCELLED: "task_cancelled",
    NodeStatus.FAILED: "task_failed",
    NodeStatus.PARTIAL: "task_partial",
}


def _makes_good(task: WorkNode, later: WorkNode) -> bool:
    """Whether a later task went on with this one, or was given the same words, and is done."""
    is_same = later.task.split() == task.task.split() or (
        later.thread_id is not None and later.thread_id == task.thread_id
    )
    is_done = later.status is NodeStatus.COMPLETED and not later.doubts
    return later.id != task.id and later.created_at >= task.created_at and is_same and is_done


def _missing_files(
    ctx: RunContext,
    said: str,
    files: Mapping[str, str],
    known: Collection[str],
    tasks: Sequence[WorkNode],
) -> list[str]:
    """Return the files that the summary names in backticks and that exist nowhere."""
    there = {base(name) for name in files} | {base(n) for t in tasks for n in t.manifest} | {*known}
    there |= {base(name) for name in (*ctx.node.refs, *ctx.node.refs.values())}
    missing = [name for name in in_backticks(said) if base(name) not in there]
    seen = _seen(ctx) if missing else ""
    return [f"{name!r} is named in the summary and does not exist" for name in missing
            if name not in seen]  # fmt: skip


def _seen(ctx: RunContext) -> str:
    """Return what the node was shown of files: what it read, listed, or saw in an output."""
    shown: list[str] = []
    for call, answer in acceptance.answered(ctx):
        known = acceptance.properties(ctx, call)
        if answer.failed or known.writes_files or known.ends_node:
            continue
        shown.append(answer.text)
        if not known.runs_commands:
            shown += [value for value in call.arguments.values() if isinstance(value, str)]
    return "\n".join(shown)


def _about_addresses(ctx: RunContext, summary: str) -> list[str]:
    """Return the addresses in the summary that the thread neither found nor opened."""
    unknown = addresses.made_up(ctx, summary)
    named = texts.join_limited([texts.truncate(each, texts.TITLE) for each in unknown], by=", ")
    return [f"these addresses were neither found nor opened here: {named}"] if unknown else []


def _letters(text: str) -> str:
    """Return the text without spaces and punctuation, which frames and lists change."""
    return re.sub(r"\W+", "", text)
