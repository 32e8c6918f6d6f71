"""Teams over HTTP."""

from pathlib import Path

from agiraph.core.domain.chat import Attachment
from agiraph.testing import call, says
from tests.api.serving import Served, serving


async def test_a_team_is_created_runs_and_completes(served: Served) -> None:
    served.world.script("ada", says(call("finish", summary="done")))
    status, team = await served.ask("POST", "/teams", {"goal": "Count the beans"})
    assert (status, team["goal"], team["status"]) == (201, "Count the beans", "active")
    await served.world.settle()
    status, found = await served.ask("GET", f"/teams/{team['id']}")
    assert (status, found["status"]) == (200, "completed")
    status, events = await served.ask("GET", f"/teams/{team['id']}/events")
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


async def test_the_head_in_a_response_is_the_number_of_the_teams_last_event(served: Served) -> None:
    served.world.script("ada")
    body = {"goal": "Count the beans", "start": False}

    async def heads(method: str, path: str, body: object = None, **headers: str) -> tuple[int, int]:
        """Return the head in the response, and the number of the last event."""
        status, team = await served.ask(method, path, body, **headers)
        assert status < 300, team
        _, events = await served.ask("GET", f"/teams/{team['id']}/events")
        return team["head"], events[-1]["seq"]

    said, is_ = await heads("POST", "/teams", body, Idempotency_Key="once")
    assert (said, said > 0) == (is_, True)
    assert (said, said) == await heads("POST", "/teams", body, Idempotency_Key="once")
    _, [team] = await served.ask("GET", "/teams")
    assert team["head"] == said
    for verb in ("pause", "resume", "stop"):
        before, (said, is_) = said, await heads("POST", f"/teams/{team['id']}/{verb}")
        assert (said, said > before) == (is_, True), verb


async def test_a_repeated_idempotency_key_creates_one_team(served: Served) -> None:
    served.world.script("ada")
    body = {"goal": "Count", "start": False}
    first = await served.ask("POST", "/teams", body, Idempotency_Key="k1")
    again = await served.ask("POST", "/teams", body, Idempotency_Key="k1")
    assert first == again
    assert len((await served.ask("GET", "/teams"))[1]) == 1
    status, problem = await served.ask("POST", "/teams", {"goal": "Other"}, Idempotency_Key="k1")
    assert (status, problem["title"]) == (409, "Conflict")


async def test_the_files_of_a_goal_are_there_before_anybody_works_on_it(
    tmp_path: Path, database_url: str
) -> None:
    note = {"name": "beans.csv", "media_type": "text/csv", "data": "eCw2Mg=="}
    body = {
        "goal": "Count the beans",
        "attachments": [note],
        "acceptance": ["answer"],
        "learns": False,
    }
    async with serving(tmp_path / "home", database_url=database_url) as served:
        model = served.world.script("ada", says(call("finish", summary="62")))
        _, team = await served.ask("POST", "/teams", body, Idempotency_Key="once")
        await served.world.settle()
        first = model.requests[0].turns
        assert [(turn.ref, turn.attachments) for turn in first if turn.role == "user"] == [
            ("assignment", (Attachment(**note),))
        ]
        _, board = await served.ask("GET", f"/teams/{team['id']}/board")
        assert [(node["title"], node["status"]) for node in board] == [
            ("Count the beans", "completed")
        ]
        path = f"/agents/{team['coordinator_id']}/conversation"
        said = (await served.ask("GET", path))[1]
        assert [(one["text"], one["attachments"]) for one in said if one["sender"] == "human"] == [
            ("This file belongs to the goal.", [note])
        ]
        # The response was lost, or the page was reloaded before it came.
        assert await served.ask("POST", "/teams", body, Idempotency_Key="once") == (201, team)
        assert (await served.ask("GET", path))[1] == said
        late = body | {"acceptance": [], "start": False}
        status, problem = await served.ask("POST", "/teams", late)
        assert (status, "start" in problem["detail"]) == (422, True)


