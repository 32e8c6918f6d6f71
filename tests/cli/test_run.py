"""`agiraph run`: ends with exit code 0, or says how to continue."""

import asyncio
import os
import re
import signal
import uuid
from pathlib import Path

import orjson
import pytest

from agiraph.testing import Call, ModelServer, call, says
from agiraph.testing.model_server import Seen, Status, Step
from tests.cli.shell import Ended, Shell
from tests.scenarios.endings import opens_and_accepts
from tests.scenarios.thread_queries import reply_count

pytestmark = pytest.mark.slow

FINISH = says(call("finish", summary="All is well."))
SUMMARY = "It is in a.md.\n:tada: [/bold] \x1b[2J"
WRITES = (
    says(call("set_acceptance", lines=["`a.md` is written"], kinds=["file"])),
    says("I write it down.", call("write_file", path="a.md", content="x")),
    says(call("finish", summary=SUMMARY, evidence=["file:a.md"])),
)


def use_model_server(agiraph: Shell, server: ModelServer, key: str = "sk-canary") -> Shell:
    """Let the commands of this shell use the scripted model server; return the shell."""
    agiraph.environment |= {
        "OPENAI_API_KEY": key,
        "OPENAI_BASE_URL": server.openai_url,
        "AGIRAPH_MODEL": "openai/test",
    }
    return agiraph


def team_in(text: str) -> str:
    found = re.search(r"team_\w+", text)
    assert found is not None
    return found[0]


async def test_the_demo_model_reaches_any_goal_and_says_that_it_is_scripted(
    executed: Shell,
) -> None:
    ended = await executed("run", "Show me [bold] :smile: what you can do")

    team = team_in(ended.out)
    first, second, *_ = ended.out.splitlines()
    *_, path = ended.out.splitlines()
    assert (ended.code, ended.err) == (0, "")
    assert first == f"Show me [bold] :smile: what you can do {team}"
    assert second.startswith("A scripted demo answers, not an AI.")
    assert "\nDone. 4 turns · " in ended.out
    assert Path(path).is_relative_to(executed.home / "teams" / team)
    assert Path(path).read_text().startswith("# A note from the demo")
    [listed] = orjson.loads((await Shell(executed.home)("teams", "--json")).out)
    assert listed["review"] == "auto"


async def test_a_line_that_asks_for_a_run_is_not_proven_by_a_file(agiraph: Shell) -> None:
    finish = call("finish", summary="I could not run it.", evidence=["file:a.py"])
    steps = [says(call("write_file", path="a.py", content="x")), says(finish), says(finish)]
    async with ModelServer(steps) as server:
        run = use_model_server(agiraph, server)
        ended = await run("run", "Write it", "--accept-as", "ran", "`a.py` prints a price")
        wrong = await run("run", "Write it", "--accept-as", "seen", "`a.py` prints a price")
    assert ended.code == 3
    assert "'`a.py` prints a price' asks for a command that was run as evidence" in ended.out
    assert (wrong.code, "'seen' is not one of 'file', 'ran', 'judged'" in wrong.err) == (2, True)


async def test_a_model_on_a_server_reaches_the_goal(agiraph: Shell) -> None:
    def play(seen: Seen) -> Step:
        if "give_verdict" in seen.tools:
            return opens_and_accepts(seen)
        return WRITES[reply_count(seen)]

    async with ModelServer(play) as server:
        ended = await use_model_server(agiraph, server)("run", "Write it down")

    team = team_in(ended.out)
    node, _ = orjson.loads((await agiraph("board", team, "--json")).out)
    published = agiraph.home / "teams" / team / "nodes" / node["id"] / "published"
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        f"Write it down {team}\n"
        "  → set_acceptance ['`a.md` is written']\n"
        "  ✓ Done means: 1. `a.md` is written [file:NAME]\n"
        "● I write it down.\n"
        "  → write_file a.md\n"
        "  ✓ Wrote a.md (1 bytes).\n"
        "  → finish It is in a.md. :tada: [/bold] �[2J\n"
        "+ reviewer joins (reviewer, openai/test)\n"
        "◇ new task: Review of Write it down\n"
        "… a review of the result\n"
        f"  → read_file nodes/{node['id']}/scratch/a.md\n"
        "  ✓ x\n"
        "  → give_verdict accept\n"
        "  ✓ Noted.\n"
        "  ✓ Published: a.md.\n"
        "\n"
        "Done. 5 turns · 600 tokens · $0.0000 and calls without a known price\n"
        "\n"
        "It is in a.md.\n:tada: [/bold] �[2J\n"
        f"{published / 'a.md'}\n"
    )
    assert server.requests[0].headers["authorization"] == "Bearer sk-canary"


