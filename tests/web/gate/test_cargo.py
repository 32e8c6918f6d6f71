"""Cargo: the real program fetches a crate through the gate's sparse index."""

import asyncio
import hashlib
import io
import json
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from agiraph.sandbox.gate.environment import cargo_settings
from agiraph.sandbox.gate.rules import Rules
from tests.web.gate.gates import open_gate
from tests.web.gate.upstreams import open_upstream

MANIFEST = '[package]\nname = "{name}"\nversion = "1.0.0"\nedition = "2021"\n'


def crate(name: str) -> bytes:
    files = {"Cargo.toml": MANIFEST.format(name=name), "src/lib.rs": ""}
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"{name}-1.0.0/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


@pytest.mark.skipif(shutil.which("cargo") is None, reason="there is no cargo here")
async def test_cargo_fetches_a_crate_through_the_gate(tmp_path: Path) -> None:
    content = crate("teapot")
    line = {
        "name": "teapot",
        "vers": "1.0.0",
        "deps": [],
        "cksum": hashlib.sha256(content).hexdigest(),
        "features": {},
        "yanked": False,
    }
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "src" / "lib.rs").touch()
    (project / "Cargo.toml").write_text(
        MANIFEST.format(name="kettle") + '[dependencies]\nteapot = "1"\n'
    )
    async with open_upstream() as upstream:
        upstream.pages |= {
            "/cargo/te/ap/teapot": json.dumps(line).encode(),
            "/cargo/config.json": json.dumps({"dl": f"{upstream.url}/crates"}).encode(),
            "/crates/teapot/1.0.0/download": content,
        }
        async with open_gate(Rules(network="packages"), indexes=upstream.indexes) as gate:
            (project / ".cargo").mkdir()
            (project / ".cargo" / "config.toml").write_text(cargo_settings(gate.port))
            own = {"CARGO_HOME": str(tmp_path / "cargo"), "CARGO_NET_RETRY": "0"}
            run = await asyncio.create_subprocess_exec(
                *("cargo", "fetch"),
                cwd=project,
                env={**os.environ, **own},
                stderr=asyncio.subprocess.PIPE,
            )
            _, said = await run.communicate()
    assert (run.returncode, b"Downloaded teapot v1.0.0" in said) == (0, True), said.decode()
    assert upstream.asked == [
        "GET /cargo/te/ap/teapot",
        "GET /cargo/config.json",
        "GET /crates/teapot/1.0.0/download",
    ]
