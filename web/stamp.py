"""Stamp: a hash over everything the built pages come from, written beside them.

A test computes it again, so that forgotten builds are noticed without Node.
"""

import hashlib
import json
from pathlib import Path

WEB = Path(__file__).parent
BUILT = WEB.parent / "src" / "agiraph" / "web_dist" / "build.json"
_TOP = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")


def sources() -> list[Path]:
    inside = [p for folder in ("src", "public") for p in (WEB / folder).rglob("*") if p.is_file()]
    shown = [p for p in inside if not p.name.endswith((".test.ts", ".test.tsx"))]
    return sorted([*shown, *(WEB / name for name in _TOP)])


def digest() -> str:
    whole = hashlib.sha256()
    for path in sources():
        data = path.read_bytes().replace(b"\r\n", b"\n")
        whole.update(f"{path.relative_to(WEB).as_posix()}\0{len(data)}\0".encode() + data)
    return whole.hexdigest()


if __name__ == "__main__":
    BUILT.write_text(json.dumps({"sources": digest()}) + "\n")
