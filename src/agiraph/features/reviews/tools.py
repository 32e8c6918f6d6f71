"""Reviewing: has a result judged by a reviewer, and gives the reviewer its verdict tool.

Delivered files that hold, byte for byte, what was there before their work began are told of. A copy
may be what was asked for, so it is no fault. But it does not show that anything was made.
"""

import asyncio
import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import Field

from agiraph.core.domain.errors import AgiraphError, Refused
from agiraph.core.domain.outcomes import Answer, Done, Finished, InTransaction, Pending
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.records.doubts import Doubt
from agiraph.core.domain.text.fence import enclose_words, one_line
from agiraph.core.domain.work import StopReason, WaitingOn, WorkNode
from agiraph.core.home.layout import UPLOADS
from agiraph.core.home.safe_folder import Entry, Folder
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import texts
from agiraph.core.store import nodes
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.core.tools import acceptance
from agiraph.core.tools.acceptance import base
from agiraph.core.tools.base import tool
from agiraph.core.tools.delegation import hirer
from agiraph.core.tools.work import Publish
from agiraph.features.reviews import verbs as reviews

FEWEST_BYTES = 20
"""Smaller files, such as a single number, are alike by chance."""
MOST_BYTES = 16 * 2**20
"""Bytes that are read of the delivered files, and of the earlier ones in each place."""
MOST_ENTRIES = 20_000
"""Entries that are looked at in each place where earlier files lie."""
MOST_NODES = 200


def published_before(tx: Tx, node: WorkNode) -> dict[str, str]:
    """Return the hashes of the files that other work had published when this node was created,
    each with what to call the file."""
    return {
        digest: f"{name!r} of {texts.subject_of(other)!r}"
        for other in nodes.ended_lately(tx, node.team_id, limit=MOST_NODES)
        if other.ended_at is not None and other.ended_at <= node.created_at and other.id != node.id
        for name, digest in other.manifest.items()
    }


def find(ctx: RunContext, names: Collection[str], published: Mapping[str, str]) -> dict[str, str]:
    """Return which of these delivered files are copies, each with what it is a copy of.

    Files of a person's folders and uploads are compared if they are as large as a delivered one and
    were not changed since the work began.
    """
    wanted = {base(name) for name in names}
    if not wanted:
        return {}
    known = dict(published)
    folder, _ = ctx.scope.resolve("scratch", "w")
    with folder:
        entries = (e for e in folder.walk() if base(e.name) in wanted and e.size >= FEWEST_BYTES)
        delivered = list(_readable(entries))
        digests = {entry.name: _digest(folder, entry) for entry in delivered}
    sizes = {entry.size for entry in delivered}
    for place in [f"folders/{given.name}" for given in ctx.team.folders] + [UPLOADS]:
        known = _in_place(ctx, place, sizes) | known
    return {base(name): known[digest] for name, digest in digests.items() if digest in known}


def _in_place(ctx: RunContext, place: str, sizes: Collection[int]) -> dict[str, str]:
    """Return the hashes of the earlier files of this place that have one of these sizes."""
    found: dict[str, str] = {}
    with suppress(AgiraphError):  # there is no such place, or it has too many entries
        folder, _ = ctx.scope.resolve(place, "r")
        with folder:
            alike = (e for e in folder.tree(MOST_ENTRIES) if _is_alike(e, ctx.node, sizes))
            for entry in _readable(alike):
                found[_digest(folder, entry)] = repr(f"{place}/{entry.name}")
    return found


def _is_alike(entry: Entry, node: WorkNode, sizes: Collection[int]) -> bool:
    return entry.kind == "file" and entry.size in sizes and entry.modified <= node.created_at


