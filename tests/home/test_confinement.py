"""Confinement: a command sees only the parts of the home that its node may see."""

import os
import socket
import sqlite3
import tempfile
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agiraph.sandbox import levels, sandbox
from agiraph.sandbox.commands import CommandResult, child_environment, run
from agiraph.sandbox.inside import root_folder
from agiraph.sandbox.sandbox import Mount, Spec

pytestmark = pytest.mark.skipif(
    not levels.choose().has_gate, reason="commands cannot be confined on this kernel"
)

OPEN, OFFLINE = False, True


@dataclass(slots=True)
class Scene:
    """A home with two teams, and a node whose commands are run."""

    home: Path
    database: Path
    isolation: str
    count: int = 0
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def node(self) -> Path:
        return self.home / "teams" / "t" / "nodes" / "n"

    @property
    def scratch(self) -> Path:
        return self.node / "scratch"

    @property
    def other(self) -> Path:
        return self.home / "teams" / "t" / "nodes" / "m"

    def fill(self) -> None:
        files = {
            "token": "a secret",
            "agiraph.toml": "# a secret",
            "agents/mine.md": "a secret",
            "spool/x/output": "a secret",
            "teams/u/nodes/k/published/report.md": "a secret",
            "teams/t/MEMORY.md": "a secret",
            "teams/t/GOAL.md": "the goal",
            "teams/t/nodes/m/scratch/draft.md": "a secret",
            "teams/t/nodes/m/published/report.md": "a report",
            "teams/t/nodes/n/_spec.md": "the spec",
            "teams/t/nodes/n/_refs.json": "{}",
        }
        for name, text in files.items():
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text(text)
        self.scratch.mkdir()
        for path in (self.home / "agiraph.db", self.database):
            with sqlite3.connect(path) as connection:
                connection.execute("create table secrets (text)")
                connection.execute("insert into secrets values ('a secret')")

    def spec(self, *, offline: bool) -> Spec:
        home = self.home.resolve()
        node, team = home / "teams/t/nodes/n", home / "teams/t"
        own = (node,) if offline else (node / "_spec.md", node / "_refs.json", node / "published")
        readable = (team / "GOAL.md", team / "nodes/m/published", *own)
        writable = node / "scratch" if offline else node
        return Spec(
            mounts=(
                *(Mount(source=path, target=path) for path in readable),
                Mount(source=writable, target=writable, is_writable=True),
            ),
            masked=(home, *sandbox.database_files(f"sqlite:///{self.database}")),
            links={} if home == self.home else {str(self.home): str(home)},
            network="none" if offline else "open",
            unix=offline,
            user=sandbox.FIRST_SPARE_USER if self.isolation == "pid" else 0,
        )

    async def run(self, command: str, *, offline: bool) -> CommandResult:
        self.count += 1
        extra = {"AGIRAPH_ISOLATION": self.isolation}
        return await run(
            self.home / "spool" / f"call-{self.count}",
            command=command,
            cwd=self.scratch,
            timeout=60,
            env=child_environment(self.node, extra),
            spec=self.spec(offline=offline),
        )


Sh = Callable[[str], Awaitable[tuple[int | None, str]]]


