"""Spill: writes a text that is too long for a thread or a message to a file, and names the file."""

import asyncio
from collections.abc import Container
from dataclasses import replace

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.outcomes import Done
from agiraph.core.domain.work import RESULT_FILE
from agiraph.core.home.safe_folder import Folder
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import texts
from agiraph.core.store.rows import to_text
from agiraph.core.store.texts import file_labels

ANSWER_CHARACTERS = 20_000
"""Longer answers are shortened: each later model call pays for the whole thread again."""
HEAD_CHARACTERS, TAIL_CHARACTERS = 8_000, 4_000
"""Characters of a long answer that stay in the thread, from its beginning and from its end."""


async def spill(ctx: RunContext, call: ToolCall, answer: Done) -> Done:
    """Return the answer; a long one as its beginning, its end and the name of a file with all."""
    if len(answer.text) <= ANSWER_CHARACTERS:
        return answer
    # A model or a vendor chose the call's id, so it may contain anything, such as a slash.
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in call.id)[:80]
    desk = f"agents/{ctx.agent.name}" if ctx.node.kind.sees_team else "scratch"
    path = f"{desk}/results/{ctx.lease.thread_id}-{name}.txt"

    def keep() -> None:
        folder, rest = ctx.scope.resolve(path, "w")
        with folder:
            folder.write(rest, answer.text.encode(errors="replace"))

    if answer.label:
        # Before the file: a crash in between must not leave untrusted text without a label.
        data = answer.text.encode(errors="replace")
        await ctx.store.write(file_labels.put, ctx.team.id, path, data, label=answer.label)
    await asyncio.to_thread(keep)
    head, tail = answer.text[:HEAD_CHARACTERS], answer.text[-TAIL_CHARACTERS:]
    left_out = len(answer.text) - HEAD_CHARACTERS - TAIL_CHARACTERS
    text = (
        f"{head}\n… {left_out:,} characters are left out here; the whole answer is "
        f"in {path}: read it in pages with read_file …\n{tail}"
    )
    return replace(answer, text=text)


async def keep_result(ctx: RunContext, text: str) -> str | None:
    """Write a result that is too long for another agent's thread to scratch/, to be published.

    Return the file's name; None if the text is short or could not be written.
    """
    if len(text) <= texts.LONGEST:
        return None
    try:
        return await asyncio.to_thread(_keep, ctx, to_text(text).encode())
    except Refused:
        return None


def _keep(ctx: RunContext, data: bytes) -> str:
    folder, _ = ctx.scope.resolve("scratch", "w")
    stem, _, kind = RESULT_FILE.partition(".")
    with folder:
        number, name = 1, RESULT_FILE
        while folder.exists(name) and not _holds(folder, name, data):
            number, name = number + 1, f"{stem}-{number + 1}.{kind}"
        if not folder.exists(name):  # after a crash it is there already
            folder.write(name, data)
    return name


def _holds(folder: Folder, name: str, data: bytes) -> bool:
    try:
        return folder.read(name, limit=len(data) + 1) == data
    except Refused:
        return False  # a folder, or anything else that is not a regular file


def shown_result(ctx: RunContext, text: str, name: str | None, published: Container[str]) -> str:
    """Return the result for the node's row and messages; a long one is cut and names its file."""
    place = "published" if name is not None and name in published else "scratch"
    whole = f"in nodes/{ctx.node.id}/{place}/{name}" if name else f"in thread {ctx.lease.thread_id}"
    return texts.fit_message(text, whole=f"The whole text is {whole}.") if text.strip() else text
