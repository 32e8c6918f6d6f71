"""The outbox: each message reaches each channel despite failures, always with the same key."""

import asyncio
import hashlib
import hmac
import ssl
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from agiraph.app import open_store
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import MessageId
from agiraph.core.domain.messages import Draft, Message, MessageKind
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.records.channels import Channel, DeliveryFailed
from agiraph.core.domain.records.deliveries import Delivery, OutgoingMessage
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.lifecycle import settings
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus, deliveries, inbox
from agiraph.core.services.triggers import definitions
from agiraph.core.store import deliveries as rows
from agiraph.features.channels.carriers import Carriers, Outbox
from agiraph.features.channels.kinds.configured import Terminal
from agiraph.features.channels.kinds.smtp import Smtp
from agiraph.features.channels.kinds.webhook import Webhook
from agiraph.testing import World, call, says
from tests.runtime.receivers import MailServer, WebhookServer
from tests.runtime.waiting import until

SECRET = "a-secret-of-the-hook"


@asynccontextmanager
async def open_world(path: Path, database_url: str, **channels: Channel) -> AsyncIterator[World]:
    async with World(
        path / "home", database_url=database_url, features={"channels": channels}, easy_endings=True
    ) as world:
        world.script("ada")
        yield world


async def idle_team(world: World) -> NewTeam:
    return await world.found("Wait", start=False)


async def send_to_person(
    world: World, founded: NewTeam, text: str = "Look at this.", kind: MessageKind = "briefing"
) -> Message:
    return await world.store.write(
        bus.send,
        Draft(
            team_id=founded.team.id,
            sender=founded.coordinator.id,
            recipient=OWNER,
            kind=kind,
            title=text.partition(".")[0],
            text=text,
        ),
    )


async def deliveries_of(world: World, message: Message) -> list[Delivery]:
    return await world.store.read(rows.of_message, message.id)


async def wait_for_status(world: World, message: Message, status: str) -> Delivery:
    """Wait until the message's only delivery has this status; return it."""

    async def is_so() -> bool:
        return [d.status for d in await deliveries_of(world, message)] == [status]

    await until(world, is_so)
    return (await deliveries_of(world, message))[0]


async def wait_for_tries(world: World, message: Message, times: int) -> Delivery:
    """Wait until this many tries of the message's only delivery have failed; return it."""

    async def is_so() -> bool:
        [found] = await deliveries_of(world, message)
        return found.status == "queued" and found.tries == times

    await until(world, is_so)
    return (await deliveries_of(world, message))[0]


async def test_a_message_is_posted_with_its_key_and_a_signature(
    tmp_path: Path, database_url: str
) -> None:
    web = WebhookServer()
    async with web.open():
        hook = Webhook(url=web.url, secret=SECRET)
        async with open_world(tmp_path, database_url, hook=hook) as world:
            founded = await idle_team(world)
            message = await send_to_person(world, founded, "Rates rose. By 1 %.")
            delivery = await wait_for_status(world, message, "sent")
    [post] = web.posts
    assert post.body == {
        "key": delivery.id,
        "id": message.id,
        "kind": "briefing",
        "title": "Rates rose",
        "text": "Rates rose. By 1 %.",
        "options": [],
        "from": "coordinator",
        "team": {"id": founded.team.id, "name": "Wait"},
        "node_id": None,
        "created_at": "2026-01-05T09:00:00+00:00",
    }
    assert post.key == delivery.id
    signed = post.headers["agiraph-timestamp"].encode() + b"." + post.raw
    proof = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert post.headers["agiraph-signature"] == f"v1={proof}"