@pytest.fixture(params=["pid", "user"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    """Run the test in the pid namespace of root and in the user namespace of other users."""
    if request.param == "pid" and os.geteuid() != 0:
        pytest.skip("only root gets a pid namespace without a user namespace")
    made = Scene(
        home=tmp_path / "home", database=tmp_path / "elsewhere.db", isolation=request.param
    )
    made.fill()
    return made


@pytest.fixture(params=[OPEN, OFFLINE], ids=["open", "offline"])
def sh(request: pytest.FixtureRequest, scene: Scene) -> Sh:
    """Run a command with network, then offline; return exit code and output."""

    async def run_in_scene(command: str) -> tuple[int | None, str]:
        result = await scene.run(command, offline=request.param)
        return result.exit_code, result.output

    return run_in_scene


# ---- what every command can do --------------------------------------------------------------


async def test_a_command_works_in_its_folder_and_its_files_stay(scene: Scene, sh: Sh) -> None:
    assert await sh("echo hello > made.txt && cat made.txt && pwd") == (
        0,
        f"hello\n{scene.scratch}\n",
    )
    assert (scene.scratch / "made.txt").read_text() == "hello\n"


async def test_exit_code_and_output_are_returned(sh: Sh) -> None:
    assert await sh("echo out; echo err >&2; exit 7") == (7, "out\nerr\n")


async def test_task_and_published_files_are_readable_but_read_only(scene: Scene, sh: Sh) -> None:
    seen = ("../_spec.md", "../_refs.json", "../../m/published/report.md", "../../../GOAL.md")
    assert await sh(f"cat {' '.join(seen)}") == (0, "the spec{}a reportthe goal")
    for path in seen:
        code, said = await sh(f"echo evil > {path}")
        assert (code, "Read-only" in said) == (1, True), said
    assert (scene.other / "published/report.md").read_text() == "a report"
    assert (scene.node / "_spec.md").read_text() == "the spec"


async def test_dev_null_dev_zero_and_ps_work(sh: Sh) -> None:
    command = (
        "echo x > /dev/null && head -c 1 /dev/zero | wc -c && ps -e -o pid= | head -1 | tr -d ' '"
    )
    assert await sh(command) == (0, "1\n1\n")


# ---- what no command can do -----------------------------------------------------------------

READS = (
    "cat {home}/token",
    "cat {home}/agiraph.toml",
    "cat {home}/agents/mine.md",
    "cat {home}/spool/x/output",
    "cat {home}/teams/u/nodes/k/published/report.md",
    "cat {home}/teams/t/MEMORY.md",
    "cat ../../m/scratch/draft.md",
    "cat ../../../../../token",
    "ln -s {home}/token t && cat t",
    "grep -ao 'a secret' {home}/agiraph.db",
    "grep -ao 'a secret' {database}",
    "cat /proc/{runtime}/root{home}/token",
    "cat /proc/1/root{home}/token /proc/1/cwd/../../../../../token",
    "cat /proc/1/fd/3/../x/output /proc/1/fd/3/../../token",
    "for p in /proc/[0-9]*; do cat $p/root{home}/token $p/cwd/token && exit; done; exit 1",
    "umount {home}; umount -l {home}; cat {home}/token",
    "unshare -Urm sh -c 'umount -l {home}; cat {home}/token'",
    "nsenter -t 1 -m cat {home}/token",
    "mkdir m && mount --bind / m && cat m{home}/token",
)


@pytest.mark.parametrize("command", READS)
async def test_nothing_else_of_the_home_can_be_read(scene: Scene, sh: Sh, command: str) -> None:
    given = {"home": scene.home, "database": scene.database, "runtime": os.getpid()}
    code, said = await sh(command.format(**given))
    assert code != 0, said
    assert "a secret" not in said


WRITES = (
    "echo evil > {home}/agents/evil.md",
    "mkdir -p {home}/agents && echo evil > {home}/agents/evil.md",
    "echo evil > {home}/agiraph.toml",
    "echo evil >> {home}/teams/u/nodes/k/published/report.md",
    "echo evil > ../../evil",
    "mv {home} {home}2",
    "rm -rf {home}/teams",
    "mv {database} {database}2",
    "rm {database}",
    """python3 -c "import sqlite3; c = sqlite3.connect('{home}/agiraph.db'); c.execute("""
    """\\"insert into secrets values ('evil')\\"); c.commit()\"""",
    """python3 -c "import sqlite3; c = sqlite3.connect('{database}'); c.execute("""
    """\\"insert into secrets values ('evil')\\"); c.commit()\"""",
    "echo evil > /proc/sys/kernel/core_pattern",
    "mknod disk b 8 0",
    "mount -t tmpfs none /mnt",
)


@pytest.mark.parametrize("command", WRITES)
async def test_nothing_else_of_the_home_can_be_written(scene: Scene, sh: Sh, command: str) -> None:
    before = all_files(scene.home)
    code, said = await sh(command.format(home=scene.home, database=scene.database))
    assert code != 0, said
    assert all_files(scene.home) == before
    for path in (scene.home / "agiraph.db", scene.database):
        with sqlite3.connect(path) as connection:
            assert connection.execute("select * from secrets").fetchall() == [("a secret",)]


def all_files(home: Path) -> dict[str, bytes]:
    found = (path for path in home.rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in found if "call-" not in str(path)}


async def test_a_link_in_place_of_scratch_shows_the_next_command_no_secret(scene: Scene) -> None:
    swap = f"cd .. && mv scratch s && ln -s {scene.home}/teams/u scratch && ln -s {scene.home} x"
    assert (await scene.run(swap, offline=OPEN)).exit_code == 0
    for offline in (OPEN, OFFLINE):
        result = await scene.run("cat nodes/k/published/report.md ../x/token", offline=offline)
        assert result.exit_code != 0
        assert "a secret" not in result.output


async def test_a_link_in_place_of_a_published_folder_shows_no_secret(scene: Scene) -> None:
    (scene.other / "published").rename(scene.other / "was")
    (scene.other / "published").symlink_to(scene.home / "teams" / "u" / "nodes" / "k")
    result = await scene.run("cat ../../m/published/published/report.md", offline=OPEN)
    assert result.exit_code == 1
    assert "a secret" not in result.output


async def test_a_home_reached_through_a_link_is_hidden_too(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(scene.home)
    linked = Scene(home=tmp_path / "link", database=scene.database, isolation=scene.isolation)
    result = await linked.run(
        f"echo made > made.txt; cat {tmp_path}/link/token {scene.home}/token", offline=OPEN
    )
    assert result.exit_code == 1
    assert "a secret" not in result.output
    assert (scene.scratch / "made.txt").read_text() == "made\n"


async def test_a_command_that_cannot_be_confined_does_not_run(scene: Scene) -> None:
    scene.isolation = "plain"
    result = await scene.run("echo ran", offline=OPEN)
    assert result.exit_code == 127
    assert result.output == (
        "The command could not be started: it cannot be confined here; see `agiraph doctor`\n"
    )


# ---- with network and offline ---------------------------------------------------------------


async def test_a_command_with_the_open_network_reaches_loopback_and_writes_nothing_outside(
    scene: Scene, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        command = f"echo > /dev/tcp/127.0.0.1/{port} && echo x > {tmp_path}/outside"
        await scene.run(command, offline=OPEN)
        listener.accept()[0].close()
    assert not (tmp_path / "outside").exists()


async def test_the_folder_of_the_home_variable_is_kept_between_commands(scene: Scene) -> None:
    for command in ("echo kept > ~/.settings", "cat ~/.settings"):
        result = await scene.run(command, offline=OPEN)
    assert (result.exit_code, result.output) == (0, "kept\n")


@pytest.mark.parametrize(
    "command",
    [
        "curl -sS -m 3 http://1.1.1.1/",
        "curl -sS -m 3 http://127.0.0.1:{port}/",
        "getent hosts example.com",
        "bash -c 'echo > /dev/tcp/127.0.0.1/{port}'",
    ],
)
async def test_an_offline_command_reaches_no_network(scene: Scene, command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        result = await scene.run(command.format(port=port), offline=OFFLINE)
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert result.exit_code != 0


async def test_an_offline_command_can_use_its_own_loopback(scene: Scene) -> None:
    script = (
        "import socket; s = socket.create_server(('127.0.0.1', 0));"
        " c = socket.create_connection(s.getsockname()); print('heard')"
    )
    result = await scene.run(f'python3 -c "{script}"', offline=OFFLINE)
    assert (result.exit_code, result.output) == (0, "heard\n")


@pytest.mark.parametrize(
    "command",
    [
        "echo x >> /etc/hosts",
        "touch /var/lib/x",
        "mount -o remount,rw /",
        "unshare -m true",
        "chroot / true",
        "ip link set lo down",
        "echo x > ../note",
    ],
)
async def test_an_offline_command_writes_nothing_outside_scratch(
    scene: Scene, command: str
) -> None:
    result = await scene.run(command, offline=OFFLINE)
    assert result.exit_code != 0, result.output


@pytest.mark.parametrize("offline", [OPEN, OFFLINE])
async def test_a_command_has_no_capability_and_a_filter_of_calls(
    scene: Scene, offline: bool
) -> None:
    result = await scene.run(
        "grep -E 'Cap...:|NoNewPrivs|Seccomp:' /proc/self/status", offline=offline
    )
    values = [int(line.split()[1], 16) for line in result.output.splitlines()]
    assert values == [0, 0, 0, 0, 0, 1, 2]


async def test_an_offline_command_sees_only_harmless_devices(scene: Scene) -> None:
    result = await scene.run("ls /dev", offline=OFFLINE)
    more = {*root_folder.DEVICE_LINKS, "shm", "pts", "ptmx"}
    assert set(result.output.split()) == {*root_folder.DEVICES, *more}


async def test_the_tmp_folder_of_an_offline_command_is_private_and_removed(scene: Scene) -> None:
    left = Path(f"/tmp/agiraph-left-{scene.mark}")
    result = await scene.run(f"echo x > {left} && cat {left}", offline=OFFLINE)
    assert (result.output, left.exists()) == ("x\n", False)


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="there is no /dev/shm")
@pytest.mark.parametrize("offline", [OPEN, OFFLINE])
async def test_a_home_below_dev_shm_is_hidden_and_works(offline: bool) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        scene = Scene(home=Path(folder) / "home", database=Path(folder) / "db", isolation="")
        scene.fill()
        result = await scene.run(f"echo x > made; cat {scene.home}/token", offline=offline)
        made = (scene.scratch / "made").read_text()
    assert (result.exit_code, made, "a secret" in result.output) == (1, "x\n", False)
