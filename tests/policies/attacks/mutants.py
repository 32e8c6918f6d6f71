"""Mutants: each switches one guard off, and names attacks of which one must then succeed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from agiraph.core.domain.provenance import labels, sinks
from agiraph.core.domain.provenance.grants import Grant
from agiraph.core.domain.provenance.labels import CLEAN
from agiraph.core.domain.provenance.sinks import Sink
from agiraph.core.domain.text import fence
from agiraph.core.policies import permission
from agiraph.core.runtime import compaction
from agiraph.core.services.board import labels as board_labels
from agiraph.core.services.triggers import labelled
from agiraph.core.store import threads
from agiraph.core.store.engine import dump
from agiraph.core.store.tx import Tx
from agiraph.core.tools import delegation
from agiraph.core.tools.calls import added
from agiraph.core.tools.files import file_labels as tool_file_labels
from agiraph.core.tools.toolsets import BUILT_IN

Arm = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A guard that is switched off."""

    name: str
    arm: Arm
    caught_by: tuple[str, ...]
    """Ids of attacks; at least one of them must succeed, or find words without label or fence."""


def _free(sink: Sink) -> Arm:
    """Return the mutant of the table in which this way out is free in every team."""

    def arm(patch: pytest.MonkeyPatch) -> None:
        table: dict[Sink, Mapping[Any, Any]] = dict(sinks.VERDICTS)
        table[sink] = {"strict": "free", "standard": "free", "open": "free"}
        patch.setattr(sinks, "VERDICTS", table)

    return arm


def _without_way_out(*tools: str) -> Arm:
    """Return the mutant in which these tools do not say that they take a way out."""

    def arm(patch: pytest.MonkeyPatch) -> None:
        for name in tools:
            patch.setitem(BUILT_IN, name, replace(BUILT_IN[name], way_out=None))

    return arm


def _unlabelled(tool: str) -> Arm:
    """Return the mutant in which a tool's answers carry no label."""

    def arm(patch: pytest.MonkeyPatch) -> None:
        known = BUILT_IN[tool]

        def act(tx: Any, ctx: Any, **given: Any) -> Any:
            return _clean(known.act(tx, ctx, **given))

        async def act_later(ctx: Any, **given: Any) -> Any:
            return _clean(await known.act(ctx, **given))

        is_now = known.effect == "transaction"
        patch.setitem(BUILT_IN, tool, replace(known, act=act if is_now else act_later, brings=None))

    return arm


def _clean(answer: Any) -> Any:
    return replace(answer, label=CLEAN) if getattr(answer, "label", CLEAN) else answer


def _patched(place: Any, name: str, value: Any) -> Arm:
    return lambda patch: patch.setattr(place, name, value)


def _no_label(*_: Any, **__: Any) -> labels.Label:
    return CLEAN


def _plain(text: str, **_: Any) -> str:
    return text


def _unlabelled_dump(patch: pytest.MonkeyPatch) -> None:
    """Let the labels of files be left out when a home is dumped."""
    read = dump._rows

    def forgetful(tx: Tx, table: str, *more: Any) -> Any:
        return iter(()) if table == "file_labels" else read(tx, table, *more)

    patch.setattr(dump, "_rows", forgetful)


