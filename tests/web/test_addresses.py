"""Addresses: no socket is opened to a machine outside the public internet."""

import pytest

from agiraph.core.domain.errors import Refused
from agiraph.web.addresses import AddressPolicy, is_public, parse
from agiraph.web.fetch import Fetcher, Limits
from tests.web.sites import fetcher, recording_connections, redirect_to, site

LOOPBACK = [
    "http://127.0.0.1/",
    "http://127.0.0.1:80/",
    "http://127.1/",
    "http://127.0.1/",
    "http://127.255.255.254/",
    "http://2130706433/",
    "http://017700000001/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://0x7f.0x0.0x0.0x1/",
    "http://0177.0.0.1/",
    "http://0177.1/",
    "http://127.0.0.1./",
    "http://localhost/",
    "http://LOCALHOST/",
    "http://localhost./",
    "http://LocalHost:8717/",
    "http://ip6-localhost/",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[0000:0000:0000:0000:0000:0000:0000:0001]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[0:0:0:0:0:ffff:7f00:0001]/",
    "http://[::127.0.0.1]/",
    "http://[::7f00:1]/",
    "http://①②⑦.0.0.1/",
    "http://127。0。0。1/",
    "http://127.0.0.1%2f/",
    "http://0/",
    "http://0.0.0.0/",
    "http://0.0.0.0:8717/",
    "http://0x0/",
    "http://00/",
    "http://[::]/",
    "http://[::ffff:0.0.0.0]/",
    "http://0.1.2.3/",
]
PRIVATE = [
    "http://10.0.0.1/",
    "http://10.255.255.255/",
    "http://167772161/",
    "http://0xa000001/",
    "http://012.0.0.1/",
    "http://10.1/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://2886729729/",
    "http://192.168.0.1/",
    "http://192.168.1/",
    "http://3232235521/",
    "http://0xc0a80001/",
    "http://[::ffff:10.0.0.1]/",
    "http://[::ffff:192.168.0.1]/",
    "http://[::ffff:a00:1]/",
    "http://[fc00::1]/",
    "http://[fd00::1]/",
    "http://[fd12:3456:789a::1]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[fec0::1]/",
    "http://169.254.0.1/",
    "http://100.64.0.1/",
    "http://100.127.255.255/",
    "http://198.18.0.1/",
    "http://198.19.255.255/",
    "http://192.0.2.1/",
    "http://198.51.100.1/",
    "http://203.0.113.1/",
    "http://[2001:db8::1]/",
    "http://[3fff::1]/",
    "http://[100::1]/",
]
METADATA = [
    "http://169.254.169.254/",
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://169.254.43518/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[64:ff9b::169.254.169.254]/",
    "http://[64:ff9b:1::a9fe:a9fe]/",
    "http://[2002:a9fe:a9fe::1]/",
    "http://[2002:7f00:1::]/",
    "http://[2002:c0a8:1::]/",
    "http://[2001:0:a9fe:a9fe::1]/",
    "http://[fd00:ec2::254]/",
    "http://[fe80::a9fe:a9fe]/",
    "http://100.100.100.200/",
    "http://192.0.0.192/",
    "http://192.0.0.1/",
    "http://192.0.0.170/",
    "http://168.63.129.16/",
    "http://192.88.99.1/",
    "http://169.254.170.2/v2/credentials",
    "http://169.254.169.123/",
]
MULTICAST_AND_RESERVED = [
    "http://224.0.0.1/",
    "http://224.0.1.1/",
    "http://239.255.255.250/",
    "http://255.255.255.255/",
    "http://240.0.0.1/",
    "http://[ff02::1]/",
    "http://[ff0e::1]/",
    "http://[5f00::1]/",
    "http://[::ffff:224.0.0.1]/",
    "http://[::ffff:255.255.255.255]/",
]
NOT_WEB = [
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "ftp://example.com/",
    "gopher://127.0.0.1:6379/_INFO",
    "dict://127.0.0.1:11211/",
    "ldap://127.0.0.1/",
    "jar:http://127.0.0.1!/",
    "data:text/html,hello",
    "javascript:alert(1)",
    "unix:///var/run/docker.sock",
    "http:127.0.0.1",
    "http:/127.0.0.1",
    "http:///127.0.0.1",
    "//127.0.0.1/",
    "127.0.0.1",
    "example.com",
    "",
    "   ",
    "http://",
    "http://:80/",
    "http://user@127.0.0.1/",
    "http://example.com@127.0.0.1/",
    "http://user:word@93.184.215.14/",
    "http://127.0.0.1\\@example.com/",
    "http://example.com\\@127.0.0.1/",
    "http://127.0.0.1\t/",
    "http://127.0.0.1\r\nHost: example.com/",
    "http://exa mple.com/",
    "http://[::1",
    "http://[::1]]/",
    "http://127.0.0.1:99999/",
    "http://127.0.0.1:-1/",
    "http://127.0.0.1:http/",
    "http://%31%32%37.0.0.1/",
    "http://a%00.example/",
    "http://" + "a" * 3000,
]
FORBIDDEN_URLS = LOOPBACK + PRIVATE + METADATA + MULTICAST_AND_RESERVED + NOT_WEB


