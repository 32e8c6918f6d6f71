"""Kit: calls and replies that the habit tests share."""

import re
from typing import Any

from agiraph.testing import Call, Says, call, says

ASK: Says = says(call("ask_human", question="What now?"))
"""Parks a node, so that a script ends without ending the work."""
ASK_MORE: Says = says(call("ask_human", question="And then?"))
"""Parks it again: the same question would be answered with the first answer."""


OVER_NOTHING = "\n\n1 point not confirmed:\n  - Nothing was read, written, run or given to anyone"
"""What stands under a result for a person if its work did nothing."""


def assign(task: str, agent: str = "new:scripted/bob", **more: Any) -> Call:
    """Delegate a task; its description is its first words."""
    return call("assign_task", agent=agent, task=task, description=task[:60], **more)


def outside_fences(text: str) -> str:
    """Return what a careful reader takes for the runtime's or a person's own words."""
    fence = re.compile(r"<<< ([0-9a-f]{16}): [^\n]*\n.*?\n>>> \1: the end of it\.", re.DOTALL)
    return fence.sub("", text)
