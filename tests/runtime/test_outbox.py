"""The outbox: each message reaches each channel, however often that breaks, and with one key."""

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
from agiraph.domain.deliveries import Delivery, OutgoingMessage
from agiraph.domain.errors import Refused
from agiraph.domain.ids import MessageId
from agiraph.domain.messages import Message, MessageKind
from agiraph.domain.persons import OWNER
from agiraph.domain.work import NodeStatus
from agiraph.runtime.channels import Channel, DeliveryFailed
from agiraph.runtime.channels.smtp import Smtp
from agiraph.runtime.channels.terminal import Terminal
from agiraph.runtime.channels.webhook import Webhook
from agiraph.runtime.outbox import Outbox
from agiraph.services.lifecycle.teams import NewTeam
from agiraph.services.mail import bus, deliveries, inbox, quiet_hours
from agiraph.store import deliveries as rows
from agiraph.testing import World, call, says
from tests.runtime.receivers import Mail, Web
from tests.runtime.waiting import until

SECRET = "a-secret-of-the-hook"


@asynccontextmanager
async def opened(path: Path, database_url: str, **channels: Channel) -> AsyncIterator[World]:
    async with World(path / "home", database_url=database_url, channels=channels) as world:
        world.script("ada")
        yield world


async def founded_in(world: World) -> NewTeam:
    return await world.found("Wait", start=False)


async def tell(
    world: World, founded: NewTeam, text: str = "Look at this.", kind: MessageKind = "briefing"
) -> Message:
    return await world.store.write(
        bus.send,
        team_id=founded.team.id,
        sender=founded.coordinator.id,
        recipient=OWNER,
        kind=kind,
        title=text.partition(".")[0],
        text=text,
    )


async def fate(world: World, message: Message) -> list[Delivery]:
    return await world.store.read(rows.of_message, message.id)


async def becomes(world: World, message: Message, status: str) -> Delivery:
    """The message's only delivery, as soon as it is that far."""

    async def is_so() -> bool:
        return [d.status for d in await fate(world, message)] == [status]

    await until(world, is_so)
    return (await fate(world, message))[0]


async def tried(world: World, message: Message, times: int) -> Delivery:
    """The message's only delivery, as soon as this many tries have failed."""

    async def is_so() -> bool:
        [found] = await fate(world, message)
        return found.status == "queued" and found.tries == times

    await until(world, is_so)
    return (await fate(world, message))[0]


async def test_a_message_is_posted_with_its_key_and_a_signature(
    tmp_path: Path, database_url: str
) -> None:
    web = Web()
    async with web.open():
        hook = Webhook(url=web.url, secret=SECRET)
        async with opened(tmp_path, database_url, hook=hook) as world:
            founded = await founded_in(world)
            message = await tell(world, founded, "Rates rose. By 1 %.")
            delivery = await becomes(world, message, "sent")
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


