"""Package indexes behind the gate: read only, only what they list, only names that are allowed."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agiraph import config
from agiraph.core.domain.errors import Misconfigured
from agiraph.doctor.surroundings import index_states
from agiraph.sandbox.gate.indexes import PythonSources, pip_settings
from agiraph.sandbox.gate.package_names import PackageNames, installed_names, names_in
from agiraph.sandbox.gate.rules import Rules
from agiraph.web.addresses import AddressPolicy
from tests.web.gate.gates import OpenGate, open_gate
from tests.web.gate.upstreams import Upstream, open_upstream, tarball, wheel

SECRET = "secret-data-4711"


def fill(upstream: Upstream) -> None:
    """Put packages of each kind into the indexes."""
    upstream.python |= {
        "tea-timer": wheel("tea-timer", needs=["cup-holder>=1"]),
        "cup-holder": wheel("cup-holder"),
        SECRET: wheel(SECRET),
    }
    upstream.npm |= {
        "tea-js": (tarball("tea-js"), {"@cups/one": "^1.0.0", "alias": "npm:cup-two@1"}),
        "@cups/one": (tarball("@cups/one"), {}),
        "cup-two": (tarball("cup-two"), {}),
    }
    line = {"name": "teapot", "vers": "1.0.0", "cksum": "ab", "deps": [{"name": "spout"}]}
    upstream.pages |= {
        "/cargo/te/ap/teapot": json.dumps(line).encode(),
        "/cargo/config.json": json.dumps({"dl": f"{upstream.url}/crates"}).encode(),
        "/crates/teapot/1.0.0/download": b"a crate",
    }


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with open_upstream() as opened:
        fill(opened)
        yield opened


def rules(**more: object) -> Rules:
    return Rules(network="packages", names=PackageNames(**more))  # pyright: ignore


async def files_of(gate: OpenGate, name: str) -> list[str]:
    status, page = await gate.get(f"/pypi/simple/{name}/")
    assert status == 200
    return re.findall(r'href="([^"#]+)', page.decode())


async def test_a_page_leads_to_the_gate_alone_and_keeps_the_hashes(upstream: Upstream) -> None:
    async with open_gate(rules(), indexes=upstream.indexes) as gate:
        _, page = await gate.get("/pypi/simple/Tea_Timer/")
        [file] = await files_of(gate, "tea-timer")
        status, content = await gate.get(file.removeprefix(f"http://127.0.0.1:{gate.port}"))
    assert re.search(rb"#sha256=[0-9a-f]{64}\"", page)
    assert str(upstream.port).encode() not in page
    assert (status, content) == (200, upstream.python["tea-timer"])
    assert gate.noted == [("127.0.0.1", "packages")]


REFUSED = {
    "GET /pypi/files/tea-timer/other-1.0-py3-none-any.whl": 404,
    "GET /pypi/simple/tea-timer/?q=secret": 404,
    "GET /pypi/simple/": 404,
    "GET /pypi/simple/..%2f..%2fetc/": 404,
    "GET /pypi/simple/a%00b/": 404,
    "PUT /pypi/simple/tea-timer/": 403,
    "POST /npm/tea-js": 403,
    "DELETE /npm/tea-js": 403,
    "GET /npm/-/v1/search?text=secret": 404,
    "GET /npm/tea-js/-/other.tgz": 404,
    "GET /npm/../pages/x": 404,
    "GET /cargo/index/xx/ap/teapot": 404,
    "GET /cargo/files/teapot/9.9.9": 404,
    "GET /go/example.com/!secret/@v/list": 404,
    "GET /": 404,
}


async def test_what_no_index_lists_is_refused_and_never_asked_for(upstream: Upstream) -> None:
    async with open_gate(rules(), indexes=upstream.indexes) as gate:
        found = {line: (await gate.ask(f"{line} HTTP/1.1\nHost: x"))[0] for line in REFUSED}
    assert found == REFUSED
    assert not [asked for asked in upstream.asked if "secret" in asked or "other" in asked]


async def test_upstream_sees_no_header_of_the_command(upstream: Upstream) -> None:
    async with open_gate(rules(), indexes=upstream.indexes) as gate:
        head = "GET /pypi/simple/tea-timer/ HTTP/1.1\nHost: x\nAccept: text/secret\nX-Data: secret"
        await gate.ask(f"{head}\nUser-Agent: secret\nCookie: secret\nAuthorization: Basic secret")
    [seen] = upstream.headers
    assert set(seen) == {"host", "user-agent", "accept", "accept-encoding"}
    assert "secret" not in str(seen)


async def test_npm_packages_keep_their_integrity_and_are_fetched_through_the_gate(
    upstream: Upstream,
) -> None:
    async with open_gate(rules(), indexes=upstream.indexes) as gate:
        status, body = await gate.get("/npm/@cups%2fone")
        version = json.loads(body)["versions"]["1.0.0"]
        path = version["dist"]["tarball"].removeprefix(f"http://127.0.0.1:{gate.port}")
        assert (status, path) == (200, "/npm/@cups/one/-/one-1.0.0.tgz")
        assert version["dist"]["integrity"].startswith("sha512-")
        assert await gate.get(path) == (200, upstream.npm["@cups/one"][0])
    # A lock file names files of packages that this command has not asked for before.
    async with open_gate(rules(), indexes=upstream.indexes) as gate:
        assert await gate.get(path) == (200, upstream.npm["@cups/one"][0])


async def test_cargo_reads_a_sparse_index(upstream: Upstream) -> None:
    async with open_gate(rules(), indexes=upstream.indexes) as gate:
        _, settings = await gate.get("/cargo/index/config.json")
        status, line = await gate.get("/cargo/index/te/ap/teapot")
        assert (status, json.loads(line)["cksum"]) == (200, "ab")
        assert await gate.get("/cargo/files/teapot/1.0.0") == (200, b"a crate")
    own = f"http://127.0.0.1:{gate.port}/cargo/files/{{crate}}/{{version}}"
    assert json.loads(settings) == {"dl": own}


async def test_a_bound_command_asks_for_no_name_that_a_stranger_can_have_made_up(
    upstream: Upstream,
) -> None:
    """The owner of a rare package sees its downloads: a name would carry a secret out."""
    async with open_gate(rules(is_bound=True), indexes=upstream.indexes) as gate:
        status, said = await gate.get(f"/pypi/simple/{SECRET}/")
        by_npm, _ = await gate.get(f"/npm/{SECRET}")
        by_cargo, _ = await gate.get(f"/cargo/index/se/cr/{SECRET}")
    assert (status, by_npm, by_cargo, upstream.asked) == (403, 403, 403, [])
    assert f"`agiraph grant TEAM packages {SECRET}`" in said.decode()


async def test_declared_granted_well_known_and_needed_packages_are_allowed(
    upstream: Upstream,
) -> None:
    known = rules(is_bound=True, granted=["granted-one"], declared=lambda: ["Tea.Timer", "tea-js"])
    async with open_gate(known, indexes=upstream.indexes) as gate:
        assert (await gate.get("/pypi/simple/cup-holder/"))[0] == 403
        [file] = await files_of(gate, "tea-timer")
        await gate.get(file.removeprefix(f"http://127.0.0.1:{gate.port}"))
        assert (await gate.get("/pypi/simple/cup-holder/"))[0] == 200  # the wheel needs it
        assert (await gate.get("/npm/@cups%2fone"))[0] == 403
        await gate.get("/npm/tea-js")
        assert [(await gate.get(f"/npm/{n}"))[0] for n in ("@cups%2fone", "cup-two")] == [200, 200]
        # Allowed, though this index has neither.
        assert (await gate.get("/pypi/simple/requests/"))[0] == 404
        assert (await gate.get("/pypi/simple/granted-one/"))[0] == 404


async def test_a_clean_command_is_bound_once_it_has_received_a_package(upstream: Upstream) -> None:
    """From then on a stranger's code may run in it: an install script, for example."""
    async with open_gate(rules(declared=lambda: ["cup-two"]), indexes=upstream.indexes) as gate:
        assert (await gate.get("/npm/tea-js"))[0] == 200
        assert (await gate.get(f"/pypi/simple/{SECRET}/"))[0] == 200
        await gate.get("/npm/tea-js/-/tea-js-1.0.0.tgz")
        upstream.asked.clear()
        assert (await gate.get("/pypi/simple/other-secret/"))[0] == 403
        assert (await gate.get("/npm/cup-two"))[0] == 200
    assert upstream.asked == ["GET /npm/cup-two"]


