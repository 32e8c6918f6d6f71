"""Telegram: messages to a phone, with buttons, and what the person writes there.

It asks the Bot API for news by long polling, so nothing here has to be reachable from outside. Only
the private chat of the paired person counts; groups and other people are left alone.
"""

import base64
import logging
import re
from dataclasses import field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import orjson

from agiraph.core.domain.chat import Attachment
from agiraph.core.domain.ids import MessageId
from agiraph.core.domain.messages import INBOX, NEEDS_ANSWER, Decision, Message, MessageKind
from agiraph.core.domain.records.acts import Act, describe
from agiraph.core.domain.records.channels import Choice, DeliveryFailed, Incoming, Receipt, Received
from agiraph.core.domain.records.deliveries import OutgoingMessage
from agiraph.core.domain.text.visible import visible
from agiraph.core.domain.value import dataclass
from agiraph.core.services.lifecycle.conversation import words_for
from agiraph.features.channels.kinds.webhook import connection_problem
from agiraph.features.channels.kinds.wording import Shown, fits, shown

if TYPE_CHECKING:  # it takes long to import, and few processes use it
    import aiohttp

log: logging.Logger = logging.getLogger("agiraph.channels")

TIMEOUT_S = 20.0
POLL_S = 50
"""How long the Bot API holds a request for news open."""
MAX_CHARACTERS = 4096
"""The most characters of a message, in UTF-16 code units as the Bot API counts them."""
MAX_NOTICE_CHARACTERS = 200
"""The most characters of the answer to a pressed button."""
MAX_LABEL_CHARACTERS = 60
UNDO = "undo"
"""Begins the data of a button that undoes what a reply did; its place follows."""
WIDTH = 40
"""How many columns a phone shows, about."""
NO_PREVIEW = {"link_preview_options": {"is_disabled": True}}
"""Telegram's servers open a link to show a preview of it."""
MAX_FILE_BYTES = 10 * 2**20
MAX_ANSWER_BYTES = 8 * 2**20
NO_FILE = "A file came with it that could not be downloaded: it is larger than 10 MiB, or gone."
_GONE = ("message is not modified", "message to edit not found", "message can't be edited")
"""The errors of the Bot API for an edit that is not needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telegram:
    token: str = field(repr=False)
    """The bot's token. It is a part of every address, so no address is ever shown or logged."""
    kinds: frozenset[MessageKind] = INBOX
    api_url: str = "https://api.telegram.org"
    url: str = ""
    """The address of this installation, for links to the inbox."""
    poll_s: int = POLL_S

    @property
    def description(self) -> str:
        return f"telegram bot {self.token.partition(':')[0]}"

    @property
    def pairing_hint(self) -> str:
        return "Open a chat with your bot in Telegram and send it: /start {code}"

    async def probe(self) -> None:
        """Raise `DeliveryFailed` unless Telegram knows the bot."""
        await self._call("getMe", {})

    async def send(self, outgoing: OutgoingMessage) -> Receipt | None:
        said = shown(outgoing, url=self.url, limit=MAX_CHARACTERS, width=WIDTH, has_buttons=True)
        keyboard = buttons(outgoing.message, said)
        request: dict[str, Any] = {
            "chat_id": outgoing.address,
            "text": said.text,
            "disable_notification": outgoing.is_silent,
            **NO_PREVIEW,
        }
        if keyboard:
            request["reply_markup"] = {"inline_keyboard": keyboard}
        if outgoing.answers.startswith("m"):
            answered = outgoing.answers.partition(":")[2]
            reply = {"message_id": int(answered), "allow_sending_without_reply": True}
            request["reply_parameters"] = reply
        sent = await self._call("sendMessage", request)
        is_request = outgoing.message.kind == "approval"
        return Receipt(
            id=str(sent["message_id"]),
            is_open=bool(keyboard),
            may_decide=bool(keyboard) and is_request,
        )

    async def edit(self, outgoing: OutgoingMessage, receipt: str) -> None:
        said = shown(outgoing, url=self.url, limit=MAX_CHARACTERS, width=WIDTH, has_buttons=True)
        text = f"{said.text}\n\n[{_end(outgoing)}]"
        place = {"chat_id": outgoing.address, "message_id": int(receipt)}
        try:
            if fits(text, MAX_CHARACTERS):
                await self._call("editMessageText", {**place, **NO_PREVIEW, "text": text})
            else:
                await self._call("editMessageReplyMarkup", place)
        except DeliveryFailed as error:
            if not any(reason in str(error) for reason in _GONE):
                raise

    async def receive(self, cursor: str, paired: str | None) -> Received:
        request: dict[str, Any] = {
            "timeout": self.poll_s,
            "allowed_updates": ["message", "callback_query"],
        }
        if cursor:
            request["offset"] = int(cursor)
        updates = await self._call("getUpdates", request, timeout_s=self.poll_s + TIMEOUT_S)
        found = [await self._read(update, paired) for update in updates]
        last = max((int(update["update_id"]) for update in updates), default=None)
        return Received(
            cursor=cursor if last is None else str(last + 1),
            messages=tuple(each for each in found if each is not None),
        )

    async def acknowledge(self, incoming: Incoming, notice: str) -> None:
        kind, _, identity = incoming.handle.partition(":")
        if kind == "callback":
            answer = {"callback_query_id": identity, "text": notice[:MAX_NOTICE_CHARACTERS]}
            await self._call("answerCallbackQuery", answer)
        elif notice:
            text = notice[: MAX_CHARACTERS // 2]
            said = {"chat_id": incoming.sender, "text": text, **NO_PREVIEW}
            await self._call("sendMessage", said)

    async def _read(self, update: dict[str, Any], paired: str | None) -> Incoming | None:
        """Return the message in an update; None if the update has an unknown form."""
        try:
            return await self._incoming(update, paired)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, OSError) as error:
            # It must not block those after it: without it the cursor would never move on.
            log.warning("an update of Telegram cannot be read: %r", error)
            return None

    async def _incoming(self, update: dict[str, Any], paired: str | None) -> Incoming | None:
        """Return a message or a pressed button in a private chat; None for everything else."""
        key = f"u:{update['update_id']}"
        if pressed := update.get("callback_query"):
            return _pressed(pressed, key)
        message: dict[str, Any] = update.get("message") or {}
        if not _is_private(message):
            return None
        text = str(message.get("text") or message.get("caption") or "")
        sender = str(message["chat"]["id"])
        files = await self._files(message) if sender == paired else ()
        if files is None:
            text, files = f"{text}\n({NO_FILE})".strip(), ()
        if message.get("forward_origin") or message.get("forward_date"):
            # Somebody else wrote it. As a file its text is labelled; the person's own text is not.
            said = Attachment(name="forwarded.txt", media_type="text/plain", data=_base64(text))
            text, files = "(I forward a message to you.)", (said, *files)
        if not text and not files:
            text = "(I sent something that is neither text nor a file.)"
        answered: dict[str, Any] = message.get("reply_to_message") or {}
        return Incoming(
            key=f"m{update['update_id']}:{message['message_id']}",
            sender=sender,
            text=text or words_for(files),
            sent_at=datetime.fromtimestamp(int(message["date"]), UTC),
            attachments=files,
            replies_to=(str(answered["message_id"]),) if answered else (),
            handle="message",
        )

    async def _files(self, message: dict[str, Any]) -> tuple[Attachment, ...] | None:
        """Return the file of a message: a document, the largest size of a photo, or a recording;
        None if it cannot be had."""
        photos = cast(list[dict[str, Any]], message.get("photo") or [])
        found: dict[str, Any] | None = max(
            photos, key=lambda p: p.get("file_size", 0), default=None
        )
        kind, name = "image/jpeg", "photo.jpg"
        for each, usual, called in _FILES:
            if each in message:
                found, kind, name = message[each], usual, called
        if found is None:
            return ()
        if int(found.get("file_size", 0)) > MAX_FILE_BYTES:
            return None
        try:
            place = await self._call("getFile", {"file_id": found["file_id"]})
            data = await self._download(str(place["file_path"]))
        except DeliveryFailed as error:
            log.warning("a file of Telegram cannot be downloaded: %s", error)
            return None
        given = str(found.get("mime_type") or kind)
        kind = given if _MEDIA_TYPE.fullmatch(given) else "application/octet-stream"
        name = str(found.get("file_name") or name)[:200]
        return (Attachment(name=name, media_type=kind, data=base64.b64encode(data).decode()),)

    async def _call(
        self, method: str, request: dict[str, Any], *, timeout_s: float = TIMEOUT_S
    ) -> Any:
        """Return the result of a method of the Bot API; raise `DeliveryFailed` without the URL."""
        import aiohttp

        address = f"{self.api_url}/bot{self.token}/{method}"
        try:
            async with (
                self._session(timeout_s) as session,
                session.post(address, json=request, allow_redirects=False) as response,
            ):
                body = await _body(response, most=MAX_ANSWER_BYTES)
                return _result(method, response.status, body)
        except TimeoutError as error:
            raise DeliveryFailed(f"{method}: no answer within {timeout_s:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise DeliveryFailed(f"{method}: {connection_problem(error)}") from error

    def _session(self, timeout_s: float) -> "aiohttp.ClientSession":
        import aiohttp

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=True),
            cookie_jar=aiohttp.DummyCookieJar(),
            # A Bot API server of one's own, on plain HTTP, is reached without the proxy.
            trust_env=self.api_url.startswith("https:"),
            timeout=aiohttp.ClientTimeout(total=timeout_s),
        )

    async def _download(self, path: str) -> bytes:
        import aiohttp

        address = f"{self.api_url}/file/bot{self.token}/{path}"
        try:
            async with (
                self._session(TIMEOUT_S) as session,
                session.get(address, allow_redirects=False) as response,
            ):
                data = await _body(response, most=MAX_FILE_BYTES)
        except (aiohttp.ClientError, OSError) as error:
            raise DeliveryFailed(f"file: {connection_problem(error)}") from error
        if response.status != 200:
            raise DeliveryFailed(f"the file cannot be downloaded ({response.status})")
        return data