async def test_a_run_without_reviews_has_no_reviewer(agiraph: Shell) -> None:
    async with ModelServer(WRITES) as server:
        ended = await use_model_server(agiraph, server)("run", "Write it down", "--review", "never")
    [listed] = orjson.loads((await agiraph("teams", "--json")).out)
    assert (ended.code, listed["review"], len(server.requests)) == (0, "never", len(WRITES))


async def test_a_goal_that_is_done_with_doubts_has_exit_code_3(agiraph: Shell) -> None:
    finish = says(call("finish", summary="The report is in `report.md`."))
    async with ModelServer([finish, finish]) as server:
        ended = await use_model_server(agiraph, server)(
            "run", "Write a report", "--accept", "`report.md` is written"
        )
    assert (ended.code, ended.err) == (3, "")
    assert "\nDone, with doubts. 2 turns · " in ended.out
    assert ended.out.endswith(
        "\n\nThe report is in `report.md`.\n\n"
        "2 points not confirmed:\n"
        "  - No file 'report.md' is delivered, but '`report.md` is written' asks for it\n"
        "  - 'report.md' is named in the summary and does not exist\n"
    )
    [item] = orjson.loads((await agiraph("inbox", "--json")).out)
    opened = await agiraph("inbox", item["id"])
    assert [point["kind"] for point in item["doubts"]] == ["evidence", "file"]
    shown = ended.out[ended.out.rindex("The report is in") :]
    assert opened.out.count(shown) == 1


async def test_a_goal_for_which_nobody_gave_acceptance_lines_has_exit_code_0(
    agiraph: Shell,
) -> None:
    finish = says(call("finish", summary="It is in `a.md`."))
    async with ModelServer([WRITES[1], finish, finish]) as server:
        ended = await use_model_server(agiraph, server)("run", "Write it down")
    assert (ended.code, ended.err) == (0, "")
    assert "\nDone. 3 turns · " in ended.out
    assert "confirmed" not in ended.out


async def test_no_api_key_can_be_read_by_a_command(executed: Shell) -> None:
    look = "env; cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | sort -u"
    steps = [says(call("bash", command=look)), FINISH]
    key = f"sk-{uuid.uuid4()}"  # unique: processes of other tests have keys of their own
    async with ModelServer(steps) as server:
        ended = await use_model_server(executed, server, key)(
            "run", "Look for keys", "--accept", "answer"
        )

    assert ended.code == 0
    assert server.requests[1].headers["authorization"] == f"Bearer {key}"
    assert key not in server.requests[1].messages[-1].text


async def test_the_limits_for_commands_apply(agiraph: Shell) -> None:
    (agiraph.home / "agiraph.toml").write_text("[command_limits]\nfile_mib = 1\n")
    steps = [says(call("bash", command="head -c 3000000 /dev/zero > big; wc -c < big")), FINISH]
    async with ModelServer(steps) as server:
        assert (
            await use_model_server(agiraph, server)(
                "run", "Write a large file", "--accept", "answer"
            )
        ).code == 0

    assert "1048576" in server.requests[1].messages[-1].text


async def test_a_run_that_cannot_start_is_reported_in_one_line(agiraph: Shell) -> None:
    unknown, no_key, empty, no_team = await asyncio.gather(
        agiraph("run", "--model", "nope", "a"),
        Shell(agiraph.home.with_name("b"))("run", "--model", "openai/m", "a"),
        Shell(agiraph.home.with_name("c"))("run", "  "),
        Shell(agiraph.home.with_name("d"))("run", "--resume", "nobody"),
    )

    assert unknown.err.startswith(
        "agiraph: 'nope' is not a model agiraph can reach. Write `provider/model` with one of "
    )
    assert no_key.err == (
        "agiraph: openai/m needs OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own.\n"
    )
    assert empty.err == (
        "agiraph: A team needs a goal: say in a sentence or two what you want to have.\n"
    )
    assert no_team.err == ("agiraph: There is no team 'nobody'. `agiraph teams` lists them.\n")
    ended = [unknown, no_key, empty, no_team]
    assert [(e.code, e.out, e.err.count("\n")) for e in ended] == [(1, "", 1)] * 4