async def test_every_kind_of_inbox_message_is_delivered_and_no_other_kind(
    tmp_path: Path, database_url: str
) -> None:
    lines: list[str] = []
    some: list[str] = []
    channels: dict[str, Channel] = {
        "all": Terminal(write=lines.append),
        "some": Terminal(write=some.append, kinds=frozenset({"question"})),
    }
    kinds: tuple[MessageKind, ...] = (
        "question", "approval", "briefing", "report", "failure", "result", "message", "notice",
    )  # fmt: skip
    async with open_world(tmp_path, database_url, **channels) as world:
        founded = await idle_team(world)
        for kind in kinds:
            await send_to_person(world, founded, f"About {kind}", kind)
        await world.settle()
    assert sorted(line.partition("]")[0][1:] for line in lines) == sorted(kinds[:6])
    assert [line.partition(" (")[0] for line in some] == [
        "[question] Wait, coordinator: About question"
    ]


@pytest.mark.parametrize(
    ("behaviours", "error"),
    [
        (["fail", "fail", "take"], "answered 500: sigh"),
        (["drop", "drop", "take"], "the connection was closed before the end of the response"),
        (["stall", "stall", "take"], "no answer within 0.1 s"),
    ],
)
async def test_a_webhook_that_fails_twice_is_called_again_with_the_same_key(
    tmp_path: Path, database_url: str, behaviours: list, error: str
) -> None:
    web = WebhookServer(behaviours=list(behaviours))
    async with web.open():
        hook = Webhook(url=web.url, timeout_s=0.1 if "stall" in behaviours else 20)
        async with open_world(tmp_path, database_url, hook=hook) as world:
            founded = await idle_team(world)
            message = await send_to_person(world, founded)
            first = await wait_for_tries(world, message, 1)
            assert (first.error, first.due_at - world.clock.now()) == (error, timedelta(seconds=10))
            world.clock.advance(seconds=10)
            second = await wait_for_tries(world, message, 2)
            assert second.due_at - world.clock.now() == timedelta(seconds=30)
            world.clock.advance(seconds=30)
            sent = await wait_for_status(world, message, "sent")
    assert (sent.tries, sent.error, sent.sent_at) == (3, None, world.clock.now())
    assert [post.key for post in web.posts] == [sent.id] * 3
    assert len({post.raw for post in web.posts}) == 1


async def test_a_webhook_that_is_down_does_not_change_the_nodes_outcome(
    tmp_path: Path, database_url: str
) -> None:
    web = WebhookServer()
    async with open_world(tmp_path, database_url, hook=Webhook(url=web.url)) as world:
        world.script("ada", says(call("finish", summary="Done and found.")))
        founded = await world.found("Find it")
        await world.settle()
        assert founded.node is not None
        node = await world.node(founded.node.id)
        assert (node.status, node.result) == (NodeStatus.COMPLETED, "Done and found.")
        [result] = await world.inbox()
        assert result.text == "Done and found."
        await wait_for_tries(world, result, 1)
        async with web.open():
            world.clock.advance(minutes=1)
            await wait_for_status(world, result, "sent")
    assert [post.body["text"] for post in web.posts] == ["Done and found."]


async def test_a_delivery_interrupted_by_a_restart_is_sent_again_with_the_same_key(
    tmp_path: Path,
) -> None:
    web = WebhookServer(behaviours=["stall", "take"])
    async with web.open():
        url = f"sqlite:///{tmp_path / 'agiraph.db'}"
        async with open_world(tmp_path, url, hook=Webhook(url=web.url)) as world:
            message = await send_to_person(world, await idle_team(world))
            await web.received.acquire()
            await world.restart()
            sent = await wait_for_status(world, message, "sent")
    assert [post.key for post in web.posts] == [sent.id] * 2
    assert sent.tries == 2


async def test_retry_after_of_a_webhook_is_respected(tmp_path: Path, database_url: str) -> None:
    web = WebhookServer(behaviours=["later", "take"])
    async with web.open(), open_world(tmp_path, database_url, hook=Webhook(url=web.url)) as world:
        message = await send_to_person(world, await idle_team(world))
        waiting = await wait_for_tries(world, message, 1)
        assert waiting.due_at - world.clock.now() == timedelta(minutes=30)


