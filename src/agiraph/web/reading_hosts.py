"""Reading hosts: sites where a request tells nobody but the site's operator what was asked for.

A thread that holds untrusted text may open any address there, also one that it made up. So an
entry must not lead to anything that fetches an address for its caller, such as a validator or
Wikipedia's citation service: an entry therefore names a part of a site where that is needed.
"""

import re

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.value import dataclass
from agiraph.web.addresses import parse

SHIPPED = (
    *(
        f"*.{name}.org/wiki/"
        for name in (
            *("wikipedia", "wiktionary", "wikibooks", "wikiquote", "wikisource", "wikiversity"),
            *("wikivoyage", "wikinews", "wikidata"),
        )
    ),
    *("commons.wikimedia.org/wiki/", "species.wikimedia.org/wiki/", "www.mediawiki.org/wiki/"),
    *(f"{host}/{part}/" for host in ("arxiv.org", "www.arxiv.org") for part in ("abs", "html")),
    *("arxiv.org/list/", "arxiv.org/search/", "export.arxiv.org/api/query"),
    *("datatracker.ietf.org/doc/", "www.ietf.org/archive/", "www.rfc-editor.org/rfc/"),
    *("www.w3.org/TR/", "developer.mozilla.org/*/docs/", "docs.python.org"),
    "pubmed.ncbi.nlm.nih.gov",
)
"""The hosts that `[web] reading_hosts` in agiraph.toml replaces."""
_ENTRY = re.compile(r"(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)+(/[\w.*~%-]*)*", re.ASCII)
_HIDDEN = ("..", "%2e", "%2f", "%5c", "//")
"""What a server may read as another path than we do."""


@dataclass(frozen=True, slots=True)
class ReadingHosts:
    """A list of hosts: `*.` before a host includes its subdomains, a path behind it names the part
    of the site that counts, and `*` in the path stands for one name."""

    entries: tuple[str, ...] = SHIPPED

    def has(self, address: str) -> bool:
        """Whether the address is in one of the listed parts."""
        try:
            url = parse(address)
        except Refused:
            return False
        host, path = (url.raw_host or "").rstrip("."), url.raw_path
        is_plain = url.explicit_port is None and not any(p in path.lower() for p in _HIDDEN)
        return is_plain and any(_fits(entry, host, path) for entry in self.entries)

    def names(self, host: str) -> bool:
        """Whether an entry is about this host."""
        return any(_is_host(entry.partition("/")[0], host) for entry in self.entries)


def is_entry(text: str) -> bool:
    """Whether this can be an entry of the list."""
    return _ENTRY.fullmatch(text) is not None


def _fits(entry: str, host: str, path: str) -> bool:
    wanted, slash, part = entry.partition("/")
    if not _is_host(wanted, host):
        return False
    pattern = "/".join("[^/]*" if name == "*" else re.escape(name) for name in part.split("/"))
    return re.match(f"/{pattern}", path) is not None if slash else True


def _is_host(wanted: str, host: str) -> bool:
    if wanted.startswith("*."):
        return host == wanted[2:] or host.endswith(wanted[1:])
    return host == wanted
