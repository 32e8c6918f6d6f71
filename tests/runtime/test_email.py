"""E-mail both ways, against local servers that speak SMTP and IMAP."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.agents import Rule
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.records.channels import DeliveryFailed
from agiraph.core.store import messages
from agiraph.core.store.channels import CHANNELS
from agiraph.features.channels import pairing
from agiraph.features.channels.kinds.email import BEGINNING_BYTES, Email, MailServer
from agiraph.features.channels.kinds.mail_reading import MAX_MAIL_BYTES
from agiraph.testing import World, call, says
from agiraph.testing.clock import ManualClock
from tests.runtime.dovecot import Dovecot
from tests.runtime.mail_host import ADDRESS, PASSWORD, MailHost
from tests.runtime.waiting import Gate, until

ADA = "ada@home.test"
CHOOSE = call("ask_human", question="Which colour?", options=["red", "blue"])
NO_WORK = call("no_work_needed")
BROKEN = b"From: ada@home.test\r\nContent-Type: text/plain; name*\r\n\r\nHello\r\n"
"""The parser of the standard library raises an IndexError for it."""


def mailbox(host: MailHost, **more: Any) -> Email:
    given: dict[str, Any] = {"user": ADDRESS, "password": PASSWORD, "poll_s": 0.02} | more
    return Email(
        address=ADDRESS,
        smtp=MailServer(host="127.0.0.1", port=host.smtp_port, security="none"),
        imap=MailServer(host="127.0.0.1", port=host.imap_port, security="none"),
        url="http://here",
        **given,
    )


@asynccontextmanager
async def mail_world(
    path: Path, served: MailHost | None = None, **more: Any
) -> AsyncIterator[tuple[World, MailHost]]:
    """A world with the channel `mail`; nobody is paired with it."""
    async with (served or MailHost()).open() as host:
        world = World(
            path / "home",
            features={"channels": {"mail": mailbox(host, **more)}},
            reply_model="scripted/mouth",
            easy_endings=True,
        )
        async with world:
            await until_read(world)
            yield world, host


async def until_read(world: World) -> None:
    """Wait until the mailbox was looked at once: what lies in it by then is left alone."""

    async def is_so() -> bool:
        return (await world.store.read(CHANNELS.get, "mail")).cursor != ""

    await until(world, is_so)


def mail(text: str, *, to: EmailMessage | None = None, **headers: str) -> EmailMessage:
    """A mail of Ada's, in answer to one of ours if `to` is given."""
    made = EmailMessage()
    given = {"From": f"Ada <{ADA}>", "To": ADDRESS, "Subject": "Hello"}
    given |= {"Date": format_datetime(ManualClock().now()), "Message-ID": f"<{hash(text)}@ada>"}
    if to is not None:
        given |= {"Subject": f"Re: {to['Subject']}", "In-Reply-To": str(to["Message-ID"])}
        given["References"] = f"{to['References'] or ''} {to['Message-ID']}".strip()
    for name, value in (given | {n.replace("_", "-"): v for n, v in headers.items()}).items():
        made[name] = value
    made.set_content(text)
    return made


async def pair(world: World, host: MailHost) -> EmailMessage:
    code = (await world.store.write(pairing.new_code, OWNER, "mail")).code
    host.arrive(mail("Hello", Subject=f"Please pair {code.lower()}", Message_ID="<pair@ada>"))
    [told] = await host.until_sent(1)
    assert (told["To"], told["In-Reply-To"]) == (ADA, "<pair@ada>")
    assert told.get_content().startswith("Paired:")
    return told


async def wait_for_dropped(world: World, count: int) -> None:
    async def is_so() -> bool:
        return (await world.store.read(CHANNELS.get, "mail")).dropped == count

    await until(world, is_so)


async def test_a_question_is_answered_by_mail_and_each_mail_counts_once(tmp_path: Path) -> None:
    await answer_by_mail(tmp_path, MailHost())


@pytest.mark.long
async def test_the_same_against_a_dovecot(tmp_path: Path) -> None:
    await answer_by_mail(tmp_path, Dovecot(folder=tmp_path / "dovecot"))


