"""Triggers over HTTP: what can be changed, and when the change takes effect."""

import asyncio
from typing import Any

from yarl import URL

from agiraph.core.domain.ids import TriggerId
from agiraph.core.domain.provenance.labels import CLEAN, UNKNOWN
from agiraph.core.services.triggers import definitions, due
from agiraph.core.store.triggers import TRIGGERS
from tests.api.serving import Served
from tests.services.stages import pass_time
from tests.services.triggers import DONE, OK, create_trigger, found_idle_team
from tests.wording import Wording


class ChangedTrigger:
    """A trigger that a test changes over HTTP."""

    def __init__(self, served: Served, team: str, id: str) -> None:
        self.served = served
        self.id = id
        self.path = f"/teams/{team}/triggers/{id}"

    async def change(self, **body: Any) -> tuple[int, Any]:
        return await self.served.ask("PATCH", self.path, body)

    async def run(self, key: str) -> tuple[int, Any]:
        return await self.served.ask("POST", f"{self.path}/run", idempotency_key=key)

    async def outcomes(self) -> list[tuple[str, str]]:
        _, firings = await self.served.ask("GET", f"{self.path}/firings")
        return [(firing["slot"], firing["outcome"]) for firing in firings[::-1]]


async def a_trigger(served: Served, type: str, config: Any, **more: Any) -> ChangedTrigger:
    founded = await found_idle_team(served.world, *[DONE] * 3)
    trigger = await create_trigger(served.world, founded, type, config, **more)
    return ChangedTrigger(served, founded.team.id, trigger.id)


async def test_a_changed_schedule_takes_effect_at_once(served: Served) -> None:
    world = served.world
    trigger = await a_trigger(served, "scheduled", {"cron": "0 10 * * *"})
    config = {"cron": "30 10 * * *", "zone": "Europe/Berlin", "misfire": "skip"}
    status, changed = await trigger.change(config=config)
    assert (status, changed["config"], changed["zone"], changed["misfire"]) == (
        200, config, "Europe/Berlin", "skip",
    )  # fmt: skip
    assert changed["due_at"] == "2026-01-05T09:30:00Z"
    await pass_time(world, 1800)
    await pass_time(world, 3600)  # past the time of the old schedule
    assert await trigger.outcomes() == [("2026-01-05T09:30:00+00:00", "fired")]
    events = await world.events(changed["team_id"])
    [told] = [event.data for event in events if event.type == "trigger.changed"]
    assert (told["status"], told["due_at"]) == ("active", "2026-01-05T09:30:00+00:00")


async def test_firings_with_nothing_to_do_are_counted_in_the_trigger(served: Served) -> None:
    founded = await found_idle_team(served.world, OK, DONE, OK)
    await create_trigger(served.world, founded, "scheduled", {"cron": "0 * * * *"})
    for _ in range(3):
        await pass_time(served.world, 3600)
    _, [listed] = await served.ask("GET", f"/teams/{founded.team.id}/triggers")
    assert (listed["fired"], listed["nothing_to_do"]) == (3, 2)


async def test_the_action_of_a_trigger_can_be_changed_without_its_schedule(served: Served) -> None:
    trigger = await a_trigger(served, "scheduled", {"cron": "@hourly"}, label=UNKNOWN)
    before = await served.world.store.read(TRIGGERS.get, TriggerId(trigger.id))
    status, changed = await trigger.change(
        action="send_message", payload={"to": "human", "content": "It is time."}
    )
    after = await served.world.store.read(TRIGGERS.get, TriggerId(trigger.id))
    assert (status, changed["action"], changed["payload"]["content"]) == (
        200, "send_message", "It is time.",
    )  # fmt: skip
    assert (after.config, after.due_at) == (before.config, before.due_at)
    assert (before.label, after.label) == (UNKNOWN, CLEAN)
    await pass_time(served.world, 3600)
    said = await served.ask("GET", f"/agents/{after.agent_id}/conversation")
    assert [message["text"] for message in said[1]] == ["It is time."]


async def test_a_paused_trigger_is_changed_and_stays_paused(served: Served) -> None:
    trigger = await a_trigger(served, "scheduled", {"cron": "@hourly"})
    status, changed = await trigger.change(status="paused", config={"cron": "*/30 * * * *"})
    assert (status, changed["status"]) == (200, "paused")
    await pass_time(served.world, 2 * 3600)
    assert await trigger.outcomes() == []
    status, changed = await trigger.change(status="active", config={"cron": "@daily"})
    assert (status, changed["status"], changed["due_at"]) == (
        200, "active", "2026-01-06T00:00:00Z",
    )  # fmt: skip


