"""Cold start: the CPU of commands in a process of their own, and the memory of an idle server."""

import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import Request, urlopen

from bench.stub import Stub

TOKEN = "a-token-of-32-characters-for-bench"
RUN = ("run", "Say hello", "--accept", "answer")
"""A goal that one call of the model reaches."""
IDLE_SECONDS = 3.0


def _environ(home: str, model_url: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "AGIRAPH_HOME": home,
        "AGIRAPH_PORT": "0",
        "AGIRAPH_TOKEN": TOKEN,
        "AGIRAPH_MODEL": "openai/stub",
        "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": model_url,
    }


def _command(arguments: tuple[str, ...], environ: dict[str, str]) -> float:
    """Return the CPU seconds of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    line = (sys.executable, "-m", "agiraph", *arguments)
    subprocess.run(line, env=environ, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _cpu(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _server(environ: dict[str, str]) -> tuple[float, float]:
    """Return a server's CPU seconds to the first answer, and its MiB of memory when it idles."""
    line = (sys.executable, "-m", "agiraph", "up")
    out, log = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(line, env=environ, stdout=out, stderr=log, text=True) as server:
        assert server.stdout is not None
        while "is up at" not in (told := server.stdout.readline()):
            if not told:
                raise RuntimeError("the server did not start; its log is in its home")
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        with urlopen(Request(f"{told.split()[-1]}/api/teams", headers=bearer)) as answer:
            answer.read()
        spent = _cpu(server.pid)
        time.sleep(IDLE_SECONDS)
        status = Path(f"/proc/{server.pid}/status").read_text()
        found = re.search(r"VmRSS:\s*(\d+)", status)
        assert found is not None
        server.terminate()
    return spent, int(found[1]) / 1024


def measure(rounds: int) -> dict[str, float]:
    """Return the medians; each round has a home of its own, which `up` has opened before."""
    found: dict[str, list[float]] = {"up": [], "run": [], "teams": [], "idle MiB": []}
    with Stub(1) as stub:
        for _ in range(rounds + 1):
            with tempfile.TemporaryDirectory(prefix="agiraph-bench-") as home:
                environ = _environ(home, stub.url)
                up, idle = _server(environ)
                found["up"].append(up)
                found["idle MiB"].append(idle)
                found["run"].append(_command(RUN, environ))
                found["teams"].append(_command(("teams",), environ))
    # The first round also writes compiled modules to the disk.
    return {what: statistics.median(values[1:]) for what, values in found.items()}


if __name__ == "__main__":
    for what, value in measure(3).items():
        print(f"{what:<10} {value:8.2f}")