async def _body(response: "aiohttp.ClientResponse", *, most: int) -> bytes:
    """Return the whole body; raise `DeliveryFailed` if it is larger than `most` bytes."""
    data = bytearray()
    async for part in response.content.iter_any():
        data += part
        if len(data) > most:
            raise DeliveryFailed(f"the answer is larger than {most} bytes")
    return bytes(data)


_MEDIA_TYPE = re.compile(r"[a-z]+/[A-Za-z0-9.+-]+")
_FILES = (
    ("document", "application/octet-stream", "file"),
    ("voice", "audio/ogg", "voice.ogg"),
    ("audio", "audio/mpeg", "audio.mp3"),
    ("video", "video/mp4", "video.mp4"),
)


def buttons(message: Message, said: Shown) -> list[list[dict[str, str]]]:
    """Return the keyboard under a message; empty: none.

    An approval has buttons only if the message shows it to the last byte. What a reply did has a
    button to undo it.
    """
    if message.acts:
        return [
            [{"text": _undo_label(act), "callback_data": f"{message.id}:{UNDO}{place}"}]
            for place, act in enumerate(message.acts)
            if act.undone_at is None
        ]
    if message.kind not in NEEDS_ANSWER or not said.is_whole or message.answered_at is not None:
        return []
    if message.kind == "approval":
        words = (("Approve", "approve"), ("Deny", "deny"))
        return [[{"text": t, "callback_data": f"{message.id}:{d}"} for t, d in words]]
    return [
        [{"text": _label(number, option), "callback_data": f"{message.id}:{number}"}]
        for number, option in enumerate(message.options)
    ]