async def test_a_run_over_its_budget_fails_and_shows_the_partial_result(agiraph: Shell) -> None:
    steps = [says("A note.", call("write_file", path="a.md", content="x")), says("One note.")]
    async with ModelServer(steps) as server:
        ended = await use_model_server(agiraph, server)("run", "--turns", "2", "Take notes")

    assert ended.code == 1
    assert (
        "! It stopped at a limit before it was done: its turns are used up.\n"
        "\n"
        "Partial result: its turns are used up. 2 turns · 240 tokens · $0.0000 and "
        "calls without a known price\n"
        "\n"
        "One note.\n"
    ) in ended.out
    [node] = agiraph.home.glob("teams/*/nodes/*")
    assert ended.out.endswith(f"Let it go on with: agiraph extend {node.name} --turns 50\n")


async def test_a_refused_api_key_becomes_a_question_that_says_what_to_check(agiraph: Shell) -> None:
    steps = [Status(401, "Incorrect API key provided: sk-canary."), FINISH]
    async with ModelServer(steps) as server:
        refused = await use_model_server(agiraph, server)("run", "Try", "--accept", "answer")
        [question] = orjson.loads((await agiraph("inbox", "--open", "--json")).out)
        # To resume it answers the question: the person means that it shall try again.
        resumed = await agiraph("run", "--resume", team_in(refused.out), "--model", "openai/other")
        models = [request.model for request in server.requests]
        host = server.url.removeprefix("http://")

    said = (
        f"{host} answered 401: Incorrect API key provided: [key]. Check OPENAI_API_KEY: {host} "
        "does not accept the key. Set the right one in the environment and start agiraph again."
    )
    assert (refused.code, resumed.code) == (1, 0)
    assert models == ["test", "other"]
    assert refused.out.endswith(
        f"It asks: I cannot go on: {said} Tell me when I should try again. `agiraph set "
        f"{question['team_id']} --model NAME` gives me another model.\n"
        f'Answer with: agiraph answer {question["id"]} "TEXT"\n'
        f"Continue with: agiraph run --resume {question['team_id']}\n"
    )


async def test_an_unreachable_model_is_retried_until_the_run_is_interrupted(agiraph: Shell) -> None:
    async with ModelServer([]) as server:
        use_model_server(agiraph, server)
    async with agiraph.start("run", "Try", "--accept", "answer") as running:
        await running.says("(connection refused). Check the network, the proxy variables and ")
        await running.says("Trying again by itself.")
        running.signal(signal.SIGINT)
        ended = await running.ends()

    team = team_in(ended.out)
    assert ended.code == 130
    assert ended.out.endswith(f"Continue with: agiraph run --resume {team}\n")
    async with ModelServer([FINISH]) as server:
        assert [t["id"] for t in orjson.loads((await agiraph("teams", "--json")).out)] == [team]


async def test_without_a_terminal_a_question_is_answered_later(agiraph: Shell) -> None:
    def script(seen: Seen) -> Step:
        if seen.index == 0:
            return says(call("ask_human", question="Red or blue?"))
        return says(call("finish", summary=f"Painted it {seen.messages[-1].text}."))

    async with ModelServer(script) as server:
        asked = await use_model_server(agiraph, server)("run", "Paint it", "--accept", "answer")
        team, question = team_in(asked.out), re.search(r"msg_\w+", asked.out)
        assert question is not None
        still_open = await agiraph("run", "--resume", team)
        answered = await agiraph("answer", question[0], "blue")
        resumed = await agiraph("run", "--resume", team)

    waits = (
        "It asks: Red or blue?\n"
        f'Answer with: agiraph answer {question[0]} "TEXT"\n'
        f"Continue with: agiraph run --resume {team}\n"
    )
    assert asked.code == still_open.code == 1
    assert asked.out.endswith(waits)
    assert still_open.out.endswith(waits)
    assert answered == Ended(0, f"Answered. Continue with: agiraph run --resume {team}\n")
    assert resumed.code == 0
    assert "Painted it blue.\n" in resumed.out


