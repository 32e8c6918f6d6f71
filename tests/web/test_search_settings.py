"""Search settings: the engine that the environment or the file names."""

from pathlib import Path

import pytest

from agiraph.config import Setting, load
from agiraph.core.domain.errors import Misconfigured, Refused
from agiraph.models.searching import VendorEngine
from agiraph.web.open_sources import OpenEngine
from agiraph.web.search import RemoteEngine
from tests.wording import Wording, refusals

KEY = "a-key-of-some-length"


def settings(tmp_path: Path, toml: str = "", **environ: str) -> dict[str, str]:
    (tmp_path / "agiraph.toml").write_text(toml)
    return {"AGIRAPH_HOME": str(tmp_path), **environ}


@pytest.mark.parametrize(
    ("name", "variable"),
    [("brave", "BRAVE_API_KEY"), ("serper", "SERPER_API_KEY"), ("tavily", "TAVILY_API_KEY")],
)
def test_a_key_in_the_environment_selects_the_search_engine(
    tmp_path: Path, name: str, variable: str
) -> None:
    found = load(settings(tmp_path, **{variable: KEY}))
    assert found.web.engine == RemoteEngine(name=name, key=KEY)
    assert (found.shown["search"].value, found.shown["search"].origin) == (
        f"{name} (key: set)",
        "environment",
    )
    assert KEY not in repr(found)


def test_searxng_needs_only_its_address(tmp_path: Path) -> None:
    found = load(settings(tmp_path, SEARXNG_URL="http://127.0.0.1:8888"))
    assert found.web.engine == RemoteEngine(name="searxng", base_url="http://127.0.0.1:8888")


def test_the_file_names_an_engine_and_the_variable_of_its_key(tmp_path: Path) -> None:
    toml = '[search]\nprovider = "tavily"\nkey_env = "MINE"\nbase_url = "https://proxy.example/t"\n'
    found = load(settings(tmp_path, toml, MINE=KEY, BRAVE_API_KEY="another-key"))
    expected = RemoteEngine(name="tavily", key=KEY, base_url="https://proxy.example/t")
    assert found.web.engine == expected


def test_without_any_key_the_open_sources_are_searched(tmp_path: Path) -> None:
    found = load(settings(tmp_path))
    assert found.web.engine == OpenEngine()
    assert found.shown["search"] == Setting(
        value="open: Wikipedia, Crossref, arXiv (contact: none)", origin="default"
    )


def test_the_key_of_a_vendor_is_enough_to_search(tmp_path: Path) -> None:
    found = load(settings(tmp_path, OPENAI_API_KEY=KEY, ANTHROPIC_API_KEY=KEY))
    assert found.web.engine == VendorEngine(name="anthropic", key=KEY)
    assert found.shown["search"] == Setting(
        value="anthropic (the vendor's own search)", origin="environment"
    )
    assert KEY not in repr(found)


def test_an_engine_of_ones_own_comes_before_a_vendor(tmp_path: Path) -> None:
    found = load(settings(tmp_path, OPENAI_API_KEY=KEY, BRAVE_API_KEY=KEY))
    assert found.web.engine == RemoteEngine(name="brave", key=KEY)


@pytest.mark.parametrize(
    ("toml", "environ", "engine"),
    [
        ('search = "none"', {"BRAVE_API_KEY": KEY}, None),
        ("", {"AGIRAPH_SEARCH": "none", "BRAVE_API_KEY": KEY}, None),
        ('search = "open"', {"OPENAI_API_KEY": KEY}, OpenEngine()),
        (
            '[search]\nprovider = "open"\ncontact = "me@home.example"\n',
            {},
            OpenEngine(contact="me@home.example"),
        ),
        (
            '[search]\nprovider = "gemini"\nmodel = "small"\n',
            {"GEMINI_API_KEY": KEY},
            VendorEngine(name="gemini", key=KEY, model="small"),
        ),
        (
            '[search]\nprovider = "brave"\nusd_per_1000 = 3.0\n',
            {"BRAVE_API_KEY": KEY},
            RemoteEngine(name="brave", key=KEY, own_usd_per_1000=3.0),
        ),
        ('search = "brave"', {"BRAVE_API_KEY": KEY}, RemoteEngine(name="brave", key=KEY)),
    ],
)
def test_the_file_or_the_environment_chooses_an_engine_or_none(
    tmp_path: Path, toml: str, environ: dict[str, str], engine: object
) -> None:
    assert load(settings(tmp_path, toml, **environ)).web.engine == engine


WRONG_SETTINGS = [
    ('search = "brave"', {}),
    ("[search]\n", {}),
    ('[search]\nprovider = "google"\n', {}),
    ('search = "gemini"', {}),
    ("", {"AGIRAPH_SEARCH": "google"}),
    ("search = 5", {}),
    ('[search]\nprovider = "brave"\n', {}),
    ('[search]\nprovider = "brave"\nkey = "x"\n', {"BRAVE_API_KEY": KEY}),
    ('[search]\nprovider = "brave"\nbase_url = "ftp://x"\n', {"BRAVE_API_KEY": KEY}),
    ('[search]\nprovider = "searxng"\n', {}),
    ("", {"SEARXNG_URL": "localhost:8888"}),
]


def test_a_wrong_search_setting_is_named(tmp_path: Path, wording: Wording) -> None:
    wording(
        refusals(
            WRONG_SETTINGS,
            lambda one, environ: load(settings(tmp_path, one, **environ)),
            Misconfigured,
        )
    )


async def test_the_port_of_the_api_is_refused(tmp_path: Path) -> None:
    found = load(settings(tmp_path, AGIRAPH_PORT="9321"))
    with pytest.raises(Refused, match="Port 9321 is this runtime's own"):
        await found.web.fetcher.fetch("http://example.com:9321/")