def _readable(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield those of the files that can be read within `MOST_BYTES`."""
    room = MOST_BYTES
    for entry in entries:
        if entry.size <= room:
            room -= entry.size
            yield entry


def _digest(folder: Folder, entry: Entry) -> str:
    """Return the SHA-256 of a file as it was listed, as manifests have it."""
    return hashlib.sha256(folder.read(entry.name, limit=entry.size)).hexdigest()


def _told(copied: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Return a sentence for each of these files that is a copy."""
    return [f"{n!r} is a copy of {copied[base(n)]}" for n in names if base(n) in copied]


FINDING_CHARACTERS = 1000
TASK_CHARACTERS = 20_000
"""Characters of the judged task and of its result that a reviewer is shown; files hold the rest."""
MAX_COMMANDS = 30
COMMAND_CHARACTERS = 300
LINE_BYTES = 200
"""Of a file's first line, by which it is recognised in what a reviewer was shown."""
SENT_BACK = "[Sent back by the reviewer]"
NO_VERDICT = "review gave no verdict"
COPIED = (
    "Byte for byte as it was before this work began, so accept it only if a copy was asked for:"
)


@tool(
    effect="transaction",
    roles=frozenset(),
    ends_node=True,
    counts_as_work=False,
)
def give_verdict(
    tx: Tx,
    ctx: RunContext,
    verdict: Literal["accept", "rework"],
    findings: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=FINDING_CHARACTERS)]] | None,
        Field(
            max_length=20,
            description="For rework, one fault each; for accept, what you checked or could "
            "not check",
        ),
    ] = None,
) -> Answer:
    """Say whether the result counts or goes back to its author, and end the review. accept: the
    result does what the task asks for. rework: it does not; give one finding for each fault that
    matters, worst first: where it is, what is wrong, how you saw it, how to put it right.
    """
    found = [line for line in findings or () if line.strip()]
    if verdict == "rework" and not found:
        raise Refused("rework needs at least one finding: what is wrong, and how to put it right.")
    reason = StopReason.ACCEPTED if verdict == "accept" else StopReason.SENT_BACK
    listed = "\n".join(f"- {one_line(line)}" for line in found) or "Nothing to object to."
    return Done("Noted.", Finished(listed, reason))


async def submit(
    ctx: RunContext,
    summary: str,
    evidence: Sequence[str],
    doubts: Sequence[Doubt],
    publish: Publish,
    *,
    ending: str,
    can_rework: bool = True,
) -> Answer | InTransaction:
    """Publish the result, have it reviewed first, or send it back with the reviewer's findings.

    The call that submits the result is made again after the review, and finds it in the rows. An
    author that cannot rework its result publishes it with the findings as doubts.
    """
    # A reviewer's findings would bring the team's words into a public thread.
    how = ctx.team.review if ctx.node.kind.is_reviewed else "never"
    node = await ctx.store.look(NODES.get, ctx.node.id)  # its lines may be newer than the run
    copied = await _copies(ctx, node, evidence)
    if how == "never" or (how == "auto" and doubts):
        return await publish(_with_unseen(node, evidence, doubts, copied))
    if how == "auto" and not acceptance.unchecked_lines(node, evidence, copied=copied):
        return await publish(doubts)
    files = await asyncio.to_thread(_files, ctx)
    task = _task(ctx, node, summary, evidence, files, copied)
    found = await ctx.store.read(reviews.look, node, ctx.current_call_id, task)
    if found.review is None or not found.review.status.is_final:
        if not found.is_wanted:
            return await publish(doubts)
        return _begin(ctx, task, doubts, publish)
    findings = found.review.result or ""
    match found.review.stop_reason:
        case StopReason.ACCEPTED if unread := await _unread(ctx, found, evidence, files):
            return await publish(
                [*doubts, Doubt(kind="unchecked", words=f"{unread} was not checked")]
            )
        case StopReason.ACCEPTED:
            return await publish(doubts)
        case StopReason.SENT_BACK if can_rework and found.reworks <= reviews.MAX_REWORKS:
            return _sent_back(ctx, found, findings, ending)
        case StopReason.SENT_BACK:
            return await publish(
                _with_review(doubts, f"the reviewer objects: {one_line(findings)}")
            )
        case reason:
            why = reason or found.review.status
            return await publish(_with_review(doubts, f"{NO_VERDICT} ({why})"))


