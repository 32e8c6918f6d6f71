"""Endings: the calls with which scripted agents say what done means, prove it and judge it."""

import re

from agiraph.testing import Call, Says, call, says
from agiraph.testing.model_server import Seen

ACCEPTS: Says = says(call("give_verdict", verdict="accept"))
"""A reviewer's reply that accepts the result."""
OPENS: Says = says(call("bash", command="find ../../node_*/scratch -type f -exec cat {} +"))
"""A reviewer's reply that opens all files before it: its verdict on what it has not opened does not
count."""


def defines(*lines: str) -> Call:
    """Return the call that says what done means. A line that begins with a file is proven by it."""
    kinds = ["file" if line.startswith("`") else "any" for line in lines]
    return call("set_acceptance", lines=list(lines), kinds=kinds)


def finishes(summary: str, *evidence: str) -> Says:
    """Return the reply that ends the goal, with evidence for each line of what done means."""
    proof = {"evidence": list(evidence)} if evidence else {}
    return says(call("finish", summary=summary, **proof))


def opens_and_accepts(seen: Seen) -> Says:
    """Return a careful reviewer's next reply: it opens the delivered files, then accepts."""
    shown = seen.messages[0].text
    [node] = re.findall(r"submits as (\w+)", shown)[:1]
    names = re.findall(r"([\w.]+) \([\d,]+ bytes\)", shown)
    opened = [call("read_file", path=f"nodes/{node}/scratch/{name}") for name in names]
    has_opened = any(message.calls for message in seen.messages)
    return says(*opened) if opened and not has_opened else ACCEPTS


def sends_back(*findings: str) -> Says:
    """Return a reviewer's reply that sends the result back."""
    return says(call("give_verdict", verdict="rework", findings=list(findings)))
