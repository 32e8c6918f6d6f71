"""Summary claims: finds what a summary claims about files, tests, earlier words and lack of room
without support.

The patterns are few and plain: a true statement that is doubted costs a turn, so a claim counts
only if its words are unmistakable.
"""

import re
from collections.abc import Iterable, Sequence

from agiraph.domain.work import WorkNode
from agiraph.run_context import RunContext
from agiraph.tools import acceptance

LITTLE = 0.6
"""The share of window and budget below which lack of room is no reason to stop."""

_NAMED = re.compile(r"`([\w./][\w ./-]*\.([A-Za-z][A-Za-z0-9]{0,5}))`")
_FILE_ENDINGS = (
    "md txt rst csv tsv json jsonl yaml yml toml ini cfg xml html htm css js jsx ts tsx py ipynb"
    " rb go rs java kt c h cc cpp hpp cs swift php pl sh bash sql r tex pdf doc docx xls xlsx ppt"
    " pptx odt png jpg jpeg gif svg webp mp3 mp4 wav zip tar gz log db sqlite lock env diff patch"
)
_FILE_TYPES = frozenset(_FILE_ENDINGS.split())
_TESTS_PASS = re.compile(
    r"\b(?:tests?|test suite) (?:now |all |are |is )*"
    r"(?:pass(?:es|ed|ing)?|green|succeed(?:s|ed)?)\b"
    r"|\btests? (?:sind grün|bestanden|laufen durch)\b|\bles tests passent\b|\bpasan los tests\b",
    re.IGNORECASE,
)
_NO_CLAIM = re.compile(
    r"\b(?:not?|none|never|if|when|whether|until|once|before|make|so)\b[\w\s]*$", re.IGNORECASE
)
"""Words before it that make no claim of the sentence: it is denied, or a condition or a wish."""
_EARLIER_WORDS = re.compile(
    r"\b(?:see|read|refer to|as (?:described|stated|listed|given|shown|explained) in)\s+"
    r"(?:my |the )?(?:previous|prior|earlier|preceding|last|above)\s+"
    r"(?:message|repl(?:y|ies)|response|answer|turn|output|analysis|text)s?\b"
    r"|\b(?:see|as (?:described|stated|listed|shown)) above\b"
    r"|\bsiehe oben\b|\bvoir ci-dessus\b",
    re.IGNORECASE,
)
_NO_ROOM = re.compile(
    r"\b(?:running|ran|run) (?:low on|out of|short of) (?:\w+ )?(?:context|tokens|room|space)\b"
    r"|\b(?:context|token)s? (?:window |budget |limit |length |space )?(?:is |are |was |has been )?"
    r"(?:nearly |almost |about to be )?"
    r"(?:running out|exhausted|used up|full|exceeded|too (?:long|full))"
    r"|\b(?:due to|because of|given) (?:the |my )?(?:limited |remaining )?(?:context|token)"
    r"(?: window)?(?: limit\w*| length| constraints?| budget)",
    re.IGNORECASE,
)


def objections(
    ctx: RunContext, texts: Sequence[str], files: Sequence[str], children: Sequence[WorkNode]
) -> list[str]:
    """Return what the summary and the evidence claim without support, one sentence each."""
    said = "\n".join(texts)
    return [
        *_missing_files(ctx, said, files, children),
        *_untested(ctx, said, children),
        *_pointers(said, files),
        *_imagined_lack(ctx, said),
    ]


def _missing_files(
    ctx: RunContext, said: str, files: Sequence[str], children: Sequence[WorkNode]
) -> list[str]:
    named = {match[1] for match in _NAMED.finditer(said) if match[2].lower() in _FILE_TYPES}
    if not named:
        return []
    known = {_last(name) for name in (*files, *ctx.node.refs, *ctx.node.refs.values())}
    known |= {_last(name) for child in children for name in child.manifest}
    missing = sorted(name for name in named if _last(name) not in known)
    seen = _seen(ctx) if missing else ""
    return [f"{name!r} is named in the summary and does not exist" for name in missing
            if name not in seen]  # fmt: skip


def _last(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2]


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


def _untested(ctx: RunContext, said: str, children: Iterable[WorkNode]) -> list[str]:
    if not _claims_tests(said):
        return []
    if any(not c.doubts and _claims_tests(c.result or "") for c in children):
        return []  # a worker ran them, and its own claim was checked
    was_run = False
    for call, answer in acceptance.answered(ctx):
        known = acceptance.properties(ctx, call)
        if known.writes_files and not answer.failed:
            was_run = False
        elif known.runs_commands:
            was_run = not answer.failed
    if was_run:
        return []
    return ["it says that tests pass, but no command succeeded after the last file was written"]


def _claims_tests(said: str) -> bool:
    found = (match.start() for match in _TESTS_PASS.finditer(said))
    return any(not _NO_CLAIM.search(said[max(0, start - 30) : start]) for start in found)


def _pointers(said: str, files: Sequence[str]) -> list[str]:
    if files or not (found := _EARLIER_WORDS.search(said)):
        return []
    return [f"the summary points to other words ({found[0]!r}), which nobody else can read"]


def _imagined_lack(ctx: RunContext, said: str) -> list[str]:
    if not _NO_ROOM.search(said):
        return []
    used = _shares_used(ctx)
    if any(part >= LITTLE * whole for _, part, whole in used):
        return []
    figures = ", ".join(f"{part:,.0f} of {whole:,.0f} {name}" for name, part, whole in used)
    return [f"it gives lack of room as a reason, but only this is used: {figures}"]


def _shares_used(ctx: RunContext) -> list[tuple[str, float, float]]:
    """Return what is used of the window and of each limit of the node: name, part and whole."""
    budget, consumed = ctx.node.budget, ctx.consumed
    last = ctx.transcript.last_reply
    shares: list[tuple[str, float, float | None]] = [
        ("tokens of the context window", last.usage.tokens if last else 0, ctx.window),
        ("turns", consumed.turns, budget.turns),
        ("tokens of the budget", consumed.usage.tokens, budget.tokens),
        ("dollars", consumed.usage.usd or 0.0, budget.usd),
    ]
    return [(name, part, whole) for name, part, whole in shares if whole]