async def test_an_acceptance_line_may_say_what_proves_it(tmp_path: Path, database_url: str) -> None:
    lines = ["It is short", {"line": "`a.py` prints a price", "kind": "ran"}]
    body = {"goal": "Write it", "acceptance": lines, "learns": False}
    async with serving(tmp_path / "home", database_url=database_url) as served:
        served.world.script("ada", says(call("ask_human", question="Where?")))
        _, team = await served.ask("POST", "/teams", body)
        await served.world.settle()
        [node] = (await served.ask("GET", f"/teams/{team['id']}/board"))[1]
        detail = (await served.ask("GET", f"/nodes/{node['id']}"))[1]
        assert (detail["acceptance"], detail["acceptance_kinds"]) == (
            ["It is short", "`a.py` prints a price"],
            {"`a.py` prints a price": "ran"},
        )
        wrong = body | {"acceptance": [{"line": "It is short", "kind": "seen"}]}
        assert (await served.ask("POST", "/teams", wrong))[0] == 422


async def test_a_later_goal_has_files_of_its_own(tmp_path: Path, database_url: str) -> None:
    beans = {"name": "beans.csv", "media_type": "text/csv", "data": "eCw2Mg=="}
    peas = {"name": "peas.csv", "media_type": "text/csv", "data": "eSw3"}
    first = {"goal": "Count the beans", "attachments": [beans], "learns": False}
    later = {"goal": "Count the peas", "attachments": [peas]}
    done = says(call("finish", summary="62"))
    async with serving(tmp_path / "home", database_url=database_url) as served:
        model = served.world.script("ada", done, done)
        _, team = await served.ask("POST", "/teams", first)
        await served.world.settle()
        path = f"/teams/{team['id']}/goal"
        status, aimed = await served.ask("POST", path, later, Idempotency_Key="once")
        assert (status, aimed["goal"]) == (201, "Count the peas")
        await served.world.settle()
        assert [turn.attachments for turn in model.requests[-1].turns if turn.attachments] == [
            (Attachment(**peas),)
        ]
        # The response was lost, and the client asks again.
        assert await served.ask("POST", path, later, Idempotency_Key="once") == (201, aimed)
        said = (await served.ask("GET", f"/agents/{team['coordinator_id']}/conversation"))[1]
        given = [one["attachments"] for one in said if one["sender"] == "human"]
        assert given == [[beans], [peas]]
        for wrong, what in (
            ({"attachments": [peas] * 11}, "at most 10 items"),
            ({"attachments": [peas | {"data": "?"}]}, "is not base64"),
        ):
            status, problem = await served.ask("POST", path, later | wrong)
            assert (status, what in problem["detail"]) == (422, True)
        _, board = await served.ask("GET", f"/teams/{team['id']}/board")
        assert [node["title"] for node in board] == ["Count the beans", "Count the peas"]


async def test_a_wrong_request_is_answered_with_what_is_wrong(served: Served) -> None:
    status, problem = await served.ask("POST", "/teams", {"gaol": "x"})
    assert status == 422
    assert "body.goal: Field required" in problem["detail"]
    status, problem = await served.ask("GET", "/teams/nope")
    assert (status, problem["status"]) == (404, 404)
    status, problem = await served.ask("POST", "/teams", {"goal": "x", "model": "nosuch/model"})
    assert (status, "nosuch" in problem["detail"]) == (422, True)


async def test_a_team_with_a_tool_that_does_not_exist_is_refused(served: Served) -> None:
    served.world.script("ada")
    wanted = {"goal": "Fly", "start": False, "tools": ["fly", "read_file"]}
    status, problem = await served.ask("POST", "/teams", wanted)
    assert (status, problem["detail"].partition(" There are: ")[0]) == (
        422, "There are no tools called fly.",
    )  # fmt: skip
    listed = problem["detail"].partition(" There are: ")[2].removesuffix(".").split(", ")
    assert {"read_file", "assign_task", "web_search", "finish"} <= set(listed)
    assert (await served.ask("GET", "/teams"))[1] == []
    status, _ = await served.ask("POST", "/teams", {**wanted, "tools": ["read_file", "finish"]})
    assert status == 201