async def test_a_delivery_whose_tries_all_fail_is_marked_failed_and_can_be_redelivered(
    tmp_path: Path, database_url: str
) -> None:
    web = WebhookServer(behaviours=["fail"])
    async with web.open(), open_world(tmp_path, database_url, hook=Webhook(url=web.url)) as world:
        founded = await idle_team(world)
        message = await send_to_person(world, founded)
        for number in range(1, deliveries.MAX_TRIES):
            await wait_for_tries(world, message, number)
            world.clock.advance(hours=1)
        failed = await wait_for_status(world, message, "failed")
        assert len(web.posts) == failed.tries == deliveries.MAX_TRIES
        assert await world.store.read(rows.failed) == [failed]
        item = await world.store.read(inbox.item, OWNER, message.id)
        assert (item.state, item.deliveries) == ("unread", (failed,))
        [event] = [e for e in await world.events(founded.team.id) if e.type == "delivery.failed"]
        assert event.data["error"] == "answered 500: sigh"

        web.behaviours = ["take"]
        await world.store.write(deliveries.redeliver, failed.id)
        sent = await wait_for_status(world, message, "sent")
    assert {post.key for post in web.posts} == {sent.id}


@pytest.mark.parametrize(("cut_off", "status"), [(9, "sending"), (10, "failed")])
async def test_a_delivery_whose_every_try_is_cut_off_by_a_crash_is_given_up(
    tmp_path: Path, database_url: str, cut_off: int, status: str
) -> None:
    """What is sent may be what crashes the process; it must not do so at every start."""
    hook = Webhook(url=WebhookServer().url)
    async with open_world(tmp_path, database_url, hook=hook) as world:
        await world.runtime.part(Carriers).outbox.stop()
        founded = await idle_team(world)
        message = await send_to_person(world, founded)
        for _ in range(cut_off):
            await world.store.write(deliveries.claim, "hook", owner="one that dies", limit=4)
            await world.store.write(rows.forget_owners)
        await world.store.write(deliveries.claim, "hook", owner="the next", limit=4)
        [delivery] = await deliveries_of(world, message)
        events = [e.type for e in await world.events(founded.team.id)]
    assert delivery.status == status
    assert (delivery.error is not None, events.count("delivery.failed")) == (
        status == "failed",
        int(status == "failed"),
    )


async def test_the_words_of_a_receiver_that_refuses_reach_people_and_no_agent(
    tmp_path: Path, database_url: str
) -> None:
    """An agent that is to act on failed deliveries hears which one, not what a stranger wrote."""
    web = WebhookServer(behaviours=["fail"])
    async with web.open(), open_world(tmp_path, database_url, hook=Webhook(url=web.url)) as world:
        world.script("ada", says(call("finish", summary="done")))
        founded = await idle_team(world)
        await world.store.write(
            definitions.create,
            agent_id=founded.coordinator.id,
            type="on_event",
            config={"event_pattern": "delivery.failed"},
            payload={"task": "See why"},
        )
        message = await send_to_person(world, founded)
        for number in range(1, deliveries.MAX_TRIES):
            await wait_for_tries(world, message, number)
            world.clock.advance(hours=1)
        failed = await wait_for_status(world, message, "failed")
        await world.settle()
        [woken] = await world.board(founded.team.id)
        shown = await world.turns(woken.id)
        item = await world.store.read(inbox.item, OWNER, message.id)
    assert f'"delivery_id":"{failed.id}"' in woken.task
    assert [turn.text for turn in shown if "sigh" in turn.text] == []
    assert [each.error for each in item.deliveries] == ["answered 500: sigh"]


async def test_a_queued_delivery_cannot_be_redelivered_by_hand(
    tmp_path: Path, database_url: str
) -> None:
    async with open_world(tmp_path, database_url, hook=Webhook(url=WebhookServer().url)) as world:
        message = await send_to_person(world, await idle_team(world))
        waiting = await wait_for_tries(world, message, 1)
        with pytest.raises(Refused, match="is queued: it is still to be sent"):
            await world.store.write(deliveries.redeliver, waiting.id)
        with pytest.raises(Refused, match="There is no delivery 'delivery_0'"):
            await world.store.write(deliveries.redeliver, "delivery_0")


