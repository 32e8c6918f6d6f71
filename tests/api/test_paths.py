"""Files over HTTP: no path leads out of a team's folder, and no file is served as a web page."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.responses import Response

from agiraph.api.routes.files import _open
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import TeamId
from agiraph.core.services.lifecycle.teams import NewTeam
from tests.api.serving import TOKEN, Served
from tests.api.test_access_control import send_raw
from tests.home.test_escapes import SECRET, fork_child, hostile_paths, swap_until_killed

RACING_READS = 3_000
MANY_RACING_READS = 100_000


@pytest.fixture
async def founded(served: Served) -> NewTeam:
    """A team whose folder contains links out of it, next to a secret."""
    served.world.script("ada")
    founded = await served.world.found("Keep to yourself", start=False)
    inside = folder(served, founded.team.id)
    outside = served.world.path / "teams" / "outside"
    for place in (inside, inside / "memory", outside / "deep"):
        place.mkdir(parents=True, exist_ok=True)
    (served.world.path / "token").write_bytes(SECRET)
    (outside / "secret").write_bytes(SECRET)
    (outside / "deep" / "secret").write_bytes(SECRET)
    for place, up in ((inside, ".."), (inside / "memory", "../..")):
        (place / "a" / "b").mkdir(parents=True)
        (place / "plain.txt").write_bytes(b"plain")
        links = {
            "link": f"{up}/outside",
            "file": f"{up}/outside/secret",
            "absolute": str(outside),
            "top": "/",
            "up": "..",
            "loop": "loop",
            "dangling": f"{up}/outside/new",
            "procroot": "/proc/self/root",
            "proccwd": "/proc/self/cwd",
        }
        for name, target in links.items():
            (place / name).symlink_to(target)
        os.mkfifo(place / "pipe")
        (place / "linked").hardlink_to(place / "plain.txt")
    return founded


def folder(served: Served, team: TeamId) -> Path:
    return served.world.path / "teams" / team


def encodings(path: str) -> Iterator[str]:
    """Return a path in the encodings that a request line may contain."""
    text = path.encode("utf-8", "surrogatepass")
    yield quote(text, safe="/")
    yield quote(text, safe="")
    yield quote(quote(text, safe=""), safe="")
    if all(33 <= byte < 127 for byte in text) and "?" not in path and "#" not in path:
        yield path


@pytest.mark.slow
async def test_no_encoding_of_a_hostile_path_reads_outside_the_team_folder(
    served: Served, founded: NewTeam
) -> None:
    """Every path and every encoding, in turn in the team's files and in its memory."""
    targets = hostile_targets(folder(served, founded.team.id))
    await check_that_none_escapes(served, founded, targets[::2], "files")
    await check_that_none_escapes(served, founded, targets[1::2], "memory")
    assert len(targets) >= 500


@pytest.mark.long
async def test_no_encoding_of_a_hostile_path_reads_outside_either_folder(
    served: Served, founded: NewTeam
) -> None:
    targets = hostile_targets(folder(served, founded.team.id))
    for place in ("files", "memory"):
        await check_that_none_escapes(served, founded, targets, place)


def hostile_targets(inside: Path) -> list[str]:
    """Return more than 200 paths that lead outside, in every encoding."""
    devices = ["pipe", "../../../../dev/zero", "nul", "con", "aux.txt", "COM1", "lpt1:"]
    token = [f"{'../' * n}{name}" for n in range(1, 5) for name in ("token", "agiraph.db", "lock")]
    hostile = dict.fromkeys([*hostile_paths(inside), *devices, *token])
    assert len(hostile) >= 200
    return [
        spelled
        for path in hostile
        for spelled in dict.fromkeys(encodings(path))
        if len(spelled) <= 8000
    ]


async def check_that_none_escapes(
    served: Served, founded: NewTeam, targets: list[str], place: str
) -> None:
    for spelled in targets:
        head = f"GET /api/teams/{founded.team.id}/{place}/{spelled} HTTP/1.1\r\n"
        head += f"Host: 127.0.0.1:{served.port}\r\n"
        head += f"Authorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
        status, said = await send_raw(served.port, head.encode("latin-1"))
        _, _, body = said.partition(b"\r\n\r\n")
        assert SECRET not in body, spelled
        assert b"root:" not in body, spelled
        assert b'"secret"' not in body, spelled
        assert b'"outside"' not in body, spelled
        assert status in (200, 400, 403, 404, 405, 422), (status, spelled)


