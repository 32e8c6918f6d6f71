"""Browser: renders a page with its scripts, in a sandbox whose only network is agiraph's gate.

The browser runs untrusted scripts, and its own sandbox is off because it runs inside ours. So it
sees only the system's files and an empty folder, and it is used only where commands are confined
and have a gate. It comes with the extra `browser` (playwright), or with the system.
"""

import importlib.util
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from agiraph.core.domain.ids import TeamId
from agiraph.sandbox.dialogue import talking
from agiraph.sandbox.gate_channel import Serve
from agiraph.sandbox.levels import Confinement
from agiraph.sandbox.parsing import IN_MEMORY
from agiraph.sandbox.sandbox import GATE_PORT, Limits, Mount, Spec, spare_user

TIMEOUT_S = 25.0
PAGE_MS = 10_000
"""How long the scripts of a page may run, in milliseconds of the page's virtual clock."""
MAX_BYTES = 20 * 2**20
LIMITS = Limits(processes=256, memory_mib=2048, file_mib=256)
ADDRESS_MIB = 16 * 2**20
"""The limit of the address space. A browser reserves terabytes of it for its heaps; `LIMITS` bounds
the memory that it uses."""
_SYSTEM = ("chromium-headless-shell", "chromium", "google-chrome", "chrome")
_FLAGS = (
    "--headless", "--no-sandbox", "--no-zygote", "--disable-gpu", "--disable-dev-shm-usage",
    "--no-first-run", "--disable-extensions", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--mute-audio", "--user-data-dir=profile",
    f"--proxy-server=http://127.0.0.1:{GATE_PORT}", "--proxy-bypass-list=<-loopback>",
    f"--virtual-time-budget={PAGE_MS}", "--dump-dom",
)  # fmt: skip


@cache
def find() -> Path | None:
    """Return the path of a browser on this machine; None if the extra is not installed, or no
    browser is found."""
    if importlib.util.find_spec("playwright") is None:
        return None
    return next((path.resolve() for path in _candidates() if os.access(path, os.X_OK)), None)


def _candidates() -> Iterator[Path]:
    """Yield where a browser may be: playwright's own, the newest first, then the system's."""
    own = os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or "~/.cache/ms-playwright"
    for pattern in ("chromium_headless_shell-*/*/headless_shell", "chromium-*/*/chrome"):
        yield from sorted(Path(own).expanduser().glob(pattern), reverse=True)
    yield Path("/usr/lib/chromium/chromium-headless-shell")
    yield from (Path(found) for name in _SYSTEM if (found := shutil.which(name)))


def can_show(confinement: Confinement) -> bool:
    """Whether this machine has a browser, and a sandbox with a gate to run it in."""
    return confinement.is_confined and confinement.has_gate and find() is not None


async def show(url: str, serve: Serve, *, confinement: Confinement, team_id: TeamId) -> bytes:
    """Return the HTML of a page after its scripts have run; empty if the browser fails.

    `serve` gets the gate's listener. The browser reaches the network through the gate alone.
    """
    program = find()
    assert program is not None
    place = IN_MEMORY if IN_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="agiraph-browser-", dir=place) as made:
        work = Path(made).resolve() / "work"
        work.mkdir()
        line = shlex.join([str(program), *_FLAGS, url])
        async with talking(
            work.parent / "spool",
            command=f"exec {line} 2>/dev/null",
            cwd=work,
            env={"PATH": "/usr/bin:/bin", "HOME": str(work)},
            spec=_spec(program, work, confinement, team_id),
            limits=LIMITS,
            team=team_id,
            serve=serve,
            timeout=TIMEOUT_S,
        ) as process:
            process.stdin.close()
            html = bytearray()
            while len(html) < MAX_BYTES and (piece := await process.stdout.read(2**16)):
                html += piece
    return bytes(html)


def _spec(program: Path, work: Path, confinement: Confinement, team_id: TeamId) -> Spec:
    return Spec(
        level=confinement.level,
        mounts=(
            Mount(source=program.parent, target=program.parent),
            Mount(source=work, target=work, is_writable=True),
        ),
        network="gate",
        user=spare_user(team_id) if confinement.has_spare_user else 0,
        address_mib=ADDRESS_MIB,
    )