async def test_a_page_of_the_network_leads_to_no_file_and_no_server_of_this_machine(
    upstream: Upstream,
) -> None:
    name = "evil-1.0-py3-none-any.whl"
    links = [f"file:///etc/{name}", f"http://169.254.169.254/{name}", f"http://[::1]/{name}"]
    page = "".join(f'<a href="{link}"></a>' for link in links)
    upstream.pages["/index/evil/"] = page.encode()
    indexes = upstream.indexes
    assert indexes.python is not None
    indexes.python = type(indexes.python)(indexes=(f"{upstream.url}/index",))
    async with open_gate(rules(), indexes=indexes) as gate:
        status, said = await gate.get(f"/pypi/files/evil/{name}")
    assert status == 403
    assert b"not in the public internet" in said


def test_names_are_found_where_manifests_write_them() -> None:
    text = 'rich==13.1 "@types/node": "^20" serde = { version = "1" } tea-timer[extra]>=2, a.b'
    assert {"rich", "@types/node", "serde", "tea-timer", "a.b"} <= names_in(text)
    assert "secret" not in names_in(text)


def test_the_settings_of_pip_are_read_with_the_environment_first() -> None:
    listed = (
        ":env:.index-url='http://one.example/simple'\n"
        "global.extra-index-url='file:///a http://two.example/simple'\n"
        "global.index-url='http://other.example/simple'\n"
    )
    assert pip_settings(listed) == {
        "index-url": ["http://one.example/simple"],
        "extra-index-url": ["file:///a", "http://two.example/simple"],
    }


