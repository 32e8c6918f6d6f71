"""Stories of the documents, played from outside: what the person reads at each moment.

Each is played with a model that does to the letter what its prompt says, and with models that do
the least. `python -m tests.scenarios.test_read_from_outside` prints what the person reads.
"""

import asyncio
import contextlib
import re
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agiraph.testing import Call, call, says
from agiraph.testing.script import Says, Seen
from tests.scenarios.endings import ACCEPTS, opens_and_accepts
from tests.scenarios.person import Person, person

Model = Callable[[Seen], Says]
DATABASE = "Set up a database for our project."
PACKAGE = "Create a Python package with a module and tests. The two writers should coordinate."
WATCH = "Watch the front page and keep a summary."
WHICH = "Should I use PostgreSQL or SQLite?"
FILES = ("strutils.py", "test_strutils.py")
VERSION = "Which version of Python?"
DELEGATES = call(
    "assign_task",
    agent="new:openai/test",
    task="Do it.",
    description="Do it",
    run_in_background=True,
)


def role(seen: Seen) -> str:
    """Return what the model is asked to be, by the tools that it is shown."""
    names = ("no_work_needed", "give_verdict", "publish", "finish")
    return next((name for name in names if name in seen.tools), "question")


def made(seen: Seen) -> list[str]:
    return [each.name for message in seen.messages for each in message.calls]


def shown(seen: Seen) -> str:
    return "\n".join(message.text for message in seen.messages if message.role != "assistant")


def next_of(seen: Seen, *steps: Call | str) -> Says:
    """Return the first of these steps that the thread does not have yet, else the last one."""
    done = sum(message.role == "assistant" for message in seen.messages)
    return says(steps[min(done, len(steps) - 1)])


def talks(seen: Seen, text: str, *calls: Call) -> Says:
    is_first = not any(message.role == "assistant" for message in seen.messages)
    return says(text, *(calls if is_first else ()))


def to_the_letter(seen: Seen) -> Says:
    """A model that follows its prompt in each of the stories."""
    match role(seen):
        case "give_verdict":
            return opens_and_accepts(seen)
        case "question":
            return says('{"insights": [], "score": 0.1, "title": "", "summary": "", "text": ""}')
        case "no_work_needed":
            return _replies(seen)
        case "publish":
            return _works(seen)
        case _:
            return _leads(seen)


def _replies(seen: Seen) -> Says:
    if asked := re.findall(r"msg_\w+", seen.system):
        return talks(seen, "Thank you, I pass it on.", call("answer", question_id=asked[0]))
    return talks(seen, "It is done.", call("no_work_needed", reason="answered"))


def _leads(seen: Seen) -> Says:
    if PACKAGE in seen.messages[0].text:
        return _leads_package(seen)
    if WATCH in seen.messages[0].text:
        if "[Runtime] Cycle" in seen.messages[0].text:
            return says(call("finish", nothing_to_do=True))
        note = call("write_file", path="agents/coordinator/summary.md", content="One post.\n")
        return next_of(seen, note, call("finish", summary="One post about AI so far."))
    return next_of(
        seen,
        call("ask_human", question=WHICH, options=["PostgreSQL", "SQLite"]),
        call("set_acceptance", lines=["`setup.sql` sets it up"], kinds=["file"]),
        call("write_file", path="setup.sql", content="create table todo(id int);\n"),
        call("finish", summary="PostgreSQL is set up by setup.sql.", evidence=["file:setup.sql"]),
    )


def _leads_package(seen: Seen) -> Says:
    """Open a stage, answer the question that ends the wait for it, wait in words, copy all."""
    nodes = re.findall(r"Created (node_\w+)", shown(seen))
    calls = made(seen)
    if not calls:
        line = "`strutils.py` and `test_strutils.py` belong together"
        return says(call("set_acceptance", lines=[line], kinds=["file"]))
    if not nodes:
        return says(*(call("create_work_node", task=f"Write {name}") for name in FILES))
    if "start_stage" not in calls:
        return says(call("start_stage", name="Build", nodes=nodes))
    if VERSION in shown(seen) and "send_message" not in calls:
        [coder] = set(re.findall(r"Message from ([\w-]+) \(question\)", shown(seen)))
        return says(call("send_message", to=coder, content="3.11"))
    if "is over" not in shown(seen):
        return says("I wait for the stage.")
    if "reconvene" not in calls:
        return says(call("reconvene", assessment="Both are good."))
    if "bash" not in calls:
        copies = " && ".join(f"cp ../../{node}/published/* ." for node in nodes)
        return says(call("bash", command=copies))
    proof = ", ".join(f"file:{name}" for name in FILES)
    return says(call("finish", summary="The package has module and tests.", evidence=[proof]))


