"""Stamp: hashes over everything the built pages come from, written beside them.

A test computes them again, so that forgotten builds are noticed without Node. The types of the
API's answers are generated from its description, which therefore has a hash of its own.
"""

import hashlib
import json
from pathlib import Path

from agiraph.api.app import routes

WEB = Path(__file__).parent
BUILT = WEB.parent / "src" / "agiraph" / "web_dist" / "build.json"
_TOP = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")


def sources() -> list[Path]:
    inside = [p for folder in ("src", "public") for p in (WEB / folder).rglob("*") if p.is_file()]
    shown = [p for p in inside if not p.name.endswith((".test.ts", ".test.tsx"))]
    return sorted([*shown, *(WEB / name for name in _TOP)])


def stamp() -> dict[str, str]:
    return {"sources": _sources(), "api": _api()}


def _api() -> str:
    return hashlib.sha256(json.dumps(routes().openapi(), sort_keys=True).encode()).hexdigest()


def _sources() -> str:
    whole = hashlib.sha256()
    for path in sources():
        data = path.read_bytes().replace(b"\r\n", b"\n")
        whole.update(f"{path.relative_to(WEB).as_posix()}\0{len(data)}\0".encode() + data)
    return whole.hexdigest()


if __name__ == "__main__":
    BUILT.write_text(json.dumps(stamp()) + "\n")