def test_the_settings_name_indexes_and_their_passwords_are_masked(tmp_path: Path) -> None:
    address = "https://me:pass-4711@index.example/simple"
    (tmp_path / "agiraph.toml").write_text(
        f'[packages]\npython = ["{address}"]\nnpm = "https://npm.example/"\n'
    )
    found = config.load({"AGIRAPH_HOME": str(tmp_path)})
    assert found.web.indexes.python == PythonSources(indexes=(address,))
    assert {name: s.value for name, s in found.shown.items() if name.startswith("packages")} == {
        "packages.python": "https://me:…@index.example/simple",
        "packages.npm": "https://npm.example/",
    }


@pytest.mark.parametrize("line", ['python = "x"', 'npm = "ftp://x"', "go = 1"])
def test_a_wrong_table_of_packages_is_refused_with_an_example(tmp_path: Path, line: str) -> None:
    (tmp_path / "agiraph.toml").write_text(f"[packages]\n{line}\n")
    with pytest.raises(Misconfigured, match=r"packages\..*Write \[packages\] with python = "):
        config.load({"AGIRAPH_HOME": str(tmp_path)})


async def test_the_check_of_indexes_says_which_answers(upstream: Upstream, tmp_path: Path) -> None:
    indexes = upstream.indexes
    missing = (tmp_path / "missing").as_uri()
    indexes.python = PythonSources(indexes=(f"{upstream.url}/simple", missing))
    indexes.npm, indexes.cargo = "http://127.0.0.1:1/", f"{upstream.url}/cargo/"
    states = [state async for state in index_states(indexes, AddressPolicy())]
    assert [(state.kind, bool(state.fault)) for state in states] == [
        ("python", False),
        ("python", True),
        ("npm", True),
        ("cargo", False),
    ]


INSTALLED = {
    "pip install rich==13 'tea-timer[all]>=2' -q": {"rich", "tea-timer"},
    "TOKEN=secret npm install left-pad@1.3 @types/node@20 && echo secret": {
        "left-pad",
        "@types/node",
    },
    "pip install --index-url https://me:secret@x.example/ --token secret tea": {"tea"},
    "uv pip install a; cargo add serde | cat": {"a", "serde"},
    "pip list secret; grep secret notes.md; echo pip": set(),
}


@pytest.mark.parametrize("command", INSTALLED)
def test_only_what_an_installer_is_given_counts_as_declared(command: str) -> None:
    assert installed_names(command) == INSTALLED[command]
