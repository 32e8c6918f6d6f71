"""Stamp: hashes of everything that the built pages are made from, written beside them.

A test computes the hashes again, so that a forgotten build is noticed without Node. The types of
API responses are generated from the API's schema, which therefore has a hash of its own.
"""

import hashlib
import json
from pathlib import Path

from agiraph.api.schema import document

WEB = Path(__file__).parent
BUILT = WEB.parent / "src" / "agiraph" / "web_dist" / "build.json"
_TOP = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")


def sources() -> list[Path]:
    """Return the files that decide the build's output. Unit tests do not."""
    files = [p for folder in ("src", "public") for p in (WEB / folder).rglob("*") if p.is_file()]
    built = [p for p in files if not p.name.endswith((".test.ts", ".test.tsx"))]
    return sorted([*built, *(WEB / name for name in _TOP)])


def stamp() -> dict[str, str]:
    return {"sources": _sources(), "api": _api()}


def _api() -> str:
    return hashlib.sha256(json.dumps(document(), sort_keys=True).encode()).hexdigest()


def _sources() -> str:
    digest = hashlib.sha256()
    for path in sources():
        # Git may check files out with CRLF on Windows; the hash must not depend on it.
        data = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{path.relative_to(WEB).as_posix()}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


if __name__ == "__main__":
    BUILT.write_text(json.dumps(stamp()) + "\n")