def _end(outgoing: OutgoingMessage) -> str:
    """Return why a message has no buttons any more."""
    if outgoing.is_unpaired:
        return "this chat is not paired any more"
    answered = f"answered: {outgoing.answer}" if outgoing.answer else "closed"
    return outgoing.message.decision or answered


def _label(number: int, option: str) -> str:
    line = visible(" ".join(option.split()), keep="")
    is_long = len(line) > MAX_LABEL_CHARACTERS
    return f"{number + 1}. {line[:MAX_LABEL_CHARACTERS]}{'…' if is_long else ''}"


def _undo_label(act: Act) -> str:
    line = visible(f"Undo: {describe(act)}", keep="")
    return f"{line[:MAX_LABEL_CHARACTERS]}{'…' if len(line) > MAX_LABEL_CHARACTERS else ''}"


def _pressed(pressed: dict[str, Any], key: str) -> Incoming | None:
    under: dict[str, Any] = pressed.get("message") or {}
    identity, _, what = str(pressed.get("data", "")).rpartition(":")
    if not _is_private(under) or str(pressed["from"]["id"]) != str(under["chat"]["id"]):
        return None
    number = what.removeprefix(UNDO)
    place = int(number) if number.isascii() and number.isdigit() and len(number) < 4 else None
    is_undo = what.startswith(UNDO)
    decisions: dict[str, Decision] = {"approve": "approve", "deny": "deny"}
    return Incoming(
        key=key,
        sender=str(under["chat"]["id"]),
        text="",
        # The Bot API does not tell when a button was pressed.
        sent_at=datetime.now(UTC),
        replies_to=(str(under["message_id"]),),
        choice=Choice(
            message_id=MessageId(identity),
            option=None if is_undo else place,
            decision=decisions.get(what),
            act=place if is_undo else None,
        ),
        handle=f"callback:{pressed['id']}",
    )


def _is_private(message: dict[str, Any]) -> bool:
    chat: dict[str, Any] = message.get("chat") or {}
    return chat.get("type") == "private"


def _result(method: str, status: int, body: bytes) -> Any:
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise DeliveryFailed(f"{method}: answered {status} without JSON") from error
    told = cast(dict[str, Any], said) if isinstance(said, dict) else {}
    if told.get("ok") is True:
        return told["result"]
    why = str(told.get("description", "nothing"))[:300]
    if status == 409:
        why += ". Another program reads this bot: stop it, or make a bot of your own for agiraph"
    wait = cast(dict[str, Any], told.get("parameters") or {}).get("retry_after")
    after_s = float(wait) if isinstance(wait, int) else None
    raise DeliveryFailed(f"{method}: answered {status}: {why}", retry_after_s=after_s)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
