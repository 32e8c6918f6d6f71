"""Hostile packages: small archives that become huge in whoever opens them."""

import bz2
import gzip
import io
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


SOURCES: dict[str, Callable[[], bytes]] = {
    made.__name__: made for made in (extended_header, long_name, global_header, nested)
}
WHEELS: dict[str, Callable[[], bytes]] = {made.__name__: made for made in (lying_metadata, crowded)}
