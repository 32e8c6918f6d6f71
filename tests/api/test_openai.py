"""`/v1`: the official SDK and chat clients talk to agents."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from agiraph.core.domain.errors import QuotaSpent
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.work import Budget
from agiraph.core.services import access
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store.tx import Tx
from agiraph.features.chat_api import reply_stream, side_calls
from agiraph.features.knowledge.rows import MEMORIES
from agiraph.testing import call, says
from tests.api.serving import TOKEN, Served, serving
from tests.runtime.waiting import Gate

HELLO = {"role": "user", "content": "Hello agent"}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path / "home", reply_model="scripted/mouth") as opened:
        yield opened


@pytest.fixture
async def client(served: Served) -> AsyncIterator[AsyncOpenAI]:
    plain = openai.DefaultAsyncHttpxClient(trust_env=False)
    url = f"{served.origin}/v1"
    async with AsyncOpenAI(base_url=url, api_key=TOKEN, http_client=plain, max_retries=0) as made:
        yield made


async def idle_team(served: Served) -> NewTeam:
    return await served.world.found("Track stocks", name="Stocks", start=False)


async def said_to(served: Served, team: NewTeam) -> list[str]:
    """Return the conversation with the coordinator, without who says it."""
    return [message.text for message in await served.world.conversation(team.coordinator)]


async def test_the_openai_sdk_talks_to_an_agent_and_gets_its_report_in_the_next_turn(
    served: Served, client: AsyncOpenAI
) -> None:
    served.world.script(
        "mouth",
        says("I look into it."),
        says("You have it above.", call("no_work_needed")),
        *(says(text) for text in ("Stock News", '{"tags": ["General"]}', '{"follow_ups": []}')),
    )
    served.world.script("ada", says(call("finish", summary="NVIDIA is up 3 %.")))
    team = await idle_team(served)
    assert [model.id async for model in client.models.list()] == ["Stocks", "Stocks/coordinator"]

    asked: list[Any] = [{"role": "user", "content": "Research NVIDIA"}]
    stream = await client.chat.completions.create(
        model="Stocks", messages=asked, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    did = "\n\n→ Started: Research NVIDIA"
    assert (text, chunks[-2].choices[0].finish_reason) == (f"I look into it.{did}", "stop")
    assert chunks[-1].usage is not None
    await served.world.settle()

    asked += [{"role": "assistant", "content": text}, {"role": "user", "content": "And?"}]
    whole = await client.chat.completions.create(model="Stocks/coordinator", messages=asked)
    shown = whole.choices[0].message.content or ""
    assert "**Result**" in shown
    doubt = "1 point not confirmed:\n  - Nothing was read, written, run or given to anyone"
    assert shown.endswith(f"NVIDIA is up 3 %.\n\n{doubt}\n\n---\n\nYou have it above.")

    # As Open WebUI does after a reply: title, tags and follow-ups. Nothing is said or started.
    tasks = ("title_generation", "tags_generation", "follow_up_generation")
    before = await said_to(served, team)
    side = [
        await client.chat.completions.create(
            model="Stocks",
            messages=[{"role": "user", "content": "Generate what the chat needs."}],
            stream=False,
            max_completion_tokens=1000,
            extra_headers={"X-Agiraph-Task": task},
        )
        for task in tasks
    ]
    assert [made.choices[0].message.content for made in side] == [
        "Stock News", '{"tags": ["General"]}', '{"follow_ups": []}',
    ]  # fmt: skip
    assert await said_to(served, team) == before
    nodes = await served.world.board(team.team.id)
    assert [node.title for node in nodes if node.lane == "work"] == ["Research NVIDIA"]
    booked = await served.world.ledger(team.team.id)
    assert "side call" in {line.purpose for line in booked}


async def test_what_a_reply_did_stands_behind_its_words_streamed_or_whole(
    served: Served, client: AsyncOpenAI
) -> None:
    begins = call("start_work")
    served.world.script("mouth", says("I look into it.", begins), says("I do.", begins))
    finishes = says(call("finish", summary="Done."))
    served.world.script("ada", finishes, finishes)
    await idle_team(served)
    asked: list[Any] = [{"role": "user", "content": "Compare [prices](http://x.example)"}]
    stream = await client.chat.completions.create(model="Stocks", messages=asked, stream=True)
    pieces = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
    did = "\n\n→ Started: Compare \\[prices\\](http://x.example)"
    assert "".join(pieces) == f"I look into it.{did}"
    assert [piece for piece in pieces if piece][-1].endswith(did)
    await served.world.settle()
    asked[0] = {"role": "user", "content": "Compare <b>"}
    whole = await client.chat.completions.create(model="Stocks", messages=asked)
    assert (whole.choices[0].message.content or "").endswith("I do.\n\n→ Started: Compare \\<b>")


async def test_side_calls_wait_for_their_turn_and_their_prompts_are_cut(served: Served) -> None:
    served.world.script("mouth", says("Hello.", call("no_work_needed")), says("A title"))
    team = await idle_team(served)
    await served.world.chat(team.coordinator.id, "Hello")
    await served.world.settle()  # the reply takes the first line of the script
    long = "x" * (side_calls.MAX_CHARACTERS + 1)
    body = {"messages": [{"role": role, "content": long} for role in ("system", "user")]}
    sent = side_calls._request(team.coordinator, body).transcript.turns
    assert [len(turn.text) for turn in sent] == [side_calls.MAX_CHARACTERS] * 2

    while not served.api.side_calls.locked():
        await served.api.side_calls.acquire()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await side_calls.answer(served.api, team.coordinator, OWNER, body)
    served.api.side_calls.release()
    answered = await side_calls.answer(served.api, team.coordinator, OWNER, body)
    assert answered.text == "A title"


async def test_a_side_call_is_not_paid_from_a_budget_that_is_spent(served: Served) -> None:
    served.world.script("ada", says(call("finish", summary="Done.")))
    team = await served.world.found("Work", name="Spenders", budget=Budget(model_calls=1))
    await served.world.settle()
    body = {"messages": [{"role": "user", "content": "A title, please"}]}
    with pytest.raises(QuotaSpent, match="budget of coordinator's work is spent"):
        await side_calls.answer(served.api, team.coordinator, OWNER, body)


async def test_another_agent_in_the_same_chat_repeats_none_of_its_old_reports(
    served: Served, client: AsyncOpenAI
) -> None:
    replies = [says(f"Reply {number}.", call("no_work_needed")) for number in (1, 2, 3)]
    served.world.script("mouth", *replies)
    served.world.script("ada", says(call("finish", summary="An old result.")))
    await served.world.found("Work", name="Workers")
    await served.world.settle()
    await idle_team(served)
    said: list[Any] = []
    for model, text in (("Workers", "One"), ("Stocks", "Two"), ("Workers", "Three")):
        said.append({"role": "user", "content": text})
        made = await client.chat.completions.create(
            model=model, messages=said, extra_headers={"X-OpenWebUI-Chat-Id": "chat-1"}
        )
        said.append({"role": "assistant", "content": made.choices[0].message.content})
    assert [turn["content"] for turn in said[1::2]] == ["Reply 1.", "Reply 2.", "Reply 3."]


async def test_the_responses_api_is_gone_and_its_paths_name_chat_completions(
    served: Served, client: AsyncOpenAI
) -> None:
    team = await idle_team(served)
    with pytest.raises(openai.APIStatusError, match="/v1/chat/completions") as refused:
        await client.responses.create(model="Stocks", input="One")
    problem = json.loads(refused.value.response.text)
    assert refused.value.response.headers["content-type"] == "application/problem+json"
    assert (problem["status"], problem["title"]) == (410, "Gone")
    assert "Chat Completions at /v1/chat/completions" in problem["detail"]
    with pytest.raises(openai.APIStatusError) as stored:
        await client.responses.retrieve("resp_1")
    assert (refused.value.status_code, stored.value.status_code) == (410, 410)
    assert await said_to(served, team) == []


async def test_a_closed_stream_cancels_nothing_and_a_resent_request_is_the_same_message(
    served: Served, client: AsyncOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_stream, "KEEP_ALIVE_S", 0.01)
    mouth = served.world.script("mouth", says("Hello!", call("no_work_needed")))
    gate = mouth.gate = Gate()
    team = await idle_team(served)
    body = {"model": "Stocks", "messages": [HELLO], "stream": True}
    headers = {"Authorization": f"Bearer {TOKEN}", "X-OpenWebUI-Chat-Id": "chat-1"}
    url = f"{served.origin}/v1/chat/completions"
    async with served.http.post(url, json=body, headers=headers) as response:
        lines = [await response.content.readline() for _ in range(3)]
        assert json.loads(lines[0].removeprefix(b"data: "))["choices"][0]["delta"] == {
            "role": "assistant",
            "content": "",
        }
        assert lines[2] == b": still working\n"
        await gate.reached()
    gate.set()
    await served.world.settle()
    assert await said_to(served, team) == ["Hello agent", "Hello!"]
    # Two copies at once, as a client sends that lost the connection.
    create = client.chat.completions.create
    copies = [
        create(model="Stocks", messages=[HELLO], extra_headers={"X-OpenWebUI-Chat-Id": "chat-1"})  # type: ignore[list-item]
        for _ in range(2)
    ]
    again = await asyncio.gather(*copies)
    assert [one.choices[0].message.content for one in again] == ["Hello!", "Hello!"]
    assert await said_to(served, team) == ["Hello agent", "Hello!"]
    assert len(mouth.requests) == 1


async def test_errors_have_the_form_that_the_sdk_reads(served: Served, client: AsyncOpenAI) -> None:
    await idle_team(served)
    ask = client.chat.completions.create
    hello: list[Any] = [HELLO]
    with pytest.raises(openai.NotFoundError, match="There is no model 'Bonds'") as missing:
        await ask(model="Bonds", messages=hello)
    assert missing.value.code == "model_not_found"
    tool: Any = {"type": "function", "function": {"name": "get_weather"}}
    with pytest.raises(openai.BadRequestError, match="'get_weather'") as refused:
        await ask(model="Stocks", messages=hello, tools=[tool])
    assert (refused.value.param, refused.value.code) == ("tools", "unsupported_parameter")
    with pytest.raises(openai.AuthenticationError) as unknown:
        await client.with_options(api_key="wrong").models.list()
    assert unknown.value.code == "invalid_api_key"
    issue = dict(kind="token", name="reader", scope="read")
    reader = await served.world.store.write(access.issue, OWNER, **issue)
    reading = client.with_options(api_key=reader.secret)
    assert [model.id async for model in reading.models.list()] == ["Stocks", "Stocks/coordinator"]
    with pytest.raises(openai.PermissionDeniedError, match="needs the scope 'talk'"):
        await reading.chat.completions.create(model="Stocks", messages=hello)


async def test_a_request_that_is_no_json_gets_an_error_and_makes_nothing(served: Served) -> None:
    url = f"{served.origin}/v1/chat/completions"
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    async with served.http.post(url, data=b"{", headers=headers) as response:
        said = await response.json()
    assert (response.status, said["error"]["type"]) == (400, "invalid_request_error")
    async with served.http.get(f"{served.origin}/v1/nothing", headers=headers) as response:
        assert response.status == 404
        assert "error" in await response.json()


async def test_work_of_another_chat_is_not_reported_here(
    served: Served, client: AsyncOpenAI
) -> None:
    no_work = call("no_work_needed")
    served.world.script(
        "mouth",
        says("I start."),
        says("Hi.", no_work),
        says("Again.", no_work),
        says("So.", no_work),
    )
    # The message of the other chat may come before her call is made, which then is not made.
    done = says(call("finish", summary="It is done."))
    served.world.script("ada", done, done)
    await idle_team(served)

    async def say(chat: str, *words: str) -> str:
        turns: list[Any] = [
            {"role": "user" if n % 2 == 0 else "assistant", "content": text}
            for n, text in enumerate(words)
        ]
        made = await client.chat.completions.create(
            model="Stocks", messages=turns, extra_headers={"X-OpenWebUI-Chat-Id": chat}
        )
        return made.choices[0].message.content or ""

    assert await say("b", "Hello") == "I start.\n\n→ Started: Hello"
    assert (await say("a", "Hello")).endswith("Hi.")
    await served.world.settle()
    assert await say("a", "Hello", "Hi.", "And now?") == "Again."
    assert "It is done." in await say("b", "Hello", "I start.", "And now?")


BEARER = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}


HOSTILE = [
    ({"Content-Type": "application/json"}, 401),
    (BEARER | {"Origin": "https://evil.example"}, 403),
    (BEARER | {"Sec-Fetch-Site": "cross-site"}, 403),
    (BEARER | {"Host": "evil.example"}, 403),
    (BEARER | {"Content-Type": "text/plain"}, 415),
]


async def test_hostile_requests_are_refused_in_the_same_form_and_say_nothing(
    served: Served,
) -> None:
    team = await idle_team(served)
    url, body = f"{served.origin}/v1/chat/completions", {"model": "Stocks", "messages": [HELLO]}
    for headers, status in HOSTILE:
        async with served.http.post(url, data=json.dumps(body), headers=headers) as response:
            said = await response.json()
        assert (response.status, set(said)) == (status, {"error"}), headers
        assert set(said["error"]) == {"message", "type", "param", "code"}
    assert await said_to(served, team) == []


async def test_words_of_a_client_are_labelled_until_the_person_trusts_it(
    served: Served, client: AsyncOpenAI
) -> None:
    remember = call("remember", content="I drink green tea.", their_words="I drink green tea.")
    mouth = served.world.script(
        "mouth", says(remember), says("Noted.", call("no_work_needed")), insists=False
    )
    team = await idle_team(served)
    issued = await served.world.store.write(
        access.issue, OWNER, kind="token", name="Open WebUI", scope="talk"
    )
    words = "I drink green tea. See https://tea.example/cups."

    async def say() -> None:
        named = client.with_options(api_key=issued.secret)
        message: Any = {"role": "user", "content": words}
        await named.chat.completions.create(model="Stocks", messages=[message])
        await served.world.settle()

    await say()
    label = Label(("client:Open WebUI",))
    [said, _] = await served.world.conversation(team.coordinator)
    assert said.label == label
    # Its addresses allow nothing, and what it says is not remembered as the person's own word.
    _, granted = await served.ask("GET", f"/teams/{team.team.id}/grants")
    assert granted == []
    kept = await served.world.store.read(memories, team)
    assert [(item.content, item.status) for item in kept] == [("I drink green tea.", "unverified")]

    trust = {"kind": "trust", "pattern": "client:Open WebUI"}
    status, _ = await served.ask("POST", f"/teams/{team.team.id}/grants", trust)
    assert status == 201
    cups = call("remember", content="I drink two cups.", their_words="I drink two cups.")
    mouth.lines += [says(cups), says("Noted.", call("no_work_needed"))]
    words = "I drink two cups. See https://tea.example/cups."
    await say()
    kept = await served.world.store.read(memories, team)
    assert [item.status for item in kept] == ["unverified", "active"]


def memories(tx: Tx, team: NewTeam) -> list[Any]:
    return MEMORIES.select(tx, "team_id = :team_id order by id", team_id=team.team.id)
