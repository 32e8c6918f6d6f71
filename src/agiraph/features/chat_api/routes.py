"""OpenAI routes: agents as models, for chat clients and SDKs that speak OpenAI's API.

The routes are outside `/api` and take the same tokens. They are not in agiraph's OpenAPI schema,
because OpenAI documents them.
"""

import hashlib
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any, cast

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from agiraph.api import problems
from agiraph.api.access_control import Caller
from agiraph.api.deps import Api, ApiDep, CallerDep
from agiraph.api.routing import Router
from agiraph.core.domain.agents import Agent
from agiraph.core.domain.errors import AgiraphError, ModelError, NotFound, QuotaSpent
from agiraph.core.domain.ids import new_id
from agiraph.core.domain.text.json_text import clean
from agiraph.features.chat_api import client_turns, errors, reply_stream, side_calls
from agiraph.features.chat_api.client_turns import ClientReply, ClientRequest
from agiraph.features.chat_api.errors import Unsupported
from agiraph.features.chat_api.reply_stream import KEEP_ALIVE, Chat, NoReplyYet
from agiraph.features.chat_api.requests import UserInput, read_chat
from agiraph.features.chat_api.rows import ClientTurn

router: Router = Router(prefix="")

CHAT_ID = "x-openwebui-chat-id"
_STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
_METHODS = ("GET", "POST", "DELETE")
_GONE = (
    "The Responses API is not offered: use Chat Completions at /v1/chat/completions, with the same "
    "token and models."
)
LATE = (
    "The reply is not there yet; it will be written all the same. Send the same request again to "
    "get it."
)


@router.get("/v1/models")
async def list_models(api: ApiDep) -> Response:
    """List the agents: `team` is its coordinator, `team/agent` any member."""
    found = await api.store.read(client_turns.models)
    return _json({"object": "list", "data": [_model(each) for each in found]})


@router.get("/v1/models/{model:path}")
async def get_model(model: str, api: ApiDep) -> Response:
    """Return one agent as a model."""
    agent = await api.store.read(client_turns.find_agent, model)
    named = client_turns.ModelName(id=model, agent_id=agent.id, created_at=agent.created_at)
    return _json(_model(named))


@router.add("/v1/responses", *_METHODS)
@router.add("/v1/responses/{rest:path}", *_METHODS)
async def refuse_responses() -> Response:
    """Say which path takes the place of the Responses API, as a problem document that clients of
    OpenAI's API can read as well."""
    said = {"type": "about:blank", "title": "Gone", "status": 410, "detail": _GONE}
    said |= errors.body(410, _GONE, code="gone")
    return Response(orjson.dumps(said), 410, media_type=problems.MEDIA_TYPE)


@router.post("/v1/chat/completions")
async def complete_chat(request: Request, api: ApiDep, caller: CallerDep) -> Response:
    """Say something to an agent and get its reply."""
    try:
        body = _object(await request.body())
        if side_calls.is_side_call(body, request.headers.get(side_calls.HEADER, "")):
            return await _answer_side_call(api, caller, body)
        words = read_chat(body)
        agent = await api.store.read(client_turns.find_agent, words.model)
        turn = await _say(request, api, caller, agent, words)
    except Unsupported as error:
        return errors.answer(400, str(error), param=error.param, code=error.code)
    except NotFound as error:
        return errors.answer(404, str(error), param="model", code="model_not_found")
    writes = Chat(id=turn.id, model=words.model, at=turn.created_at)
    if words.stream:
        return _stream(_pieces(api, turn, writes, words.is_usage_wanted))
    try:
        text, reply = await reply_stream.whole(api, turn)
    except NoReplyYet:
        return errors.answer(504, LATE, code="reply_not_ready")
    return _json(writes.whole(text, reply.usage))


async def _pieces(
    api: Api, turn: ClientTurn, writes: Chat, is_usage_wanted: bool
) -> AsyncGenerator[bytes]:
    """Yield the stream of a reply. Closing the stream does not cancel the reply, which the runtime
    writes."""
    yield writes.begin()
    try:
        async for piece in reply_stream.follow(api, turn):
            match piece:
                case str():
                    yield writes.text(piece)
                case None:
                    yield KEEP_ALIVE
                case ClientReply():
                    yield writes.end(piece.usage if is_usage_wanted else None)
    except NoReplyYet:
        yield writes.failure(errors.body(504, LATE, code="reply_not_ready"))
    except AgiraphError as error:  # such as a store that is gone; the response has begun
        yield writes.failure(errors.body(503, str(error)))


async def _say(
    request: Request, api: Api, caller: Caller, agent: Agent, words: UserInput
) -> ClientTurn:
    """Store the person's message; a repeated request returns the turn that is stored already."""
    named = request.headers.get(CHAT_ID, "") or words.key
    key = hashlib.sha256(orjson.dumps((caller.name, agent.id, named))).hexdigest()[:40]
    once = request.headers.get("idempotency-key", "")
    asked = ClientRequest(
        digest=words.digest(caller=caller.name, agent_id=agent.id, key=key, once=once),
        conversation=key,
        text=words.text,
        attachments=words.attachments,
        same_for=None if once else words.same_for,
    )
    client, person = caller.client("v1"), caller.person.id
    return await api.store.write_first(
        client_turns.say, agent.id, asked, person_id=person, client=client
    )


async def _answer_side_call(api: Api, caller: Caller, body: Mapping[str, Any]) -> Response:
    name = str(body.get("model", ""))
    agent = await api.store.read(client_turns.find_agent, name)
    try:
        reply = await side_calls.answer(api, agent, caller.person.id, body)
    except QuotaSpent as error:
        return errors.answer(429, str(error), code="insufficient_quota")
    except ModelError as error:
        return errors.answer(502, f"The model did not answer: {error}", code="model_failed")
    writes = Chat(id=new_id("side"), model=name, at=api.clock.now())
    if body.get("stream") is not True:
        return _json(writes.whole(reply.text, reply.usage))

    async def pieces() -> AsyncGenerator[bytes]:
        yield writes.begin() + writes.text(reply.text) + writes.end(reply.usage)

    return _stream(pieces())


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        try:
            found = orjson.loads(body)
        except orjson.JSONDecodeError:
            found = clean(json.loads(body))  # orjson refuses half a character
    except (ValueError, RecursionError) as error:
        raise Unsupported(f"The body is not JSON: {error}.", "body", code="invalid") from error
    if not isinstance(found, dict):
        raise Unsupported("The body must be a JSON object.", "body", code="invalid")
    return cast(dict[str, Any], found)


def _model(named: client_turns.ModelName) -> dict[str, Any]:
    created = int(named.created_at.timestamp())
    return {"id": named.id, "object": "model", "created": created, "owned_by": "agiraph"}


def _json(said: dict[str, Any]) -> Response:
    return Response(orjson.dumps(said), media_type="application/json")


def _stream(pieces: AsyncGenerator[bytes]) -> StreamingResponse:
    return StreamingResponse(pieces, media_type="text/event-stream", headers=_STREAM_HEADERS)
