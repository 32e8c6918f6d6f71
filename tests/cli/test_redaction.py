"""Redaction: no key in events, threads, exports, environments or what tools can read in /proc."""

import base64
import gzip
import json
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

from agiraph import redaction
from agiraph.redaction import keep, redact
from agiraph.testing import ModelServer, call, says
from tests.cli.shell import Shell
from tests.cli.test_run import team_in, use_model_server

CANARIES = {
    "OPENAI_API_KEY": "canary-openai-0123456789",
    "ANTHROPIC_API_KEY": "canary-anthropic-0123456789",
    "GEMINI_API_KEY": "canary-gemini-0123456789",
    "OPENROUTER_API_KEY": "canary-openrouter-0123456789",
    "MY_OWN_TOKEN": "canary-token-0123456789",
    "DATABASE_PASSWORD": "canary-password-0123456789",
    "PARCEL_WORD": "canary-parcel-0123456789",
}

SNOOP = (
    "env; cat /proc/self/environ; tr '\\0' '\\n' < /proc/$PPID/environ; "
    'for p in /proc/[0-9]*; do grep -aq AGIRAPH_HOME="$AGIRAPH_HOME_MARK" $p/environ 2>/dev/null'
    " && tr '\\0' '\\n' < $p/environ; done; cat leak.txt"
)


@pytest.mark.slow
async def test_no_key_is_in_rows_exports_or_the_environment_of_commands(tmp_path: Path) -> None:
    home = tmp_path / "home"
    key = CANARIES["OPENAI_API_KEY"]
    coded = base64.b64encode(key.encode()).decode()
    home.mkdir()
    (home / "agiraph.toml").write_text('[secrets]\nparcel = "env:PARCEL_WORD"\n')
    snoop = SNOOP.replace("$AGIRAPH_HOME_MARK", str(home))
    script = [
        # The model knows the key and repeats it wherever it can.
        says(f"The key is {key}.", call("write_file", path="leak.txt", content=f"{key} {coded}")),
        says(call("bash", command=snoop)),
        says(call("send_message", to="human", content=f"psst: {key}")),
        says(call("finish", summary=f"done with {key}")),
    ]
    async with ModelServer(script) as server:
        environment = CANARIES | {
            "AGIRAPH_MODEL": "openai/test",
            "OPENAI_BASE_URL": server.openai_url,
        }
        # Executed: the environment of a forked process is not in its /proc.
        executed = Shell(home, environment, is_forked=False)
        done = await executed("run", "Tell me", "--accept", "answer")
        exported = await Shell(home, environment)(
            "export", team_in(done.out), str(tmp_path / "out")
        )
        assert server.requests[0].headers["authorization"] == f"Bearer {key}"
    assert (done.code, exported.code) == (0, 0), done.out + done.err

    needles = [v.encode() for v in CANARIES.values()] + [
        coded.encode(),
        key.encode().hex().encode(),
    ]
    where = [*(home.rglob("*")), *((tmp_path / "out").rglob("*"))]
    holding = {file.name for file in where if contains_any(file, needles)}
    # Only the file that the model wrote contains the key, and the output of the command it ran.
    assert holding == {"leak.txt", "output"}
    assert not [file for file in (tmp_path / "out").rglob("*") if contains_any(file, needles)]
    outputs = [f.read_bytes() for f in home.rglob("output")]
    others = [v.encode() for n, v in CANARIES.items() if n != "OPENAI_API_KEY"]
    assert not any(needle in output for output in outputs for needle in others)
    assert all(output.count(key.encode()) == 1 for output in outputs)  # printed from leak.txt


def contains_any(file: Path, needles: list[bytes]) -> bool:
    return file.is_file() and any(needle in file.read_bytes() for needle in needles)


KEY = "sk-canary=0123456789+abcdefghijklmnopqrstuvwxyz=ABCDEFGHIJKLMNOPQRSTUVWXYZ"
PRINT_KEY_ENCODED = r"""
k=$(cat key.txt); echo "key: $k"; echo "$k" | base64; echo "user:$k" | base64 -w0; echo
echo "$k" | basenc --base64url; printf %s "$k" | od -An -v -tx1 | tr -d ' \n' | fold -w 60; echo
python3 -c 'import sys, urllib.parse as u; print(u.quote(sys.argv[1]))' "$k"
echo "$k" > scratch.txt; touch "named $k"; gzip -k key.txt
head -c 1500000 /dev/zero | tr '\0' x > large.bin; echo "$k" >> large.bin
"""


def members_of(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar}  # type: ignore[union-attr]


@pytest.mark.slow
async def test_a_key_printed_by_a_command_is_in_no_backup_and_no_export(
    agiraph: Shell, tmp_path: Path
) -> None:
    script = [
        says(call("write_file", path="key.txt", content=KEY)),
        says(call("bash", command=PRINT_KEY_ENCODED)),
        says(call("finish", summary="done")),
    ]
    home = agiraph.home
    async with ModelServer(script) as server:
        use_model_server(agiraph, server, KEY)
        done = await agiraph("run", "Print it", "--accept", "answer")
    exported = await agiraph("export", team_in(done.out), str(tmp_path / "out"))
    saved = await agiraph("backup", str(tmp_path / "b.tar.gz"))
    assert (done.code, exported.code, saved.code) == (0, 0, 0), saved.err
    raw = KEY.encode()
    needles = [
        *(raw, quote(KEY, safe="").encode(), quote(KEY).encode(), raw.hex().encode()),
        base64.b64encode(raw)[:-4],
        base64.urlsafe_b64encode(raw)[:-4],
        base64.b64encode(b"user:" + raw)[8:-4],
    ]
    output = b"".join(file.read_bytes() for file in home.rglob("output"))
    flat = output.replace(b"\n", b"")
    # The command has printed the key in every encoding.
    assert [needle for needle in needles if needle not in flat] == []
    members = members_of(tmp_path / "b.tar.gz")
    files = [f for f in (tmp_path / "out").rglob("*") if f.is_file()]
    for name, data in [*members.items(), *((str(f), f.read_bytes()) for f in files)]:
        flat = data.replace(b"\n", b"")
        assert [needle for needle in needles if needle in flat] == [], name
        assert KEY not in name
    assert {name.rpartition("/")[2] for name in members} >= {"scratch.txt", "large.bin", "output"}
    assert "Overwrote an API key in home/spool/" in saved.err
    assert "/scratch.txt" in saved.err
    # Compressed files are not redacted, as docs/operations.md says.
    [packed] = [data for name, data in members.items() if name.endswith("scratch/key.txt.gz")]
    assert gzip.decompress(packed) == raw


