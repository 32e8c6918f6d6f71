"""Links: finds the addresses in a text, and tells which addresses and hosts are the same."""

import ipaddress
import re
from collections.abc import Callable, Iterator

from agiraph.core.domain.errors import Refused
from agiraph.late_patterns import late
from agiraph.web.addresses import parse

URL = late(r"""https?://[^\s<>"'`\\^{}|]+""", re.IGNORECASE)
_HOST_NAME = late(r"[a-z0-9_.-]{1,253}|\[?[0-9a-f:]{2,39}\]?")
_BOUNDED = late(r"""https?://[^\s<>"'`\\^{}|]{1,2048}""", re.IGNORECASE)
_LINKED = late(r"(?<=[a-z0-9]):(?=//)|(?<![\w-])[\w-]+(?:\.[\w-]+)+", re.IGNORECASE)
"""What programs make links of: the colon of `https://`, and dotted names."""
_TOP_LEVEL = late(r"xn--[a-z0-9-]+|[^\W\d_]{2,}", re.IGNORECASE)
_PUNCTUATION = ".,;:!?*_)]"
_OPENING = {")": "(", "]": "["}
_SECOND_LEVEL = frozenset(
    ("ac", "co", "com", "edu", "go", "gob", "gov", "gouv", "mil", "ne", "net", "nom", "or", "org")
)
"""Labels below a country's domain under which sites are registered, as in `co.uk`."""


def in_text(text: str) -> set[str]:
    """Return every address in the text as it is written, without fragments."""
    return {
        reading.partition("#")[0] for match in URL.finditer(text) for reading in readings(match[0])
    }


def holds(text: str, wanted: str) -> bool:
    """Whether an address in the text is requested in this form (`requested`)."""
    host = host_of(wanted)
    # Most texts are ruled out without reading their addresses; an international name may be
    # spelled in another way.
    if host not in text.lower() and "xn--" not in host:
        return False
    return any(requested(address) == wanted for address in in_text(text))


def readings(raw: str) -> Iterator[str]:
    """Yield what a match may mean: all of it, or less the punctuation that follows the address."""
    whole = raw
    counts: dict[str, int] = dict.fromkeys("()[]", 0)
    for end, character in enumerate(raw):
        # This bracket closes one before the address, as in a Markdown link.
        opening = _OPENING.get(character, "")
        if opening and counts[opening] <= counts[character]:
            whole = raw[:end]
            break
        if character in counts:
            counts[character] += 1
    # All readings count, since an address may well end with a bracket. A stranger gains nothing:
    # each is a part of what stands in the text.
    for reading in (raw, whole):
        yield reading
        yield reading.rstrip(_PUNCTUATION)


def without_links(
    text: str, *, is_allowed: Callable[[str], bool], is_named: Callable[[str], bool]
) -> str:
    """Return the text with its addresses written so that no program makes links of them, such as
    `https[:]//host[.]example/`. Those stay whose host is allowed, or that were named themselves.

    A chat opens the links in a message to show a preview, so a link can carry out what the model
    put into it.
    """

    def break_name(found: re.Match[str]) -> str:
        name = found[0]
        is_kept = name != ":" and (is_allowed(name.lower()) or not _is_linked(found))
        return name if is_kept else name.replace(":", "[:]").replace(".", "[.]")

    parts: list[str] = []
    at = 0
    while (match := _BOUNDED.search(text, at)) is not None:
        address = [*readings(match[0])][-1]
        is_whole = not match[0][len(address) :].strip(_PUNCTUATION)
        stays = is_allowed(host_of(address)) or (is_whole and is_named(address))
        # An address inside another may be a link of its own.
        stays = stays and "://" not in address[len("https://") :]
        parts.append(_LINKED.sub(break_name, text[at : match.start()]))
        parts.append(address if stays else _LINKED.sub(break_name, address))
        at = match.start() + len(address)
    return "".join([*parts, _LINKED.sub(break_name, text[at:])])


def _is_linked(found: re.Match[str]) -> bool:
    """Whether programs may take a dotted name for an address: they do of a host behind `//`, of one
    with a path, and of many names with several dots. The name of a file is left alone."""
    text, start, end = found.string, found.start(), found.end()
    after, labels = text[end : end + 2], found[0].split(".")
    if text[max(start - 2, 0) : start] == "//":
        return True
    has_path = after[:1] == "/" or (after[:1] in ("?", ":") and after[1:].isalnum())
    is_host = has_path or len(labels) > 2 or labels[0].lower() == "www"
    return is_host and _TOP_LEVEL.fullmatch(labels[-1]) is not None


def requested(address: str) -> str | None:
    """Return the address in the one form in which it is requested; None if it is not opened at all.

    Two spellings with the same form send the same bytes, such as another case of the host. Anything
    that a server could tell apart, such as a dot behind the host, gives another form.
    """
    try:
        url = parse(address)
    except Refused:
        return None
    return str(
        url.with_path("/") if url.raw_path in ("", "/") and not url.raw_query_string else url
    )


def host_of(address: str) -> str:
    """Return the host in lower case and ASCII, without a port and a dot at its end; "" if the
    address is not opened at all."""
    try:
        return (parse(address).raw_host or "").lower().rstrip(".")
    except Refused:
        return ""


def hosts_in(text: str) -> set[str]:
    """Return the hosts of all addresses in the text."""
    return {host_of(address) for address in in_text(text)}


def typed_hosts(text: str) -> set[str]:
    """Return the hosts of the addresses in a text as its author means them: without the
    punctuation that follows an address."""
    found = {host_of([*readings(match[0])][-1]) for match in URL.finditer(text)}
    return {host for host in found if _HOST_NAME.fullmatch(host)}


def site_of(host: str) -> str:
    """Return the domain that somebody registered for this host: who owns one, owns all hosts below.

    Without the public list of suffixes: what people share as a platform counts as one site.
    """
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        labels = host.split(".")
    is_country = len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _SECOND_LEVEL
    return ".".join(labels[-3 if is_country else -2 :])
