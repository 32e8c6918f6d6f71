"""Commands with a running server: their effects and their output."""

import asyncio
import contextlib
import re
import signal
from collections.abc import AsyncGenerator, Callable
from datetime import datetime, timedelta

import orjson
import pytest

from agiraph.testing import ModelServer, call, says
from agiraph.testing.model_server import Seen, Step
from tests.cli.shell import Ended, Process, Shell
from tests.cli.test_run import team_in, use_model_server

FAR = "How far are you?"
REPLY = "I hear you, and will see to it."


def play(seen: Seen) -> Step:
    """Ask until the question is answered, then finish; reply to people at once."""
    if "no_work_needed" in seen.tools:
        if seen.messages[0].text != FAR:
            return says(REPLY)
        looked = len(seen.messages) > 1
        return says("I wait for you.") if looked else says(call("look_into", what="coordinator"))
    if "ask_human" not in seen.tools:
        return says("There is nothing to add.")
    answers = [
        message.text
        for message in seen.messages
        if message.role == "tool" and not message.text.startswith("Not answered yet")
    ]
    if not answers:
        return says(call("ask_human", question="Red or blue?", options=["red", "blue"]))
    return says(call("finish", summary=f"Painted it {answers[0]}."))


def delegate(seen: Seen) -> Step:
    """Have a new agent do the work, then finish; reply to people at once."""
    if "no_work_needed" in seen.tools:
        return says(REPLY, call("no_work_needed"))
    if "publish" in seen.tools:
        return says(call("publish", summary="41 herons."))
    if "assign_task" not in seen.tools:
        return says("There is nothing to add.")
    if not any(message.role == "tool" for message in seen.messages):
        who = {"agent": "new:openai/test", "description": "Count"}
        done = call("set_acceptance", lines=["the herons are counted"])
        return says(done, call("assign_task", task="Count herons.", **who))
    return says(call("finish", summary="41 herons."))


@contextlib.asynccontextmanager
async def up(agiraph: Shell, script: Callable[[Seen], Step] = play) -> AsyncGenerator[Process]:
    """Start a server on this home, and let commands find it."""
    agiraph.environment["AGIRAPH_PORT"] = "0"
    async with ModelServer(script) as model, use_model_server(agiraph, model).start("up") as server:
        await server.says("Token for programs")
        agiraph.environment["AGIRAPH_PORT"] = re.findall(r"up at http://[\d.]+:(\d+)", server.seen)[
            0
        ]
        yield server


async def read_json(agiraph: Shell, *words: str):
    ended = await agiraph(*words, "--json")
    assert (ended.code, ended.err) == (0, "")
    return orjson.loads(ended.out)


async def test_a_conversation_at_the_terminal(agiraph: Shell) -> None:
    async with up(agiraph):
        await agiraph("new", "Paint it", "--name", "paint")
        async with agiraph.start_at_terminal("chat", "paint") as chat:
            await chat.says("Your next line is the answer")
            chat.types(b"/nope\n")
            await chat.says("There is no command '/nope'")
            chat.types(b"/skip\n")
            await chat.says("Left open. Answer it later with: agiraph answer msg_")
            chat.types(b"Hello\n")
            await chat.says(f"coordinator  {REPLY}")
            await chat.says("coordinator · 1 waiting, 1 waiting for your answer · $0.00 spent")
            chat.types(b"/work\n")
            await chat.says("… Paint it coordinator, waiting")
            chat.types(f"{FAR}\n".encode())
            await chat.says("One moment: I look into coordinator …")
            await chat.says("before that: look into coordinator")
            chat.types(b"/switch nobody\n")
            await chat.says("nobody")
            chat.types(b"/switch paint\n")
            await chat.says("/help lists commands")
            chat.types(b"/cost\n")
            await chat.says("reply · openai/test")
            chat.types(b"\x04")  # Ctrl-D
            ended = await chat.ends()
        assert ended.code == 0, ended.out
        assert "1. red" in ended.out
        history = agiraph.home / "history"
        kept = [line for line in history.read_text().splitlines() if line.startswith("+")]
        commands = ["+/work", f"+{FAR}", "+/switch nobody", "+/switch paint", "+/cost"]
        assert kept == ["+/nope", "+/skip", "+Hello", *commands]
        assert history.stat().st_mode & 0o777 == 0o600
        async with agiraph.start_at_terminal("chat", "paint") as chat:
            await chat.says("Your next line is the answer")
            chat.types(b"blue\n")
            await chat.says("Painted it blue.")
            chat.types(b"\x03")  # Ctrl-C
            assert (await chat.ends()).code == 0


