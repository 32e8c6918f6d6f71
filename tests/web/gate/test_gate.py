"""The gate: which hosts a command reaches, what git may do, and what a rude client can use up."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from agiraph.core.domain.errors import StoreUnavailable
from agiraph.sandbox.gate.exchange import Limits
from agiraph.sandbox.gate.indexes import PythonSources
from agiraph.sandbox.gate.rules import Denied, Endpoint, Rules, names_host
from agiraph.sandbox.gate.server import Reached
from agiraph.sandbox.gate.vendors import environment, program_of, reachable
from agiraph.web.addresses import AddressPolicy, StandIn
from tests.web.gate.gates import PUBLIC, open_gate
from tests.web.gate.upstreams import Upstream, open_upstream, wheel
from tests.web.sites import recording_connections

PACKAGES, OPEN = Rules(network="packages"), Rules(network="open")
HOSTS = Rules(network="hosts", reachable=frozenset({PUBLIC}))


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with open_upstream() as opened:
        opened.pages["/page"] = b"a page"
        yield opened


async def test_a_granted_host_is_reached_with_and_without_a_tunnel(upstream: Upstream) -> None:
    async with open_gate(HOSTS, port=upstream.port) as gate:
        plain = await gate.ask(f"GET http://{PUBLIC}/page HTTP/1.1\nHost: x\nCookie: mine=1")
        tunnel = await gate.send(
            f"CONNECT {PUBLIC}:443 HTTP/1.1\r\n\r\n".encode()
            + f"GET /page HTTP/1.1\r\nHost: {PUBLIC}\r\nConnection: close\r\n\r\n".encode()
        )
    assert (plain[0], plain[2]) == (200, b"a page")
    assert tunnel.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK")
    assert tunnel.endswith(b"a page")
    assert upstream.headers[0]["cookie"] == "mine=1"
    assert upstream.headers[0]["host"] == PUBLIC
    assert "accept-encoding" not in upstream.headers[0]
    assert gate.noted == [(PUBLIC, "web")]


@pytest.mark.parametrize("rules", [PACKAGES, HOSTS], ids=["packages", "hosts"])
async def test_a_host_without_a_grant_is_refused_with_how_to_allow_it(
    rules: Rules, upstream: Upstream
) -> None:
    policy = AddressPolicy(stand_ins={"other.example": StandIn("127.0.0.1", upstream.port)})
    limits = Limits(idle_s=0.2)  # a tunnel that should not be there ends by itself
    async with open_gate(rules, policy=policy, limits=limits) as gate:
        plain, _, said = await gate.ask("POST http://other.example/x HTTP/1.1\nHost: x")
        tunnel, _, _ = await gate.ask("CONNECT other.example:443 HTTP/1.1\nHost: x")
    [sentence] = gate.gate.refused
    assert (plain, tunnel, said.decode()) == (403, 403, f"agiraph: {sentence}\n")
    assert 'network="open"' in sentence
    assert "other.example" in sentence
    assert (upstream.asked, gate.noted) == ([], [])


def test_a_grant_is_for_its_host_alone_unless_it_says_so() -> None:
    asked = ["a.example", "b.a.example", "xa.example", "a.example.evil.test"]
    assert [names_host({"a.example"}, host) for host in asked] == [True, False, False, False]
    assert [names_host({"*.a.example"}, host) for host in asked] == [True, True, False, False]


INSIDE = [
    "127.0.0.1", "localhost", "2130706433", "0x7f000001", "0", "169.254.169.254", "10.0.0.1",
    "192.168.1.1", "100.64.0.1", "168.63.129.16", "inside.example", "mixed.example",
]  # fmt: skip


@pytest.mark.parametrize("form", ["CONNECT {}:80", "GET http://{}/"])
async def test_no_spelling_of_an_address_inside_is_reached(form: str) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        names = {"inside.example": ["10.0.0.7"], "mixed.example": ["93.184.216.34", "127.0.0.1"]}
        return names.get(host) or ["127.0.0.1"]

    async with open_gate(OPEN, policy=AddressPolicy(resolve=resolve)) as gate:
        with recording_connections() as connected:
            hosts = [*INSIDE, "[::1]", "[::ffff:127.0.0.1]", "[fd00::1]", "[64:ff9b::7f00:1]"]
            found = {
                host: (await gate.ask(f"{form.format(host)} HTTP/1.1\nHost: x"))[0]
                for host in hosts
            }
    assert set(found.values()) == {403}
    assert {address for address, *_ in connected} <= {"127.0.0.1"}  # this test itself, to the gate
    assert {port for _, port in connected} == {gate.port}
    assert gate.noted == []


async def test_the_port_of_the_runtime_itself_is_refused() -> None:
    policy = AddressPolicy(refused_ports=frozenset({8717}), also_allowed=frozenset({"127.0.0.1"}))
    async with open_gate(OPEN, policy=policy) as gate:
        status, _, said = await gate.ask("CONNECT 127.0.0.1:8717 HTTP/1.1\nHost: x")
    assert (status, b"runtime's own" in said) == (403, True)


async def test_a_host_is_looked_up_once_for_a_command(upstream: Upstream) -> None:
    """A second answer of its name server could lead inside (DNS rebinding)."""
    answers = [["127.0.0.1"], ["10.0.0.7"]]

    async def resolve(host: str, port: int) -> list[str]:
        return answers.pop(0)

    policy = AddressPolicy(resolve=resolve, also_allowed=frozenset({"127.0.0.1"}))
    address = f"http://rebinding.example:{upstream.port}/page"
    async with open_gate(OPEN, policy=policy) as gate:
        found = [await gate.ask(f"GET {address} HTTP/1.1\nHost: x") for _ in range(3)]
    assert [body for _, _, body in found] == [b"a page"] * 3
    assert answers == [["10.0.0.7"]]


GIT = f"http://{PUBLIC}/p.git"
GIT_REFUSED = [
    f"GET {GIT}/info/refs?service=git-receive-pack",
    f"GET {GIT}/info/refs",
    f"GET {GIT}/info/refs?service=git-upload-pack&x=secret",
    f"POST {GIT}/git-receive-pack",
    f"POST {GIT}/git-upload-pack?x=secret",
    f"PUT {GIT}/git-upload-pack",
    f"GET /git/{PUBLIC}/p.git/info/refs?service=git-receive-pack",
    f"POST /git/{PUBLIC}/p.git/git-receive-pack",
    f"POST /git/{PUBLIC}/p.git/info/lfs/objects/batch",
    f"GET /git/{PUBLIC}/../x/info/refs?service=git-upload-pack",
    f"GET {GIT}/HEAD",
]


async def test_git_reads_from_a_granted_host_and_sends_nothing(upstream: Upstream) -> None:
    pack = "/p.git/git-upload-pack"
    upstream.pages |= {pack: b"a pack", "/p.git/info/refs": b"refs"}
    rules = replace(PACKAGES, readable=frozenset({PUBLIC}))
    packed = gzip.compress(b"0032want x")
    async with open_gate(rules, port=upstream.port) as gate:
        asks = f"GET {GIT}/info/refs?service=git-upload-pack HTTP/1.1\nHost: x"
        refs = await gate.ask(f"{asks}\nGit-Protocol: version=2\nX-Data: secret")
        head = f"POST http://{PUBLIC}{pack} HTTP/1.1\nHost: x\nContent-Encoding: gzip"
        whole = await gate.ask(f"{head}\nContent-Length: {len(packed)}", packed)
        chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(packed), packed)
        chunked = await gate.ask(f"{head}\nTransfer-Encoding: chunked", chunks)
        sent = [(await gate.ask(f"{line} HTTP/1.1\nHost: x"))[0] for line in GIT_REFUSED]
    assert [(status, body) for status, _, body in (refs, whole, chunked)] == [
        (200, b"refs"),
        (200, b"a pack"),
        (200, b"a pack"),
    ]
    assert set(sent) == {403}
    assert upstream.headers[0]["git-protocol"] == "version=2"
    assert upstream.headers[1]["content-encoding"] == "gzip"
    assert "secret" not in str((upstream.asked, upstream.headers))
    assert len(upstream.asked) == 3
    assert gate.noted == [(PUBLIC, "git")]


async def test_git_needs_a_grant_for_the_host() -> None:
    async with open_gate(PACKAGES) as gate:
        status, _, said = await gate.ask(
            f"GET /git/{PUBLIC}/p.git/info/refs?service=git-upload-pack HTTP/1.1\nHost: x"
        )
    assert status == 403
    assert f"`agiraph grant TEAM read {PUBLIC}`".encode() in said


async def test_nothing_is_sent_that_could_not_be_recorded(upstream: Upstream) -> None:
    async def note(reached: Reached) -> None:
        raise StoreUnavailable("The disk is full.")

    async with open_gate(OPEN, port=upstream.port, note=note) as gate:
        status, _, _ = await gate.ask(f"GET http://{PUBLIC}/page HTTP/1.1\nHost: x")
    assert (status, upstream.asked) == (502, [])


async def test_a_command_that_moves_too_much_is_cut_off(upstream: Upstream) -> None:
    upstream.pages["/large"] = b"x" * 300_000
    limits = Limits(bytes=2**17)
    async with open_gate(OPEN, port=upstream.port, limits=limits) as gate:
        got = await gate.send(f"GET http://{PUBLIC}/large HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        later, _, _ = await gate.ask(f"GET http://{PUBLIC}/page HTTP/1.1\nHost: x")
    assert len(got) < 300_000
    [sentence] = gate.gate.refused
    assert "0 MiB over the network, which is its limit" in sentence
    assert later == 200  # its head; the body is over the limit


async def test_slow_and_many_connections_end_by_themselves() -> None:
    limits = Limits(connections=2, head_s=0.05)
    async with open_gate(OPEN, limits=limits) as gate:
        slow = [await asyncio.open_connection("127.0.0.1", gate.port) for _ in range(2)]
        for _, writer in slow:
            writer.write(b"GET / HT")  # and never the rest
        refused, _, _ = await gate.ask("GET / HTTP/1.1\nHost: x")
        assert [await reader.read() for reader, _ in slow] == [b"", b""]
        answered, _, _ = await gate.ask("GET / HTTP/1.1\nHost: x")
        for _, writer in slow:
            writer.close()
    assert (refused, answered) == (503, 404)


MALFORMED = [
    b"hello\r\n\r\n",
    b"GET / HTTP/2\r\n\r\n",
    b"GET / HTTP/1.1\r\nA : b\r\n\r\n",
    b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\na",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
    b"GET /\x80 HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 101 + b"\r\n",
    b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\n\r\n",
    b"CONNECT nowhere HTTP/1.1\r\n\r\n",
    b"GET http://user@site.example/ HTTP/1.1\r\n\r\n",
]


async def test_a_request_that_can_be_read_in_two_ways_is_refused() -> None:
    async with open_gate(OPEN) as gate:
        found = [(await gate.send(raw))[:12] for raw in MALFORMED]
    assert found == [b"HTTP/1.1 400"] * len(MALFORMED)


async def test_a_vendors_agent_reaches_the_address_of_the_settings_and_no_other(
    upstream: Upstream,
) -> None:
    given = {"ANTHROPIC_BASE_URL": f"{upstream.url}/v1"}
    endpoints = reachable("claude", given)
    assert endpoints == frozenset({Endpoint("127.0.0.1", upstream.port)})
    upstream.pages["/v1/messages"] = b"a reply"
    async with open_gate(replace(PACKAGES, endpoints=endpoints)) as gate:
        told = environment("claude", given, gate.port)["ANTHROPIC_BASE_URL"]
        path = told.removeprefix(f"http://127.0.0.1:{gate.port}")
        reply = await gate.ask(f"POST {path}/messages HTTP/1.1\nHost: x\nContent-Length: 2", b"{}")
        other, _ = await gate.get("/to/http/127.0.0.1:1/v1/messages")
        direct, _, _ = await gate.ask("CONNECT api.anthropic.com:443 HTTP/1.1\nHost: x")
    assert (reply[0], reply[2], other, direct) == (200, b"a reply", 404, 403)
    hosts = {endpoint.host for endpoint in reachable("claude", {})}
    assert "api.anthropic.com" in hosts
    assert reachable("curl", {}) == frozenset()


def test_a_preset_may_talk_to_its_vendor_in_the_network_of_every_command() -> None:
    rules = replace(PACKAGES, endpoints=reachable("codex", {}))
    rules.check_host("api.openai.com", 443)
    with pytest.raises(Denied):
        rules.check_host("api.openai.com.evil.test", 443)


STARTS = {
    'claude -p "$(cat _task.md)"': "claude",
    "'/opt/my tools/codex' exec": "codex",
    "HOME=/tmp exec gemini -y": "gemini",
    "opencode run": "opencode",
    "./claude.sh": "",
    "echo claude": "",
    "claude 'unclosed": "",
    "": "",
}


@pytest.mark.parametrize("command", STARTS)
def test_a_preset_is_known_by_the_program_that_a_command_starts(command: str) -> None:
    assert program_of(command) == STARTS[command]


async def test_a_private_index_is_read_as_an_index_and_in_no_other_way(upstream: Upstream) -> None:
    """The gate itself may connect to it, with a password of the person's."""
    upstream.python["tea"] = wheel("tea")
    indexes = upstream.indexes
    named = upstream.url.replace("://", "://me:pass-4711@")
    indexes.python = PythonSources(indexes=(f"{named}/simple",))
    async with open_gate(OPEN, indexes=indexes) as gate:
        assert (await gate.get("/pypi/simple/tea/"))[0] == 200
        assert upstream.headers[0]["authorization"].startswith("Basic ")
        upstream.asked.clear()
        put = await gate.ask(f"PUT {upstream.url}/simple/tea/ HTTP/1.1\nHost: x")
        tunnel = await gate.ask(f"CONNECT 127.0.0.1:{upstream.port} HTTP/1.1\nHost: x")
    assert (put[0], tunnel[0], upstream.asked) == (403, 403, [])
