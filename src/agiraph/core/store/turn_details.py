"""Turn details: the fields that few turns have, as the JSON column `extra` holds them."""

from dataclasses import asdict, replace
from datetime import datetime
from operator import attrgetter
from typing import Any, TypedDict, cast

from agiraph.core.domain.chat import (
    NO_DATA,
    THINKING,
    OutboxMark,
    ProviderData,
    Reserved,
    Role,
    TextMark,
    Turn,
    Usage,
    VendorParts,
)
from agiraph.core.domain.ids import MessageId
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.records.acts import Act
from agiraph.core.store.rows import from_json

_COUNTS = tuple(Usage.__dataclass_fields__)
_count = attrgetter(*_COUNTS)
_INTENT_KEYS = frozenset({"label", "seconds"})


class Details(TypedDict, total=False):
    """Fields that few turns have. One JSON column, `extra`, holds them all."""

    provider_data: ProviderData
    failed: bool
    sends_back: bool
    exit_code: int | None
    is_repeated: bool
    is_held_back: bool
    reminds_of: MessageId | None
    label: Label
    is_summary: bool
    is_cut: bool
    reserved: Reserved | None
    timeout_s: float | None
    foreseen: dict[str, Any]
    did: Act | None
    outbox: OutboxMark | None


def stored_usage(usage: Usage) -> dict[str, Any]:
    """Return the counts of a call without the zeros; a price of zero is a known price and stays."""
    counts = zip(_COUNTS, _count(usage), strict=True)
    return {name: count for name, count in counts if count or name == "usd"}


def _act(stored: dict[str, Any]) -> Act:
    undone = stored["undone_at"]
    return replace(Act(**stored), undone_at=undone and datetime.fromisoformat(undone))


def stored_details(turn: Turn) -> dict[str, Any]:
    """Return a turn's details as the JSON column `extra` holds them, without the empty ones.

    `spend.total` reads `tokens` and `usd` from this column, too.
    """
    provider = turn.provider_data
    stored: dict[str, Any] = {} if provider is NO_DATA else _stored_provider_data(provider)
    if turn.reserved is not None:
        stored["tokens"], stored["usd"] = turn.reserved.tokens, turn.reserved.usd
    if turn.outbox is not None:
        stored |= {"end": turn.outbox.end, "sha256": turn.outbox.sha256}
    # One test a field: every turn is stored through here, and a table of them costs more.
    if turn.failed:
        stored["failed"] = True
    if turn.sends_back:
        stored["sends_back"] = True
    if turn.exit_code is not None:
        stored["exit_code"] = turn.exit_code
    if turn.is_repeated:
        stored["repeated"] = True
    if turn.is_held_back:
        stored["held_back"] = True
    if turn.reminds_of is not None:
        stored["reminds_of"] = turn.reminds_of
    if turn.is_summary:
        stored["cut"] = True
    if turn.is_cut:
        stored["broken_off"] = True
    if turn.label.sources:
        stored["label"] = turn.label.to_list()
    if turn.timeout_s:
        stored["seconds"] = turn.timeout_s
    if turn.foreseen:
        stored["foreseen"] = turn.foreseen
    if turn.did is not None:
        stored["did"] = asdict(turn.did)
    return stored


def _stored_provider_data(provider: ProviderData) -> dict[str, Any]:
    stored: dict[str, Any] = {}
    if provider.thinking:
        stored["thinking"] = provider.thinking
    if provider.vendor is not None:
        stored["vendor"] = {"name": provider.vendor.vendor, "parts": provider.vendor.parts}
    if (mark := provider.text) is not None:
        missed = {"missed": True} if mark.missed else {}
        stored["text"] = {"key": mark.key, "kind": mark.kind, **missed}
    if provider.served_model:
        stored["served_model"] = provider.served_model
    if provider.refusal:
        stored["refusal"] = provider.refusal
    return stored


def read_details(role: Role, ref: str | None, text: str | None) -> Details:
    """Return the details that the JSON column `extra` holds."""
    if text is None:
        return {}
    stored: Any = from_json(text)
    if not isinstance(stored, dict):
        raise ValueError("extra is not a JSON object")
    known = cast(dict[str, Any], stored)
    foreseen = known.get("foreseen", {})
    if role == "intent" and ref != THINKING and "foreseen" not in known:
        # Databases written before this field existed hold a tool's own keys beside the others.
        foreseen = {key: value for key, value in known.items() if key not in _INTENT_KEYS}
        known = {key: value for key, value in known.items() if key in _INTENT_KEYS}
    details = Details(
        provider_data=_read_provider_data(known),
        failed=bool(known.get("failed")),
        sends_back=bool(known.get("sends_back")),
        exit_code=known.get("exit_code"),
        is_repeated=bool(known.get("repeated")),
        is_held_back=bool(known.get("held_back")),
        reminds_of=known.get("reminds_of"),
        label=Label.from_list(known.get("label", ())),
        is_summary=bool(known.get("cut")),
        is_cut=bool(known.get("broken_off")),
        timeout_s=known.get("seconds"),
        foreseen=foreseen,
        did=_act(known["did"]) if "did" in known else None,
    )
    if "tokens" in known:
        details["reserved"] = Reserved(tokens=known["tokens"], usd=known["usd"])
    if "sha256" in known:
        details["outbox"] = OutboxMark(end=int(known["end"]), sha256=known["sha256"])
    return details


def _read_provider_data(stored: dict[str, Any]) -> ProviderData:
    vendor, mark = stored.get("vendor"), stored.get("text")
    return ProviderData(
        thinking=stored.get("thinking", ""),
        vendor=vendor and VendorParts(vendor=vendor["name"], parts=vendor["parts"]),
        text=mark and TextMark(**mark),
        served_model=stored.get("served_model", ""),
        refusal=stored.get("refusal", ""),
    )
