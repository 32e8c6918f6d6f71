"""Programs from npm: command-line agents, installed once outside the repository and kept."""

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

INSTALL_SECONDS = 100
QUICKLY = ("--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-retry-mintimeout=1000")


def cache_folder() -> Path:
    """Return the folder in which programs for tests are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agiraph-tests"


@contextlib.contextmanager
def installation_lock(cache: Path, name: str) -> Generator[bool, None, None]:
    """Hold the lock for the installation; yield whether another process held it first."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = (cache / f"lock-{name}").open("a")
    except OSError as error:
        pytest.skip(f"{name} cannot be kept in the cache: {error.strerror}")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            waited = False
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_EX)
            waited = True
        yield waited


@dataclass(frozen=True, slots=True, kw_only=True)
class NpmProgram:
    """A program that npm installs. Its version is fixed: another one may send other requests, which
    the scripted model does not expect."""

    name: str
    package: str
    version: str
    executable: str
    seconds: float = INSTALL_SECONDS

    def installed(self) -> Path:
        """Return the path of the program, installing it if needed; skip the test if that fails."""
        cache = cache_folder()
        folder = cache / f"{self.name}-{self.version}"
        program = folder / "node_modules" / ".bin" / self.executable
        if not program.exists():
            with installation_lock(cache, self.name) as waited:
                if waited and not program.exists():  # a second attempt would take as long
                    pytest.skip(f"another process tried to install {self.package} and failed")
                if not program.exists():
                    self._install(cache, folder)
        shown = subprocess.run([program, "--version"], capture_output=True, check=False, timeout=60)
        if shown.returncode != 0:
            pytest.skip(f"{self.package} does not run here: exit code {shown.returncode}")
        return program

    def _install(self, cache: Path, folder: Path) -> None:
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip(f"there is no npm to install {self.package} with")
        made = Path(tempfile.mkdtemp(dir=cache))
        try:
            subprocess.run(
                [npm, "install", *QUICKLY, "--prefix", made, f"{self.package}@{self.version}"],
                check=True,
                capture_output=True,
                timeout=self.seconds,
            )
            # The final name is given last, so a crash leaves no half installation under it.
            made.rename(folder)
        except subprocess.TimeoutExpired:
            pytest.skip(f"npm did not install {self.package} within {self.seconds} s")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"npm could not install {self.package}: exit code {error.returncode}")
        except OSError as error:
            pytest.skip(f"{self.package} cannot be kept in the cache: {error.strerror}")
        finally:
            shutil.rmtree(made, ignore_errors=True)
