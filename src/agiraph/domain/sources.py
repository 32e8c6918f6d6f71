"""Sources: what kind of site a page belongs to, and which pages are one and the same source.

The class of a site is found by rules, never by what the page says about itself: the author of a
page would write that it is reliable. A model may call a source worse than the rules do, never
better. Two pages are independent if their domains have different owners and their texts differ: a
press release that ten papers print is one source.
"""

import ipaddress
import re
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import nsmallest
from urllib.parse import urlsplit

from agiraph.domain.evidence import EvidenceRow, SourceClass
from agiraph.domain.passages import words

SHINGLE_WORDS = 8
SAME_WORDS = 0.5
"""The share of common shingles (Jaccard) above which two texts are one source."""
_SKETCH = 1024
"""Shingles that are compared of each text: those with the smallest hashes, a fair sample."""
_ORDER: tuple[SourceClass, ...] = ("unknown", "forum", "vendor", "press", "reference", "primary")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SECOND_LEVEL = _names(
    """
    co com org net gov gob gouv gc edu ac or ne go ad ed gr lg mil sch nhs police plc ltd me
    nom asso tm id web info pro art k12 res ernet nic bl parliament judiciary govt school
    """
)
"""Names below a country's top-level domain that belong to nobody in particular: `co.uk`."""
_SHARED = _names(
    """
    github.io gitlab.io blogspot.com wordpress.com substack.com medium.com readthedocs.io
    readthedocs.org pages.dev workers.dev vercel.app netlify.app herokuapp.com web.app
    firebaseapp.com tumblr.com wixsite.com weebly.com notion.site hatenablog.com
    livejournal.com hashnode.dev bearblog.dev fly.dev onrender.com azurewebsites.net
    cloudfront.net sourceforge.io neocities.org typepad.com over-blog.com jimdofree.com
    squarespace.com myshopify.com surge.sh repl.co glitch.me altervista.org s3.amazonaws.com
    """
)
"""Domains below which each name belongs to another owner."""

