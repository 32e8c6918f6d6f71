"""Spill: an answer too long for a thread goes into a file, and the thread says where to read on."""

import asyncio
from dataclasses import replace

from agiraph.domain.chat import ToolCall
from agiraph.domain.outcomes import Done
from agiraph.tools.context import RunContext

LONGEST = 20_000
"""Characters of an answer that stand in the thread; every later turn is paid for again."""
HEAD, TAIL = 8_000, 4_000


async def spill(ctx: RunContext, call: ToolCall, answer: Done) -> Done:
    """The answer, or its two ends and the name of the file that holds it whole."""
    if len(answer.text) <= LONGEST:
        return answer
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in call.id)[:80]
    path = f"agents/{ctx.agent.name}/results/{ctx.lease.thread_id}-{name}.txt"

    def keep() -> None:
        folder, rest = ctx.scope.resolve(path, "w")
        with folder:
            folder.write(rest, answer.text.encode(errors="replace"))

    await asyncio.to_thread(keep)
    left_out = len(answer.text) - HEAD - TAIL
    text = (
        f"{answer.text[:HEAD]}\n… {left_out:,} characters are left out here; the whole answer is "
        f"in {path}: read it in pages with read_file …\n{answer.text[-TAIL:]}"
    )
    return replace(answer, text=text)