async def test_every_kind_of_the_inbox_goes_out_and_nothing_else(
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
    async with opened(tmp_path, database_url, **channels) as world:
        founded = await founded_in(world)
        for kind in kinds:
            await tell(world, founded, f"About {kind}", kind)
        await world.settle()
    assert sorted(line.partition("]")[0][1:] for line in lines) == sorted(kinds[:6])
    assert [line.partition(" (")[0] for line in some] == [
        "[question] Wait, coordinator: About question"
    ]


@pytest.mark.parametrize(
    ("manners", "error"),
    [
        (["fail", "fail", "take"], "answered 500: sigh"),
        (["drop", "drop", "take"], "the connection was closed before the end of the response"),
        (["stall", "stall", "take"], "no answer within 0.1 s"),
    ],
)
async def test_a_hook_that_fails_twice_gets_it_the_third_time_with_the_same_key(
    tmp_path: Path, database_url: str, manners: list, error: str
) -> None:
    web = Web(manners=list(manners))
    async with web.open():
        hook = Webhook(url=web.url, timeout_s=0.1 if "stall" in manners else 20)
        async with opened(tmp_path, database_url, hook=hook) as world:
            founded = await founded_in(world)
            message = await tell(world, founded)
            first = await tried(world, message, 1)
            assert (first.error, first.due_at - world.clock.now()) == (error, timedelta(seconds=10))
            world.clock.advance(seconds=10)
            second = await tried(world, message, 2)
            assert second.due_at - world.clock.now() == timedelta(seconds=30)
            world.clock.advance(seconds=30)
            sent = await becomes(world, message, "sent")
    assert (sent.tries, sent.error, sent.sent_at) == (3, None, world.clock.now())
    assert [post.key for post in web.posts] == [sent.id] * 3
    assert len({post.raw for post in web.posts}) == 1


async def test_a_hook_that_is_down_takes_nothing_from_the_outcome(
    tmp_path: Path, database_url: str
) -> None:
    web = Web()
    async with opened(tmp_path, database_url, hook=Webhook(url=web.url)) as world:
        world.script("ada", says(call("finish", summary="Done and found.")))
        founded = await world.found("Find it")
        await world.settle()
        assert founded.node is not None
        node = await world.node(founded.node.id)
        assert (node.status, node.result) == (NodeStatus.COMPLETED, "Done and found.")
        [result] = await world.inbox()
        assert result.text == "Done and found."
        await tried(world, result, 1)
        async with web.open():
            world.clock.advance(minutes=1)
            await becomes(world, result, "sent")
    assert [post.body["text"] for post in web.posts] == ["Done and found."]


async def test_what_a_stopped_runtime_was_sending_is_sent_by_the_next_with_the_same_key(
    tmp_path: Path,
) -> None:
    web = Web(manners=["stall", "take"])
    async with web.open():
        url = f"sqlite:///{tmp_path / 'agiraph.db'}"
        async with opened(tmp_path, url, hook=Webhook(url=web.url)) as world:
            message = await tell(world, await founded_in(world))
            await web.came.acquire()
            await world.restart()
            sent = await becomes(world, message, "sent")
    assert [post.key for post in web.posts] == [sent.id] * 2
    assert sent.tries == 2


async def test_a_hook_that_asks_for_time_is_given_it(tmp_path: Path, database_url: str) -> None:
    web = Web(manners=["later", "take"])
    async with web.open(), opened(tmp_path, database_url, hook=Webhook(url=web.url)) as world:
        message = await tell(world, await founded_in(world))
        waiting = await tried(world, message, 1)
        assert waiting.due_at - world.clock.now() == timedelta(minutes=30)


async def test_what_no_try_delivers_is_given_up_visibly_and_can_be_sent_again(
    tmp_path: Path, database_url: str
) -> None:
    web = Web(manners=["fail"])
    async with web.open(), opened(tmp_path, database_url, hook=Webhook(url=web.url)) as world:
        founded = await founded_in(world)
        message = await tell(world, founded)
        for number in range(1, deliveries.MAX_TRIES):
            await tried(world, message, number)
            world.clock.advance(hours=1)
        failed = await becomes(world, message, "failed")
        assert len(web.posts) == failed.tries == deliveries.MAX_TRIES
        assert await world.store.read(rows.failed) == [failed]
        item = await world.store.read(inbox.item, OWNER, message.id)
        assert (item.state, item.deliveries) == ("unread", (failed,))
        [event] = [e for e in await world.events(founded.team.id) if e.type == "delivery.failed"]
        assert event.data["error"] == "answered 500: sigh"

        web.manners = ["take"]
        await world.store.write(deliveries.redeliver, failed.id)
        sent = await becomes(world, message, "sent")
    assert {post.key for post in web.posts} == {sent.id}


async def test_what_is_on_its_way_is_not_sent_again_by_hand(
    tmp_path: Path, database_url: str
) -> None:
    async with opened(tmp_path, database_url, hook=Webhook(url=Web().url)) as world:
        message = await tell(world, await founded_in(world))
        waiting = await tried(world, message, 1)
        with pytest.raises(Refused, match="is queued and goes out by itself"):
            await world.store.write(deliveries.redeliver, waiting.id)
        with pytest.raises(Refused, match="There is no delivery 'delivery_0'"):
            await world.store.write(deliveries.redeliver, "delivery_0")


async def test_one_channel_does_not_wait_for_another(tmp_path: Path, database_url: str) -> None:
    web, lines = Web(manners=["stall"]), asyncio.Queue[str]()
    async with web.open():
        channels: Mapping[str, Channel] = {
            "hook": Webhook(url=web.url),
            "here": Terminal(write=lines.put_nowait),
        }
        async with opened(tmp_path, database_url, **channels) as world:
            founded = await founded_in(world)
            for number in range(10):
                await tell(world, founded, f"Number {number}")
            said = [await lines.get() for _ in range(10)]
    assert ["Number" in line for line in said] == [True] * 10


async def test_briefings_wait_for_the_end_of_quiet_hours_and_questions_do_not(
    tmp_path: Path, database_url: str
) -> None:
    lines: list[str] = []
    async with opened(tmp_path, database_url, here=Terminal(write=lines.append)) as world:
        founded = await founded_in(world)
        await world.store.write(
            quiet_hours.set_hours, founded.team.id, "22:00-07:00", zone="Europe/Berlin"
        )
        world.clock.advance(hours=13)  # 22:00 UTC is 23:00 in Berlin
        briefing = await tell(world, founded, "Rates rose")
        question = await tell(world, founded, "May I?", "question")
        assert [m.id for m in await world.inbox()] == [briefing.id, question.id]
        await becomes(world, question, "sent")
        [waiting] = await fate(world, briefing)
        assert waiting.status == "queued"
        assert waiting.due_at == world.clock.now() + timedelta(hours=8)
        world.clock.advance(hours=8)
        await becomes(world, briefing, "sent")
    assert [line.partition("]")[0] for line in lines] == ["[question", "[briefing"]


async def test_a_channel_that_is_new_gets_what_is_said_from_now_on(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'agiraph.db'}"
    lines: list[str] = []
    async with opened(tmp_path, url) as world:
        old = await tell(world, await founded_in(world), "Long ago")
        assert await fate(world, old) == []
    async with opened(tmp_path, url, here=Terminal(write=lines.append)) as world:
        await world.settle()
    assert lines == []


async def test_what_was_for_a_channel_that_is_gone_is_given_up(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'agiraph.db'}"
    async with opened(tmp_path, url, hook=Webhook(url=Web().url)) as world:
        message = await tell(world, await founded_in(world))
        await tried(world, message, 1)
    async with opened(tmp_path, url) as world:
        [gone] = await fate(world, message)
        assert (gone.status, gone.error) == ("failed", "There is no such channel any more.")
        with pytest.raises(Refused, match="There is no channel 'hook' any more"):
            await world.store.write(deliveries.redeliver, gone.id)


class Choking:
    """A channel with a bug."""

    kinds = frozenset[MessageKind]({"briefing", "question"})
    description = "choking"

    def __init__(self) -> None:
        self.taken: list[MessageId] = []

    async def send(self, outgoing: OutgoingMessage) -> None:
        if outgoing.message.kind == "question":
            raise KeyError("a bug")
        self.taken.append(outgoing.message.id)


async def test_a_channel_that_breaks_over_one_message_takes_the_others(
    tmp_path: Path, database_url: str
) -> None:
    channel = Choking()
    async with opened(tmp_path, database_url, odd=channel) as world:
        founded = await founded_in(world)
        bad = await tell(world, founded, "May I?", "question")
        good = await tell(world, founded)
        await becomes(world, good, "sent")
        assert (await tried(world, bad, 1)).error == "KeyError('a bug')"
    assert channel.taken == [good.id]


class Counting:
    """Takes everything, and counts; hands over only when told."""

    kinds = frozenset[MessageKind]({"briefing"})
    description = "counting"

    def __init__(self) -> None:
        self.keys: list[str] = []

    async def send(self, outgoing: OutgoingMessage) -> None:
        self.keys.append(outgoing.key)
        await asyncio.sleep(0)
        if len(self.keys) % 5 == 0:
            raise DeliveryFailed("every fifth time")


async def test_of_many_processes_one_sends_each_message(tmp_path: Path, postgres: object) -> None:
    url = postgres.fresh()  # type: ignore[attr-defined]
    channel = Counting()
    async with opened(tmp_path, url, count=channel) as world:
        founded = await founded_in(world)
        stores = [await open_store(url, world.clock) for _ in range(3)]
        others = [Outbox(s, world.clock, {"count": channel}, is_sole_process=False) for s in stores]
        for outbox in others:
            await outbox.start()
        said = [await tell(world, founded, f"Number {n}.") for n in range(20)]

        async def all_tried() -> bool:
            found = [(await fate(world, message))[0] for message in said]
            return all(d.status == "sent" or d.tries >= 1 for d in found) and not any(
                d.status == "sending" for d in found
            )

        while not await all_tried():
            await asyncio.gather(*(outbox.idle() for outbox in (*others, world.runtime.outbox)))
        found = [(await fate(world, message))[0] for message in said]
        for outbox, store in zip(others, stores, strict=True):
            await outbox.stop()
            await store.close()
    assert sorted(channel.keys) == sorted(d.id for d in found for _ in range(d.tries))
    assert {d.tries for d in found} == {1}


async def test_what_a_dead_process_was_sending_is_taken_over_after_a_while(
    tmp_path: Path, postgres: object
) -> None:
    url = postgres.fresh()  # type: ignore[attr-defined]
    async with opened(tmp_path, url) as world:
        founded = await founded_in(world)
        kinds = frozenset[MessageKind]({"briefing"})
        await world.store.write(
            deliveries.open_channels, {"count": kinds}, person_id=OWNER, is_sole_process=False
        )
        message = await tell(world, founded)
        [parcel] = await world.store.write(deliveries.claim, "count", owner="dead", limit=5)
    channel = Counting()
    async with opened(tmp_path, url, count=channel) as world:
        await world.settle()
        assert channel.keys == []  # whoever has it may only be slow
        world.clock.advance(seconds=deliveries.CLAIM_TIMEOUT.total_seconds())
        sent = await becomes(world, message, "sent")
        assert (channel.keys, sent.tries) == ([parcel.key], 2)
        # The one that seemed dead comes back: what it says of its try no longer counts.
        await world.store.write(deliveries.retry_later, parcel.delivery, error="late")
        assert await fate(world, message) == [sent]


# ---- by e-mail -----------------------------------------------------------------------------


def post_office(server: Mail, **more: object) -> Smtp:
    return Smtp(
        host="127.0.0.1",
        port=server.port,
        sender="agents@example.org",
        recipients=("a@example.org", "b@example.org"),
        security="none",
        **more,  # type: ignore[arg-type]
    )


async def test_a_message_goes_out_as_an_e_mail(tmp_path: Path, database_url: str) -> None:
    server = Mail()
    async with server.open(), opened(tmp_path, database_url, post=post_office(server)) as world:
        founded = await founded_in(world)
        text = "Ärger\r\nBcc: c@example.org. Über alles.\n.\nEnde"
        message = await tell(world, founded, text, "question")
        await becomes(world, message, "sent")
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


@pytest.mark.parametrize("manners", [["fail", "fail", "take"], ["drop", "drop", "take"]])
async def test_a_mail_server_that_fails_twice_gets_the_same_mail_the_third_time(
    tmp_path: Path, database_url: str, manners: list
) -> None:
    server = Mail(manners=list(manners))
    async with server.open(), opened(tmp_path, database_url, post=post_office(server)) as world:
        message = await tell(world, await founded_in(world))
        for number in (1, 2):
            await tried(world, message, number)
            world.clock.advance(minutes=1)
        sent = await becomes(world, message, "sent")
    assert sent.tries == 3
    assert [m["Idempotency-Key"] for m in server.mails] == [sent.id] * 3
    [identity] = {m["Message-ID"] for m in server.mails}
    assert identity.endswith("@agiraph>")


@pytest.mark.parametrize("is_open", [False, True])
async def test_a_mail_server_that_is_down_or_silent_gets_it_later(
    tmp_path: Path, database_url: str, is_open: bool
) -> None:
    server = Mail(manners=["stall", "take"] if is_open else ["take"])
    channel = post_office(server, timeout_s=0.2)
    async with opened(tmp_path, database_url, post=channel) as world:
        founded = await founded_in(world)
        if is_open:
            async with server.open():
                message = await tell(world, founded)
                await tried(world, message, 1)
        else:
            message = await tell(world, founded)
            await tried(world, message, 1)
        async with server.open():
            world.clock.advance(minutes=1)
            sent = await becomes(world, message, "sent")
    assert [m["Idempotency-Key"] for m in server.mails] == [sent.id] * (2 if is_open else 1)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that only who has it can trust, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=127.0.0.1"
        " -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem"
    )
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("is_trusted", [True, False])
async def test_a_password_is_only_told_to_a_server_that_proves_who_it_is(
    tmp_path: Path, certificate: Path, is_trusted: bool
) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    trust = ssl.create_default_context(cafile=str(certificate / "cert.pem") if is_trusted else None)
    server = Mail(tls=tls)
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
    async with server.open(), opened(tmp_path, url, post=channel) as world:
        message = await tell(world, await founded_in(world))
        if is_trusted:
            await becomes(world, message, "sent")
        else:
            assert "certificate verify failed" in ((await tried(world, message, 1)).error or "")
    assert (len(server.logins), len(server.mails)) == ((1, 1) if is_trusted else (0, 0))


async def test_a_terminal_is_not_steered_by_what_is_said(tmp_path: Path) -> None:
    lines: list[str] = []
    url = f"sqlite:///{tmp_path / 'agiraph.db'}"
    async with opened(tmp_path, url, here=Terminal(write=lines.append)) as world:
        message = await tell(world, await founded_in(world), "\x1b[2J\u202eevil\nline " + "x" * 500)
        await becomes(world, message, "sent")
    [line] = lines
    assert "\x1b" not in line
    assert "\u202e" not in line
    assert "\n" not in line
    assert len(line) < 300
