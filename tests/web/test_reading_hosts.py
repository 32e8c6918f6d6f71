"""Reading hosts: which addresses are in the listed part of a site, and how the list is set."""

from pathlib import Path

import pytest

from agiraph.config import load
from agiraph.core.domain.errors import Misconfigured
from agiraph.web.reading_hosts import SHIPPED, ReadingHosts, is_entry
from tests.wording import Wording, refusals

INSIDE = [
    "https://en.wikipedia.org/wiki/Bread",
    "https://DE.wikipedia.org/wiki/Brot?action=raw#top",
    "https://wikipedia.org/wiki/Bread",
    "https://arxiv.org/abs/1706.03762",
    "https://www.rfc-editor.org/rfc/rfc9110.html",
    "https://www.w3.org/TR/png/",
    "https://developer.mozilla.org/en-US/docs/Web/HTTP",
    "https://docs.python.org/3/library/os.html",
    "https://docs.python.org",
    "https://pubmed.ncbi.nlm.nih.gov/?term=bread",
]
OUTSIDE = [
    "https://wikipedia.org.evil.test/wiki/Bread",
    "https://evilwikipedia.org/wiki/Bread",
    "https://en.wikipedia.org/api/rest_v1/data/citation/zotero/https%3A%2F%2Fevil.test",
    "https://en.wikipedia.org/w/index.php?title=Bread",
    "https://en.wikipedia.org/wiki/../api/x",
    "https://en.wikipedia.org/wiki/%2e%2e/api/x",
    "https://en.wikipedia.org/wiki/..%2Fapi/x",
    "https://en.wikipedia.org/wiki//evil.test",
    "https://en.wikipedia.org:8443/wiki/Bread",
    "https://docs.python.org@evil.test/3/",
    "https://validator.w3.org/nu/?doc=https://evil.test",
    "https://www.w3.org/services/html2txt?url=https://evil.test",
    "https://developer.mozilla.org/en-US/observatory/analyze?host=evil.test",
    "https://author-tools.ietf.org/api/render?url=https://evil.test",
    "ftp://docs.python.org/",
    "docs.python.org",
    "",
]


@pytest.mark.parametrize("address", INSIDE)
def test_an_address_in_a_listed_part_is_at_a_reading_host(address: str) -> None:
    assert ReadingHosts().has(address)


@pytest.mark.parametrize("address", OUTSIDE)
def test_an_address_beside_the_listed_part_is_not(address: str) -> None:
    assert not ReadingHosts().has(address)


def test_every_shipped_entry_could_be_written_in_the_settings() -> None:
    assert [entry for entry in SHIPPED if not is_entry(entry)] == []


def test_a_host_is_named_by_its_entry() -> None:
    hosts = ReadingHosts(("*.example.org/wiki/", "docs.example.com"))
    named = ["a.example.org", "example.org", "docs.example.com", "example.com", "evilexample.org"]
    assert [hosts.names(host) for host in named] == [True, True, True, False, False]


def settings(tmp_path: Path, toml: str) -> ReadingHosts:
    (tmp_path / "agiraph.toml").write_text(toml)
    found = load({"AGIRAPH_HOME": str(tmp_path)})
    return found.web.reading_hosts


def test_the_settings_replace_the_list(tmp_path: Path) -> None:
    assert settings(tmp_path, "") == ReadingHosts(SHIPPED)
    assert settings(tmp_path, "[web]\n") == ReadingHosts(SHIPPED)
    assert settings(tmp_path, "[web]\nreading_hosts = []\n") == ReadingHosts(())
    hosts = settings(tmp_path, '[web]\nreading_hosts = ["docs.example.org", "*.example.com/a/"]\n')
    assert hosts == ReadingHosts(("docs.example.org", "*.example.com/a/"))


WRONG_LISTS = [
    '[web]\nreading_hosts = "docs.example.org"\n',
    '[web]\nreading_hosts = ["https://docs.example.org"]\n',
    '[web]\nreading_hosts = ["*"]\n',
    '[web]\nreading_hosts = ["*.com"]\n',
    '[web]\nreading_hosts = ["Docs.example.org"]\n',
    '[web]\nhosts = ["docs.example.org"]\n',
    "web = 3\n",
]


def test_a_wrong_list_is_named_with_an_example(tmp_path: Path, wording: Wording) -> None:
    wording(refusals(WRONG_LISTS, lambda toml: settings(tmp_path, toml), Misconfigured))
