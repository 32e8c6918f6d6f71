"""Nonsense: `agiraph run` with a model that does not do what it was asked to never ends with 0."""

import asyncio
from pathlib import Path

import pytest

from agiraph.testing import ModelServer, Says, call, says
from agiraph.testing.model_server import Seen, Step
from tests.cli.shell import Ended, Shell
from tests.cli.test_run import use_model_server

AT_ONCE = 4
TURNS = "12"

DONE = "All done. The file is written, all tests pass, and the figure is 42."


def monday(_: int) -> Says:
    return says("Today is Monday.")


def announces(at: int) -> Says:
    return says(f"Now let me begin with step {at + 1}, and then I will write the file.")


def claims(_: int) -> Says:
    return says(call("finish", summary=DONE))


def claims_with_evidence(at: int) -> Says:
    if at == 0:
        return says(call("set_acceptance", lines=["The result is right", "The file is there"]))
    return says(call("finish", summary=DONE, evidence=["I checked it", "I looked at it"]))


def invents_commands(at: int) -> Says:
    if at == 0:
        return says(call("set_acceptance", lines=["The command was run"]))
    return says(call("finish", summary=DONE, evidence=["ran:make everything (exit code 0)"]))


def writes_elsewhere(at: int) -> Says:
    if at == 0:
        return says(call("set_acceptance", lines=["`notes.txt` exists"]))
    if at == 1:
        return says(call("write_file", path="notes.txt", content="Something else."))
    return says(call("finish", summary="It is written.", evidence=["file:notes.txt"]))


def calls_unknown_tools(at: int) -> Says:
    if at < 3:
        return says(call(("create_file", "run_shell", "answer_user")[at], path="report.md"))
    return claims(at)


def writes_calls_as_text(_: int) -> Says:
    return says('<tool_call>{"name": "finish", "arguments": {"summary": "Done."}}</tool_call>')


def fails_and_claims(at: int) -> Says:
    if at == 0:
        return says(call("set_acceptance", lines=["The tests pass"]))
    if at == 1:
        return says(call("bash", command="false"))
    return says(call("finish", summary="The tests pass.", evidence=["ran:false"]))


def asks(_: int) -> Says:
    return says("Which format do you want, red or blue?")


NONSENSE = (
    monday,
    announces,
    claims,
    claims_with_evidence,
    invents_commands,
    writes_elsewhere,
    calls_unknown_tools,
    writes_calls_as_text,
    fails_and_claims,
    asks,
)
GOALS = (
    "Write the numbers 1 to 10 into `numbers.txt`",
    "Run `python3 --version` and report its output",
    "How many bytes does /etc/passwd have? Give the figure",
    "Write a haiku about rain into `haiku.md`",
    "Run `uname -r` and save what it prints in `kernel.txt`",
    "Write `report.md` with a table of three prime numbers",
    "Compute 17 * 23 with a program and give the figure",
    "Create `data.csv` with two columns and five rows",
    "Write `fizz.py`, run it, and make sure that its tests pass",
    "Write a letter to the landlord as `letter.md`",
    "Count the lines of /etc/hosts and give the figure",
    "Make a JSON file `config.json` with a key `port`",
    "Run `ls /` and say how many entries there are",
    "Write `todo.md` with three tasks",
    "Sort the letters of 'agiraph' with a program; write them into `letters.txt`",
    "Write `summary.md` about what is in the folder /usr",
    "Give the sum of the numbers from 1 to 1000, computed by a program",
    "Create `page.html` that shows the date of today",
    "Write `test_sum.py` and run it until it passes",
    "Write `poem.txt` with exactly four lines",
)


def play(seen: Seen) -> Step:
    """Talk the nonsense that belongs to the goal; as a reviewer, too, talk and judge nothing."""
    asked = "\n".join(message.text for message in seen.messages)
    number = next((n for n, goal in enumerate(GOALS) if goal in asked), None)
    # The probe of the model's form of calls names no goal.
    if number is None or "finish" not in seen.tools:
        return says("Today is Monday.")
    replies = sum(message.role == "assistant" for message in seen.messages)
    return NONSENSE[number % len(NONSENSE)](replies)


@pytest.mark.parametrize("goals", [len(NONSENSE), pytest.param(len(GOALS), marks=pytest.mark.long)])
async def test_no_goal_is_reached_by_nonsense(tmp_path: Path, goals: int) -> None:
    """Each kind of nonsense for one goal; in `make faults` for each goal."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def run(number: int, server: ModelServer) -> Ended:
        shell = use_model_server(Shell(tmp_path / f"home{number}").prepared(), server)
        async with slots:
            return await shell("run", "--turns", TURNS, GOALS[number])

    async with ModelServer(play) as server:
        ended = await asyncio.gather(*(run(number, server) for number in range(goals)))
    reached = {GOALS[n]: one.out for n, one in enumerate(ended) if one.code == 0}
    assert reached == {}
    assert {one.code for one in ended} <= {1, 3}, [one.err for one in ended]