async def test_settings_are_changed_over_http(served: Served) -> None:
    served.world.script("ada", *[says(call("finish", summary="done"))] * 2)
    asked = {"goal": "Count", "interval": 7200.0, "review": "never"}
    _, team = await served.ask("POST", "/teams", asked)
    await served.world.settle()
    assert (team["interval"], team["review"]) == (7200, "never")
    path = f"/teams/{team['id']}"
    change = {"name": "Beans", "soul": "Calm.", "mode": "infinite", "interval": 600.0}
    status, changed = await served.ask("PATCH", path, change | {"limits": {"agents": 3}})
    assert (status, changed["name"], changed["mode"], changed["interval"]) == (
        200,
        "Beans",
        "infinite",
        600,
    )
    assert (changed["status"], changed["review"]) == ("active", "never")  # it works in cycles now
    with served.api.home.team(team["id"]).folder as folder:
        assert folder.read("SOUL.md", limit=100) == b"# Soul\n\nCalm.\n"
    assert (await served.ask("GET", path))[1] == changed


async def test_wrong_settings_are_answered_with_what_is_wrong(served: Served) -> None:
    served.world.script("ada")
    _, team = await served.ask("POST", "/teams", {"goal": "Count", "start": False})
    path = f"/teams/{team['id']}"
    for change, code, detail in (
        ({"gaol": "x"}, 422, "body.gaol"),
        ({"interval": 5.0}, 422, "at least 30 seconds"),
        ({"model": "nosuch/model"}, 422, "nosuch"),
        ({"review": "sometimes"}, 422, "body.review"),
        ({"limits": {"agents": 0}}, 422, "body.limits.agents"),
    ):
        status, problem = await served.ask("PATCH", path, change)
        assert (status, detail in problem["detail"]) == (code, True), (change, problem)
    assert (await served.ask("POST", "/teams", {"goal": "x", "interval": 1.0}))[0] == 422
    assert (await served.ask("PATCH", "/teams/nope", {"name": "x"}))[0] == 404
    assert (await served.ask("GET", path))[1]["name"] == "Count"


async def test_the_budget_of_a_goal_is_raised_and_lowered_to_what_is_used(served: Served) -> None:
    served.world.script("ada", says(call("ask_human", question="Which?")))
    _, team = await served.ask("POST", "/teams", {"goal": "Count", "budget": {"usd": 2.0}})
    await served.world.settle()
    path = f"/teams/{team['id']}"
    changes = (({"usd": 5.0, "tokens": 90_000}, 200), ({"usd": 1.0}, 200), ({}, 200))
    for budget, code in (*changes, ({"tokens": 1}, 422)):
        assert (await served.ask("PATCH", path, {"budget": budget}))[0] == code, budget
    for budget in ({"usd": 0}, {"usd": -1.0}, {"dollars": 1}):
        assert (await served.ask("PATCH", path, {"budget": budget}))[0] == 422, budget
    [goal] = await served.world.board(team["id"])
    assert (goal.budget.usd, goal.budget.tokens) == (1.0, 90_000)


async def test_a_new_goal_has_the_limits_of_the_last_one_unless_the_person_changes_them(
    served: Served,
) -> None:
    served.world.script("ada")
    first = {"usd": 5.0, "turns": 1000, "tokens": 90_000}
    _, team = await served.ask("POST", "/teams", {"goal": "Count", "budget": first})
    limits: list[tuple[float | None, int, int | None, float | None]] = []
    for budget in (None, {"usd": 2.0}, {"usd": None, "turns": 7}):
        goal = {"goal": "Count again", "budget": budget}
        assert (await served.ask("POST", f"/teams/{team['id']}/goal", goal))[0] == 201
        given = (await served.world.board(team["id"]))[-1].budget
        limits.append((given.usd, given.turns, given.tokens, given.seconds))
    day = 86_400.0
    assert limits == [
        (5.0, 1000, 90_000, day),
        (2.0, 1000, 90_000, day),
        (None, 7, 90_000, day),
    ]


async def test_the_spend_of_today_is_shown_with_its_limit(served: Served) -> None:
    status, today = await served.ask("GET", "/cost")
    assert (status, today["usd"], today["allowed_usd"], today["is_reached"]) == (200, 0, 0, False)
    assert today["limit_usd"] is None  # this server has none
    assert today["forecast_usd"] is None


