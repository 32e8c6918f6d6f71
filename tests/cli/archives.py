"""Archives: backups that a test unpacks, changes and packs again with a matching manifest."""

import hashlib
import io
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

MANIFEST, ROWS = "manifest.json", "rows.jsonl"


@dataclass(slots=True)
class Parts:
    """The members of a backup, in order."""

    members: dict[str, bytes]
    links: list[tarfile.TarInfo] = field(default_factory=list[tarfile.TarInfo])
    """Members without content: links, devices, and files with a wrong size."""

    @classmethod
    def of(cls, path: Path) -> "Parts":
        with tarfile.open(path) as tar:
            return cls({m.name: tar.extractfile(m).read() for m in tar})  # type: ignore[union-attr]

    @property
    def manifest(self) -> dict[str, Any]:
        return orjson.loads(self.members[MANIFEST])

    def set(self, name: str, data: bytes) -> None:
        """Add a member and its hash in the manifest."""
        manifest = self.manifest
        manifest["files"][name] = hashlib.sha256(data).hexdigest()
        self.members[name] = data
        self.members[MANIFEST] = orjson.dumps(manifest)

    def link(self, name: str, type: bytes, target: str = "", size: int = 0) -> None:
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.size = type, target, size
        self.links.append(info)

    def set_manifest(self, **fields: Any) -> None:
        self.members[MANIFEST] = orjson.dumps({**self.manifest, **fields})

    @property
    def rows(self) -> list[Any]:
        return [orjson.loads(line) for line in self.members[ROWS].splitlines()]

    def set_rows(self, rows: list[Any]) -> None:
        self.set(ROWS, b"".join(orjson.dumps(row) + b"\n" for row in rows))

    def write(self, path: Path) -> Path:
        with tarfile.open(path, "w:gz", compresslevel=1) as tar:
            for name, data in self.members.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
                if name == ROWS:
                    for link in self.links:
                        tar.addfile(link)
        return path


Change = Callable[[Parts], None]
