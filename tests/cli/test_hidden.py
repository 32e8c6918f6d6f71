"""No key in any event, thread, export, child environment or /proc that a tool can reach."""

import base64
import os
import subprocess
import sys
from pathlib import Path

from agiraph.testing import ModelServer, call, says

CANARIES = {
    "OPENAI_API_KEY": "canary-openai-0123456789",
    "ANTHROPIC_API_KEY": "canary-anthropic-0123456789",
    "GEMINI_API_KEY": "canary-gemini-0123456789",
    "OPENROUTER_API_KEY": "canary-openrouter-0123456789",
    "MY_OWN_TOKEN": "canary-token-0123456789",
    "DATABASE_PASSWORD": "canary-password-0123456789",
}

SNOOP = (
    "env; cat /proc/self/environ; tr '\\0' '\\n' < /proc/$PPID/environ; "
    'for p in /proc/[0-9]*; do grep -aq AGIRAPH_HOME="$AGIRAPH_HOME_MARK" $p/environ 2>/dev/null'
    " && tr '\\0' '\\n' < $p/environ; done; cat leak.txt"
)


async def test_no_key_reaches_anything_that_is_written_or_started(tmp_path: Path) -> None:
    home = tmp_path / "home"
    key = CANARIES["OPENAI_API_KEY"]
    coded = base64.b64encode(key.encode()).decode()
    snoop = SNOOP.replace("$AGIRAPH_HOME_MARK", str(home))
    script = [
        # A model that was told the key some other way repeats it everywhere it can.
        says(f"The key is {key}.", call("write_file", path="leak.txt", content=f"{key} {coded}")),
        says(call("bash", command=snoop)),
        says(call("send_message", to="human", content=f"psst: {key}")),
        says(call("finish", summary=f"done with {key}")),
    ]
    async with ModelServer(script) as server:
        environment = {
            "PATH": os.environ["PATH"],
            "AGIRAPH_HOME": str(home),
            "AGIRAPH_MODEL": "openai/test",
            "OPENAI_BASE_URL": server.openai_url,
            **CANARIES,
        }
        done = await _run(environment, "run", "Tell me")
        exported = await _run(environment, "export", _team(done), str(tmp_path / "out"))
        assert server.requests[0].headers["authorization"] == f"Bearer {key}"
    assert (done.returncode, exported.returncode) == (0, 0), done.stdout + done.stderr

    needles = [v.encode() for v in CANARIES.values()] + [
        coded.encode(),
        key.encode().hex().encode(),
    ]
    where = [*(home.rglob("*")), *((tmp_path / "out").rglob("*"))]
    holding = {
        file.name
        for file in where
        if file.is_file() and any(needle in file.read_bytes() for needle in needles)
    }
    # What the model itself put into a file is the model's; nothing of ours holds a key.
    assert holding == {"leak.txt", "output"}
    outputs = [f.read_bytes() for f in home.rglob("output")]
    others = [v.encode() for n, v in CANARIES.items() if n != "OPENAI_API_KEY"]
    assert not any(needle in output for output in outputs for needle in others)
    assert all(output.count(key.encode()) == 1 for output in outputs)  # from leak.txt, nowhere else


async def _run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    import asyncio

    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).parent / "agiraph"),
        *arguments,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = await process.communicate()
    code = process.returncode
    assert code is not None
    return subprocess.CompletedProcess(arguments, code, out.decode(), err.decode())


def _team(done: subprocess.CompletedProcess[str]) -> str:
    return next(word for word in done.stdout.split() if word.startswith("team_"))
