"""Stub: a model server in its own process that uses almost no CPU.

It reads a request by its length, counts the tool results in it without parsing, and answers with a
call of the tool `note` until there are enough results; then with `finish`, or in words to a client
that asked for no stream.
"""

import asyncio
import json
import re
import sys
from multiprocessing import Process, Queue
from typing import Any

import uvloop


def _stream(*chunks: dict[str, Any]) -> bytes:
    lines = b"".join(b"data: " + json.dumps(c).encode() + b"\n\n" for c in chunks)
    return lines + b"data: [DONE]\n\n"


def reply(number: int, last: bool, ending: str = "finish") -> bytes:
    name = ending if last else "note"
    end = {"summary": "done", "reached": "yes"}
    words = end if last else {"text": f"finding {number}: " + "x" * 60}
    call = {
        "index": 0,
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(words)},
    }
    body = _stream(
        {"choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": [call]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": {"prompt_tokens": 100 + number, "completion_tokens": 20}},
    )
    head = (
        f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def whole_reply(number: int, last: bool) -> bytes:
    """Return the reply to a client that asked for no stream; the last one is words."""
    arguments = json.dumps({"text": f"finding {number}: " + "x" * 60})
    function = {"name": "note", "arguments": arguments}
    calls = [{"id": f"call_{number}", "type": "function", "function": function}]
    message: dict[str, Any] = {"role": "assistant", "content": "done" if last else None}
    message |= {} if last else {"tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "stop" if last else "tool_calls"}
    usage = {"prompt_tokens": 100 + number, "completion_tokens": 20, "total_tokens": 120 + number}
    named = {"id": "c", "object": "chat.completion", "created": 0, "model": "stub"}
    body = json.dumps({**named, "choices": [choice], "usage": usage}).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


RESULT = re.compile(rb'"role": ?"tool"')
STREAM = re.compile(rb'"stream": ?true')
"""Markers of a tool result and a stream. One that is split over two reads is found by the rest of
the read before."""
REST = 20


class _Connection(asyncio.Protocol):
    def __init__(self, turns: int, delay: float, ending: str) -> None:
        self._turns = turns
        self._ending = ending
        self._delay = delay
        self._left = 0
        self._head = b""
        self._results = 0
        self._rest = b""
        self._is_stream = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        if self._left == 0:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            if self._head.startswith(b"GET "):  # what this server can do: it does not say
                self._head = self._head[end + 4 :]
                self._transport.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                return
            at = self._head.lower().find(b"content-length:")
            length = int(self._head[at + 15 : self._head.index(b"\r\n", at)])
            self._left = length - (len(self._head) - end - 4)
            self._results, self._is_stream, self._rest = 0, False, b""
            self._look(self._head)
            self._head = b""
        else:
            self._left -= len(data)
            self._look(data)
        if self._left <= 0:
            self._left = 0
            number = self._results + 1
            is_last = number >= self._turns
            if self._is_stream:
                answer = reply(number, is_last, self._ending)
            else:
                answer = whole_reply(number, is_last)
            if self._delay:
                asyncio.get_running_loop().call_later(self._delay, self._answer, answer)
            else:
                self._transport.write(answer)

    def _look(self, data: bytes) -> None:
        """Count the tool results in the next part of a request."""
        seen = self._rest + data
        # What the part before held whole is counted already.
        self._results += len(RESULT.findall(seen)) - len(RESULT.findall(self._rest))
        self._is_stream = self._is_stream or STREAM.search(seen) is not None
        self._rest = seen[-REST:]

    def _answer(self, answer: bytes) -> None:
        if not self._transport.is_closing():  # the client may have disconnected
            self._transport.write(answer)


def _serve(turns: int, delay: float, ending: str, ready: Any) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Connection(turns, delay, ending), "127.0.0.1", 0)
        ready.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(main())


class Stub:
    def __init__(self, turns: int, delay: float = 0.0, *, ending: str = "finish") -> None:
        ready: Any = Queue()
        # In a process of its own, so that the CPU time of the stub is not counted as ours.
        self._process = Process(target=_serve, args=(turns, delay, ending, ready), daemon=True)
        self._process.start()
        self.port = ready.get(timeout=30)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> "Stub":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()


if __name__ == "__main__":
    with Stub(int(sys.argv[1])) as stub:
        print(stub.url)
        stub._process.join()
