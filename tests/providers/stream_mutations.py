"""Stream mutations: what servers do to a stream, at random places of it.

Each takes the recorded events and returns the body to send, and the events themselves where pieces
of arguments were taken away, doubled or moved (see `streams.violations`).
"""

import json
import random
import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import orjson

from tests.providers.streams import Recorded, frames

WRONG: tuple[Any, ...] = (5, -1, 1e308, 2**63, True, [], {}, [[]], {"a": None}, 0.5, [None])
ARGUMENTS = frozenset(
    (
        *("arguments", "partial_json", "args", "input", "content", "tool_calls", "function"),
        *("delta", "functionCall", "parts", "candidates", "choices", "content_block", "message"),
        *("text", "thought", "output", "item", "response", "summary"),
    )
)
"""Keys whose value holds pieces of arguments: another value takes them away."""
ENDS = (
    *("stop", "tool_calls", "length", "content_filter", "refusal", "error", "end_turn", "odd"),
    *("tool_use", "max_tokens", "STOP", "MAX_TOKENS", "SAFETY", "OTHER", "MALFORMED_FUNCTION_CALL"),
)


@dataclass(frozen=True, slots=True)
class Mutated:
    name: str
    body: bytes
    events: list[Any] | None = None


Mutation = Callable[[list[Any], random.Random], bool | None]
"""Changes the parsed events. Returns whether pieces of arguments may be gone, doubled or moved;
None if it finds no place."""


def _parsed(stream: Recorded) -> list[Any]:
    return [event if event == b"[DONE]" else orjson.loads(event) for event in stream.events]


def _body(events: list[Any]) -> bytes:
    return frames([event if isinstance(event, bytes) else _dumped(event) for event in events])


def _dumped(event: Any) -> bytes:
    try:
        return orjson.dumps(event)
    except TypeError:  # a number beyond 64 bits
        return json.dumps(event, ensure_ascii=False).encode()


def _holds_arguments(path: tuple[Any, ...]) -> bool:
    names = [step for step in path if isinstance(step, str)]
    return names[-1] in ARGUMENTS or bool({"args", "input", "arguments"} & {*names})


CONTAINERS = frozenset({dict, list})
Place = tuple[Any, Any, tuple[Any, ...]]
"""A place in JSON: its container, its key, and the path to it."""


def _leaves(value: Any, found: list[Place], path: tuple[Any, ...] = ()) -> list[Place]:
    """Add each place of the JSON to those that were found, and return them."""
    kind = type(value)
    if kind in CONTAINERS:
        for key, part in value.items() if kind is dict else enumerate(value):
            here = (*path, key)
            found.append((value, key, here))
            if type(part) in CONTAINERS:
                _leaves(part, found, here)
    return found


def _place(events: list[Any], rng: random.Random) -> Place | None:
    places: list[Place] = []
    for event in events:
        if type(event) is dict:
            _leaves(event, places)
    return rng.choice(places) if places else None


def _set(events: list[Any], rng: random.Random, value: Any) -> bool | None:
    """Set a random place; return whether pieces of arguments may be gone, None without a place."""
    place = _place(events, rng)
    if place is None:
        return None
    container, key, path = place
    container[key] = value
    return _holds_arguments(path)


def _null(events: list[Any], rng: random.Random) -> bool | None:
    return _set(events, rng, None)


def _wrong_type(events: list[Any], rng: random.Random) -> bool | None:
    return _set(events, rng, deepcopy(rng.choice(WRONG)))


def _missing_key(events: list[Any], rng: random.Random) -> bool | None:
    place = _place(events, rng)
    if place is None:
        return None
    container, key, path = place
    del container[key]
    return _holds_arguments(path)


def _dropped(events: list[Any], rng: random.Random) -> bool:
    events.pop(rng.randrange(len(events)))
    return True


def _doubled(events: list[Any], rng: random.Random) -> bool:
    at = rng.randrange(len(events))
    events.insert(at, deepcopy(events[at]))
    return True


def _moved(events: list[Any], rng: random.Random) -> bool:
    event = events.pop(rng.randrange(len(events)))
    events.insert(rng.randrange(len(events) + 1), event)
    return True


def _ended_early(events: list[Any], rng: random.Random) -> bool:
    del events[rng.randrange(1, len(events) + 1) :]
    return False


def _without_done(events: list[Any], rng: random.Random) -> bool:
    events.pop()
    return False


def _error_inside(events: list[Any], rng: random.Random) -> bool:
    error = rng.choice(
        [
            {"error": {"message": "Overloaded", "type": "overloaded_error"}},
            {"error": "gone"},
            {"error": {"code": 400, "message": "No."}},
            {"object": "error", "message": "Bad", "code": 500},
            {"type": "error", "error": {"type": "api_error", "message": "x"}},
        ]
    )
    events.insert(rng.randrange(len(events) + 1), error)
    return False


def _odd_event(events: list[Any], rng: random.Random) -> bool:
    odd = rng.choice([{}, {"type": "later"}, {"choices": []}, {"candidates": []}, {"x": [1]}])
    events.insert(rng.randrange(len(events) + 1), odd)
    return False


def _other_end(events: list[Any], rng: random.Random) -> bool | None:
    word, found = rng.choice(ENDS), False
    for event in events:
        for container, key, _ in _leaves(event, []) if isinstance(event, dict) else ():
            if key in ("finish_reason", "stop_reason", "finishReason") and container[key]:
                container[key], found = word, True
    return False if found else None


def _extra_choice(events: list[Any], rng: random.Random) -> bool | None:
    event = rng.choice(events)
    for key in ("choices", "candidates"):
        if isinstance(event, dict) and event.get(key):
            event[key].append({**deepcopy(event[key][0]), "index": rng.randrange(1, 9)})
            return False
    return None


