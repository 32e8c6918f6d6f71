"""Package archive: prints the files of a Python package that name what it needs. It runs as a
script in a process of its own.

    python -I package_archive.py FILE wheel|source SECONDS BYTES

It prints JSON, one pair a line: the name of a file in the archive, and its text. It stops after so
many seconds of the processor, and prints at most so many bytes of all files. It imports nothing
of agiraph. A hostile archive can use up only this process: headers of tar are read whole, a header
may be gigabytes long, and the archive that holds it less than one KiB.
"""

import json
import resource
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from typing import IO

MAX_MEMORY_BYTES = 512 * 2**20
MEMBER_BYTES = 2**20
UNPACKED_BYTES = 256 * 2**20
METADATA = "METADATA"
BUILD_FILES = frozenset({"PKG-INFO", "requires.txt", "pyproject.toml", "setup.cfg"})


def main() -> None:
    path, kind = sys.argv[1:3]
    seconds, left = map(int, sys.argv[3:5])
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(path, "rb") as file:  # noqa: PTH123
        found = _of_zip(file, kind) if zipfile.is_zipfile(file) else _of_tar(file)
        for name, body in found:
            left -= len(body)
            if left < 0:
                return
            print(json.dumps([name, body.decode(errors="replace")]), flush=True)


def _of_zip(file: IO[bytes], kind: str) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            folder, _, name = entry.filename.rpartition("/")
            is_metadata = name == METADATA and folder.endswith(".dist-info")
            if not (is_metadata if kind == "wheel" else name in BUILD_FILES):
                continue
            with archive.open(entry) as opened:
                body = opened.read(MEMBER_BYTES + 1)  # what the entry says of its size may be a lie
            if len(body) <= MEMBER_BYTES:
                yield name, body


def _of_tar(file: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    file.seek(0)
    with tarfile.open(fileobj=file) as archive:
        for member in archive:
            if archive.offset > UNPACKED_BYTES:
                return
            name = member.name.rpartition("/")[2]
            if name not in BUILD_FILES or member.size > MEMBER_BYTES:
                continue
            if (opened := archive.extractfile(member)) is not None:
                yield name, opened.read()


if __name__ == "__main__":
    main()