async def test_a_stalled_channel_does_not_delay_another(tmp_path: Path, database_url: str) -> None:
    web, lines = WebhookServer(behaviours=["stall"]), asyncio.Queue[str]()
    async with web.open():
        channels: Mapping[str, Channel] = {
            "hook": Webhook(url=web.url),
            "here": Terminal(write=lines.put_nowait),
        }
        async with open_world(tmp_path, database_url, **channels) as world:
            founded = await idle_team(world)
            for number in range(10):
                await send_to_person(world, founded, f"Number {number}")
            said = [await lines.get() for _ in range(10)]
    assert ["Number" in line for line in said] == [True] * 10


async def test_briefings_wait_for_the_end_of_quiet_hours_and_questions_do_not(
    tmp_path: Path, database_url: str
) -> None:
    lines: list[str] = []
    async with open_world(tmp_path, database_url, here=Terminal(write=lines.append)) as world:
        founded = await idle_team(world)
        await world.store.write(
            settings.change,
            founded.team.id,
            quiet_hours="22:00-07:00",
            quiet_zone="Europe/Berlin",
        )
        world.clock.advance(hours=13)  # 22:00 UTC is 23:00 in Berlin
        briefing = await send_to_person(world, founded, "Rates rose")
        question = await send_to_person(world, founded, "May I?", "question")
        assert [m.id for m in await world.inbox()] == [briefing.id, question.id]
        await wait_for_status(world, question, "sent")
        [waiting] = await deliveries_of(world, briefing)
        assert waiting.status == "queued"
        assert waiting.due_at == world.clock.now() + timedelta(hours=8)
        world.clock.advance(hours=8)
        await wait_for_status(world, briefing, "sent")
    assert [line.partition("]")[0] for line in lines] == ["[question", "[briefing"]


async def test_a_new_channel_gets_no_older_messages(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'agiraph.db'}"
    lines: list[str] = []
    async with open_world(tmp_path, url) as world:
        old = await send_to_person(world, await idle_team(world), "Long ago")
        assert await deliveries_of(world, old) == []
    async with open_world(tmp_path, url, here=Terminal(write=lines.append)) as world:
        await world.settle()
    assert lines == []


async def test_deliveries_to_a_removed_channel_are_marked_failed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'agiraph.db'}"
    async with open_world(tmp_path, url, hook=Webhook(url=WebhookServer().url)) as world:
        message = await send_to_person(world, await idle_team(world))
        await wait_for_tries(world, message, 1)
    async with open_world(tmp_path, url) as world:
        [gone] = await deliveries_of(world, message)
        assert (gone.status, gone.error) == ("failed", "There is no such channel any more.")
        with pytest.raises(Refused, match="There is no channel 'hook' any more"):
            await world.store.write(deliveries.redeliver, gone.id)


class BuggyChannel:
    """A channel with a bug."""

    kinds = frozenset[MessageKind]({"briefing", "question"})
    description = "choking"

    def __init__(self) -> None:
        self.taken: list[MessageId] = []

    async def send(self, outgoing: OutgoingMessage) -> None:
        if outgoing.message.kind == "question":
            raise KeyError("a bug")
        self.taken.append(outgoing.message.id)


async def test_a_channel_that_fails_on_one_message_still_gets_the_others(
    tmp_path: Path, database_url: str
) -> None:
    channel = BuggyChannel()
    async with open_world(tmp_path, database_url, odd=channel) as world:
        founded = await idle_team(world)
        bad = await send_to_person(world, founded, "May I?", "question")
        good = await send_to_person(world, founded)
        await wait_for_status(world, good, "sent")
        assert (await wait_for_tries(world, bad, 1)).error == "KeyError('a bug')"
    assert channel.taken == [good.id]


