"""Acceptance: compares a result with the node's acceptance lines, its files and its tool log."""

import re
from collections.abc import Callable, Iterable, Sequence

from agiraph.domain.chat import AGAIN, ToolCall, Turn
from agiraph.domain.tools import ToolProperties
from agiraph.domain.work import LineKind, WorkNode
from agiraph.run_context import RunContext

NOT_ACCEPTED = "[Not accepted]"
"""The first words of an answer that sends a result back, which happens once for an attempt."""
NO_LINES = "nobody said what must be true when the goal is reached"
HOW_TO_SET_LINES = (
    " To say it, call set_acceptance with statements that can be checked; then end with evidence "
    "for each."
)
"""Added to `NO_LINES` where an agent reads it. A person reads `NO_LINES` alone, as a doubt about
a result."""
NO_EFFECT = "nothing was read, written, run or given to anyone"

_FILE = re.compile(r"`([\w][\w ./-]*\.\w+)`")
_BARE_FILE = re.compile(r"\b[\w-]+\.(?:md|txt|csv|json|ya?ml|toml|html?|pdf|py|js|ts|sh|sql)\b")
_MASK = re.compile(
    r"\|\|\s*(?:true|echo|printf|exit\s+0)\b|\|\|\s*:|;\s*(?:true|:|exit\s+0)\s*$"
    r"|\|\s*head\b[^|;]*&&"
)
"""Ends of a command that hide whether it failed."""
_CLAIMED_CODE = re.compile(
    r"(?:(?<![\s(,;→>-])[\s(,;→>-]++)?\b(?:exit(?:ed)?(?: with)? (?:code|status)|exited(?: with)?)"
    r"[ :=]*+(\d++)\W*+$"
)
_CODE = re.compile(r"\[exit code (\d+)")
_PROOFS: dict[LineKind, str] = {
    "file": "a file",
    "ran": "a command that was run",
    "judged": "words, for a reviewer,",
}


def missing_evidence(
    ctx: RunContext, node: WorkNode, files: Iterable[str], evidence: Sequence[str]
) -> list[str]:
    """Return a sentence for each acceptance line that is not met; empty if all are."""
    existing = set(files)
    missing: list[str] = []
    for number, line in enumerate(node.lines_to_prove):
        named = [name.removeprefix("scratch/") for name in _FILE.findall(line)]
        # Its worker has read a labelled line inside a fence; here it would stand outside of one.
        told = f"line {number + 1}" if node.label else repr(line)
        missing += [f"no file {name!r} is delivered, but {told} asks for it" for name in named
                    if name not in existing]  # fmt: skip
        shown = evidence[number].strip() if number < len(evidence) else ""
        kind = node.line_kinds.get(line)
        if not shown and (kind in ("ran", "judged") or not named):
            missing.append(f"nothing is given as evidence for {told}")
        elif shown and kind is not None and kind != _kind_of(shown):
            missing.append(f"{told} asks for {_PROOFS[kind]} as evidence, and was given {shown!r}")
        elif shown:
            missing += _unconfirmed(ctx, existing, shown)
    return missing


def _kind_of(shown: str) -> LineKind:
    """Return the kind of a piece of evidence; words are for somebody's judgement."""
    match shown.strip().partition(":")[0]:
        case "file" | "ran" as kind:
            return kind
        case _:
            return "judged"


def unchecked_lines(node: WorkNode, evidence: Sequence[str]) -> list[str]:
    """Return the acceptance lines that no program can check: those for somebody's judgement, and
    those without a kind that no command supports. That a file exists says nothing of what is in
    it."""
    shown = [*map(_kind_of, evidence), *["judged"] * len(node.lines_to_prove)]
    judged = ((None, "file"), (None, "judged"), ("judged", "judged"))
    return [
        line
        for line, given in zip(node.lines_to_prove, shown, strict=False)
        if (node.line_kinds.get(line), given) in judged
    ]