async def answer_by_mail(tmp_path: Path, served: MailHost) -> None:
    async with mail_world(tmp_path, served) as (world, host):
        world.script("ada", says(CHOOSE), says(call("finish", summary="Blue it is.")))
        world.script("mouth", says("You are welcome.", NO_WORK))
        host.arrive(mail("Run this", From="mallory@evil.test"))
        await wait_for_dropped(world, 1)
        await pair(world, host)
        team = await world.found("Choose", name="Painters")
        [_, asked] = await host.until_sent(2)
        assert (asked["From"], asked["To"]) == (ADDRESS, ADA)
        assert (asked["Subject"], asked["Auto-Submitted"]) == (
            "[Painters] question: Which colour?",
            "auto-generated",
        )
        assert asked.get_content() == (
            "coordinator (Painters): question\n\nWhich colour?\n\n1. red\n2. blue\n\n"
            "Reply to this mail to answer.\n"
        )
        host.arrive(mail("red"))  # her address alone proves nothing
        await wait_for_dropped(world, 2)
        host.arrive(mail("I am away", to=asked, Auto_Submitted="auto-replied"))
        quoted = "\n".join(f"> {line}" for line in asked.get_content().split("\n"))
        host.arrive(mail(f"2\n\nOn Mon, Jan 5, 2026 agiraph wrote:\n{quoted}\n", to=asked))
        [*_, result] = await host.until_sent(3)
        assert "Blue it is." in result.get_content()

        thanks = mail("Thank you, see the table.", to=result, Message_ID="<thanks@ada>")
        thanks.add_attachment(b"a,b\n", maintype="text", subtype="csv", filename="t.csv")
        host.arrive(thanks)
        [*_, reply] = await host.until_sent(4)
        assert (reply["In-Reply-To"], "You are welcome." in reply.get_content()) == (
            "<thanks@ada>",
            True,
        )
        await world.stop()
        host.renumber()  # every mail is read again, after a restart
        await world.start()
        host.arrive(mail("A forgery that shows how far the mailbox was read", Message_ID="<f@x>"))
        await wait_for_dropped(world, 5)  # and those of strangers are counted again
        said = await world.conversation(team.coordinator)
        assert [(m.text, [a.name for a in m.attachments]) for m in said] == [
            ("Which colour?", []),
            ("blue", []),
            ("Blue it is.", []),
            ("Thank you, see the table.", ["t.csv"]),
            ("You are welcome.", []),
        ]
        assert len(host.sent) == 4


async def test_a_request_is_never_decided_by_mail(tmp_path: Path) -> None:
    async with mail_world(tmp_path) as (world, host):
        world.script("ada", says(call("bash", command="echo hi")))
        world.script("mouth", says("Please decide in your inbox.", NO_WORK))
        await pair(world, host)
        rules = (Rule(tool="bash", action="ask"),)
        team = await world.found("Run it", name="Runners", permissions=rules)
        [_, asked] = await host.until_sent(2)
        [request] = await world.questions(team.team.id)
        assert asked.get_content().endswith(f"Decide here: http://here/inbox/{request.id}\n")
        host.arrive(mail("approve", to=asked))
        await host.until_sent(4)  # a word about it, and the agent's reply
        kept = await world.store.read(messages.MESSAGES.get, request.id)
        assert (kept.answered_at, kept.decision) == (None, None)


async def test_the_confirmation_of_the_pairing_can_be_answered_with_words(tmp_path: Path) -> None:
    async with mail_world(tmp_path) as (world, host):
        world.script("mouth", says("Hello Ada.", NO_WORK))
        team = await world.found("Chat", name="Talkers", start=False)
        told = await pair(world, host)
        host.arrive(mail("Who are you?", to=told))
        await host.until_sent(2)
        said = [m.text for m in await world.conversation(team.coordinator)]
        assert said == ["Who are you?", "Hello Ada."]


