"""Sources: what kind of site a page belongs to, and which pages are one and the same source.

The class of a site is found by rules, never by what the page says about itself: the author of a
page would write that it is reliable. A model may call a source worse than the rules do, never
better. Two pages are independent if their domains have different owners and their texts differ: a
press release that ten papers print is one source. The rules are in `sources.toml`; the Public
Suffix List tells where a domain's owner begins.
"""

import ipaddress
import re
import tomllib
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from heapq import nsmallest
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agiraph.core.domain.text.passages import words
from agiraph.features.research.model.jobs import EvidenceRow, SourceClass

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

SHINGLE_WORDS = 8
SAME_WORDS = 0.5
"""The share of common shingles (Jaccard) above which two texts are one source."""
_SKETCH = 1024
"""Shingles that are compared of each text: those with the smallest hashes, a fair sample."""
_ORDER: tuple[SourceClass, ...] = ("unknown", "forum", "vendor", "press", "reference", "primary")


@cache
def _known() -> Mapping[str, Any]:
    text = resources.files("agiraph.features.research.model").joinpath("sources.toml").read_text()
    known = tomllib.loads(text)
    return known | {"class": {name: kind for kind, of in known["sites"].items() for name in of}}


@cache
def _suffixes() -> "PublicSuffixList":
    from publicsuffixlist import PublicSuffixList  # only research needs it

    listed = resources.files("publicsuffixlist").joinpath("public_suffix_list.dat")
    return PublicSuffixList([*listed.read_text("utf-8").splitlines(), *_known()["shared"]])


def host_of(url: str) -> str:
    """Return the host of an address in lower case; empty if it has none."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".").lower()
    except ValueError:
        return ""


def site_of(url: str) -> str:
    """Return the host of an address as people write it."""
    return host_of(url).removeprefix("www.")


@lru_cache(maxsize=4096)
def registrable_domain(url: str) -> str:
    """Return the part of an address's host that one owner registered: `bbc.co.uk`.

    On domains where everybody may have a name of their own, such as `github.io`, the owner is the
    one of that name.
    """
    host = host_of(url)
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return _suffixes().privatesuffix(host) or host
    return host


def classify(
    url: str, *, subjects: Collection[str] = (), suggested: SourceClass | None = None
) -> SourceClass:
    """Return the class of a page's site.

    `subjects` are names that the question is about: the site of one of them is primary.
    `suggested` is a model's view, which counts only if it is lower than what the rules say.
    """
    found = _classify_by_rule(url, subjects)
    if suggested is None or _ORDER.index(suggested) >= _ORDER.index(found):
        return found
    return suggested


def _classify_by_rule(url: str, subjects: Collection[str]) -> SourceClass:
    host, domain, known = host_of(url), registrable_domain(url), _known()
    path = urlsplit(url).path.lstrip("/") if host else url.partition(":")[2]
    page = f"{host}/{path}"
    if any(re.search(pattern, page) for pattern in known["talk"]):
        return "forum"
    labels = host.split(".")
    for name in (".".join(labels[place:]) for place in range(len(labels))):
        if name in known["class"]:
            return known["class"][name]
    for found, pattern in known["rules"]:
        if re.search(pattern, page):
            return found
    projects = path.casefold().split("/") if domain in known["hosting"] else []
    if _is_own([domain.split(".")[0], *projects], subjects):
        return "primary"
    return "press" if re.search(known["news"], page) else "unknown"


def _is_own(own: Iterable[str], subjects: Collection[str]) -> bool:
    names = {re.sub(r"[\W_]", "", name.casefold()) for name in subjects}
    return any(len(name) > 2 and re.sub(r"[\W_]", "", name) in names for name in own)


def _sketch(text: str) -> frozenset[int]:
    """Return the smallest hashes of the text's shingles: of every shingle if there are few."""
    said = words(text)
    count = max(1, len(said) - SHINGLE_WORDS + 1) if said else 0
    hashes = {zlib.crc32(" ".join(said[i : i + SHINGLE_WORDS]).encode()) for i in range(count)}
    return frozenset(hashes if len(hashes) <= _SKETCH else nsmallest(_SKETCH, hashes))


def _is_alike(one: frozenset[int], other: frozenset[int]) -> bool:
    union = one | other
    if len(union) > _SKETCH:
        # The smallest hashes of the union are a sample of it, in which both sketches are complete.
        union = frozenset(nsmallest(_SKETCH, union))
    return bool(union) and len(one & other & union) > SAME_WORDS * len(union)


def groups(rows: Sequence[EvidenceRow], pages: Mapping[str, str]) -> dict[str, int]:
    """Return for each entry's id the number of its source; entries with one number depend on each
    other. `pages` are the texts of the job's pages by their hashes.
    """
    sketches = {row.page_hash: _sketch(pages.get(row.page_hash, "")) for row in rows}
    numbers: dict[tuple[str, str], int] = {}
    for row in rows:
        page = (row.url, row.page_hash)
        if page in numbers:
            continue
        numbers[page] = len(numbers) + 1
        # All pages that depend on each other through this one get the smallest of their numbers.
        akin = {number for seen, number in numbers.items() if _is_akin(page, seen, sketches)}
        numbers = {
            seen: min(akin) if number in akin else number for seen, number in numbers.items()
        }
    return {row.id: numbers[row.url, row.page_hash] for row in rows}


def _is_akin(
    page: tuple[str, str], seen: tuple[str, str], sketches: Mapping[str, frozenset[int]]
) -> bool:
    (url, text), (other_url, other_text) = page, seen
    is_one_text = text == other_text or _is_alike(sketches[text], sketches[other_text])
    return is_one_text or registrable_domain(url) == registrable_domain(other_url)


def independent(rows: Sequence[EvidenceRow], pages: Mapping[str, str]) -> int:
    """Return how many independent sources these entries have."""
    return len(set(groups(rows, pages).values()))
