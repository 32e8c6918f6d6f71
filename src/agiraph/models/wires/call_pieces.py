"""Call pieces: tool calls that arrive in pieces, and those that servers send in broken ways.

Nothing is guessed: arguments of which a part may be missing are marked as cut off.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import Any, cast

import orjson

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.text.json_text import objects_in_a_row, parsed
from agiraph.core.domain.value import dataclass
from agiraph.models.wires.pieces import Pieces, RepetitionGuard, text_of

Arguments = dict[str, Any]
BROKEN_CALL = (
    "Your last reply contained a broken tool call ({reason}).{detail} It was not made and nothing "
    "of the reply was kept. Make the call again, as one valid JSON object with the tool's own "
    "parameters, and with shorter contents if it was long."
)
"""What the model is told when the vendor found a broken call in its reply."""
_NOTHING: tuple[Any, ...] = (None, "", [])
"""What servers and models send as the arguments of a tool without parameters, besides {}."""


def build_call(call_id: str, name: str, arguments: Any) -> ToolCall:
    """Return a tool call. Arguments that are not a JSON object are kept as text in `malformed`."""
    if not name:
        raise ValueError("a call without a name")
    given: Any = arguments
    if isinstance(arguments, str):
        given = _parsed(arguments)
    if given in _NOTHING:
        given = {}
    if isinstance(given, dict):
        return ToolCall(id=call_id, name=name, arguments=cast(Arguments, given))
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    return ToolCall(id=call_id, name=name, malformed=text)


def build_calls(call_id: str, name: str, arguments: Any, *, is_cut: bool = False) -> list[ToolCall]:
    """Return the call; several if its arguments are several objects one after the other.

    A call that broke off before its arguments is malformed, not a call without arguments.
    """
    if is_cut and (arguments == {} or _is_blank(arguments)):
        return [ToolCall(id=call_id, name=name, malformed="")]
    call = build_call(call_id, name, arguments)
    if call.malformed is None:
        return [call]
    objects = _objects_in(call.malformed)
    if not objects:
        return [call]
    return [build_call(call_id if n == 0 else "", name, o) for n, o in enumerate(objects)]


def _parsed(text: str) -> Any:
    if not text.strip():
        return None
    try:
        return parsed(text)
    except ValueError:
        return False  # neither nothing nor an object


def _is_blank(arguments: Any) -> bool:
    """Whether a piece holds no arguments at all, not even an empty object."""
    return not arguments.strip() if isinstance(arguments, str) else arguments in _NOTHING


def _objects_in(text: str) -> list[Arguments]:
    """Return the different objects if the whole text is two or more JSON objects, else nothing.

    An empty object before the real one is a placeholder of some servers.
    """
    found = objects_in_a_row(text)
    return [each for each in found if each] or found


@dataclass(slots=True)
class CallBuilder:
    """A tool call whose arguments arrive in pieces of JSON text, or as objects."""

    id: str = ""
    name: str = ""
    arguments: list[Any] = field(default_factory=list[Any])

    def add(self, arguments: Any) -> None:
        """Add a piece of text or an object; raise TypeError for another type."""
        self.arguments.append(
            cast(Any, arguments) if isinstance(arguments, dict) else text_of(arguments)
        )

    def build(self, *, is_cut: bool = False) -> list[ToolCall]:
        """Return the call, or the calls if the arguments of several ran together."""
        return build_calls(self.id, self.name, self._joined(), is_cut=is_cut)

    @property
    def is_blank(self) -> bool:
        """Whether no arguments have arrived."""
        return all(_is_blank(piece) for piece in self.arguments)

    @property
    def is_whole(self) -> bool:
        """Whether the arguments so far are a JSON object with something in it."""
        joined = self._joined()
        value = _parsed(joined) if isinstance(joined, str) else joined
        return isinstance(value, dict) and bool(cast(Arguments, value))

    def _joined(self) -> str | Arguments:
        if len(self.arguments) == 1:
            return self.arguments[0]
        objects = [cast(Arguments, a) for a in self.arguments if isinstance(a, dict)]
        pieces = [a for a in self.arguments if isinstance(a, str)]
        if objects and not "".join(pieces).strip():
            merged = _merged(objects)
            if merged is not None:
                return merged
        if objects:
            return _joined_with_objects(self.arguments)
        text = Pieces(None)
        for piece in pieces:
            text.append(piece)
        joined = "".join(pieces)
        # Read as cumulative only if the pieces in a row are not a JSON object.
        if text.is_cumulative and not isinstance(_parsed(joined), dict):
            return str(text)
        return joined


def _joined_with_objects(pieces: Sequence[str | Arguments]) -> str:
    """Return texts and objects as one text.

    An object that arrives while a text is not complete breaks the text off: nobody knows what
    should have stood there.
    """
    joined = ""
    for piece in pieces:
        if isinstance(piece, str):
            joined += piece
        elif not joined.strip() or isinstance(_parsed(joined), dict) or objects_in_a_row(joined):
            joined += orjson.dumps(piece).decode()
        else:
            return joined
    return joined


def _merged(objects: list[Arguments]) -> Arguments | None:
    """Return the fields of all objects; None if two of them differ in a field.

    A later text may go on from an earlier one, as in `Pieces`.
    """
    merged: Arguments = {}
    for each in objects:
        for name, value in each.items():
            known = merged.get(name, value)
            grows = isinstance(known, str) and isinstance(value, str) and value.startswith(known)
            if known != value and not grows:
                return None
            merged[name] = value
    return merged


class CallPieces:
    """The calls of one reply, told apart by index, id and name, as far as a server sends them."""

    def __init__(self) -> None:
        self._calls: list[CallBuilder] = []
        self._latest: dict[Any, CallBuilder] = {}
        """The newest call with each index."""
        self._guard = RepetitionGuard(is_structure=True)

    def take(self, index: Any, call_id: str, name: str, arguments: Any) -> None:
        """Add a piece of a call."""
        index = _position(index)
        call = self._latest.get(index)
        if index is None and self._calls:
            # Without an index, a piece goes on with the call of its id, or else with the last one.
            same = [c for c in self._calls if call_id and c.id == call_id]
            call = (same or self._calls)[-1]
        if call is None or _is_another(call, call_id, name, arguments):
            call = CallBuilder()
            self._calls.append(call)
        self._latest[index] = call
        call.id = call.id or call_id
        call.name = call.name or name
        call.add(arguments)
        if isinstance(arguments, str):
            self._guard.feed(arguments)

    def __bool__(self) -> bool:
        return bool(self._calls)

    def build(self, *, is_truncated: bool) -> list[ToolCall]:
        """Return the calls that have a name. `is_truncated`: the reply broke off in the last one.

        Raises ValueError if there are only calls without a name.
        """
        named = [call for call in self._calls if call.name]
        nameless = [call for call in self._calls if not call.name]
        if nameless and not named:
            raise ValueError("a call without a name")
        # A piece without a name that is not a whole JSON object is a part of another call, and the
        # stream does not say of which. A whole object may be the arguments of a call that has none.
        strays = [call for call in nameless if not call.is_blank]
        has_parts = any(not call.is_whole for call in strays)
        last = self._calls[-1] if is_truncated and self._calls else None
        made: list[ToolCall] = []
        for call in named:
            if has_parts or (strays and call.is_blank):
                made.append(ToolCall(id=call.id, name=call.name, malformed=""))
            else:
                built = call.build(is_cut=call is last)
                # Without ids, a call that is there already was sent twice.
                made += [each for each in built if call.id or each not in made]
        return made


def _position(index: Any) -> int | None:
    """Return the index of a call, which some servers send as text; raise if it is none."""
    if isinstance(index, str) and index.isdecimal():
        return int(index)
    if index is None or type(index) is int:
        return index
    raise TypeError(f"{index!r:.40} is not the index of a call")


def _is_another(call: CallBuilder, call_id: str, name: str, arguments: Any) -> bool:
    """Whether a piece with this id and name begins another call at the same index."""
    # Some compatible servers give every call index 0, or none, and tell calls apart only by id.
    if call_id and call.id and call_id != call.id:
        return True
    if not name or not call.name or (call_id and call_id == call.id):
        return False
    return name != call.name or (not _is_blank(arguments) and call.is_whole)