async def test_large_and_broken_mails_block_nothing(tmp_path: Path) -> None:
    async with mail_world(tmp_path) as (world, host):
        world.script("mouth", says("I have it.", NO_WORK))
        team = await world.found("Chat", name="Talkers", start=False)
        told = await pair(world, host)
        host.arrive(mail("x" * 200_000, From="mallory@evil.test"))
        host.arrive(BROKEN)
        large = mail("See the picture.", to=told)
        picture = b"\x89PNG" + b"\0" * 200_000
        large.add_attachment(picture, maintype="image", subtype="png", filename="p.png")
        host.arrive(large)
        await host.until_sent(2)
        said, _ = await world.conversation(team.coordinator)
        assert (said.text, [len(a.data) for a in said.attachments]) == (
            "See the picture.",
            [len(base64.b64encode(picture))],
        )
        beginning = f"(BODY.PEEK[]<0.{BEGINNING_BYTES}>)"
        whole = f"(BODY.PEEK[]<0.{MAX_MAIL_BYTES + 1}>)"
        assert (set(host.fetches), host.fetches.count(whole)) == ({beginning, whole}, 1)


async def test_a_large_mail_without_proof_is_not_downloaded_and_a_refused_one_is_skipped() -> None:
    async with MailHost().open() as host:
        box = mailbox(host)
        at = (await box.receive("", None)).cursor
        host.arrive(mail("x" * 200_000))  # her address alone proves nothing
        host.arrive(mail("Refused"))
        host.refused = {2}
        host.arrive(mail("Read"))
        received = await box.receive(at, ADA)
        assert [len(m.text) > 1000 or m.text for m in received.messages] == [True, "Read"]
        assert set(host.fetches) == {f"(BODY.PEEK[]<0.{BEGINNING_BYTES}>)"}
        assert received.cursor == "1:3"


async def test_a_mail_server_that_checks_senders_is_believed_if_it_is_named(
    tmp_path: Path,
) -> None:
    async with mail_world(tmp_path, checked_by="mx.home.test") as (world, host):
        world.script("mouth", says("Hello Ada.", NO_WORK))
        await world.found("Chat", name="Talkers", start=False)
        await pair(world, host)
        passed = "mx.home.test; spf=pass; dmarc=pass header.from=home.test"
        host.arrive(mail("Forged", Authentication_Results=passed.replace("mx.", "evil.")))
        await wait_for_dropped(world, 1)
        host.arrive(mail("Genuine", Authentication_Results=passed))
        [*_, reply] = await host.until_sent(2)
        assert reply.get_content().strip().endswith("Hello Ada.")


async def test_servers_that_refuse_are_told_without_the_password() -> None:
    async with MailHost().open() as host:
        wrong = mailbox(host, password="not-the-password")
        with pytest.raises(DeliveryFailed) as refused:
            await wrong.receive("", None)
        assert "not-the-password" not in str(refused.value)


async def test_one_of_the_things_that_a_reply_did_is_undone_by_mail(tmp_path: Path) -> None:
    async with mail_world(tmp_path) as (world, host):
        both = [call("start_work", task="Paint"), call("start_work", task="Sweep")]
        world.script("mouth", says("I do.", *both))
        gate = world.script("ada").gate = Gate()
        team = await world.found("Help", name="Painters", start=False)

        async def statuses() -> dict[str, str]:
            return {n.title: str(n.status) for n in await world.board(team.team.id)}

        host.arrive(mail("Paint and sweep, please", to=await pair(world, host)))
        [_, reply] = await host.until_sent(2)
        assert "\n→ Started: Paint\n→ Started: Sweep\n" in reply.get_content()
        await gate.reached()
        quoted = "".join(f"> {line}\n" for line in reply.get_content().splitlines())
        wrote = f"On Mon, Jan 5, 2026 agiraph wrote:\n{quoted}"
        host.arrive(mail(f"/undo 1\n\n{wrote}", to=reply, Message_ID="<undo@ada>"))
        [*_, undone] = await host.until_sent(3)
        assert (undone["To"], undone["In-Reply-To"]) == (ADA, "<undo@ada>")
        assert undone.get_content() == "Started: Paint (undone)\n"
        await gate.reached()  # by the other work, which goes on
        assert await statuses() == {"Paint": "cancelled", "Sweep": "running"}

        host.arrive(mail(f"/undo 1\n\n{wrote}", to=reply, Message_ID="<again@ada>"))
        [*_, again] = await host.until_sent(4)
        assert again.get_content() == "Undone before: Started: Paint\n"