def _works(seen: Seen) -> Says:
    """Write one file; the writer of the module asks the coordinator before."""
    [name] = [name for name in FILES if f"\nWrite {name}\n" in seen.messages[0].text]
    asks = [call("send_message", to="coordinator", content=VERSION, kind="question")]
    return next_of(
        seen,
        *(asks if name == FILES[0] else ()),
        call("write_file", path=name, content="x = 1\n"),
        call("publish", summary=f"{name} is written.", evidence=[f"file:{name}"]),
    )


def finishes_at_once(seen: Seen) -> Says:
    match role(seen):
        case "give_verdict":
            return ACCEPTS
        case "no_work_needed":
            return says("I will see to it.")
        case "question":
            return says("{}")
        case ending:
            return says(call(ending, summary="done"))


def delegates_everything(seen: Seen) -> Says:
    if role(seen) != "finish":
        return finishes_at_once(seen)
    return says(call("finish", summary="I delegated it.") if made(seen) else DELEGATES)


def says_nothing(seen: Seen) -> Says:
    return ACCEPTS if role(seen) == "give_verdict" else says("")


def repeats_a_call(seen: Seen) -> Says:
    return says(call("list_files")) if role(seen) == "finish" else finishes_at_once(seen)


async def set_up_a_database(it: Person) -> None:
    await it.founds(DATABASE)
    assert it.transcript[-1] == "[team] needs_you"
    assert await it.told("question") == [WHICH]
    await it.answers("PostgreSQL, it is for a web app")
    await it.says("How far are you?")
    assert await it.told("question", "result") == [WHICH, "PostgreSQL is set up by setup.sql."]


async def create_a_package(it: Person) -> None:
    await it.founds(PACKAGE)
    assert await it.told("question", "failure", "result") == ["The package has module and tests."]
    board = await it.get(f"/teams/{it.team}/board")
    assert [(node["status"], node["doubts"]) for node in board] == [("completed", [])] * 4


async def watch_in_cycles(it: Person) -> None:
    await it.founds(WATCH, mode="infinite", interval=30)
    for _ in range(3):
        await it.waits(seconds=31)
    assert await it.told("result") == ["One post about AI so far."]
    assert it.transcript[-1] == "[team] running"


@pytest.mark.parametrize("story", [set_up_a_database, create_a_package, watch_in_cycles])
async def test_a_model_that_follows_its_prompt_to_the_letter_is_read_without_machine_words(
    tmp_path: Path, story: Callable[[Person], Awaitable[None]]
) -> None:
    async with person(tmp_path, to_the_letter) as it:
        await story(it)
    assert it.machine_words() == []


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (finishes_at_once,
         "done\n- nothing was read, written, run or given to anyone"),
        (delegates_everything, "I delegated it.\n- Do it is done, with doubts"),
        (says_nothing,
         "The model made no tool call in 3 replies in a row. It said nothing at all."),
        (repeats_a_call, "The model went in circles: the same calls, 5 times over, with the same "
         "outcome.\n\nWhat there is so far:\nIt gave no summary. What it did stands in its "
         "thread."),
    ],
)  # fmt: skip
async def test_what_a_model_of_least_effort_leaves_is_told_once_and_as_it_is(
    tmp_path: Path, model: Model, told: str
) -> None:
    async with person(tmp_path, model) as it:
        await it.founds(DATABASE)
        assert await it.told("question", "failure", "result") == [told]
        await it.says("How far are you?")
    assert it.machine_words() == []


async def main() -> None:
    """Print what the person reads in each story, with each model."""
    least = (finishes_at_once, delegates_everything, says_nothing, repeats_a_call)
    for story in (set_up_a_database, create_a_package, watch_in_cycles):
        for model in (to_the_letter, *least):
            with tempfile.TemporaryDirectory() as folder:
                (home := Path(folder, "home")).mkdir()
                async with person(home, model) as it:
                    # A model of least effort tells another story.
                    with contextlib.suppress(AssertionError):
                        await story(it)
            print(f"\n===== {story.__name__}, {model.__name__}\n" + "\n".join(it.transcript))


if __name__ == "__main__":
    asyncio.run(main())
