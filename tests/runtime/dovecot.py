"""Dovecot: the mailbox of a mail host, served by Debian's Dovecot, unpacked and not installed."""

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from email import policy
from email.message import EmailMessage
from pathlib import Path

import pytest

from tests.programs import folder_of
from tests.runtime.mail_host import MailHost


@dataclass
class Dovecot(MailHost):
    """A mail host whose mailbox is a Maildir. Our part of it only signs the client in."""

    folder: Path = field(default_factory=Path)
    is_relay: bool = True

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator["MailHost"]:
        await asyncio.to_thread(self._unpack)
        async with super().open() as opened:
            yield opened

    def _unpack(self) -> None:
        if os.getuid() != 0:
            pytest.skip("only root can drop privileges, as Dovecot does")
        self.folder.mkdir()
        shutil.copytree(folder_of("dovecot"), self.folder / "root", symlinks=True)
        for part in ("new", "cur", "tmp"):
            (self.folder / "Maildir" / part).mkdir(parents=True)
        settings = {
            "base_dir": self.folder,
            "state_dir": self.folder,
            "libexec_dir": self._libraries,
            "mail_plugin_dir": self._libraries / "modules",
            "log_path": self.folder / "log",
            "protocols": "imap",
            "ssl": "no",
            "mail_location": f"maildir:{self.folder}/Maildir",
            "mail_uid": "nobody",
            "mail_gid": "nogroup",
        }
        lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
        (self.folder / "imap.conf").write_text(lines)
        # Dovecot serves as `nobody`, who must reach the Maildir through the folders of pytest.
        for above in self.folder.parents:
            if above.is_relative_to("/dev/shm") or above.is_relative_to("/tmp"):
                above.chmod(above.stat().st_mode | 0o711)
        subprocess.run(["chown", "-R", "nobody:nogroup", self.folder], check=True)

    @property
    def _libraries(self) -> Path:
        return self.folder / "root/usr/lib/dovecot"

    def arrive(self, mail: EmailMessage | bytes) -> None:
        raw = mail if isinstance(mail, bytes) else mail.as_bytes(policy=policy.default)
        place = self.folder / "Maildir/new" / f"{self._next_uid:05}.M1P1.home"
        place.write_bytes(raw)
        shutil.chown(place, "nobody", "nogroup")
        self._next_uid += 1

    def renumber(self) -> None:
        """Lose the list of numbers; Dovecot makes a new one."""
        for name in ("dovecot-uidlist", "dovecot-uidvalidity", "dovecot.index.log"):
            (self.folder / "Maildir" / name).unlink(missing_ok=True)

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        program = self.folder / "root/usr/bin/doveconf"
        settings = ("-f", "service=imap", "-c", str(self.folder / "imap.conf"), "-m", "imap")
        process = await asyncio.create_subprocess_exec(
            *(str(program), *settings, "-e", str(self._libraries / "imap")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={
                "USER": "agiraph",
                "HOME": str(self.folder),
                "PATH": os.environ["PATH"],
                "LD_LIBRARY_PATH": str(self._libraries),
            },
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            greeting = await process.stdout.readline()
            assert greeting.startswith(b"* PREAUTH"), greeting
            await asyncio.gather(_pass_on(reader, process.stdin), _pass_on(process.stdout, writer))
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    target.close()