def finds_a_dentist(seen: Seen) -> Step:
    """Start work that waits for an answer, as a person's message asks for."""
    if "no_work_needed" in seen.tools:
        return says("I look for one.", call("start_work", task="Find a dentist"))
    return says(call("ask_human", question="Red or blue?"))


async def test_what_a_reply_did_is_shown_and_undone_at_the_terminal(agiraph: Shell) -> None:
    async with up(agiraph, finds_a_dentist):
        await agiraph("new", "Paint it", "--name", "paint")
        said = await agiraph("say", "paint", "Find me a dentist", "--wait")
        assert said.out.startswith(
            "I look for one.\n→ Started: Find a dentist\nUndo it in: agiraph"
        )
        async with asyncio.timeout(60):
            while len(await read_json(agiraph, "inbox", "--open")) < 2:
                pass  # the goal and the new work ask one question each
        secret, skips = b"/secret bank\nhorse-battery\n", b"/skip\n/skip\n"
        undoes = b"/undo\n/undo 7\n/undo\n"
        lines = secret + skips + b"Another one, please\n" + undoes
        piped = await agiraph.piped(lines, "chat", "paint")
        followed = await agiraph("tail", "paint", "--no-follow")
    assert "Write `secret bank` where you mean it." in piped.out
    assert "horse-battery" not in piped.out
    told = "→ Told its own work “Paint it”: “Another one, please”"
    shown = [line.strip() for line in piped.out.splitlines() if "→" in line]
    assert shown == [f"{told}  /undo 1", f"{told} (undone)"]
    assert f"✉ I look for one.\n  {told}\n" in followed.out
    assert "No reply shown here did that." in piped.out
    assert "Undone before: Told its own work “Paint it”" in piped.out


async def test_the_last_message_is_edited_at_the_terminal(agiraph: Shell) -> None:
    replaced = ("--edit-last", "--stop-work", "--wait")
    async with up(agiraph, finds_a_dentist):
        await agiraph("new", "Paint it", "--name", "paint")
        nothing = await agiraph("say", "paint", "Find a dentist", "--edit-last")
        await agiraph("say", "paint", "Find me a dentits", "--wait")
        edited = await agiraph("say", "paint", "Find me a dentist", *replaced)
        board = await read_json(agiraph, "board", "paint")
        events = await agiraph("tail", "paint", "--json", "--no-follow", "--after", "0")
        told = [orjson.loads(line)["data"] for line in events.out.splitlines()]
        named = dict.fromkeys(each["thread_id"] for each in told if "thread_id" in each)
        shown = [(await agiraph("thread", one)).out for one in named]
    assert "You have not written to 'coordinator'." in nothing.err
    assert edited.out.startswith("I look for one.\n→ Started: Find a dentist\n")
    found = [node["status"] for node in board if node["task"] == "Find a dentist"]
    assert "cancelled" in found
    mark = "[Runtime] They edited their message before: 'Find me a dentits'"
    assert any(f"user Find me a dentist\n\n{mark}" in thread for thread in shown)


async def test_an_answer_that_comes_late_says_so_and_is_settled_by_a_number(
    agiraph: Shell,
) -> None:
    async def question() -> str:
        async with asyncio.timeout(60):
            while not (listed := await read_json(agiraph, "inbox", "--open")):
                pass
        return listed[0]["id"]

    async with up(agiraph, finds_a_dentist):
        await agiraph("new", "Paint it", "--name", "paint")
        asked = await question()
        [node] = await read_json(agiraph, "board", "paint")
        await agiraph("cancel", node["id"])
        late = await agiraph("answer", asked, "Red")
        assert late.out.startswith("The work that asked has ended, so nothing was started")
        what_now = await question()
        assert "2. Do nothing" in (await agiraph("inbox", what_now)).out
        assert (await agiraph("answer", what_now, "2")).out.startswith("Answered.")
        assert await read_json(agiraph, "inbox", "--open") == []
        assert len(await read_json(agiraph, "board", "paint")) == 1


def hopes(seen: Seen) -> Step:
    """Ask with a default; reply to people at once."""
    if "no_work_needed" in seen.tools:
        return says(REPLY, call("no_work_needed"))
    return says(call("ask_human", question="Red or blue?", default="blue", timeout_minutes=90))


UNTIL = re.compile(r"Waits until (\d{4}-\d\d-\d\d \d\d:\d\d) UTC, then goes on without")