@pytest.mark.usefixtures("no_secrets")
def test_a_secret_is_found_escaped_and_by_its_lines() -> None:
    secret = 'first-line-0123456789\nshort\nlast "lïne" 0123456789'
    keep({"a secret with lines": secret})
    written = [
        json.dumps([secret]),
        json.dumps([secret], ensure_ascii=False),
        repr([secret]),
        "first-line-0123456789 and more",
        secret,
    ]
    assert [redact(text) for text in written] == [
        '["[hidden]"]',
        '["[hidden]"]',
        "['[hidden]']",
        "[hidden] and more",
        "[hidden]",
    ]


ROWS = [
    {"pin": "12345678", "tokens": 12345678, "at": 1712345678000, "share": 0.12345678},
    {"text": "Line one\nine-secret-0123", "password": "PIN 12345678.", "12345678": [12345678]},
]
"""A secret of digits alone, in texts, in numbers and in parts of numbers; and one whose first
letter is that of the escape before it."""


@pytest.mark.usefixtures("no_secrets")
def test_a_secret_of_digits_alone_breaks_no_json() -> None:
    keep({"a pin": "12345678", "a word": "nine-secret-0123", "a name": "password"})
    hidden = [json.loads(redaction.redact_json(json.dumps(row))) for row in ROWS]
    assert hidden == [
        {"pin": "[hidden]", "tokens": 12345678, "at": 1712345678000, "share": 0.12345678},
        {"text": "Line one\nine-secret-0123", "password": "PIN [hidden].", "[hidden]": [12345678]},
    ]
    written = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
    for size in (7, 13, 1 << 20):  # pieces that cut a number anywhere
        redactor = redaction.Redactor()
        pieces = [written[at : at + size] for at in range(0, len(written), size)]
        masked = b"".join([*(redactor.feed(piece) for piece in pieces), redactor.finish()])
        assert [json.loads(line) for line in masked.splitlines()] == [
            {"pin": "[hidden]", "tokens": 99999999, "at": 1712345678000, "share": 0.12345678},
            {"text": "Line one\n[hidden]*******", "[hidden]": [99999999]},  # two keys are alike now
        ]


@pytest.mark.usefixtures("no_secrets")
@pytest.mark.parametrize("size", [3, 11, 1 << 20])
def test_digits_are_hidden_at_the_end_of_a_sentence_and_in_hexadecimal(
    size: int,
) -> None:
    keep({"a pin": "48291736"})
    written = f"It is 48291736. a.48291736.b 1.48291736 48291736.5 0{b'48291736'.hex()}0 48291736."
    redactor = redaction.Redactor()
    pieces = [written[at : at + size].encode() for at in range(0, len(written), size)]
    masked = b"".join([*(redactor.feed(piece) for piece in pieces), redactor.finish()])
    assert masked.decode() == (
        "It is [hidden]. a.[hidden].b 1.48291736 48291736.5 0[hidden]********0 [hidden]."
    )


@pytest.mark.usefixtures("no_secrets")
def test_what_may_be_a_secret_is_hidden_until_it_proves_to_be_none() -> None:
    keep({"old": "replaced-key-1"})
    keep({"old": "replaced-key-2"})
    for value in ("a-model-name", "a-good-key", "replaced-key-1"):
        with redaction.kept(value):
            assert redact(value) == "[hidden]"
            if value == "a-good-key":
                keep({"new": value})
    assert redact("a-model-name, a-good-key, replaced-key-1") == "a-model-name, [hidden], [hidden]"
    assert redaction.known() == ["new", "old"]


@pytest.mark.usefixtures("no_secrets")
def test_a_word_that_two_people_enter_at_once_is_hidden_until_both_are_done() -> None:
    one, other = redaction.kept("a-model-name"), redaction.kept("a-model-name")
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert redact("a-model-name") == "[hidden]"
    other.__exit__(None, None, None)
    assert redact("a-model-name") == "a-model-name"


@pytest.mark.usefixtures("no_secrets")
def test_no_secret_is_lost_if_threads_keep_some_at_the_same_time() -> None:
    def keep_some(thread: int) -> None:
        for number in range(100):
            with redaction.kept(f"entered-{thread}-{number}"):
                keep({f"{thread}-{number}": f"secret-{thread}-{number}-end"})

    often = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(keep_some, range(4)))
    finally:
        sys.setswitchinterval(often)
    secrets = [f"secret-{thread}-{number}-end" for thread in range(4) for number in range(100)]
    assert {redact(secret) for secret in secrets} == {"[hidden]"}
    assert redact("entered-0-99") == "entered-0-99"
