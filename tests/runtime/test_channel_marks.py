"""Channels: a message that holds untrusted text says so."""

from datetime import UTC, datetime

import orjson

from agiraph.core.domain.ids import MessageId, TeamId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import CLEAN, Label, of_page
from agiraph.core.domain.records.deliveries import Delivery, OutgoingMessage
from agiraph.features.channels.kinds.smtp import Smtp
from agiraph.features.channels.kinds.webhook import as_json

NOW = datetime(2026, 1, 5, tzinfo=UTC)


def outgoing(label: Label) -> OutgoingMessage:
    message = Message(
        id=MessageId("msg_1"),
        team_id=TeamId("team_1"),
        seq=1,
        sender="agent_1",
        recipient=OWNER,
        text="Tea is cheap: https://example.org/tea",
        created_at=NOW,
        label=label,
    )
    delivery = Delivery(
        id="delivery_1",
        team_id=message.team_id,
        message_id=message.id,
        channel="post",
        created_at=NOW,
        due_at=NOW,
    )
    return OutgoingMessage(
        delivery=delivery, message=message, team="Tea", sender="ada", claimed_at=NOW
    )


def mail(label: Label) -> str:
    post = Smtp(host="mail.example.org", sender="a@example.org", recipients=("b@example.org",))
    return str(post.email(outgoing(label)).get_content()).strip()


def test_an_e_mail_names_the_sources_of_its_words() -> None:
    said = "ada says:\n\nTea is cheap: https://example.org/tea"
    assert mail(CLEAN) == said
    mark = (
        "(Holds words from a page of example.org. Addresses with [.] are no links, because you have"
        " not allowed their hosts: check one before you open it.)"
    )
    marked = mail(of_page("https://example.org/tea"))
    assert "".join(marked.split()) == "".join(f"{said}{mark}".split())


def test_a_webhook_gets_the_sources_of_the_words() -> None:
    assert "sources" not in orjson.loads(as_json(outgoing(CLEAN)))
    marked = orjson.loads(as_json(outgoing(of_page("https://example.org/tea"))))
    assert marked["sources"] == ["page:example.org"]