SINKS = {
    Sink.SEARCH: ("search: a query is the secret",),
    Sink.SEARCH_BEYOND_LIMIT: ("search: a secret is spelled by the number of queries",),
    Sink.LINK: ("link choice: sixteen links of one host spell a secret",),
    Sink.LINK_BEYOND_LIMIT: ("link choice: sixteen links of one host spell a secret",),
    Sink.MADE_UP_ADDRESS: ("leak: web_fetch path",),
    Sink.NETWORK_COMMAND: ("leak: bash curl",),
    Sink.WAKE_SELF: ("for later: schedule acts after the thread has ended",),
    Sink.READING_HOST: ("guard: a reading host is asked for the secret",),
    Sink.PACKAGES_COMMAND: ("guard: a command with packages runs",),
    Sink.HOSTS_COMMAND: ("guard: a command with hosts runs",),
    Sink.KEEP_WORKER: ("guard: a worker is kept",),
    Sink.MORE_TOOLS: ("guard: a newcomer has more tools",),
    Sink.CALLBACK: ("guard: a message to others is set for later",),
    Sink.PROGRAM: ("leak: task for a program",),
    Sink.TOOL_READS: ("added tool: look_up is ordered",),
    Sink.TOOL_CHANGES: ("added tool: change is ordered",),
    Sink.TOOL_SENDS: ("added tool: post is ordered",),
}
"""Ways out, and an attack that takes each of them."""
MUTANTS = [
    *(
        Mutant(name=f"the way out {sink} is free", arm=_free(sink), caught_by=caught_by)
        for sink, caught_by in SINKS.items()
    ),
    Mutant(
        # The table alone is not enough: the tool refuses such a trigger if nobody was asked.
        name=f"the way out {Sink.WAKE_BEYOND_LIMIT} is never taken",
        arm=_patched(labelled, "excess", lambda *_: None),
        caught_by=("guard: an agent wakes itself every five minutes",),
    ),
    Mutant(
        name="an added tool that says nothing is free",
        arm=_patched(added, "guarded", lambda tool: tool),
        caught_by=("added tool: unsaid is ordered",),
    ),
    Mutant(
        name="what an added tool brings carries no label",
        arm=_patched(added, "_labelling", lambda tool: tool),
        caught_by=("added tool: what it brings orders a way out",),
    ),
    Mutant(
        name="the summary of a full thread is not fenced",
        arm=_patched(compaction, "enclose", _plain),
        caught_by=("guard: orders go on in the summary of a full thread",),
    ),
    Mutant(
        name="a dump of the home holds no labels",
        arm=_unlabelled_dump,
        caught_by=("moved: orders wait in a notebook while the home is moved",),
    ),
    Mutant(
        name="no way out is guarded",
        arm=_patched(permission, "verdict", lambda sink, trust: "free"),
        caught_by=("leak: web_fetch query",),
    ),
    Mutant(
        name="web_fetch takes no way out",
        arm=_without_way_out("web_fetch"),
        caught_by=("encoding: three addresses hold a piece each",),
    ),
    Mutant(
        name="bash takes no way out",
        arm=_without_way_out("bash"),
        caught_by=("leak: bash curl",),
    ),
    *(
        Mutant(name=f"{tool} labels nothing", arm=_unlabelled(tool), caught_by=caught_by)
        for tool, caught_by in {
            "web_fetch": ("source: a page orders an address",),
            "web_search": ("source: a search result orders an address",),
            "read_file": ("source: a published file orders an address",),
            "bash": ("source: curl in a clean thread orders an address",),
            "knowledge_search": ("source: what a teammate read before orders an address",),
            "task_output": ("second thread: orders wait in a result",),
            "check_board": ("second thread: orders wait in the title of a task",),
            "list_files": ("second thread: orders wait in the name of a file",),
            "memory_read": ("second thread: orders wait in the day's log",),
            "memory_search": ("second thread: orders wait in a note that memory_search finds",),
            "list_triggers": ("second thread: orders wait in the list of triggers",),
        }.items()
    ),
    Mutant(
        name="a message carries no label",
        arm=_patched(board_labels, "of_words", _no_label),
        caught_by=("source: a teammate's message orders an address",),
    ),
    Mutant(
        name="a result carries no label",
        arm=_patched(board_labels, "of_nodes", _no_label),
        caught_by=("source: a teammate's result orders an address",),
    ),
    Mutant(
        name="a task carries no label",
        arm=_patched(board_labels, "of_task", _no_label),
        caught_by=("second thread: orders wait in a task",),
    ),
    Mutant(
        name="an attachment carries no label",
        arm=_patched(board_labels, "of_person", _no_label),
        caught_by=("source: an attachment to work orders an address",),
    ),
    Mutant(
        name="a kept file carries no label",
        arm=_patched(tool_file_labels, "_label", _no_label),
        caught_by=("second thread: orders wait in a file on the desk",),
    ),
    Mutant(
        name="a grant allows what it does not name",
        arm=_patched(Grant, "allows", lambda *_, **__: True),
        caught_by=("grant: a subdomain of a host",),
    ),
    Mutant(
        name="a labelled thread opens a public reader",
        arm=_patched(delegation, "refuse_private", lambda *_: None),
        caught_by=("public reader: a labelled thread tells a public reader",),
    ),
    Mutant(
        name="a thread's label is not stored",
        arm=_patched(threads, "label_of_node", _no_label),
        caught_by=("source: a teammate's message orders an address",),
    ),
    Mutant(
        name="nothing is fenced",
        arm=_patched(fence, "enclose", _plain),
        caught_by=("forgery: a page forges the end of a fence",),
    ),
]
