"""Acceptance: compares a result with the node's acceptance lines, its files and its tool log."""

import re
from collections.abc import Iterable, Sequence

from agiraph.domain.chat import ToolCall, Turn
from agiraph.domain.tools import ToolProperties
from agiraph.run_context import RunContext

NOT_ACCEPTED = "[Not accepted]"
"""The first words of an answer that sends a result back, which happens once for a node."""

_FILE = re.compile(r"`([\w][\w ./-]*\.\w+)`")


def missing_evidence(ctx: RunContext, files: Iterable[str], evidence: Sequence[str]) -> list[str]:
    """Return a sentence for each acceptance line that is not met; empty if all are."""
    existing = set(files)
    missing: list[str] = []
    for number, line in enumerate(ctx.node.acceptance):
        named = [name.removeprefix("scratch/") for name in _FILE.findall(line)]
        missing += [f"{name!r} is not in scratch/, but {line!r} asks for it" for name in named
                    if name not in existing]  # fmt: skip
        shown = evidence[number].strip() if number < len(evidence) else ""
        if not shown and not named:
            missing.append(f"nothing is given as evidence for {line!r}")
        elif shown:
            missing += _unconfirmed(ctx, existing, shown)
    return missing


def _unconfirmed(ctx: RunContext, existing: set[str], shown: str) -> list[str]:
    """Return why a piece of evidence is not confirmed; free text is accepted as it is."""
    kind, _, what = shown.partition(":")
    what = what.strip()
    if kind == "file" and what.removeprefix("scratch/") not in existing:
        return [f"the file {what!r} that was given as evidence is not in scratch/"]
    if kind == "ran" and not any(
        what in str(call.arguments.get("command", "")) and not answer.failed
        for call, answer in answered(ctx)
        if _properties(ctx, call).runs_commands
    ):
        return [f"no command {what!r} was run that succeeded"]
    return []


def has_effect(ctx: RunContext, files: Iterable[str]) -> bool:
    """Whether the node has files or a successful call that counts as work."""
    return any(files) or any(
        _properties(ctx, call).counts_as_work and not answer.failed
        for call, answer in answered(ctx)
    )


def _properties(ctx: RunContext, call: ToolCall) -> ToolProperties:
    return ctx.known_tools.get(call.name, ToolProperties())


def was_sent_back(ctx: RunContext) -> bool:
    """Whether a result of this node was refused before."""
    return any(answer.text.startswith(NOT_ACCEPTED) for _, answer in answered(ctx))


def answered(ctx: RunContext) -> list[tuple[ToolCall, Turn]]:
    """Return this node's calls with their answers.

    Calls of an earlier node in the same thread are left out: they prove nothing for this one.
    """
    calls: dict[str, ToolCall] = {}
    found: list[tuple[ToolCall, Turn]] = []
    for turn in ctx.transcript.turns:
        if turn.node_id != ctx.node.id:
            continue
        calls |= {call.id: call for call in turn.calls}
        if turn.role == "tool" and turn.ref in calls:
            found.append((calls[turn.ref], turn))
    return found
