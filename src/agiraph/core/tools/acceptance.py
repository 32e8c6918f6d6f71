"""Acceptance: compares a result with the node's acceptance lines, its files and its tool log.

Names of files are found in a text by their form alone.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from agiraph.core.domain.chat import AGAIN, ToolCall, Turn
from agiraph.core.domain.records.doubts import Doubt
from agiraph.core.domain.tools import ToolProperties
from agiraph.core.domain.work import LineKind, WorkNode
from agiraph.core.run_context import RunContext
from agiraph.late_patterns import late

_BARE_ENDINGS = (
    "md txt rst csv tsv json jsonl yaml yml toml ini xml html htm tex pdf doc docx xls xlsx ppt"
    " pptx odt png jpg jpeg gif svg webp ipynb py sh sql"
)
_OTHERS = (
    "cfg css js jsx ts tsx rb go rs java kt c h cc cpp hpp cs swift php pl bash r mp3 mp4 wav zip"
    " tar gz log db sqlite lock env diff patch"
)
_ENDINGS = frozenset(f"{_BARE_ENDINGS} {_OTHERS}".split())
_MARKS = r"\u0300-\u036f\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff\u200c\u200d"
"""Vowel signs and joiners inside of words, of which many are no `\\w`, in scripts with spaces."""
_NO_SPACES = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CHARACTER = rf"(?:[^\W{_NO_SPACES}]|[{_MARKS}])"
"""A character of a name. In scripts without spaces a name cannot be told from the words around
it, so theirs are none."""
_IN_BACKTICKS = late(rf"`([\w{_MARKS}./-]+\.([A-Za-z][A-Za-z0-9]{{0,5}}))`")
_BARE = late(
    rf"(?<![./@:~$%*<>{{}}-])(?<!{_CHARACTER})(?:{_CHARACTER}|[./-])*{_CHARACTER}"
    rf"\.(?:{'|'.join(_BARE_ENDINGS.split())})(?!{_CHARACTER}|[-/(@*<]|\.\w)",
    re.IGNORECASE,
)
_PATTERN = late(r"YYYY|XX|NN|^www\.")
"""What stands for other characters, and the start of an address."""


def in_backticks(text: str) -> list[str]:
    """Return the names in backticks; a command in backticks is none."""
    if "`" not in text:  # most texts: the patterns take long to compile
        return []
    found = (match for match in _IN_BACKTICKS.finditer(text) if match[2].lower() in _ENDINGS)
    return list(dict.fromkeys(match[1] for match in found))


def in_text(text: str) -> list[str]:
    """Return the names in a text, in backticks or not, but for those in commands and addresses."""
    if "." not in text:
        return []
    bare = (match[0] for match in _BARE.finditer(re.sub(r"`[^`\n]*`", " ` ", text)))
    named = (*in_backticks(text), *(name for name in bare if not _is_address(name)))
    return [name for name in dict.fromkeys(named) if not _PATTERN.search(name)]


def _is_address(name: str) -> bool:
    first, slash, _ = name.partition("/")
    return bool(slash) and "." in first.strip(".")


def base(name: str) -> str:
    """Return a file's name without its folder, for comparing it."""
    return name.rstrip("/").rpartition("/")[2].casefold()


NOT_ACCEPTED = "[Not accepted]"
"""The first words of an answer that sends a result back."""
NO_LINES = "nobody said what must be true when the goal is reached"
HOW_TO_SET_LINES = (
    " To say it, call set_acceptance with statements that can be checked; then end with evidence "
    "for each."
)
"""Added to `NO_LINES`, which only agents read: it is no doubt about a result."""
NO_EFFECT = "nothing was read, written, run or given to anyone"
NO_EVIDENCE = "nothing is given as evidence for"
_DOCUMENTS = (".md", ".txt", ".rst")
"""Endings of files that no command tests unless it names them."""