async def _copies(ctx: RunContext, node: WorkNode, evidence: Sequence[str]) -> dict[str, list[str]]:
    """Return the lines that copies are to prove, each with a sentence for each of its copies."""
    proofs = acceptance.files_of_lines(node, evidence)
    names = {name for each in proofs.values() for name in each}
    if not names:
        return {}
    published = await ctx.store.read(published_before, node)
    found = await asyncio.to_thread(find, ctx, names, published)
    said_of = {line: _told(found, each) for line, each in proofs.items()}
    return {line: said for line, said in said_of.items() if said}


def _with_unseen(
    node: WorkNode,
    evidence: Sequence[str],
    doubts: Sequence[Doubt],
    copied: Mapping[str, Sequence[str]],
) -> Sequence[Doubt]:
    """Return the doubts, for a person with the lines that nobody has checked."""
    unseen = acceptance.unseen_lines(node, evidence, copied=copied)
    lines = unseen if is_person(node.creator_id) else []
    named = {line: repr(texts.truncate(one_line(line), texts.TITLE)) for line in lines}
    found, told = [*doubts], set[str]()
    for line, name in named.items():
        if any(name in doubt.words for doubt in doubts):
            continue  # told once
        facts = [fact for fact in _facts({line: copied.get(line, ())}) if fact not in told]
        told.update(facts)
        because = f": {'; '.join(facts)}" if facts else ""
        found.append(Doubt(kind="unchecked", words=f"{name} was not checked{because}"))
    return found