def overlooked_files(ctx: RunContext, node: WorkNode) -> list[str]:
    """Return the files that the goal names and that neither its lines nor any successful call do.

    Lines that the agent wrote itself may be about something else than the goal. For lines that a
    person gave, the list is empty.
    """
    if not node.is_goal or node.given_lines:
        return []
    known = "\n".join(node.acceptance) + "".join(
        str(call.arguments)
        for call, answer in answered(ctx)
        if properties(ctx, call).counts_as_work and not answer.failed
    )
    named = {*_FILE.findall(node.task), *_BARE_FILE.findall(node.task)}
    return sorted(name for name in named if name not in known)


def _unconfirmed(ctx: RunContext, existing: set[str], shown: str) -> list[str]:
    """Return why a piece of evidence is not confirmed; free text is accepted as it is."""
    kind, _, what = shown.partition(":")
    what = what.strip()
    if kind == "file":
        # One piece of evidence may name several: `file:a.md, file:b.md`.
        names = (name.strip(" \t\n,;").removeprefix("scratch/") for name in what.split("file:"))
        return [f"no file {name!r} is delivered, but it was given as evidence" for name in names
                if name not in existing]  # fmt: skip
    return _unconfirmed_command(ctx, what) if kind == "ran" else []


def _unconfirmed_command(ctx: RunContext, claim: str) -> list[str]:
    """Return why a command given as evidence does not count: it did not run, failed, or hides it.

    The last run of the command decides. A claim may end with the exit code: `pytest (exit code 0)`.
    """
    claimed = _CLAIMED_CODE.search(claim)
    what = claim if claimed is None else claim[: claimed.start()]
    what = what.strip().strip("`").strip()
    runs = [
        (str(call.arguments.get("command", "")), answer)
        for call, answer in answered(ctx)
        if properties(ctx, call).runs_commands
    ]
    runs = [(command, answer) for command, answer in runs if what and what in command]
    code = 0 if claimed is None else int(claimed[1])
    if not runs or (runs[-1][1].failed and code == 0):
        return [f"no command {what!r} was run that succeeded"]
    command, answer = runs[-1]
    if _MASK.search(command):
        return [f"the command {command!r} succeeds whether or not {what!r} does"]
    ended = _CODE.match(answer.text)
    if ended is not None and int(ended[1]) != code:
        return [f"{what!r} ended with exit code {ended[1]}, not {code}"]
    return []


def has_effect(ctx: RunContext, files: Iterable[str]) -> bool:
    """Whether the node has files or a successful call that counts as work."""
    return any(files) or any(
        properties(ctx, call).counts_as_work and not answer.failed for call, answer in answered(ctx)
    )


def properties(ctx: RunContext, call: ToolCall) -> ToolProperties:
    """Return what the runtime knows of the tool that was called."""
    return ctx.known_tools.get(call.name, ToolProperties())


def was_sent_back(ctx: RunContext) -> bool:
    """Whether a result of this node was refused before, in the current attempt."""
    return any(answer.text.startswith(NOT_ACCEPTED) for _, answer in answered(ctx, _since_retry))


def answered(
    ctx: RunContext, since: Callable[[Sequence[Turn]], int] = lambda turns: 0
) -> list[tuple[ToolCall, Turn]]:
    """Return this node's calls with their answers.

    Calls of an earlier node in the same thread are left out: they prove nothing for this one.
    """
    calls: dict[str, ToolCall] = {}
    found: list[tuple[ToolCall, Turn]] = []
    turns = ctx.transcript.turns
    for turn in turns[since(turns) :]:
        if turn.node_id != ctx.node.id:
            continue
        calls |= {call.id: call for call in turn.calls}
        if turn.role == "tool" and turn.ref in calls:
            found.append((calls[turn.ref], turn))
    return found


def _since_retry(turns: Sequence[Turn]) -> int:
    """Return the index of the last retry or extension; 0 if there was none."""
    again = (n for n, turn in enumerate(turns) if (turn.ref or "").startswith(AGAIN))
    return max(again, default=0)