_MASK = late(
    r"\|\|\s*(?:true|echo|printf|exit\s+0)\b|\|\|\s*:|;\s*(?:true|:|exit\s+0)\s*$"
    r"|\|\s*head\b[^|;]*&&"
)
"""Ends of a command that hide whether it failed."""
_CLAIMED_CODE = late(
    r"(?:(?<![\s(,;→>-])[\s(,;→>-]++)?\b(?:exit(?:ed)?(?: with)? (?:code|status)|exited(?: with)?)"
    r"[ :=]*+(\d++)\W*+$"
)
_PROOFS: dict[LineKind, str] = {"file": "a file", "ran": "a command that was run"}


def missing_evidence(
    ctx: RunContext,
    node: WorkNode,
    files: Mapping[str, str],
    evidence: Sequence[str],
    *,
    known: Collection[str] = (),
) -> list[Doubt]:
    """Return a doubt for each acceptance line that is not met; empty if all are.

    `files` are the delivered ones, each with what is wrong with it; `known` the names of others
    that exist.
    """
    faults = {base(name): fault for name, fault in files.items()}
    missing: list[Doubt] = []
    for number, line in enumerate(node.lines_to_prove):
        named = in_text(line)
        # Its worker has read a labelled line inside a fence; here it would stand outside of one.
        told = f"line {number + 1}" if node.label else repr(line)
        wrong = [_wrong(name, faults) for name in named if base(name) not in known]
        found = [f"{what}, but {told} asks for it" for what in wrong if what]
        shown = evidence[number].strip() if number < len(evidence) else ""
        kind = node.line_kinds.get(line)
        if not shown and (kind in ("ran", "judged") or not named):
            missing.append(Doubt(kind="no_evidence", words=f"{NO_EVIDENCE} {told}"))
        elif shown and kind in ("file", "ran") and kind != _kind_of(shown):
            found.append(f"{told} asks for {_PROOFS[kind]} as evidence, and was given {shown!r}")
        elif shown:
            found += _unconfirmed(ctx, faults, shown)
        missing += [Doubt(kind="evidence", words=words) for words in found]
    return missing


def _kind_of(shown: str) -> LineKind:
    """Return the kind of a piece of evidence; words are for somebody's judgement."""
    match shown.strip().partition(":")[0]:
        case "file" | "ran" as kind:
            return kind
        case _:
            return "judged"


def unchecked_lines(
    node: WorkNode, evidence: Sequence[str], *, copied: Collection[str] = ()
) -> list[str]:
    """Return the acceptance lines that no program can check: those for somebody's judgement, and
    those that no command supports, unless somebody else than the agent asked for a mere file. That
    a file exists says nothing of what is in it, and one that is `copied` says nothing at all."""
    shown = [*map(_kind_of, evidence), *["judged"] * len(node.lines_to_prove)]
    by_others = node.acceptance[: node.given_lines] if node.is_goal else node.acceptance
    return [
        line
        for line, given in zip(node.lines_to_prove, shown, strict=False)
        if "judged" in (given, node.line_kinds.get(line))
        or (given == "file" and (node.line_kinds.get(line) is None or line not in by_others))
        or line in copied
    ]


def unseen_lines(
    node: WorkNode, evidence: Sequence[str], *, copied: Collection[str] = ()
) -> list[str]:
    """Return the acceptance lines that no machine saw: those for which there are words or a copy
    alone, and those for somebody's judgement."""
    shown = [*evidence, *[""] * len(node.lines_to_prove)]
    return [
        line
        for line, given in zip(node.lines_to_prove, shown, strict=False)
        if line in copied
        or (given.strip() and "judged" in (_kind_of(given), node.line_kinds.get(line)))
    ]


def files_of_lines(node: WorkNode, evidence: Sequence[str]) -> dict[str, list[str]]:
    """Return for each acceptance line the names of the files that are to prove it: those given as
    evidence, or without evidence those that the line names."""
    shown = [*evidence, *[""] * len(node.lines_to_prove)]
    return {
        line: _file_names(given) if given.strip() else in_text(line)
        for line, given in zip(node.lines_to_prove, shown, strict=False)
    }