_PRIMARY = _names(
    """
    doi.org arxiv.org biorxiv.org medrxiv.org ssrn.com zenodo.org figshare.com osf.io
    europa.eu ietf.org rfc-editor.org w3.org iso.org iec.ch ieee.org itu.int who.int un.org
    wto.org oecd.org imf.org worldbank.org bis.org ecb.europa.eu admin.ch bund.de bundestag.de
    destatis.de gesetze-im-internet.de bundesbank.de legifrance.fr insee.fr ine.es boe.es
    crossref.org datacite.org clinicaltrials.gov unicode.org ecma-international.org whatwg.org
    python.org postgresql.org sqlite.org kernel.org gnu.org nasa.gov cern.ch esa.int
    eurostat.eu statcan.gc.ca abs.gov.au ourworldindata.org nature.com science.org pnas.org
    cell.com plos.org springer.com sciencedirect.com wiley.com acm.org aps.org nejm.org
    thelancet.com bmj.com frontiersin.org mdpi.com semanticscholar.org aclanthology.org
    openreview.net jstor.org
    """
)
_REFERENCE = _names(
    """
    wikipedia.org wikimedia.org wikidata.org wiktionary.org wikisource.org wikibooks.org
    wikiversity.org wikivoyage.org mediawiki.org britannica.com merriam-webster.com duden.de
    larousse.fr rae.es treccani.it oed.com cambridge.org oxfordreference.com mozilla.org
    encyclopedia.com scholarpedia.org stanford.edu mathworld.com wolfram.com statista.com
    brockhaus.de spektrum.de universalis.fr snl.no lexico.com
    """
)
_PRESS = _names(
    """
    reuters.com apnews.com afp.com dpa.com bbc.co.uk bbc.com nytimes.com washingtonpost.com
    wsj.com ft.com bloomberg.com economist.com theguardian.com independent.co.uk
    telegraph.co.uk thetimes.co.uk cnn.com npr.org cnbc.com cbsnews.com nbcnews.com
    abcnews.go.com usatoday.com latimes.com politico.com politico.eu axios.com theatlantic.com
    newyorker.com time.com forbes.com businessinsider.com arstechnica.com wired.com
    theverge.com techcrunch.com zdnet.com theregister.com heise.de golem.de spiegel.de zeit.de
    faz.net sueddeutsche.de welt.de taz.de tagesschau.de zdf.de ard.de ndr.de handelsblatt.com
    nzz.ch srf.ch orf.at derstandard.at diepresse.com lemonde.fr lefigaro.fr liberation.fr
    lesechos.fr france24.com francetvinfo.fr rfi.fr lequipe.fr elpais.com elmundo.es abc.es
    lavanguardia.com elconfidencial.com rtve.es clarin.com lanacion.com.ar eluniversal.com.mx
    corriere.it repubblica.it ilsole24ore.com ansa.it publico.pt folha.uol.com.br globo.com
    nos.nl volkskrant.nl nrc.nl svt.se dn.se dr.dk nrk.no yle.fi nhk.or.jp asahi.com
    nikkei.com japantimes.co.jp scmp.com xinhuanet.com aljazeera.com haaretz.com
    timesofindia.indiatimes.com thehindu.com abc.net.au smh.com.au cbc.ca theglobeandmail.com
    irishtimes.com rte.ie euronews.com dw.com semafor.com newscientist.com
    scientificamerican.com nationalgeographic.com quantamagazine.org phys.org
    """
)
_FORUM = _names(
    """
    reddit.com stackoverflow.com stackexchange.com superuser.com serverfault.com askubuntu.com
    mathoverflow.net quora.com ycombinator.com lobste.rs slashdot.org x.com twitter.com
    facebook.com instagram.com threads.net tiktok.com youtube.com vimeo.com linkedin.com
    pinterest.com bsky.app mastodon.social discord.com telegram.org t.me medium.com
    substack.com tumblr.com dev.to gutefrage.net zhihu.com weibo.com 4chan.org producthunt.com
    trustpilot.com tripadvisor.com yelp.com glassdoor.com disqus.com groups.google.com
    """
)
_VENDOR = _names(
    """
    amazon.com amazon.de amazon.co.uk amazon.fr amazon.es ebay.com ebay.de alibaba.com
    aliexpress.com etsy.com walmart.com bestbuy.com otto.de idealo.de check24.de booking.com
    expedia.com g2.com capterra.com getapp.com shopify.com myshopify.com
    """
)
_BY_DOMAIN: dict[str, SourceClass] = {  # pyrefly: ignore[bad-assignment]
    **dict.fromkeys(_VENDOR, "vendor"),
    **dict.fromkeys(_PRESS, "press"),
    **dict.fromkeys(_REFERENCE, "reference"),
    **dict.fromkeys(_PRIMARY, "primary"),
    **dict.fromkeys(_FORUM, "forum"),
}
_HOSTING = _names(
    """
    github.com gitlab.com codeberg.org sourceforge.net pypi.org npmjs.com crates.io docs.rs
    readthedocs.io readthedocs.org
    """
)
"""Hosts of many people's projects: primary only for a project that the question is about."""
_PUBLIC_BODY = re.compile(r"(?:^|\.)(?:gov|mil|int|gob|gouv|gc|govt|go|nhs)(?:\.[a-z]{2})?$")
_SCHOOL = re.compile(r"(?:^|\.)(?:edu|ac)(?:\.[a-z]{2})?$")
_FORUM_HOST = re.compile(r"^(?:forums?|community|communities|discuss|discourse|boards?|answers)\.")
_FORUM_PATH = re.compile(r"^/(?:forums?|threads?|discussions?)/", re.I)
_TALK = re.compile(r"^/[^/]+/[^/]+/(?:issues|discussions|pull)\b")
_SHOP = re.compile(r"^(?:shop|store|buy|pricing)\.")
_SHOP_PATH = re.compile(
    r"/(?:shop|store|buy|pricing|prices|products?|cart|preise|produkte?|tarifs|precios)(?:/|$)",
    re.I,
)
_PAPER = re.compile(r"(?:^|/)10\.\d{4,9}/\S")
_NEWS = re.compile(r"^(?:news|nachrichten|actualites|noticias)\.")