def test_there_are_at_least_120_forbidden_urls() -> None:
    assert len(set(FORBIDDEN_URLS)) == len(FORBIDDEN_URLS) >= 120


async def test_no_forbidden_url_opens_a_socket() -> None:
    plain = Fetcher(limits=Limits(timeout_s=5))
    with recording_connections() as connected:
        for form in FORBIDDEN_URLS:
            with pytest.raises(Refused):
                await plain.fetch(form)
    assert [address for address in connected if not is_public(str(address[0]))] == []
    assert connected == []


async def test_the_recording_of_connections_works() -> None:
    async with site(page=b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as opened:
        with recording_connections() as connected:
            await fetcher().fetch(opened.url("/page"))
    assert connected == [("127.0.0.1", opened.port)]


PUBLIC = ("93.184.215.14", "8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8", "1.1.1.1")


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(address)


async def test_a_host_is_resolved_once_so_dns_rebinding_fails() -> None:
    """The second answer of the resolver is never used."""
    async with site(page=b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret") as opened:
        answers = [["203.0.113.9"], ["127.0.0.1"]]
        asked: list[str] = []

        async def resolve_differently(host: str, port: int) -> list[str]:
            asked.append(host)
            return answers[min(len(asked), 2) - 1]

        # Allow the first answer, which would be refused otherwise, so that only the second matters.
        policy = AddressPolicy(resolve=resolve_differently, also_allowed=frozenset({"203.0.113.9"}))
        with recording_connections() as connected, pytest.raises(Refused):
            await Fetcher(policy=policy, limits=Limits(timeout_s=1)).fetch(
                opened.url("/page", "rebind.test")
            )
    assert asked == ["rebind.test"]
    assert {address[0] for address in connected} <= {"203.0.113.9"}
    assert opened.requests == []


async def test_a_name_with_one_private_address_among_public_ones_is_refused() -> None:
    async def both(host: str, port: int) -> list[str]:
        return ["93.184.215.14", "10.0.0.1"]

    with (
        recording_connections() as connected,
        pytest.raises(Refused, match="not in the public internet"),
    ):
        await Fetcher(policy=AddressPolicy(resolve=both)).fetch("http://both.test/")
    assert connected == []


REDIRECTS = (
    "http://169.254.169.254/latest/",
    "http://10.0.0.1/",
    "http://[::1]/",
    "http://2130706433:1/",
    "//127.0.0.2/x",
    "file:///etc/passwd",
    "http://user:word@127.0.0.1/",
    "gopher://127.0.0.1/",
)


@pytest.mark.parametrize("hop", REDIRECTS)
async def test_every_redirect_is_checked_like_the_first_address(hop: str) -> None:
    async with site(start=redirect_to("/next"), next=redirect_to(hop)) as opened:
        with recording_connections() as connected, pytest.raises(Refused):
            await fetcher().fetch(opened.url("/start"))
    assert {address[:2] for address in connected} == {("127.0.0.1", opened.port)}


async def test_a_redirect_to_another_host_is_resolved_and_checked() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return {"good.test": ["127.0.0.1"], "evil.test": ["127.0.0.2"]}[host]

    async with site(start=b"") as opened:
        opened.pages["/start"] = redirect_to(f"http://evil.test:{opened.port}/x")
        policy = AddressPolicy(resolve=resolve, also_allowed=frozenset({"127.0.0.1"}))
        with (
            recording_connections() as connected,
            pytest.raises(Refused, match="redirects to another address"),
        ):
            await Fetcher(policy=policy).fetch(opened.url("/start", "good.test"))
    assert {address[0] for address in connected} == {"127.0.0.1"}


async def test_a_chain_of_redirects_is_limited() -> None:
    async with site(round=redirect_to("/round")) as opened:
        with pytest.raises(Refused, match="more than 5 times"):
            await fetcher().fetch(opened.url("/round"))
        assert len(opened.requests) == 6


async def test_the_runtimes_own_port_is_refused() -> None:
    policy = AddressPolicy(refused_ports=frozenset({8717}), also_allowed=frozenset({"127.0.0.1"}))
    with recording_connections() as connected, pytest.raises(Refused, match="own"):
        await Fetcher(policy=policy).fetch("http://127.0.0.1:8717/api/teams")
    assert connected == []


async def test_an_unknown_host_is_reported() -> None:
    async def nothing(host: str, port: int) -> list[str]:
        raise OSError("Name or service not known")

    with pytest.raises(Refused, match=r"There is no host 'nowhere\.test'"):
        await Fetcher(policy=AddressPolicy(resolve=nothing)).fetch("http://nowhere.test/")


def test_the_fragment_of_a_url_is_not_sent() -> None:
    assert str(parse("https://example.com/a?b=1#secret")) == "https://example.com/a?b=1"