def _facts(copied: Mapping[str, Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(one_line(fact) for facts in copied.values() for fact in facts))


async def _unread(
    ctx: RunContext, found: reviews.Found, evidence: Sequence[str], files: Mapping[str, int]
) -> str:
    """Name what a reviewer has judged without opening it; an empty string if there is nothing."""
    looks = [
        (str(value).casefold(), answer.text)
        for call, answer in acceptance.paired(found.turns)
        for known in [acceptance.properties(ctx, call)]
        if not answer.failed and (known.reads_file or known.runs_commands)
        for value in call.arguments.values()
    ]
    unnamed = [name for name in files if not any(_names(value, name) for value, _ in looks)]
    starts = await asyncio.to_thread(_first_lines, ctx, unnamed)
    missed = [name for name in unnamed if not any(starts[name] in shown for _, shown in looks)]
    shown = " ".join(each for each in evidence if each.startswith("file:")).casefold()
    if judged := [name for name in missed if base(name) in shown]:
        return texts.join_limited([repr(name) for name in judged], by=", ")
    return "what its files hold" if files and len(missed) == len(files) else ""


def _names(value: str, name: str) -> bool:
    """Whether a path or command names a file, or files like it by a pattern."""
    patterns = (base(word) for word in value.split() if "*" in base(word))
    return base(name) in value or any(fnmatchcase(base(name), each) for each in patterns)


def _first_lines(ctx: RunContext, names: Sequence[str]) -> dict[str, str]:
    """Return the first line with words of each of these files, as far as it is shown."""
    folder, _ = ctx.scope.resolve("scratch", "w")
    with folder:
        starts = {name: folder.read(name, limit=LINE_BYTES) for name in names}
    lines = {name: start.decode(errors="ignore").split("\n") for name, start in starts.items()}
    return {
        name: next((line.strip() for line in each if line.strip()), "")
        for name, each in lines.items()
    }


def _files(ctx: RunContext) -> dict[str, int]:
    """Return the files that would be delivered, with their bytes."""
    folder, _ = ctx.scope.resolve("scratch", "w")
    with folder:
        return {entry.name: entry.size for entry in folder.walk()}


def _with_review(doubts: Sequence[Doubt], words: str) -> list[Doubt]:
    return [*doubts, Doubt(kind="review", words=words)]


def _begin(ctx: RunContext, task: str, doubts: Sequence[Doubt], publish: Publish) -> InTransaction:
    call_id = ctx.current_call_id

    def begin(tx: Tx) -> Answer:
        review = reviews.begin(tx, hirer(ctx), ctx.node.id, call_id=call_id, task=task)
        if review.status.is_final:
            return Done("The review has just ended. Make the same call again.", failed=True)
        return Pending(WaitingOn("node", review.id), "a review of the result")

    async def go_on(refusal: Refused) -> Answer:
        return await publish(_with_review(doubts, f"{NO_VERDICT}: {one_line(str(refusal))}"))

    return InTransaction(begin, go_on)


def _sent_back(ctx: RunContext, found: reviews.Found, findings: str, ending: str) -> Done:
    shown = enclose_words(
        findings, thread=ctx.lease.thread_id, author="the reviewer", kind="the findings"
    )
    text = (
        f"{SENT_BACK} Put right what is wrong, then call {ending} again. This is time "
        f"{found.reworks} of at most {reviews.MAX_REWORKS}; after that the work ends with the "
        f"reviewer's doubts.\n\n{shown}"
    )
    return Done(text, failed=True, label=found.label, is_fenced=True)


def _task(
    ctx: RunContext,
    node: WorkNode,
    summary: str,
    evidence: Sequence[str],
    files: Mapping[str, int],
    copied: Mapping[str, Sequence[str]],
) -> str:
    """Return the reviewer's assignment: task, acceptance lines, result, files and tool log.

    The author's words are fenced. A mark depends on the fenced text, so nobody can forge it.
    """

    def fenced(text: str, author: str, kind: str) -> str:
        cut = texts.truncate(text.strip(), TASK_CHARACTERS)
        return enclose_words(cut, thread=ctx.lease.thread_id, author=author, kind=kind)

    author = ctx.agent.name
    claims = [f"{author} submits as the result:\n{summary}"]
    for number, line in enumerate(node.lines_to_prove):
        shown = evidence[number] if number < len(evidence) else "nothing"
        claims.append(f"Done means: {one_line(line)}\nEvidence given: {one_line(shown)}")
    lines = " and each Done means line" if node.lines_to_prove else ""
    sizes = [f"{one_line(name)} ({size:,} bytes)" for name, size in files.items()]
    listed = texts.join_limited(sizes, by=", ") or "none"
    return "\n\n".join(
        [
            f"[Task] Review what {one_line(author)} submits as {node.id}.",
            fenced(node.task, "whoever gave it", "the task that was given"),
            fenced("\n\n".join(claims), author, "the result and its evidence"),
            _record_of(ctx),
            f"Files delivered: {listed}. Open what you judge: a verdict without it does not count.",
            *([f"{COPIED} {'; '.join(facts)}."] if (facts := _facts(copied)) else []),
            f"They are in nodes/{node.id}/scratch for read_file and list_files, and in "
            f"../../{node.id}/scratch for bash. You can read them and cannot change them.",
            f"Check the result against the task{lines}, then call give_verdict.",
        ]
    )


def _record_of(ctx: RunContext) -> str:
    """Return what the runtime recorded of the author's work."""
    author = one_line(ctx.agent.name)
    if not ctx.agent.has_model:
        return f"{author} is a program. The runtime recorded no single steps of it."
    return (
        f"{author} made {_work_calls(ctx)} calls that did something. Commands among them, as the "
        f"runtime recorded them:\n{_log(ctx)}"
    )


def _work_calls(ctx: RunContext) -> int:
    return sum(
        acceptance.properties(ctx, call).counts_as_work and not answer.failed
        for call, answer in acceptance.answered(ctx)
    )


def _log(ctx: RunContext) -> str:
    """Return the last commands of the judged node, with how each ended."""
    ran = [
        (one_line(str(call.arguments.get("command", ""))), answer)
        for call, answer in acceptance.answered(ctx)
        if acceptance.properties(ctx, call).runs_commands
    ][-MAX_COMMANDS:]
    lines = [
        f"- {texts.truncate(command, COMMAND_CHARACTERS)}: "
        + one_line(answer.text.partition("\n")[0])[:COMMAND_CHARACTERS]
        for command, answer in ran
    ]
    return "\n".join(lines) or "none"


TOOLS = (give_verdict,)
