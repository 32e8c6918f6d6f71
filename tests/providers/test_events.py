"""Event streams: lines are put together from any pieces, and a long line is copied once."""

from agiraph.models.http.events import EventStreamParser

PIECES = 80_000


def payloads(*chunks: bytes) -> list[bytes]:
    parser = EventStreamParser()
    return [payload for chunk in (*chunks, b"") for payload in parser.feed(chunk)]


def test_events_in_single_bytes_are_those_of_the_whole_stream() -> None:
    stream = b'\xef\xbb\xbfdata: {"a": 1}\r\n\r\n: waits\n\ndata: {"b":\ndata: [DONE]\n\ndata: {}'
    expected = [b'{"a": 1}', b'{"b":', b"[DONE]", b"{}"]

    assert payloads(stream) == expected
    assert payloads(*(stream[i : i + 1] for i in range(len(stream)))) == expected


def test_a_line_in_very_many_pieces_is_put_together_once() -> None:
    """If each piece copied the line so far, this would copy 800 GB and run into the timeout."""
    piece = b"x" * 256

    found = payloads(b"data: ", *[piece] * PIECES, b"\ndata: {}\n")

    assert [len(payload) for payload in found] == [PIECES * len(piece), 2]