async def test_a_question_at_the_terminal_is_answered_at_the_prompt(either: Shell) -> None:
    steps = [
        says(call("ask_human", question="Red or blue?", options=["red", "blue"])),
        FINISH,
    ]
    async with (
        ModelServer(steps) as server,
        use_model_server(either, server).start_at_terminal(
            "run", "Paint it", "--accept", "answer"
        ) as running,
    ):
        await running.says("your answer: ")
        running.types(b"\n")
        await running.says("The answer is empty")
        running.types("blau wie Grüße\n".encode())
        ended = await running.ends()

    assert ended.code == 0
    assert "1. red" in ended.out
    assert "All is well." in ended.out
    assert server.requests[1].messages[-1].text == "blau wie Grüße"


async def test_a_question_at_the_terminal_says_until_when_it_waits(either: Shell) -> None:
    asks = call("ask_human", question="Red or blue?", default="blue", timeout_minutes=90)
    async with (
        ModelServer([says(asks), FINISH]) as server,
        use_model_server(either, server).start_at_terminal(
            "run", "Paint it", "--accept", "answer"
        ) as running,
    ):
        await running.says("your answer: ")
        before = running.seen
        running.types(b"Red\n")
        assert (await running.ends()).code == 0
    assert re.search(
        r"Waits until [\d-]+ \d\d:\d\d UTC, then goes on without your answer\.", before
    )


async def test_leaving_the_prompt_says_how_to_answer_and_continue_later(agiraph: Shell) -> None:
    async with ModelServer([says(call("ask_human", question="Which?"))]) as server:
        async with use_model_server(agiraph, server).start_at_terminal("run", "Ask") as running:
            await running.says("your answer: ")
            running.types(b"\x04")  # Ctrl-D
            left = await running.ends()
        async with agiraph.start_at_terminal("run", "--resume", team_in(left.out)) as running:
            await running.says("your answer: ")
            running.types(b"\x03")  # Ctrl-C
            stopped = await running.ends()

    assert (left.code, stopped.code) == (1, 130), left.out + stopped.out
    assert "Answer with: agiraph answer msg_" in left.out
    assert "Continue with: agiraph run --resume team_" in stopped.out


async def test_a_stopped_or_killed_run_continues_where_it_was(
    agiraph: Shell, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)

    def script(seen: Seen) -> Step:
        match len([m for m in seen.messages if m.role == "assistant"]):
            case 0:
                return says(call("write_file", path="a.md", content="kept"))
            case 1:
                return says(Call("bash", {"command": f"echo 1 > {begun}; sleep 600"}, id="slow"))
            case 2:
                return says(Call("bash", {"command": f"echo 2 > {begun}; sleep 600"}, id="slower"))
            case _:
                return FINISH

    async with ModelServer(script) as server:
        async with use_model_server(agiraph, server).start(
            "run", "Take your time", "--accept", "answer"
        ) as running:
            assert await asyncio.to_thread(begun.read_text) == "1\n"
            running.signal(signal.SIGINT)
            stopped = await running.ends()
        team = team_in(stopped.out)
        async with agiraph.start("run", "--resume", team) as running:
            assert await asyncio.to_thread(begun.read_text) == "2\n"
            busy = await agiraph("answer", "msg_1", "x")
            running.signal(signal.SIGKILL)
            killed = await running.ends()
        resumed = await agiraph("run", "--resume", team)
        told = [m.text for m in server.requests[-1].messages if m.role == "tool"]

    assert (stopped.code, killed.code, resumed.code) == (130, -signal.SIGKILL, 0)
    assert (busy.code, busy.err.count("\n")) == (1, 1)
    assert re.fullmatch(
        r"agiraph: Process \d+ already works on '.*'\. Stop it first, or set AGIRAPH_HOME to "
        r"another folder\.\n",
        busy.err,
    )
    assert stopped.out.endswith(f"Continue with: agiraph run --resume {team}\n")
    assert told[0] == "Wrote a.md (4 bytes)."
    assert "[cancelled after " in told[1]
    assert "[interrupted after " in told[2]
    assert "↻ attempt 2: continues after the interruption\n" in resumed.out
    assert "All is well.\n" in resumed.out