class CountingChannel:
    """A channel that records the keys it gets, and fails every fifth time."""

    kinds = frozenset[MessageKind]({"briefing"})
    description = "counting"

    def __init__(self) -> None:
        self.keys: list[str] = []

    async def send(self, outgoing: OutgoingMessage) -> None:
        self.keys.append(outgoing.key)
        await asyncio.sleep(0)
        if len(self.keys) % 5 == 0:
            raise DeliveryFailed("every fifth time")


async def test_of_several_processes_only_one_sends_each_message(
    tmp_path: Path, postgres: object
) -> None:
    url = postgres.fresh()  # type: ignore[attr-defined]
    channel = CountingChannel()
    async with open_world(tmp_path, url, count=channel) as world:
        founded = await idle_team(world)
        stores = [await open_store(url, world.clock) for _ in range(3)]
        others = [Outbox(s, world.clock, {"count": channel}, is_sole_process=False) for s in stores]
        for outbox in others:
            await outbox.start()
        said = [await send_to_person(world, founded, f"Number {n}.") for n in range(20)]

        async def all_tried() -> bool:
            found = [(await deliveries_of(world, message))[0] for message in said]
            return all(d.status == "sent" or d.tries >= 1 for d in found) and not any(
                d.status == "sending" for d in found
            )

        while not await all_tried():
            await asyncio.gather(
                *(outbox.idle() for outbox in (*others, world.runtime.part(Carriers).outbox))
            )
        found = [(await deliveries_of(world, message))[0] for message in said]
        for outbox, store in zip(others, stores, strict=True):
            await outbox.stop()
            await store.close()
    assert sorted(channel.keys) == sorted(d.id for d in found for _ in range(d.tries))
    assert {d.tries for d in found} == {1}


async def test_a_delivery_claimed_by_a_dead_process_is_taken_over_after_a_timeout(
    tmp_path: Path, postgres: object
) -> None:
    url = postgres.fresh()  # type: ignore[attr-defined]
    async with open_world(tmp_path, url) as world:
        founded = await idle_team(world)
        kinds = frozenset[MessageKind]({"briefing"})
        await world.store.write(
            deliveries.open_channels, {"count": kinds}, person_id=OWNER, is_sole_process=False
        )
        message = await send_to_person(world, founded)
        [claimed] = await world.store.write(deliveries.claim, "count", owner="dead", limit=5)
    channel = CountingChannel()
    async with open_world(tmp_path, url, count=channel) as world:
        await world.settle()
        assert channel.keys == []  # the process with the claim may only be slow
        world.clock.advance(seconds=deliveries.CLAIM_TIMEOUT.total_seconds())
        sent = await wait_for_status(world, message, "sent")
        assert (channel.keys, sent.tries) == ([claimed.key], 2)
        # The process that seemed dead comes back: its report of the failed try is ignored.
        await world.store.write(deliveries.retry_later, claimed.delivery, error="late")
        assert await deliveries_of(world, message) == [sent]


# ---- by e-mail -----------------------------------------------------------------------------


def smtp_channel(server: MailServer, **more: object) -> Smtp:
    return Smtp(
        host="127.0.0.1",
        port=server.port,
        sender="agents@example.org",
        recipients=("a@example.org", "b@example.org"),
        security="none",
        **more,  # type: ignore[arg-type]
    )


async def test_a_message_goes_out_as_an_e_mail(tmp_path: Path, database_url: str) -> None:
    server = MailServer()
    async with (
        server.open(),
        open_world(tmp_path, database_url, post=smtp_channel(server)) as world,
    ):
        founded = await idle_team(world)
        text = "Ärger\r\nBcc: c@example.org. Über alles.\n.\nEnde"
        message = await send_to_person(world, founded, text, "question")
        await wait_for_status(world, message, "sent")
    [got] = server.mails
    assert server.envelopes == [
        ("FROM:<agents@example.org>", ("TO:<a@example.org>", "TO:<b@example.org>"))
    ]
    assert got["Subject"] == "[Wait] question: Ärger Bcc: c@example"
    assert got["Bcc"] is None
    assert got.get_content().replace("\r\n", "\n") == (
        "coordinator asks:\n\nÄrger⟨U+000D⟩\nBcc: c@example.org. Über alles.\n.\nEnde\n\n"
        f'Answer with: agiraph answer {message.id} "TEXT"\n'
    )


