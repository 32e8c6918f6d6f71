"""Pairing: a code works once and for a short time, and only one process reads a channel."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.messages import INBOX, Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.records.channels import ChannelState, Incoming, Receipt
from agiraph.core.services.mail import bus, deliveries
from agiraph.core.store import channels
from agiraph.core.store.channels import CHANNELS
from agiraph.core.store.deliveries import DELIVERIES, of_message
from agiraph.core.store.tx import Tx
from agiraph.features.channels import inlet, pairing
from agiraph.features.channels.inlet import Inlet
from agiraph.testing import World, call, says


@pytest.fixture
async def phone(world: World) -> World:
    """A world with a two-way channel that nobody serves."""
    wanted = {"phone": INBOX, "log": INBOX}
    two_way = frozenset({"phone"})
    await world.store.write(channels.add, wanted, person_id=OWNER, two_way=two_way)
    return world


async def take(world: World, text: str, *, key: str = "", sender: str = "7") -> str | None:
    """Take in a message; return what is said about it, None if it is dropped."""
    message = Incoming(key=key or text, sender=sender, text=text, sent_at=world.clock.now())
    taken = await world.store.write(inlet.take, "phone", message)
    return None if taken is None else taken.notice


async def state(world: World) -> ChannelState:
    return await world.store.read(CHANNELS.get, "phone")


async def test_a_code_pairs_once_whatever_its_spelling(phone: World) -> None:
    code = (await phone.store.write(pairing.new_code, OWNER, "phone")).code
    assert code not in str(await state(phone))
    told = await take(phone, f"pair me: {code.replace('-', '').lower()}!")
    assert told is not None
    assert told.startswith("Paired:")
    assert (await state(phone)).address == "7"
    assert await take(phone, f"/start {code}", sender="666") is None
    assert ((await state(phone)).address, (await state(phone)).dropped) == ("7", 1)


async def test_a_code_dies_with_time_and_with_wrong_guesses(phone: World) -> None:
    code = (await phone.store.write(pairing.new_code, OWNER, "phone")).code
    phone.clock.advance(seconds=pairing.CODE_LIFE.total_seconds())
    assert await take(phone, f"/start {code}") is None
    code = (await phone.store.write(pairing.new_code, OWNER, "phone")).code
    for number in range(pairing.MAX_TRIES):
        assert await take(phone, "/start AAAAA-AAAAA", key=str(number), sender="666") is None
    assert await take(phone, f"/start {code} now") is None
    assert ((await state(phone)).address, (await state(phone)).dropped) == (None, 12)


async def test_an_unpaired_channel_hears_nobody(phone: World) -> None:
    code = (await phone.store.write(pairing.new_code, OWNER, "phone")).code
    await take(phone, f"/start {code}")
    assert await take(phone, "/help") is not None
    await phone.store.write(pairing.unpair, OWNER, "phone")
    assert await take(phone, "/teams") is None
    assert (await state(phone)).address is None


async def test_a_message_is_taken_in_once(phone: World) -> None:
    code = (await phone.store.write(pairing.new_code, OWNER, "phone")).code
    await take(phone, f"/start {code}")
    assert await take(phone, "/inbox", key="1") == "Questions and requests that wait for you: 0."
    assert await take(phone, "/inbox", key="1") is None


async def test_channels_that_only_send_cannot_be_paired(phone: World) -> None:
    with pytest.raises(Refused, match="'log' only sends"):
        await phone.store.write(pairing.new_code, OWNER, "log")
    with pytest.raises(NotFound, match="Channels that can be paired: phone"):
        await phone.store.write(pairing.new_code, OWNER, "fax")


async def test_one_process_reads_a_channel_until_it_has_been_silent_for_long(
    phone: World,
) -> None:
    async def claims(reader: str) -> bool:
        found = await phone.store.write(inlet.claim_reading, "phone", reader=reader)
        return found is not None

    assert await claims("a")
    assert not await claims("b")
    phone.clock.advance(seconds=inlet.READING_FOR.total_seconds() - 1)
    assert await claims("a")
    phone.clock.advance(seconds=(inlet.READING_FOR - timedelta(seconds=1)).total_seconds())
    assert not await claims("b")
    phone.clock.advance(seconds=2)
    assert await claims("b")
    assert not await claims("a")


async def test_a_restored_backup_pairs_nobody(phone: World) -> None:
    code = (await phone.store.write(pairing.new_code, OWNER, "phone")).code
    await take(phone, f"/start {code}")
    await phone.store.write(channels.forget_pairings)
    restored = await state(phone)
    assert (restored.address, restored.code_digest, restored.is_two_way) == (None, None, True)


async def pair(world: World, sender: str) -> None:
    code = (await world.store.write(pairing.new_code, OWNER, "phone")).code
    assert await take(world, f"/start {code}", sender=sender) is not None


@pytest.mark.parametrize("is_unpaired", [True, False])
async def test_the_receipts_of_an_earlier_pairing_prove_nothing(
    phone: World, is_unpaired: bool
) -> None:
    await pair(phone, "7")
    team = await phone.found("Chat", start=False)

    def send(tx: Tx) -> str:
        bus.send(
            tx,
            Draft(
                team_id=team.team.id,
                sender=team.coordinator.id,
                recipient=OWNER,
                text="Done.",
                kind="result",
            ),
        )
        [outgoing] = deliveries.claim(tx, "phone", owner="me", limit=1)
        deliveries.mark_sent(tx, outgoing.delivery, Receipt(id="r1", is_open=True, may_decide=True))
        return outgoing.delivery.id

    sent = await phone.store.write(send)
    if is_unpaired:
        await phone.store.write(pairing.unpair, OWNER, "phone")
    await pair(phone, "8")
    [revoked] = await phone.store.read(deliveries.to_edit, "phone", limit=9)
    assert (revoked.address, revoked.delivery.receipt, revoked.is_unpaired) == ("7", "r1", True)
    for _ in range(deliveries.MAX_TRIES):
        assert not (await phone.store.read(DELIVERIES.get, sent)).may_decide
        await phone.store.write(deliveries.edit_later, revoked)
    kept = await phone.store.read(DELIVERIES.get, sent)
    assert (kept.receipt, kept.is_open, kept.may_decide) == (None, False, False)
    forged = Incoming(
        key="f",
        sender="8",
        text="/help",
        sent_at=phone.clock.now(),
        replies_to=("r1",),
        is_proven=False,
    )
    assert await phone.store.write(inlet.take, "phone", forged) is None

    # The team may be deleted while the channel edits its message.
    gone = replace(revoked, delivery=replace(revoked.delivery, id="delivery_gone"))
    await phone.store.write(deliveries.mark_edited, gone)
    await phone.store.write(deliveries.edit_later, gone)


async def test_a_reply_to_messages_of_two_channels_goes_to_both(phone: World) -> None:
    await phone.store.write(
        channels.add, {"desk": INBOX}, person_id=OWNER, two_way=frozenset({"desk"})
    )
    team = await phone.found("Chat", start=False)
    phone.script("ada", says("Hello twice.", call("no_work_needed")))

    def hear(tx: Tx) -> None:
        for name in ("desk", "phone"):
            CHANNELS.update(tx, name, address="7")
            inlet.take(
                tx, name, Incoming(key="k", sender="7", text=f"Hi from {name}", sent_at=tx.now)
            )

    await phone.store.write(hear)
    await phone.settle()
    *_, reply = await phone.conversation(team.coordinator)
    sent = await phone.store.read(of_message, reply.id)
    assert (reply.text, [each.channel for each in sent]) == ("Hello twice.", ["desk", "phone"])


class Silent:
    async def acknowledge(self, message: Incoming, notice: str) -> None:
        assert notice == "That did not work; see the log."


async def test_a_message_that_can_be_neither_taken_nor_refused_blocks_nothing(
    phone: World,
) -> None:
    inlet = Inlet(phone.store, phone.clock, {}, cast(Any, None))
    # No database takes half of a surrogate pair.
    message = Incoming(key="\ud800", sender="7", text="Hello", sent_at=phone.clock.now())
    assert await inlet._take("phone", cast(Any, Silent()), message) is not None
