"""Renderings: the first requests that the snapshots hold; run as a program, it writes them anew.

.venv/bin/python -m tests.prompts.renderings
"""

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path

from agiraph.testing.prompts import WIRES, FirstRequest, PromptWire, first_requests

SNAPSHOTS = Path(__file__).parent / "snapshots"
SMALL_WINDOW = 8192
ROLES = {"coordinator", "worker", "researcher", "reviewer", "single", "reply"}

Requests = Mapping[str, FirstRequest]


def kept(wire: PromptWire, large: Requests, small: Requests) -> dict[str, str]:
    """Return the texts that are kept of a wire's requests, by file name.

    The vendors' wires differ in form alone, so that the words of one of them are enough.
    """
    match wire:
        case "openai":
            # The board in a reply has no fixed order.
            shown = {f"{name}.txt": r.text for name, r in large.items() if name != "reply"}
            lean = ("coordinator", "worker", "researcher")
            return shown | {f"lean_{name}.txt": small[name].text for name in lean}
        case "text":
            return {"text_worker.txt": large["worker"].text}
        case _:
            return {}


async def _write() -> None:
    for wire in WIRES:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            large = await first_requests(home / "large", wire=wire, roles=ROLES)
            small = await first_requests(
                home / "small", wire=wire, roles=ROLES, window=SMALL_WINDOW
            )
        for name in sorted(ROLES):
            print(f"{wire:10} {name:12} {large[name].tokens:6,} {small[name].tokens:6,}")
        for name, text in kept(wire, large, small).items():
            (SNAPSHOTS / name).write_text(text)


if __name__ == "__main__":
    asyncio.run(_write())
