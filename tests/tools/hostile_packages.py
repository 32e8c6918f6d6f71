"""Hostile packages: small archives that become huge in whoever opens them."""

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
from collections.abc import Callable

LARGE = 2**28
_ZEROS = bytes(2**20)


def _header(name: str, kind: bytes, size: int) -> bytes:
    made = tarfile.TarInfo(name)
    made.type, made.size = kind, size
    return made.tobuf(tarfile.GNU_FORMAT)


def _tar(kind: bytes, pack: Callable[[bytes], bytes]) -> bytes:
    """Return a packed tar with one header and its data; both formats may be joined from parts."""
    return pack(_header("x", kind, LARGE)) + pack(_ZEROS) * (LARGE // len(_ZEROS))


def extended_header() -> bytes:
    """A tar whose extended header is read whole, before any member is shown."""
    return _tar(tarfile.XHDTYPE, gzip.compress)


def long_name() -> bytes:
    """A tar with a member whose name has 256 MiB."""
    return _tar(tarfile.GNUTYPE_LONGNAME, gzip.compress)


def global_header() -> bytes:
    return _tar(tarfile.XGLTYPE, bz2.compress)


def nested() -> bytes:
    """A compressed tar in a compressed tar, under the name of a file that is read."""
    inner = extended_header()
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        entry = tarfile.TarInfo("x/PKG-INFO")
        entry.size = len(inner)
        archive.addfile(entry, io.BytesIO(inner))
    return gzip.compress(made.getvalue())


def lying_metadata() -> bytes:
    """A wheel whose METADATA has 256 MiB and says that it has ten bytes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("x-1.0.dist-info/METADATA", "w", force_zip64=True) as entry:
            for _ in range(LARGE // len(_ZEROS)):
                entry.write(_ZEROS)
        archive.infolist()[0].file_size = 10
    return made.getvalue()


def crowded() -> bytes:
    """A zip with 300,000 entries, none of which is there."""
    entry = b"PK\x01\x02" + bytes(24) + (1).to_bytes(2, "little") + bytes(16) + b"x"
    directory = entry * 300_000
    end = b"PK\x05\x06" + bytes(4) + b"\xff\xff\xff\xff"
    end += len(directory).to_bytes(4, "little") + bytes(4) + bytes(2)
    return directory + end


def large_information() -> bytes:
    """A tar, packed in a way that its name does not say, whose PKG-INFO has 256 MiB."""
    return lzma.compress(_header("x/PKG-INFO", tarfile.REGTYPE, LARGE)) + (
        lzma.compress(_ZEROS) * (LARGE // len(_ZEROS))
    )


def claimed_header() -> bytes:
    """A tar of less than a KiB whose extended header says that it has 8 GiB."""
    return gzip.compress(_header("x", tarfile.XHDTYPE, 2**33 - 1) + b"30 path=x\n")


def sparse() -> bytes:
    """A tar with a PKG-INFO of 4 GiB, all of which is a hole."""
    header = bytearray(_header("x/PKG-INFO", tarfile.GNUTYPE_SPARSE, 0))
    header[386:398] = b"%011o\0" % (2**32 - 1)
    header[398:410] = b"%011o\0" % 0
    header[483:495] = b"%011o\0" % 2**32
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return gzip.compress(bytes(header) + bytes(1024))


def _zip(name: str, body: bytes, packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", packing) as archive:
        archive.writestr(name, body)
    return made.getvalue()


def large_metadata() -> bytes:
    """A wheel of less than a KiB whose METADATA has 64 MiB."""
    return _zip("x-1.0.dist-info/METADATA", bytes(2**26), zipfile.ZIP_BZIP2)


def nested_zips() -> bytes:
    made = bytes(2**24)
    for _ in range(4):
        made = _zip("x-1.0.dist-info/METADATA", made)
    return made


def zip64() -> bytes:
    """A wheel whose METADATA has two bytes and says that it has a TiB, packed and unpacked."""
    made = bytearray(_zip("x-1.0.dist-info/METADATA", b"hi"))
    entry, end = made.index(b"PK\x01\x02"), made.index(b"PK\x05\x06")
    sizes = struct.pack("<HHQQ", 1, 16, 2**40, 2**40)
    made[end + 12 : end + 16] = (end - entry + len(sizes)).to_bytes(4, "little")
    made[end:end] = sizes
    made[entry + 20 : entry + 28] = b"\xff" * 8
    made[entry + 30 : entry + 32] = len(sizes).to_bytes(2, "little")
    return bytes(made)


SOURCES: dict[str, Callable[[], bytes]] = {
    made.__name__: made
    for made in (
        *(extended_header, long_name, global_header, nested),
        *(large_information, claimed_header, sparse),
    )
}
WHEELS: dict[str, Callable[[], bytes]] = {
    made.__name__: made for made in (lying_metadata, crowded, large_metadata, nested_zips, zip64)
}

PAGE_BYTES = 16 * 2**20


def _repeated(before: bytes, unit: bytes, after: bytes) -> bytes:
    return before + unit * (PAGE_BYTES // len(unit)) + after


NPM, CARGO, PYTHON = "/npm/tea", "/cargo/3/t/tea", "/simple/tea/"
PAGES: dict[str, tuple[str, str, bytes, bytes, bytes]] = {
    "npm_lists": (NPM, "application/json", b'{"versions":{},"x":[', b"[],", b"0]}"),
    "npm_tables": (NPM, "text/html", b'{"versions":{},"x":[', b'{"a":1},', b"0]}"),
    "cargo_tables": (CARGO, "text/plain", b'{"vers":"1","x":[', b'{"a":1},', b"0]}"),
    "cargo_lines": (CARGO, "text/plain", b"", b'{"vers":"1"}\n', b""),
    "python_tables": (
        *(PYTHON, "application/vnd.pypi.simple.v1+json"),
        *(b'{"files":[],"x":[', b'{"a":1},', b"0]}"),
    ),
    "python_links": (PYTHON, "text/html", b"", b"<a href=a.zip>", b""),
    "python_attributes": (PYTHON, "text/html", b"<a", b" b=1", b">"),
}
"""Pages of an index: the path, the type, and the beginning, the repeated part and the end."""


def page(name: str) -> tuple[str, str, bytes]:
    """Return the path, the type and the body of a page whose values take far more than it has."""
    path, kind, *parts = PAGES[name]
    return path, kind, _repeated(*parts)
