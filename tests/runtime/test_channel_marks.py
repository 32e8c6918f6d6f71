"""Channels: a message that holds untrusted text says so, and what is not confirmed of a result."""

from datetime import UTC, datetime
from typing import Any

import orjson

from agiraph.core.domain.ids import MessageId, NodeId, TeamId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import CLEAN, Label, of_page
from agiraph.core.domain.records.deliveries import Delivery, OutgoingMessage
from agiraph.core.domain.records.doubts import Doubt
from agiraph.features.channels.kinds import wording
from agiraph.features.channels.kinds.smtp import Smtp
from agiraph.features.channels.kinds.webhook import as_json

NOW = datetime(2026, 1, 5, tzinfo=UTC)


def outgoing(label: Label, **more: Any) -> OutgoingMessage:
    message = Message(
        id=MessageId("msg_1"),
        team_id=TeamId("team_1"),
        seq=1,
        sender="agent_1",
        recipient=OWNER,
        text="Tea is cheap: https://example.org/tea",
        created_at=NOW,
        label=label,
        **more,
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


def mail(label: Label, **more: Any) -> str:
    post = Smtp(host="mail.example.org", sender="a@example.org", recipients=("b@example.org",))
    return str(post.email(outgoing(label, **more)).get_content()).strip()


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


def test_what_is_not_confirmed_of_a_result_stands_below_it_without_ids() -> None:
    doubts = (
        Doubt(kind="task_failed", words="has failed", node_id=NodeId("node_1"), title="Buy"),
        Doubt(kind="file", words="no file 'tea.md' is delivered"),
    )
    points = "2 points not confirmed:\n  - 'Buy' has failed\n  - No file 'tea.md' is delivered"
    whole = f"Tea is cheap: https://example.org/tea\n\n{points}"
    sent = outgoing(CLEAN, doubts=doubts)
    assert mail(CLEAN, doubts=doubts) == f"ada says:\n\n{whole}"
    assert wording.shown(sent, url="", limit=4000).text.endswith(f"\n\n{whole}")
    posted = orjson.loads(as_json(sent))
    assert (posted["text"], posted["doubts"]) == (
        "Tea is cheap: https://example.org/tea",
        ["'Buy' has failed", "no file 'tea.md' is delivered"],
    )