async def test_the_terminal_shows_until_when_a_question_waits(agiraph: Shell) -> None:
    async with up(agiraph, hopes):
        await agiraph("new", "Paint it", "--name", "paint")
        async with agiraph.start_at_terminal("chat", "paint") as chat:
            await chat.says("Your next line is the answer")
            chat.types(b"\x04")
            chatted = (await chat.ends()).out
        [item] = await read_json(agiraph, "inbox", "--open")
        asked = datetime.fromisoformat(item["created_at"])
        opened = (await agiraph("inbox", item["id"])).out
        listed = " ".join((await agiraph("inbox")).out.split())
    for shown in (chatted, opened, listed):
        found = UNTIL.search(shown)
        assert found is not None, shown
        assert found[1] == f"{asked + timedelta(minutes=90):%Y-%m-%d %H:%M}"


async def test_a_conversation_through_a_pipe(agiraph: Shell) -> None:
    async with up(agiraph):
        await agiraph("new", "Paint it", "--name", "paint")
        [agent] = await read_json(agiraph, "agents", "paint")
        async with agiraph.start("tail", "paint") as tail:
            await tail.says("Red or blue?")
        piped = await agiraph.piped(b"blue\nWell done\n/board\n", "chat", agent["id"])
        status = await agiraph("status")
        assert (await read_json(agiraph, "status"))["sandbox"]["level"] in status.out
    assert status.code == 0, status.err
    for words in ("✓ server", "sandbox ", "not enforced: A kernel bug"):
        assert words in status.out, status.out
    assert (piped.code, piped.err) == (0, "")
    first, *_ = piped.out.splitlines()
    assert first == "? coordinator  Red or blue?"
    for words in ("Painted it blue.", f"coordinator  {REPLY}", "node_"):
        assert words in piped.out, piped.out


@pytest.mark.slow
async def test_run_uses_the_server_that_runs_on_the_home(either: Shell) -> None:
    async with up(either) as server:
        asked = await either("run", "Paint it", "--accept", "answer")
        team = team_in(asked.out)
        [question] = await read_json(either, "inbox", "--open")
        answered = await either("answer", question["id"], "blue")
        run = await either("run", "--resume", team)
        server.signal(signal.SIGTERM)
        assert (await server.ends()).code == 0
    again = await either("board", team)

    assert asked.code == 1
    assert asked.out.startswith("The agiraph server at http://127.0.0.1:")
    assert f'Answer with: agiraph answer {question["id"]} "TEXT"' in asked.out
    assert answered == Ended(0, f"Answered. Watch the team with: agiraph tail {team}\n")
    assert (run.code, "Painted it blue." in run.out) == (0, True), run.out
    # Without a server the command reads the database.
    assert (again.code, "completed" in again.out) == (0, True)


@pytest.mark.slow
async def test_new_with_wait_answers_a_question_at_the_terminal(either: Shell) -> None:
    async with (
        up(either),
        either.start_at_terminal("new", "Paint it", "--accept", "answer", "--wait") as waiting,
    ):
        await waiting.says("your answer: ")
        waiting.types(b"red\n")
        ended = await waiting.ends()
    assert (ended.code, "Painted it red." in ended.out) == (0, True)


@pytest.mark.slow
async def test_agents_that_left_are_found_by_their_names(agiraph: Shell) -> None:
    async with up(agiraph, delegate):
        await agiraph("new", "Watch the birds of the lake", "--name", "birds", "--wait")
        [present] = await read_json(agiraph, "agents", "birds")
        everyone = await read_json(agiraph, "agents", "birds", "--all")
        [gone] = [agent["name"] for agent in everyone if agent["id"] != present["id"]]
        said = await agiraph("say", gone, "Are you sure?", "--team", "birds", "--wait")
        async with agiraph.start_at_terminal("chat", gone.upper(), "--team", "birds") as chat:
            await chat.says("/help lists commands")
            chat.types(b"/switch coordinator\n")
            await chat.says("coordinator")
            chat.types(f"/switch {gone}\n".encode())
            await chat.says(f"{gone} agent_")
            chat.types(b"\x04")  # Ctrl-D
            assert (await chat.ends()).code == 0
        nobody = await agiraph("say", "nobody", "Are you sure?", "--team", "birds")
        listed, board = await agiraph("agents", "birds", "--all"), await agiraph("board", "birds")
    # Whoever switches needs the names: they are whole, however narrow the terminal is.
    names = [line.split()[0] for line in listed.out.splitlines() if "agent_" in line]
    assert names == ["coordinator", gone]
    assert " ".join(board.out.split()).count("with doubts") == 2, board.out
    assert said == Ended(0, f"{REPLY}\n")
    assert nobody.err == "agiraph: There is no teammate 'nobody'. On this team: coordinator.\n"