def host_of(url: str) -> str:
    """Return the host of an address in lower case; empty if it has none."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".").lower()
    except ValueError:
        return ""


def registrable_domain(url: str) -> str:
    """Return the part of an address's host that one owner registered: `bbc.co.uk`.

    On domains where everybody may have a name of their own, such as `github.io`, the owner is the
    one of that name.
    """
    host = host_of(url)
    try:
        ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        return host
    labels = host.split(".")
    for size in (3, 2):
        if len(labels) > size and ".".join(labels[-size:]) in _SHARED:
            return ".".join(labels[-size - 1 :])
    if len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _SECOND_LEVEL:
        return ".".join(labels[-3:])
    return ".".join(labels[-2:])


def classify(
    url: str, *, subjects: Collection[str] = (), suggested: SourceClass | None = None
) -> SourceClass:
    """Return the class of a page's site.

    `subjects` are names that the question is about: the site of one of them is primary.
    `suggested` is a model's view, which counts only if it is lower than what the rules say.
    """
    found = _by_rule(url, subjects)
    if suggested is None or _ORDER.index(suggested) >= _ORDER.index(found):
        return found
    return suggested


def _by_rule(url: str, subjects: Collection[str]) -> SourceClass:
    host, domain = host_of(url), registrable_domain(url)
    path = _path(url)
    if _FORUM_HOST.match(host) or _FORUM_PATH.match(path) or _TALK.match(path):
        return "forum"
    for name in (host, domain, ".".join(host.split(".")[-2:])):
        if name in _BY_DOMAIN:
            return _BY_DOMAIN[name]
    if _PUBLIC_BODY.search(host) or _PAPER.search(path):
        return "primary"
    if _SCHOOL.search(host):
        return "reference"
    if _SHOP.match(host) or _SHOP_PATH.search(path):
        return "vendor"
    projects = path.casefold().split("/") if domain in _HOSTING else []
    if _is_own([domain.split(".")[0], *projects], subjects):
        return "primary"
    return "press" if _NEWS.match(host) else "unknown"


def _path(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


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
    seen: dict[tuple[str, str], _SeenPage] = {}
    for row in rows:
        if (row.url, row.page_hash) not in seen:
            _join(seen, row, _sketch(pages.get(row.page_hash, "")))
    return {row.id: seen[row.url, row.page_hash].number for row in rows}


def _join(
    seen: "dict[tuple[str, str], _SeenPage]", row: EvidenceRow, sketch: frozenset[int]
) -> None:
    """Add a page; all pages that depend on each other through it get the smallest number."""
    page = seen[row.url, row.page_hash] = _SeenPage(row.url, row.page_hash, sketch)
    page.number = len(seen)
    akin = {other.number for other in seen.values() if page.is_akin(other)}
    for other in seen.values():
        if other.number in akin:
            other.number = min(akin)


class _SeenPage:
    """A page with the number of its source. The number gets smaller when the page turns out to be a
    copy of an earlier one."""

    __slots__ = ("domain", "hash", "number", "sketch", "url")

    def __init__(self, url: str, hash: str, sketch: frozenset[int]) -> None:
        self.url, self.hash, self.sketch = url, hash, sketch
        self.domain = registrable_domain(url)
        self.number = 0

    def is_akin(self, other: "_SeenPage") -> bool:
        is_one_text = self.hash == other.hash or _is_alike(self.sketch, other.sketch)
        return self.domain == other.domain or is_one_text


def independent(rows: Sequence[EvidenceRow], pages: Mapping[str, str]) -> int:
    """Return how many independent sources these entries have."""
    return len(set(groups(rows, pages).values()))