async def test_files_of_agents_are_never_served_as_web_pages(
    served: Served, founded: NewTeam
) -> None:
    page = b"<script>alert(1)</script>"
    kinds: dict[str, str] = {}
    for name in ("x.html", "x.svg", "x.xml", "x.js", "x.htm", "x.xhtml", "x.pdf", "x.png", "x"):
        (folder(served, founded.team.id) / name).write_bytes(page)
        address = f"{served.origin}/api/teams/{founded.team.id}/files/{name}"
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with served.http.get(address, headers=headers) as response:
            assert await response.read() == page
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            assert response.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
            kinds[name] = response.content_type
    assert kinds.pop("x.png") == "image/png"
    assert set(kinds.values()) == {"text/plain"}


async def test_a_picture_with_a_script_is_served_so_that_it_runs_nothing(
    served: Served, founded: NewTeam
) -> None:
    evil = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    policies: dict[str, tuple[str, str]] = {}
    for name in ("x.svg", "x.html"):
        (folder(served, founded.team.id) / name).write_bytes(evil)
        address = f"{served.origin}/api/teams/{founded.team.id}/files/{name}?picture=true"
        async with served.http.get(
            address, headers={"Authorization": f"Bearer {TOKEN}"}
        ) as response:
            policy = response.headers["Content-Security-Policy"]
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            policies[name] = (response.content_type, policy)
    assert policies == {
        "x.svg": ("image/svg+xml", "default-src 'none'; style-src 'unsafe-inline'; sandbox"),
        "x.html": ("text/plain", "default-src 'none'; sandbox"),
    }


async def test_a_folder_is_listed_and_a_file_is_read_from_an_offset(
    served: Served, founded: NewTeam
) -> None:
    at = f"/teams/{founded.team.id}/files"
    status, listing = await served.ask("GET", f"{at}/a")
    assert (status, [e["path"] for e in listing["entries"]]) == (200, ["a/b"])
    assert await served.ask("GET", f"{at}/plain.txt") == (200, "plain")
    assert await served.ask("GET", f"{at}/plain.txt?offset=3") == (200, "in")
    assert await served.ask("GET", f"{at}/plain.txt?offset=99") == (200, "")
    assert (await served.ask("GET", f"{at}/plain.txt?offset=-1"))[0] == 422
    assert (await served.ask("GET", f"{at}/none"))[0] == 404
    assert (await served.ask("GET", "/teams/none/files/plain.txt"))[0] == 404


def read_while_swapped(served: Served, founded: NewTeam, times: int) -> Counter[str]:
    """Read a file while its folder is swapped with a link to the secret; count the results."""
    inside = folder(served, founded.team.id)
    (inside / "door").mkdir()
    (inside / "door" / "secret").write_bytes(b"inside")
    (inside / "trap").symlink_to("../outside")
    swapping = fork_child(lambda: swap_until_killed(inside))
    seen: Counter[str] = Counter()
    try:
        for _ in range(times):
            try:
                answer: Response = _open(served.api, founded.team, "door/secret", 0)
                seen[bytes(answer.body).decode()] += 1
            except Refused as refusal:
                seen[type(refusal).__name__] += 1
    finally:
        os.kill(swapping, signal.SIGKILL)
        os.waitpid(swapping, 0)
    return seen


@pytest.mark.slow
async def test_no_read_escapes_while_a_folder_is_swapped_with_a_link(
    served: Served, founded: NewTeam
) -> None:
    seen = read_while_swapped(served, founded, RACING_READS)
    assert {"inside", "OutOfScope"} <= set(seen) <= {"inside", "OutOfScope", "Refused", "NotFound"}


@pytest.mark.long
async def test_none_of_100000_reads_escapes_while_a_folder_is_swapped_with_a_link(
    served: Served, founded: NewTeam
) -> None:
    seen = read_while_swapped(served, founded, MANY_RACING_READS)
    assert {"inside", "OutOfScope"} <= set(seen) <= {"inside", "OutOfScope", "Refused", "NotFound"}
    assert seen.total() == MANY_RACING_READS
