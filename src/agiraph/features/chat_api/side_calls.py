"""Side calls: titles, tags and follow-ups that a chat client asks a model for by itself.

No person wrote them, so they create no thread, no work and no message. The model that writes
replies answers them, without tools, and the conversation that they are about pays.
"""

from collections.abc import Mapping
from typing import Any, cast

from agiraph.api.deps import Api
from agiraph.core.domain.agents import Agent
from agiraph.core.domain.chat import Role, Transcript, Turn
from agiraph.core.domain.errors import QuotaSpent
from agiraph.core.domain.ids import PersonId, ThreadId
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.store.tx import Tx
from agiraph.features.chat_api import client_turns
from agiraph.features.chat_api.errors import Unsupported
from agiraph.features.chat_api.requests import mapping, refuse_tools
from agiraph.models.base import Reply, Request

MAX_OUTPUT_TOKENS = 1_000
MAX_CHARACTERS = 60_000
"""Characters of a side call's prompt that are sent: it may hold a long history, and a title needs
little of it."""
TASKS = frozenset(
    {
        *("title_generation", "tags_generation", "follow_up_generation", "emoji_generation"),
        *("query_generation", "image_prompt_generation", "autocomplete_generation"),
        *("function_calling", "moa_response_generation", "document_suggestions_generation"),
    }
)
"""The names in `metadata.task` that stand for a side call; other programs may mean other things."""
HEADER = "x-agiraph-task"
"""A header with which a client marks its side calls; its value names what is asked for."""


def is_side_call(body: Mapping[str, Any], named: str = "") -> bool:
    """Whether a request is one that the client makes by itself: its header or its metadata name
    what it is for. What its messages say decides nothing."""
    task = mapping(body.get("metadata")).get("task")
    # Some versions write the name of the enumeration: TASKS.TITLE_GENERATION.
    is_known = isinstance(task, str) and task.lower().removeprefix("tasks.") in TASKS
    return is_known or bool(named.strip())


async def answer(api: Api, agent: Agent, person_id: PersonId, body: Mapping[str, Any]) -> Reply:
    """Ask the agent's reply model, and charge the call to the conversation."""
    refuse_tools(body)
    payer = await api.store.read(client_turns.payer, agent, person_id)
    if payer is None:
        raise Unsupported(
            f"{agent.name} has had no conversation yet that a title or the like could be about.",
            "messages",
        )
    if await api.store.read(client_turns.spent_limit, payer) is not None:
        raise QuotaSpent(f"The budget of {agent.name}'s work is spent; extend it first.")
    limit = api.usd_per_day
    if limit is not None and not await api.store.read(client_turns.has_money_today, limit):
        raise QuotaSpent("Today's limit for model calls is reached; see the inbox.")
    model = api.models.resolve(api.reply_model or agent.model, patient=False)
    async with api.side_calls:
        reply = await model.reply(_request(agent, body))

    def charge(tx: Tx) -> None:
        name = reply.model or model.name
        client_turns.charge(tx, agent, payer, model=name, usage=reply.usage)

    await api.store.write(charge)
    return reply


def _request(agent: Agent, body: Mapping[str, Any]) -> Request:
    said = _messages(body)
    system = "\n\n".join(text for role, text in said if role in ("system", "developer"))
    asked = "\n\n".join(text for role, text in said if role not in ("system", "developer"))
    turns = [_turn(1, "system", system[:MAX_CHARACTERS])] if system else []
    return Request(
        transcript=Transcript([*turns, _turn(2, "user", asked[-MAX_CHARACTERS:])]),
        max_output_tokens=MAX_OUTPUT_TOKENS,
        team=agent.team_id,
        schema=_schema(body),
    )


def _turn(seq: int, role: Role, text: str) -> Turn:
    now = SystemClock().now()
    return Turn(thread_id=ThreadId("t_side"), seq=seq, node_id=None, role=role, text=text, at=now)


def _schema(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the JSON schema that the client wants the answer in; None if it wants none."""
    found = mapping(mapping(body.get("response_format")).get("json_schema")).get("schema")
    return cast(dict[str, Any], found) if isinstance(found, dict) else None


def _messages(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return role and text of each message."""
    given = body.get("messages")
    found = map(mapping, cast(list[Any], given) if isinstance(given, list) else [])
    return [(str(m.get("role", "")), _text(m.get("content"))) for m in found if m]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = cast(list[Any], content) if isinstance(content, list) else []
    texts = [mapping(part).get("text") for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str))