async def test_the_watched_files_of_a_heartbeat_can_be_changed(served: Served) -> None:
    trigger = await a_trigger(
        served, "heartbeat", {"interval_seconds": 60, "watch": ["memory/a.md"]}
    )
    await pass_time(served.world, 120)
    status, changed = await trigger.change(
        config={"interval_seconds": 60, "watch": ["memory/b.md"]}
    )
    assert (status, changed["config"]["watch"]) == (200, ["memory/b.md"])
    await pass_time(served.world, 120)
    found = await served.world.store.read(TRIGGERS.get, TriggerId(trigger.id))
    assert list(found.watched) == ["memory/b.md"]


async def test_a_webhook_reads_nothing_of_a_request_without_its_secret(served: Served) -> None:
    trigger = await a_trigger(served, "webhook", {"secret": "the-first-secret-of-it"})
    url = URL(served.origin)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    head = f"POST /api/hooks/{trigger.id} HTTP/1.1\r\nHost: {url.authority}\r\n"
    head += "X-Agiraph-Secret: another-secret\r\nContent-Length: 9000000\r\n\r\n{"
    writer.write(head.encode())
    # The body never comes, and the answer does not wait for it.
    async with asyncio.timeout(20):
        assert (await reader.readline()).split()[1] == b"404"
    writer.close()


async def test_a_webhook_with_a_large_body_fires_with_its_beginning(served: Served) -> None:
    secret = "the-first-secret-of-it"
    trigger = await a_trigger(served, "webhook", {"secret": secret})
    body = {"text": "x" * 500_000}
    path = f"/hooks/{trigger.id}"
    assert (await served.ask("POST", path, body, X_Agiraph_Secret=secret))[0] == 202


async def test_a_webhook_keeps_its_secret_unless_it_gets_another(served: Served) -> None:
    secret, other = "the-first-secret-of-it", "the-second-secret-of-it"
    trigger = await a_trigger(served, "webhook", {"secret": secret})

    async def call_webhook(with_: str) -> int:
        path = f"/hooks/{trigger.id}"
        return (await served.ask("POST", path, {}, X_Agiraph_Secret=with_))[0]

    await trigger.change(config={"overlap": "queue"})
    assert await call_webhook(secret) == 202
    status, changed = await trigger.change(config={"overlap": "queue", "secret": other})
    assert (status, changed["config"]) == (200, {"overlap": "queue"})
    assert (await call_webhook(secret), await call_webhook(other)) == (404, 202)


WRONG_CHANGES = [
    {},
    {"type": "delayed"},
    {"config": {"cron": "every day"}},
    {"config": {"interval_seconds": 60}},
    {"action": "send_message"},
    {"payload": {"task": 7}},
    {"status": "cancelled"},
]


async def test_a_wrong_change_is_refused_and_changes_nothing(
    served: Served, wording: Wording
) -> None:
    trigger = await a_trigger(served, "scheduled", {"cron": "@hourly"})
    before = await served.world.store.read(TRIGGERS.get, TriggerId(trigger.id))
    told = {str(body): await trigger.change(**body) for body in WRONG_CHANGES}
    assert {status for status, _ in told.values()} == {422}
    wording({body: problem["detail"] for body, (_, problem) in told.items()})
    assert await served.world.store.read(TRIGGERS.get, TriggerId(trigger.id)) == before


async def test_a_cancelled_trigger_cannot_be_changed(served: Served) -> None:
    trigger = await a_trigger(served, "scheduled", {"cron": "@hourly"})
    await served.world.store.write(definitions.cancel, TriggerId(trigger.id))
    status, problem = await trigger.change(config={"cron": "@daily"})
    assert (status, "make a new one instead" in problem["detail"]) == (422, True)


async def test_a_trigger_runs_now_once_for_one_key(served: Served) -> None:
    trigger = await a_trigger(served, "scheduled", {"cron": "0 10 * * *"})
    first = await trigger.run("key-1")
    again = await trigger.run("key-1")
    await served.world.settle()
    assert (first, again[1]) == ((200, first[1]), first[1])
    assert (first[1]["outcome"], first[1]["reason"]) == ("fired", due.BY_HAND)
    assert await trigger.outcomes() == [(first[1]["slot"], "fired")]
    _, listed = await served.ask("GET", trigger.path.rpartition("/")[0])
    assert (listed[0]["due_at"], listed[0]["fired"]) == ("2026-01-05T10:00:00Z", 1)
    _, audit = await served.ask("GET", "/audit")
    assert f"/api{trigger.path}/run" in [entry["path"] for entry in audit]


async def test_a_trigger_that_has_ended_is_neither_run_nor_changed(served: Served) -> None:
    trigger = await a_trigger(served, "scheduled", {"cron": "0 10 * * *"})
    await served.ask("DELETE", trigger.path)
    assert (await trigger.run("key-1"))[0] == 422
    assert (await trigger.change(config={"cron": "0 11 * * *"}))[0] == 422
    assert await trigger.outcomes() == []
