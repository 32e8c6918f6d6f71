"""Program credentials: lends a command-line agent the person's sign-in, and takes it back renewed.

A confined program sees nothing of the person's home. So the files with its sign-in are copied to
its own home before it starts. Such programs renew their tokens and would save them; after the run
a renewed copy replaces the person's file, but only if nothing else in it has changed: a program
that was talked into it could otherwise sign the person in to somebody else's account.
"""

import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path, PurePath
from typing import Any, cast

import orjson

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.value import dataclass
from agiraph.core.home.safe_folder import PARTIAL, Folder

FILE_BYTES = 2**20
_RENEWED = frozenset(
    {"accesstoken", "refreshtoken", "expiresat", "access_token", "refresh_token", "id_token",
     "expiry_date", "last_refresh", "expires", "access", "refresh", "expires_at", "expires_in",
     "refreshtokenexpiresat"}
)  # fmt: skip
"""Names of the fields that renewing a sign-in changes, in lower case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A command-line agent whose files are known."""

    signed_in: tuple[str, ...]
    """Files in a home with its sign-in, which it renews."""
    settings: tuple[str, ...] = ()
    """Files with settings of the person, which it only reads."""
    defaults: Mapping[str, str] = field(default_factory=dict[str, str])
    """Settings for a person who has none, by file: they keep it from talking to other hosts."""
    environment: Mapping[str, str]
    """Variables that keep it from talking to other hosts, or from sandboxing itself once more."""


PRESETS: Mapping[str, Preset] = {
    "claude": Preset(
        signed_in=(".claude/.credentials.json",),
        settings=(".claude.json",),
        environment={
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
    ),
    "codex": Preset(
        signed_in=(".codex/auth.json",),
        settings=(".codex/config.toml",),
        # Without the last line it waits for a list of plugins that it cannot fetch.
        defaults={
            ".codex/config.toml": "check_for_update_on_startup = false\n"
            "analytics = { enabled = false }\n"
            "[features]\nplugins = false\n"
        },
        environment={},
    ),
    "gemini": Preset(
        signed_in=(".gemini/oauth_creds.json",),
        settings=(".gemini/settings.json", ".gemini/google_accounts.json"),
        # It refuses to start with GOOGLE_GEMINI_BASE_URL unless the kind of sign-in is named.
        defaults={
            ".gemini/settings.json": '{"general": {"enableAutoUpdate": false},'
            ' "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},'
            ' "security": {"auth": {"selectedType": "gemini-api-key"}}}\n'
        },
        environment={
            "GEMINI_SANDBOX": "false",
            # Else it takes no tools into its folder, which nobody has told it to trust, and goes on
            # in a process of its own after a signal to end.
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_CLI_NO_RELAUNCH": "true",
        },
    ),
    "opencode": Preset(
        signed_in=(".local/share/opencode/auth.json",),
        settings=(".config/opencode/opencode.json",),
        defaults={".config/opencode/opencode.json": '{"autoupdate": false, "share": "disabled"}\n'},
        environment={
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        },
    ),
}
"""Presets by the name of the executable."""


@dataclass(frozen=True, slots=True)
class Lent:
    """A file of the person that a program has a copy of."""

    own: Path
    home: Path
    name: str
    data: bytes


def lend(program: str, person: Path, home: Path) -> list[Lent]:
    """Copy the sign-in and the settings of a preset to its home; return the copies that it renews.

    `person` is the home of the person, `home` that of the program. A file that the program has from
    an earlier run is replaced.
    """
    preset = PRESETS.get(program)
    if preset is None:
        return []
    lent: list[Lent] = []
    with _opened(home) as folder:
        for name in (*preset.signed_in, *preset.settings):
            data = _read(person / name)
            given = preset.defaults.get(name, "").encode() if data is None else data
            if data is not None or name in preset.defaults:
                _replace(folder, name, given)
            if data is not None and name in preset.signed_in:
                lent.append(Lent(person / name, home, name, data))
    return lent


def take_back(lent: Sequence[Lent]) -> list[str]:
    """Replace the person's files by copies that the program renewed; return their names.

    A file that the person has renewed meanwhile, or a copy with another change, is left alone.
    """
    renewed: list[str] = []
    for one in lent:
        data = _read_copy(one)
        if data is None or data == one.data or _read(one.own) != one.data:
            continue
        if _is_renewed(one.data, data):
            _write(one.own, data, mode=one.own.stat().st_mode & 0o777)
            renewed.append(one.own.name)
    return renewed


def _opened(home: Path) -> Folder:
    """Open the home of a program. It may have left links in it, and in its place: none is followed,
    because it would lead to files that the program may not reach itself."""
    with Folder.open(home.parent) as around:
        return around.sub(home.name, create=True)


def _replace(folder: Folder, name: str, data: bytes) -> None:
    """Write a file in the home of a program, and remove what it has left in the way."""
    parents = [str(path) for path in reversed(PurePath(name).parents[:-1])]
    for path, wanted in (*((parent, "folder") for parent in parents), (name, "file")):
        found = folder.find(path)
        if found is not None and found.kind != wanted:
            folder.remove(path)
    folder.write(name, data)


def _read_copy(one: Lent) -> bytes | None:
    """Return the copy that the program has now; None if there is none, or no small file."""
    with suppress(Refused, OSError), _opened(one.home) as folder:
        data = folder.read(one.name, limit=FILE_BYTES + 1)
        return data if len(data) <= FILE_BYTES else None
    return None


def _is_renewed(before: bytes, after: bytes) -> bool:
    """Whether two files differ in nothing but tokens and their times."""
    try:
        return _alike(orjson.loads(before), orjson.loads(after), name="")
    except orjson.JSONDecodeError:
        return False


def _alike(before: Any, after: Any, *, name: str) -> bool:
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = cast(dict[str, Any], before), cast(dict[str, Any], after)
        return old.keys() == new.keys() and all(_alike(old[key], new[key], name=key) for key in old)
    if before == after:
        return True
    plain = (str, int, float)
    return isinstance(before, plain) and isinstance(after, plain) and name.casefold() in _RENEWED


def folders_of(executable: str, path: str) -> list[Path]:
    """Return the folders that hold a program of the settings, and Node if it needs that: where they
    lie in the home of a person, they are shown to the program, read-only."""
    found = shutil.which(executable, path=path) if executable else None
    if found is None:
        return []
    real = Path(found).resolve()
    folders = [Path(found).absolute().parent, _package(real)]
    if _needs_node(real) and (node := shutil.which("node", path=path)) is not None:
        folders += [Path(node).absolute().parent, Path(node).resolve().parent]
    return list(dict.fromkeys(folders))


def _package(real: Path) -> Path:
    """Return the folder of a program with what it imports: all packages beside it, under npm."""
    parts = real.parts
    if "node_modules" in parts:
        return Path(*parts[: parts.index("node_modules") + 1])
    return real.parent


def _needs_node(real: Path) -> bool:
    with suppress(OSError), real.open("rb") as file:
        line = file.readline(200)
        return line.startswith(b"#!") and b"node" in line
    return False


def _read(path: Path) -> bytes | None:
    """Return a small regular file of the person; None if there is none."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            data = file.read(FILE_BYTES + 1)
    except OSError:
        return None
    return data if len(data) <= FILE_BYTES else None


def _write(path: Path, data: bytes, *, mode: int) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = path.parent / f"{PARTIAL}{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(partial, flags, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