@pytest.mark.slow
async def test_pause_resume_say_and_stop_work_on_a_team(agiraph: Shell) -> None:
    async with up(agiraph):
        team = await read_json(agiraph, "new", "Paint it", "--name", "a/b")
        paused = await agiraph("pause", "a/b")
        resumed = await agiraph("resume", team["id"])
        nudged = await agiraph("say", "coordinator", "Hurry", "--team", "a/b", "--nudge")
        nobody = await agiraph("say", "ada", "Hurry", "--team", "a/b")
        unknown = await agiraph("say", "nobody", "Hurry")
        stopped = await agiraph("stop", "a/b")
        triggers = await read_json(agiraph, "triggers", "a/b")
        bill = await read_json(agiraph, "cost", "a/b")
        lines = await agiraph("tail", team["id"], "--json", "--no-follow", "--after", "0")

    identity = team["id"]
    assert paused == Ended(0, f"Paused 'a/b'. Continue with: agiraph resume {identity}\n")
    assert resumed == Ended(0, f"Resumed 'a/b'. Watch it with: agiraph tail {identity}\n")
    assert nudged == Ended(0, "Sent to coordinator. It reads this before its next step.\n")
    assert nobody == Ended(
        1, "", "agiraph: There is no teammate 'ada'. On this team: coordinator.\n"
    )
    assert unknown.err == (
        "agiraph: There is no agent or team 'nobody'. Name a team for its coordinator, an agent "
        "by its id, or one by name with --team.\n"
    )
    assert (stopped.code, stopped.out.startswith("Stopped 'a/b'.")) == (0, True)
    assert [trigger["type"] for trigger in triggers] == ["heartbeat"]
    assert bill[0]["team_id"] == identity
    numbers = [orjson.loads(line)["seq"] for line in lines.out.splitlines()]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_tokens_are_created_used_and_revoked(agiraph: Shell) -> None:
    async with up(agiraph):
        made = await read_json(agiraph, "tokens", "new", "reader")
        reader = Shell(agiraph.home, {**agiraph.environment, "AGIRAPH_TOKEN": made["secret"]})
        looked, refused = await asyncio.gather(reader("teams"), reader("new", "x"))
        listed = await read_json(agiraph, "tokens")
        taken = await agiraph("tokens", "revoke", made["id"])
        after = await reader("new", "x")
        link = await agiraph("link")

    assert looked.code == 0
    assert refused == Ended(
        1, "", "agiraph: This needs the scope 'operate'; the token has 'read'.\n"
    )
    assert [token["name"] for token in listed if token["kind"] == "token"] == ["reader"]
    assert taken == Ended(0, f"Revoked {made['id']}.\n")
    assert (after.code, "rejects the token" in after.err) == (1, True)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/signin\?code=\S+\n", link.out)


async def test_a_server_of_another_home_is_not_used(
    agiraph: Shell, tmp_path: pytest.TempPathFactory
) -> None:
    async with up(agiraph):
        port = agiraph.environment["AGIRAPH_PORT"]
        other = Shell(agiraph.home.with_name("other"), {"AGIRAPH_PORT": port})
        other.home.mkdir()
        (other.home / "token").write_text("of another server\n")
        looked, told = await asyncio.gather(other("teams"), other("new", "x"))
    assert looked == Ended(0, 'No teams yet. Create one with: agiraph new "GOAL"\n')
    assert told == Ended(
        1,
        "",
        f"agiraph: The server at http://127.0.0.1:{port} rejects the token of "
        f"{str(other.home)!r}: it may serve another home. Set AGIRAPH_HOME or AGIRAPH_PORT, or "
        "AGIRAPH_TOKEN.\n",
    )


@pytest.mark.slow
async def test_tail_reconnects_after_a_restart_of_the_server(agiraph: Shell) -> None:
    async with up(agiraph) as server:
        team = await read_json(agiraph, "new", "Paint it", "--accept", "answer")
        async with agiraph.start("tail", team["id"], "--after", "0") as tail:
            await tail.says("Red or blue?")
            server.signal(signal.SIGTERM)
            assert (await server.ends()).code == 0
            await tail.says("the connection to the server was lost")
            async with agiraph.start("up") as again:
                await again.says("Token for programs")
                [question] = await read_json(agiraph, "inbox", "--open")
                await agiraph("answer", question["id"], "blue")
                await tail.says("the team is completed")
            seen = tail.seen
    assert seen.count("? Red or blue?") == 1
    assert seen.count("✉ result: Painted it blue.") == 1