def _file_names(shown: str) -> list[str]:
    """Return the files that a piece of evidence names: `file:a.md, file:b.md`; none of other
    kinds."""
    kind, _, what = shown.strip().partition(":")
    if kind != "file":
        return []
    return [name.strip(" \t\n,;`").removeprefix("scratch/") for name in what.split("file:")]


def _unconfirmed(ctx: RunContext, faults: Mapping[str, str], shown: str) -> list[str]:
    """Return why a piece of evidence is not confirmed; nothing of words, which no machine sees."""
    kind, _, what = shown.partition(":")
    what = what.strip()
    if kind == "file":
        wrong = [_wrong(name, faults) for name in _file_names(shown)]
        return [f"{what}, but it was given as evidence" for what in wrong if what]
    return _unconfirmed_command(ctx, what) if kind == "ran" else []


def _wrong(name: str, faults: Mapping[str, str]) -> str:
    """Return what is wrong with a file that is asked for; nothing if it is delivered and good."""
    fault = faults.get(base(name))
    if fault is None:
        return f"no file {name!r} is delivered"
    return f"the file {name!r} {fault}" if fault else ""


def _unconfirmed_command(ctx: RunContext, claim: str) -> list[str]:
    """Return why a command given as evidence does not count: it did not run, failed, hides it, or
    ran before the last file was written.

    The last run of the command decides. A claim may end with the exit code: `pytest (exit code 0)`.
    """
    claimed = _CLAIMED_CODE.search(claim)
    what = claim if claimed is None else claim[: claimed.start()]
    what = what.strip().strip("`").strip()
    runs = [
        (number, str(call.arguments.get("command", "")), answer)
        for number, (call, answer) in enumerate(answered(ctx))
        if properties(ctx, call).runs_commands
    ]
    runs = [run for run in runs if what and what in run[1]]
    code = 0 if claimed is None else int(claimed[1])
    if not runs or (runs[-1][2].failed and code == 0):
        return [f"no command {what!r} was run that succeeded"]
    number, command, answer = runs[-1]
    if _MASK.search(command):
        return [f"the command {command!r} succeeds whether or not {what!r} does"]
    if answer.exit_code not in (None, code):
        return [f"{what!r} ended with exit code {answer.exit_code}, not {code}"]
    later = [name for name in _written_after(ctx, number) if _may_matter(name, command)]
    return [f"{what!r} ran before {later[-1]!r} was written"] if later else []


def _written_after(ctx: RunContext, number: int) -> list[str]:
    """Return the files that calls after this one have written."""
    return [
        str(call.arguments.get("path", ""))
        for call, answer in answered(ctx)[number + 1 :]
        if properties(ctx, call).writes_files and not answer.failed
    ]


def _may_matter(name: str, command: str) -> bool:
    """Whether a command that ran before may end otherwise with the file as it is now."""
    return not name.endswith(_DOCUMENTS) or base(name) in command.casefold()


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
    return any(answer.sends_back for _, answer in answered(ctx, _since_retry))


def answered(
    ctx: RunContext, since: Callable[[Sequence[Turn]], int] = lambda turns: 0
) -> list[tuple[ToolCall, Turn]]:
    """Return this node's calls with their answers.

    Calls of an earlier node in the same thread are left out: they prove nothing for this one.
    """
    turns = ctx.transcript.turns
    return paired([turn for turn in turns[since(turns) :] if turn.node_id == ctx.node.id])


def paired(turns: Iterable[Turn]) -> list[tuple[ToolCall, Turn]]:
    """Return the calls among these turns with their answers."""
    calls: dict[str, ToolCall] = {}
    found: list[tuple[ToolCall, Turn]] = []
    for turn in turns:
        calls |= {call.id: call for call in turn.calls}
        if turn.role == "tool" and turn.ref in calls:
            found.append((calls[turn.ref], turn))
    return found


def _since_retry(turns: Sequence[Turn]) -> int:
    """Return the index of the last retry or extension; 0 if there was none."""
    again = (n for n, turn in enumerate(turns) if turn.note == AGAIN)
    return max(again, default=0)
