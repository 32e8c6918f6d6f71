"""Certificates: one that a test makes itself, and TLS in front of a server, as a proxy ends it."""

import asyncio
import contextlib
import ssl
import subprocess
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path


def self_signed(folder: Path, *names: str) -> Path:
    """Make `cert.pem` and `key.pem` for 127.0.0.1 and these names; return their folder."""
    known = ",".join(["IP:127.0.0.1", *(f"DNS:{name}" for name in names)])
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
        f" -subj /CN=agiraph-test -addext subjectAltName={known} -keyout key.pem -out cert.pem"
    )
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return folder


@dataclass(slots=True)
class TlsEnd:
    """Ends TLS and passes the bytes on to a port of this machine, which is known later."""

    origin: str = ""
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.port)
        await asyncio.gather(_pass(reader, to_writer), _pass(to_reader, writer))


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def tls_end(folder: Path, host: str) -> AsyncGenerator[TlsEnd]:
    """Open a TLS end at a free port of this host name, which leads to this machine."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    self_signed(folder, host)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    end = TlsEnd()
    server = await asyncio.start_server(end.serve, "127.0.0.1", 0, ssl=context)
    end.origin = f"https://{host}:{server.sockets[0].getsockname()[1]}"
    try:
        yield end
    finally:
        server.close()
