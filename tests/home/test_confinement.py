"""A confined command reaches nobody, and changes nothing but its scratch folder."""

import os
import subprocess
from pathlib import Path

import pytest

from agiraph.home import confinement

pytestmark = pytest.mark.skipif(
    not confinement.is_possible(), reason="this kernel lets nobody be confined"
)


class Place:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.nodes = home / "teams" / "t" / "nodes"
        self.scratch = self.nodes / "n" / "scratch"
        self.other = self.nodes / "m" / "published"
        self.scratch.mkdir(parents=True)
        self.other.mkdir(parents=True)
        (self.other / "report.md").write_text("a report")
        (home / "token").write_text("a token")

    def run(self, command: str) -> tuple[int, str]:
        wrapped = confinement.wrapped(
            command, scratch=str(self.scratch), nodes=str(self.nodes), home=str(self.home)
        )
        done = subprocess.run(
            ["bash", "-c", wrapped], capture_output=True, text=True, check=False, timeout=60
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "home")


def test_it_works_in_its_folder_and_leaves_what_it_made(place: Place) -> None:
    assert place.run("echo hello > made.txt && cat made.txt && pwd") == (
        0,
        f"hello\n{place.scratch}\n",
    )
    assert (place.scratch / "made.txt").read_text() == "hello\n"


def test_its_exit_code_and_output_are_its_own(place: Place) -> None:
    assert place.run("echo out; echo err >&2; exit 7") == (7, "out\nerr\n")


def test_it_reads_what_others_published_and_cannot_change_it(place: Place) -> None:
    assert place.run("cat ../../m/published/report.md") == (0, "a report")
    code, said = place.run("echo evil > ../../m/published/report.md")
    assert code != 0
    assert "Read-only" in said
    assert (place.other / "report.md").read_text() == "a report"


@pytest.mark.parametrize(
    "command",
    [
        "cat {home}/token",
        "ls {home}/spool",
        "echo x >> /etc/hosts",
        "touch /var/lib/x",
        "mount -o remount,rw /",
        "mount -t tmpfs none /mnt",
        "unshare -m true",
        "nsenter -t 1 -n true",
        "mknod disk b 8 0",
        "chroot / true",
        "ip link set lo down",
    ],
)
def test_what_it_must_not_do_fails(place: Place, command: str) -> None:
    code, said = place.run(command.format(home=place.home))
    assert code != 0, said
    assert "a token" not in said


@pytest.mark.parametrize(
    "command",
    [
        "curl -sS -m 3 http://1.1.1.1/",
        "curl -sS -m 3 http://127.0.0.1:{port}/",
        "getent hosts example.com",
        "bash -c 'echo > /dev/tcp/127.0.0.1/{port}'",
    ],
)
def test_it_reaches_nobody(place: Place, command: str) -> None:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        code, _ = place.run(command.format(port=listener.getsockname()[1]))
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert code != 0


def test_it_may_talk_to_itself(place: Place) -> None:
    script = (
        "import socket; s = socket.create_server(('127.0.0.1', 0));"
        " c = socket.create_connection(s.getsockname()); print('heard')"
    )
    assert place.run(f'python3 -c "{script}"') == (0, "heard\n")


def test_it_has_little_power_left(place: Place) -> None:
    code, said = place.run("grep -E 'CapBnd|CapAmb|NoNewPrivs' /proc/self/status")
    values = [int(line.split()[1], 16) for line in said.splitlines()]
    kept = 0b11011 if os.geteuid() == 0 else 0
    assert (code, values) == (0, [kept, 0, 1])


def test_of_devices_it_sees_the_harmless_ones(place: Place) -> None:
    code, said = place.run("ls /dev; echo x > /dev/null && head -c 1 /dev/zero | wc -c")
    assert (code, said.split()) == (0, [*sorted([*confinement.DEVICES, "fd", "shm"]), "1"])


def test_its_tmp_and_its_home_are_its_own_and_gone_with_it(place: Place) -> None:
    left = (Path("/tmp/agiraph-left-behind"), place.home / "agiraph.toml")
    for path in left:
        assert place.run(f"echo x > {path} && cat {path}") == (0, "x\n")
    assert [path.exists() for path in left] == [False, False]


def test_where_it_cannot_be_confined_it_does_not_run(place: Place) -> None:
    wrapped = confinement.wrapped(
        "echo ran", scratch=str(place.scratch / "missing"), nodes=str(place.nodes), home="/nowhere"
    )
    done = subprocess.run(["bash", "-c", wrapped], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (confinement.FAILED, "")
    assert done.stderr.startswith("The command was not run: it cannot be confined here")