async def test_a_thread_says_what_fills_its_window(served: Served) -> None:
    served.world.script("ada", says("Counted."))
    _, team = await served.ask("POST", "/teams", {"goal": "Count", "name": "Beans"})
    await served.world.settle()
    [goal] = await served.world.board(team["id"])
    status, use = await served.ask("GET", f"/threads/{goal.thread_id}/window")
    assert (status, use["model"]) == (200, "scripted/ada")
    parts = {part["part"]: part["tokens"] for part in use["parts"]}
    assert sum(parts.values()) == use["tokens"] > 0
    assert {"instructions", "conversation"} <= parts.keys()
    assert (await served.ask("GET", "/threads/t_none/window"))[0] == 404


async def test_what_was_spent_is_shown_day_by_day(served: Served) -> None:
    served.world.script("ada", says("Counted."))
    _, team = await served.ask("POST", "/teams", {"goal": "Count", "name": "Beans"})
    await served.world.settle()
    status, history = await served.ask("GET", "/cost/history?by=team")
    assert status == 200, history
    assert {part["name"] for part in history["parts"]} == {"Beans"}
    assert {part["day"] for part in history["parts"]} == {history["today"]["day"]}
    assert sum(part["calls"] for part in history["parts"]) > 0
    _, own = await served.ask("GET", f"/cost/history?by=model&team={team['id']}&days=1")
    assert own["first_day"] == own["today"]["day"]
    assert [part["name"] for part in own["parts"]] == ["scripted/ada"]
    assert (await served.ask("GET", "/cost/history?by=mood"))[0] == 422
    assert (await served.ask("GET", "/cost/history?team=none"))[0] == 404


async def test_effort_is_set_and_taken_away_for_a_team_an_agent_and_a_node(served: Served) -> None:
    served.world.script("ada", says(call("ask_human", question="Which?")))
    status, team = await served.ask("POST", "/teams", {"goal": "Count", "effort": "high"})
    assert (status, team["effort"]) == (201, "high")
    await served.world.settle()
    _, [agent] = await served.ask("GET", f"/teams/{team['id']}/agents")
    _, [node] = await served.ask("GET", f"/teams/{team['id']}/board")
    assert (agent["effort"], node["effort"]) == (None, None)
    for path in (f"/teams/{team['id']}", f"/agents/{agent['id']}", f"/nodes/{node['id']}"):
        for sent, stored in (("max", "max"), ("default", None)):
            status, changed = await served.ask("PATCH", path, {"effort": sent})
            assert (status, changed["effort"]) == (200, stored), path
            assert (await served.ask("GET", path))[1]["effort"] == stored
        status, problem = await served.ask("PATCH", path, {"effort": "huge"})
        assert (status, "body.effort" in problem["detail"]) == (422, True)


async def test_a_turn_shows_what_its_model_thought(served: Served) -> None:
    served.world.script("ada", says(call("finish", summary="done"), thinking="Simple."))
    _, team = await served.ask("POST", "/teams", {"goal": "Count"})
    await served.world.settle()
    _, [node] = await served.ask("GET", f"/teams/{team['id']}/board")
    _, turns = await served.ask("GET", f"/threads/{node['thread_id']}")
    assert next(turn["thinking"] for turn in turns if turn["role"] == "assistant") == "Simple."


async def test_threads_have_the_names_that_people_know_their_work_by(served: Served) -> None:
    served.world.script("ada", says(call("finish", summary="done")), *[says("Nearly.")] * 20)
    _, team = await served.ask("POST", "/teams", {"goal": "Count the beans"})
    await served.world.settle()
    agent = f"/agents/{team['coordinator_id']}"
    await served.ask("POST", f"{agent}/send", {"message": "How far\nare you?"})
    await served.world.settle()
    _, threads = await served.ask("GET", f"{agent}/threads")
    # The oldest first; what the reply began has its words for a name, too.
    replies = [thread["title"] for thread in threads if thread["kind"] == "reply"]
    assert threads[0]["title"] == "Count the beans"
    assert replies == ["Reply to “How far are you?”"]
