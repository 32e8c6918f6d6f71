"""Approvals: which request for a person's approval belongs to which call.

A request's `ref` names its node, the call and a hash of the call's arguments, so that a decision
holds for that one call. A request that no call waits for names no call, because its agent went on
or its call was interrupted: the next call of the node with the same arguments takes it over.
"""

import hashlib

import orjson

from agiraph.domain.chat import ToolCall
from agiraph.domain.ids import MessageId, NodeId
from agiraph.domain.messages import Message
from agiraph.store import messages
from agiraph.store.messages import MESSAGES
from agiraph.store.tx import Tx

_RERUN = "rerun:"
_CLOSED = "closed::"
_FORMER = {"none": False, "open": True, None: False}
"""What earlier versions wrote for a command's network: their requests stay valid."""


def ref(node_id: NodeId, call: ToolCall) -> str:
    """Return what identifies the request for approval of this tool call, its `ref`."""
    return f"{node_id}:{call.id}:{fingerprint(call)}"


def open_ref(node_id: NodeId, call: ToolCall) -> str:
    """Return the `ref` of a request that no call waits for."""
    return f"{node_id}::{fingerprint(call)}"


def closed_ref(request: Message) -> str | None:
    """Return the `ref` of a request that closes with its work: later work finds it by the hash."""
    if request.call is None or request.ref is None:
        return None
    return f"{_CLOSED}{fingerprint_of(request)}"


def closed_ref_of(call: ToolCall) -> str:
    """Return the `ref` of the requests about this tool call that have closed with their work."""
    return f"{_CLOSED}{fingerprint(call)}"


def rerun_ref(node_id: NodeId, call: ToolCall) -> str:
    """Return the `ref` of a request to run a program again, whose run was interrupted.

    It names the run: a decision holds for one start.
    """
    return f"{_RERUN}{node_id}:{call.id}"


def is_about_a_rerun(request: Message) -> bool:
    return (request.ref or "").startswith(_RERUN)


def find(tx: Tx, node_id: NodeId, call: ToolCall) -> Message | None:
    """Return the request about this very call, decided or not.

    An interrupted request about the same arguments is bound to this call: one decision, one call.
    """
    bound = ref(node_id, call)
    if (asked := messages.approval(tx, bound)) is not None:
        return asked
    if (left := messages.approval(tx, open_ref(node_id, call))) is None:
        return None
    MESSAGES.update(tx, left.id, ref=bound)
    return MESSAGES.get(tx, left.id)


def unbind(tx: Tx, request: MessageId) -> None:
    """Release an open request from its call, which was answered without a decision.

    The next call of the node with the same arguments takes the request over.
    """
    bound = MESSAGES.get(tx, request).ref
    assert bound is not None
    node_id, _, rest = bound.partition(":")
    MESSAGES.update(tx, request, ref=f"{node_id}::{rest.rpartition(':')[2]}")


def fingerprint(call: ToolCall) -> str:
    """Return a hash of the tool's name and the exact arguments."""
    given = call.arguments
    if "network" in given and given["network"] in _FORMER:
        given = given | {"network": _FORMER[given["network"]]}
    # Sorted: a model may give the same arguments in another order.
    arguments = orjson.dumps(given, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(call.name.encode() + b"\0" + arguments).hexdigest()[:32]


def fingerprint_of(request: Message) -> str:
    """Return the fingerprint of the call that a request is about.

    It is read from the `ref`: the stored call has its secrets redacted.
    """
    assert request.ref is not None
    return request.ref.rpartition(":")[2]
