"""Dialogues: what a person reads states all that was done, and nothing that was not."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from agiraph.core.services.triggers.firing import CHECK
from tests.scenarios import dialogues
from tests.scenarios.dialogue import Dialogue, Fact, Step

STATEMENTS = {
    "told": r"Told (.+?)(?: “.+?”)?: “(.+)”",
    "started": r"Started: (.+)",
    "stopped": r"Stopped: (.+?)(?:\. Dropped with it: .+)?",
    "answered": r"Answered “(.+)” with “(.+)”",
    "reminder": r"Reminder for (.+?): (.+)",
    "trigger": r"Set up, (.+?), then .+ and so on: (.+)",
    "remembered": r"Remembered: (.+)",
    "forgot": r"Forgot: (.+)",
}
ENDS = ("result", "done, with doubts", "partial result", "failure")
UNDONE = {"started": "stopped", "stopped": "goes on", "answered": "open again"}
"""What is done when an act is undone."""
UNSTATED = ("goal begun", "part ended", "no more", "secret kept")
"""What no reply states: what the person did, ends of tasks below and of reminders that came."""


def stated(step: Step) -> list[Fact]:
    """Return what the person was told that was done, by the words that they read."""
    found: list[Fact] = []
    for line in step.printed[1:]:
        if act := re.fullmatch(r"  → (.+?)( \(undone\))?", line):
            read = ((kind, re.fullmatch(form, act[1])) for kind, form in STATEMENTS.items())
            [(kind, match)] = [(kind, match) for kind, match in read if match]
            words = match.groups()
            found.append((UNDONE[kind], words[0]) if act[2] else (kind, *_named(*words)))
        elif item := re.match(r"\[Inbox\] \w+, ([\w, ]+): (?:“([^”]+)” )?(.+)", line):
            kind, title, text = item.groups()
            found.append(("asked", text) if kind == "question" else ("ended", title or "", kind))
    return sorted(found)


def _named(*words: str) -> tuple[str, ...]:
    """Name the agent whose own work was told."""
    return tuple("coordinator" if each == "its own work" else each for each in words)


def done(step: Step) -> list[Fact]:
    """Return what was done in truth, as far as a person is to be told, in the same form."""
    found: list[Fact] = []
    for kind, *more in step.facts:
        quiet = kind == "ended" and more[0] == CHECK
        by_person = step.kind == "answers" and kind == "answered"
        if kind in UNSTATED or quiet or by_person:
            continue
        found.append((kind, *(more[:2] if kind == "ended" else more)))
    return sorted((kind, *(words.partition("\n")[0] for words in more)) for kind, *more in found)


def in_words_of_the_message(step: Step, told: Sequence[Fact]) -> list[Fact]:
    """Return statements with the whole message in place of a part of it that was passed on."""
    whole = [fact for fact in step.facts if fact[0] == "told"]
    return sorted(
        next((each for each in whole if fact[:2] == each[:2] and fact[2] in each[2]), fact)
        if fact[0] == "told"
        else fact
        for fact in told
    )


def unheard(it: Dialogue) -> list[str]:
    """Return what was told to the person's own agent, and was neither heard nor dropped."""
    read = "\n".join(it.transcript)
    told = [fact[2] for step in it.steps for fact in step.facts if fact[0] == "told"]
    heard = "\n".join(it.cast.heard)
    known = heard + "".join(re.findall(r"Dropped with it: .+", read))
    return [words for words in told if words not in known]


@pytest.mark.parametrize("name", dialogues.ALL)
async def test_what_a_person_reads_is_what_was_done(tmp_path: Path, name: str) -> None:
    it = await dialogues.play(dialogues.ALL[name], tmp_path)
    read = [in_words_of_the_message(step, stated(step)) for step in it.steps]
    assert read == [done(step) for step in it.steps]
    assert unheard(it) == []
    assert it.machine_words() == []
    assert 2 <= sum(step.kind in ("says", "answers") for step in it.steps) <= 6


def test_there_are_twenty_dialogues() -> None:
    assert len(dialogues.ALL) == 20