def _huge_counts(events: list[Any], rng: random.Random) -> bool | None:
    found = False
    for event in events:
        for container, key, _ in _leaves(event, []) if isinstance(event, dict) else ():
            if isinstance(key, str) and "oken" in key and isinstance(container[key], int):
                container[key], found = rng.choice([10**30, -5, "9", 1e300, None]), True
    return False if found else None


def _without_usage(events: list[Any], rng: random.Random) -> bool:
    for event in events:
        if isinstance(event, dict):
            event.pop("usage", None)
            event.pop("usageMetadata", None)
    return False


def _deltas(events: list[Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for event in events:
        for choice in event.get("choices") or () if isinstance(event, dict) else ():
            found.append(choice["delta"])
    return found


def _content_parts(events: list[Any], rng: random.Random) -> bool | None:
    """P21: the content is a list of parts."""
    found = [delta for delta in _deltas(events) if delta.get("content")]
    for delta in found:
        delta["content"] = [{"type": "text", "text": delta["content"]}]
    return False if found else None


def _cumulative(events: list[Any], rng: random.Random) -> bool | None:
    """P18: each chunk holds all the text that came before."""
    spoken = [delta for delta in _deltas(events) if delta.get("content")]
    if len(spoken) < 3:
        return None
    so_far = ""
    for delta in spoken:
        so_far += delta["content"]
        delta["content"] = so_far
    return False


def _whole_calls(events: list[Any], rng: random.Random) -> bool | None:
    """C20 and C21: each call in one part, without index and id, or with objects as arguments."""
    calls: dict[Any, dict[str, Any]] = {}
    for delta in _deltas(events):
        for part in delta.pop("tool_calls", ()):
            known = calls.setdefault(part["index"], {**part, "function": {"arguments": ""}})
            given = part["function"]
            known["function"]["name"] = known["function"].get("name") or given.get("name")
            known["function"]["arguments"] += given.get("arguments", "")
    if not calls:
        return None
    without, as_object = rng.choice([("index", "id"), ("index",), ("id",), ()]), rng.random() < 0.5
    made: list[dict[str, Any]] = [
        {k: v for k, v in call.items() if k not in without} for call in calls.values()
    ]
    if without == ("id",) and len(made) > 1:
        made = [{**call, "index": 0} for call in made]
    for call in made if as_object else ():
        try:
            call["function"]["arguments"] = orjson.loads(call["function"]["arguments"])
        except orjson.JSONDecodeError:
            continue
    target = rng.choice(_deltas(events)[:-1])
    target["tool_calls"] = made
    return False


def _nameless_beside(events: list[Any], rng: random.Random) -> bool | None:
    """C22: a nameless call beside the others."""
    nameless = {"index": 7, "function": {"name": "", "arguments": rng.choice(["", " ", "{}"])}}
    target = rng.choice(_deltas(events) or [{}])
    target["tool_calls"] = [*target.get("tool_calls", ()), nameless]
    return False if _deltas(events) else None


EVENT_MUTATIONS: tuple[Mutation, ...] = (
    _null, _wrong_type, _missing_key, _dropped, _doubled, _moved, _ended_early, _without_done,
    _error_inside, _odd_event, _other_end, _extra_choice, _huge_counts, _without_usage,
    _content_parts, _cumulative, _whole_calls, _nameless_beside,
)  # fmt: skip


# ---- bytes ---------------------------------------------------------------------------------


def _cut(body: bytes, rng: random.Random) -> bytes:
    return body[: rng.randrange(len(body))]


def _crlf(body: bytes, rng: random.Random) -> bytes:
    return body.replace(b"\n", b"\r\n")


def _bom(body: bytes, rng: random.Random) -> bytes:
    return b"\xef\xbb\xbf" + body


def _comments(body: bytes, rng: random.Random) -> bytes:
    return body.replace(b"\n\n", b"\n\n: keep-alive\n\nevent: x\nid: 5\nretry: 3\n\n")


def _blank_data(body: bytes, rng: random.Random) -> bytes:
    return body.replace(b"\n\n", b"\n\ndata:\n\n", rng.randrange(1, 4))


def _no_space(body: bytes, rng: random.Random) -> bytes:
    return body.replace(b"data: ", b"data:")


def _merged(body: bytes, rng: random.Random) -> bytes:
    parts = body.split(b"\n\n")
    at = rng.randrange(1, len(parts))
    return b"\n\n".join(parts[:at]) + rng.choice([b"", b" "]) + b"\n\n".join(parts[at:])


def _broken_byte(body: bytes, rng: random.Random) -> bytes:
    """A byte that no JSON may contain, somewhere in an event."""
    payload = rng.choice([*re.finditer(rb"data: (.+)", body)])
    at = rng.randrange(payload.start(1) + 1, payload.end(1))
    return body[:at] + rng.choice([b"\xff", b"\x00", b"\x1b"]) + body[at:]


BYTE_MUTATIONS = (_cut, _crlf, _bom, _comments, _blank_data, _no_space, _merged, _broken_byte)


def mutate(stream: Recorded, rng: random.Random) -> Mutated:
    """Return the stream after one mutation of its events, one of its bytes, or both."""
    events, names, is_changed = _parsed(stream), list[str](), False
    if rng.random() < 0.75:
        while not names:
            chosen = rng.choice(EVENT_MUTATIONS)
            changed = chosen(events, rng)
            if changed is not None:  # else it finds no place, and another one will
                names.append(chosen.__name__)
                is_changed = changed
    body = _body(events)
    if not names or rng.random() < 0.25:
        change = rng.choice(BYTE_MUTATIONS)
        names.append(change.__name__)
        body = change(body, rng) if body else body
    return Mutated("+".join(names), body, events if is_changed else None)