@pytest.mark.parametrize("behaviours", [["fail", "fail", "take"], ["drop", "drop", "take"]])
async def test_a_mail_server_that_fails_twice_gets_the_same_mail_the_third_time(
    tmp_path: Path, database_url: str, behaviours: list
) -> None:
    server = MailServer(behaviours=list(behaviours))
    async with (
        server.open(),
        open_world(tmp_path, database_url, post=smtp_channel(server)) as world,
    ):
        message = await send_to_person(world, await idle_team(world))
        for number in (1, 2):
            await wait_for_tries(world, message, number)
            world.clock.advance(minutes=1)
        sent = await wait_for_status(world, message, "sent")
    assert sent.tries == 3
    assert [m["Idempotency-Key"] for m in server.mails] == [sent.id] * 3
    [identity] = {m["Message-ID"] for m in server.mails}
    assert identity.endswith("@agiraph>")


@pytest.mark.parametrize("is_open", [False, True])
async def test_a_mail_server_that_is_down_or_silent_gets_the_mail_later(
    tmp_path: Path, database_url: str, is_open: bool
) -> None:
    server = MailServer(behaviours=["stall", "take"] if is_open else ["take"])
    channel = smtp_channel(server, timeout_s=0.2)
    async with open_world(tmp_path, database_url, post=channel) as world:
        founded = await idle_team(world)
        if is_open:
            async with server.open():
                message = await send_to_person(world, founded)
                await wait_for_tries(world, message, 1)
        else:
            message = await send_to_person(world, founded)
            await wait_for_tries(world, message, 1)
        async with server.open():
            world.clock.advance(minutes=1)
            sent = await wait_for_status(world, message, "sent")
    assert [m["Idempotency-Key"] for m in server.mails] == [sent.id] * (2 if is_open else 1)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a self-signed certificate for 127.0.0.1 and its key."""
    folder = tmp_path_factory.mktemp("tls")
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=127.0.0.1"
        " -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem"
    )
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("is_trusted", [True, False])
async def test_the_smtp_password_is_sent_only_to_a_server_with_a_trusted_certificate(
    tmp_path: Path, certificate: Path, is_trusted: bool
) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    trust = ssl.create_default_context(cafile=str(certificate / "cert.pem") if is_trusted else None)
    server = MailServer(tls=tls)
    channel = Smtp(
        host="127.0.0.1",
        port=server.port,
        sender="agents@example.org",
        recipients=("a@example.org",),
        user="agents",
        password="swordfish-of-the-agents",
        tls=trust,
    )
    url = f"sqlite:///{tmp_path / 'agiraph.db'}"
    async with server.open(), open_world(tmp_path, url, post=channel) as world:
        message = await send_to_person(world, await idle_team(world))
        if is_trusted:
            await wait_for_status(world, message, "sent")
        else:
            assert "certificate verify failed" in (
                (await wait_for_tries(world, message, 1)).error or ""
            )
    assert (len(server.logins), len(server.mails)) == ((1, 1) if is_trusted else (0, 0))


async def test_control_characters_in_a_message_do_not_reach_the_terminal(tmp_path: Path) -> None:
    lines: list[str] = []
    url = f"sqlite:///{tmp_path / 'agiraph.db'}"
    async with open_world(tmp_path, url, here=Terminal(write=lines.append)) as world:
        message = await send_to_person(
            world, await idle_team(world), "\x1b[2J\u202eevil\nline " + "x" * 500
        )
        await wait_for_status(world, message, "sent")
    [line] = lines
    assert "\x1b" not in line
    assert "\u202e" not in line
    assert "\n" not in line
    assert len(line) < 300
