"""Bot API: a local server that speaks the protocol of Telegram's Bot API."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aiohttp import web

TOKEN = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
MOST_UTF16 = 4096


@dataclass
class BotApi:
    """One bot and the private chats with it. `now` dates what people write."""

    now: datetime
    url: str = ""
    messages: dict[int, dict[str, Any]] = field(default_factory=dict)
    """What the bot sent, by message id, as it looks now."""
    answers: list[dict[str, Any]] = field(default_factory=list)
    """Answers to pressed buttons."""
    calls: list[str] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    """Errors that the next calls but getUpdates get."""
    stalls: bool = False
    """Whether a message is taken and its answer never sent."""
    files: dict[str, bytes] = field(default_factory=dict)
    news: asyncio.Condition = field(default_factory=asyncio.Condition)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _updates: list[dict[str, Any]] = field(default_factory=list)
    _ids: int = 100
    _polls: int = 0

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator["BotApi"]:
        app = web.Application()
        app.router.add_post("/bot{token}/{method}", self._handle)
        app.router.add_get("/file/bot{token}/{path:.*}", self._file)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        assert site._server is not None
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{port}"
        try:
            yield self
        finally:
            await runner.cleanup()

    # ---- what people do ------------------------------------------------------------------------

    async def write(
        self, chat_id: int, text: str, *, reply_to: int | None = None, **more: Any
    ) -> int:
        """Send a message to the bot; return its id."""
        message: dict[str, Any] = self._message(chat_id, is_bot=False) | {"text": text} | more
        if reply_to is not None:
            message["reply_to_message"] = self.messages[reply_to]
        await self._happened({"message": message})
        return message["message_id"]

    async def press(self, message_id: int, label: str, *, by: int | None = None) -> None:
        """Press the button with this label under a message of the bot."""
        message = self.messages[message_id]
        rows = message["reply_markup"]["inline_keyboard"]
        [data] = [b["callback_data"] for row in rows for b in row if b["text"] == label]
        await self.call_back(message_id, data, by=by)

    async def call_back(self, message_id: int, data: str, *, by: int | None = None) -> None:
        """Do as a changed client does: send data that stands on no button."""
        message = self.messages[message_id]
        who = {"id": by or message["chat"]["id"], "is_bot": False, "first_name": "Ada"}
        pressed = {"id": f"cb{self._ids}", "from": who, "message": message, "data": data}
        await self._happened({"callback_query": pressed | {"chat_instance": "1"}})

    async def sent(self, count: int) -> list[dict[str, Any]]:
        """Wait until the bot has sent so many messages; return them all."""
        async with self.changed, asyncio.timeout(30):
            await self.changed.wait_for(lambda: len(self.messages) >= count)
        return list(self.messages.values())

    async def until(self, is_so: Any) -> None:
        async with self.changed, asyncio.timeout(30):
            await self.changed.wait_for(is_so)

    def buttons(self, message: dict[str, Any]) -> list[str]:
        keyboard = message.get("reply_markup", {}).get("inline_keyboard", [])
        return [button["text"] for row in keyboard for button in row]

    async def _happened(self, what: dict[str, Any]) -> None:
        self._ids += 1
        async with self.news:
            self._updates.append({"update_id": self._ids} | what)
            self.news.notify_all()

    # ---- the protocol --------------------------------------------------------------------------

    def _message(self, chat_id: int, *, is_bot: bool) -> dict[str, Any]:
        self._ids += 1
        who = {"id": 110201543 if is_bot else chat_id, "is_bot": is_bot, "first_name": "Ada"}
        chat = {"id": chat_id, "first_name": "Ada", "type": "private" if chat_id > 0 else "group"}
        date = int(self.now.timestamp())
        return {"message_id": self._ids, "from": who, "chat": chat, "date": date}

    async def _handle(self, request: web.Request) -> web.Response:
        if request.match_info["token"] != TOKEN:
            return _refused(401, "Unauthorized")
        method, given = request.match_info["method"], await request.json()
        self.calls.append(method)
        if method == "getUpdates":
            return await self._get_updates(given)
        if self.failures:
            failure = self.failures.pop(0)
            return web.json_response({"ok": False} | failure, status=failure["error_code"])
        response = await getattr(self, f"_{method}")(given)
        async with self.changed:
            self.changed.notify_all()
        return response

    async def _get_updates(self, given: dict[str, Any]) -> web.Response:
        self._polls += 1
        mine = self._polls
        async with self.news:
            self.news.notify_all()  # another request for news ends with a conflict
            # As in the Bot API, an offset confirms what comes before it: that is never sent again.
            self._updates = [u for u in self._updates if u["update_id"] >= given.get("offset", 0)]
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(given["timeout"]):
                    await self.news.wait_for(lambda: self._updates or self._polls != mine)
            if self._polls != mine:
                return _refused(409, "Conflict: terminated by other getUpdates request")
            return _result([dict(update) for update in self._updates[:100]])

    def deliver_again(self, update: dict[str, Any]) -> None:
        """Put an update back, as if it had not been confirmed."""
        self._updates.append(update)

    async def _getMe(self, given: dict[str, Any]) -> web.Response:
        return _result({"id": 110201543, "is_bot": True, "first_name": "agiraph"})

    async def _sendMessage(self, given: dict[str, Any]) -> web.Response:
        if not 1 <= len(given["text"].encode("utf-16-le")) // 2 <= MOST_UTF16:
            return _refused(400, "Bad Request: message is too long")
        message = self._message(int(given["chat_id"]), is_bot=True) | given
        self.messages[message["message_id"]] = message
        if self.stalls:
            async with self.changed:
                self.changed.notify_all()
            await asyncio.Event().wait()
        return _result(message)

    async def _editMessageText(self, given: dict[str, Any]) -> web.Response:
        message = self.messages[given["message_id"]]
        if (message["text"], message.get("reply_markup")) == (given["text"], None):
            return _refused(400, "Bad Request: message is not modified")
        message["text"] = given["text"]
        message.pop("reply_markup", None)
        return _result(message)

    async def _editMessageReplyMarkup(self, given: dict[str, Any]) -> web.Response:
        self.messages[given["message_id"]].pop("reply_markup", None)
        return _result(self.messages[given["message_id"]])

    async def _answerCallbackQuery(self, given: dict[str, Any]) -> web.Response:
        self.answers.append(given)
        return _result(True)

    async def _getFile(self, given: dict[str, Any]) -> web.Response:
        return _result({"file_id": given["file_id"], "file_path": f"documents/{given['file_id']}"})

    async def _file(self, request: web.Request) -> web.Response:
        self.calls.append("download")
        return web.Response(body=self.files[request.match_info["path"].partition("/")[2]])


def _result(value: Any) -> web.Response:
    return web.json_response({"ok": True, "result": value})


def _refused(status: int, description: str) -> web.Response:
    body = {"ok": False, "error_code": status, "description": description}
    return web.json_response(body, status=status)
