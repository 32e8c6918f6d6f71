"""Usage: help of every command, errors for wrong use, and errors without a server."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from agiraph.cli import SECTIONS, main
from agiraph.cli import agiraph as commands
from tests.wording import Wording

NAMES = [name for section in SECTIONS.values() for name in section]
GROUPS = {
    "channels": ("pair", "unpair"),
    "db": ("upgrade",),
    "mcp": ("add", "list", "test", "confirm", "login", "remove", "serve"),
    "tokens": ("new", "revoke"),
    "tools": ("enable", "disable"),
    "skills": ("enable", "disable"),
}
WORDS = [(name,) for name in NAMES] + [
    (group, name) for group, names in GROUPS.items() for name in names
]
WRONG: list[tuple[str, ...]] = [
    ("away", "--until", "3 days", "--back"),
    ("zone", "Europe", "Berlin"),
    ("changes", "x", "change_1"),
    ("undo",),
    ("extend", "node_1"),
    ("extend", "node_1", "--turns", "0"),
    ("mcp", "remove"),
    ("new",),
    ("new", "x", "--mode", "endless"),
    ("new", "x", "--budget", "-1"),
    ("new", "x", "--mode", "infinite", "--wait"),
    ("new", "x", "--wait", "--json"),
    ("new", "x", "--every", "often"),
    ("set", "csv"),
    ("set", "csv", "--review", "maybe"),
    ("goal", "csv"),
    ("say", "csv"),
    ("say", "csv", "Hello", "--nudge", "--wait"),
    ("say", "csv", "Hello", "--stop-work"),
    ("chat",),
    ("inbox", "msg_1", "all"),
    ("inbox", "msg_1", "--open"),
    ("rate", "msg_1", "five"),
    ("broadcast", "csv"),
    ("memories",),
    ("insights",),
    ("cancel",),
    ("retry",),
    ("schedule", "csv"),
    ("schedule", "csv", "Look"),
    ("answer", "msg_1"),
    ("board",),
    ("agents",),
    ("thread",),
    ("tail", "csv", "--after", "-1"),
    ("triggers",),
    ("research",),
    ("research", "csv", "Why?", "--depth", "abyss"),
    ("evidence",),
    ("grants",),
    ("grant", "csv", "write", "x"),
    ("revoke",),
    ("confirm", "csv"),
    ("cost", "a", "b"),
    ("status", "a"),
    ("teams", "--jsn"),
    ("stop",),
    ("pause",),
    ("delete",),
    ("resume",),
    ("export", "csv"),
    ("tools", "enable"),
    ("skills", "disable"),
    ("link", "me"),
    ("tokens", "new"),
    ("channels", "pair"),
    ("tokens", "new", "x", "--scope", "all"),
    ("tokens", "revoke"),
    ("tokens", "renew"),
    ("completion", "tcsh"),
    ("run",),
    ("models", "--size"),
    ("prompts", "--size"),
    ("doctor", "x"),
    ("backup",),
    ("restore",),
    ("db", "upgrade", "x"),
    ("up", "now"),
    ("serve", "now"),
    ("work", "now"),
    ("run", "--resume", "b", "--review", "never"),
    ("run", "--resume", "b", "--turns", "9"),
    ("run", "a", "--turns", "0"),
    ("run", "a", "b"),
]
NEEDS_SERVER = [
    ("new", "Count the beans"),
    ("say", "csv", "Hello"),
    ("broadcast", "csv", "Hello"),
    ("rate", "msg_1", "up"),
    ("cancel", "node_1"),
    ("retry", "node_1"),
    ("schedule", "csv", "Look", "--every", "day"),
    ("chat", "csv"),
    ("tail", "csv"),
    ("stop", "csv"),
    ("set", "csv", "--mode", "infinite"),
    ("goal", "csv", "Sort the beans"),
    ("pause", "csv"),
    ("delete", "csv"),
    ("resume", "csv"),
    ("link",),
    ("tokens",),
    ("tokens", "new", "reader"),
    ("tokens", "revoke", "pass_1"),
]


@pytest.fixture
def port() -> Iterator[int]:
    """A port that is bound but not listening: connections to it are refused."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def run_command(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Run a command in this process; return its exit code, stdout and stderr."""
    monkeypatch.setenv("AGIRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AGIRAPH_PORT", str(port))

    def run(*words: str) -> tuple[object, str, str]:
        monkeypatch.setattr("sys.argv", ["agiraph", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr()
        return ended.value.code or 0, told.out, told.err

    return run


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_every_command_has_help_that_fits_a_screen(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(commands, [*words, "--help"], prog_name="agiraph")

    assert shown.exit_code == 0, shown.output
    usage, _, about, *rest = shown.output.splitlines()
    assert usage.startswith(f"Usage: agiraph {' '.join(words)} ")
    assert re.match(r"  [A-Z].*\w", about)
    assert max(len(line) for line in rest) <= 100
    command: click.Command | None = commands
    for word in words:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert command is not None
    unexplained = [
        option.name
        for option in command.params
        if isinstance(option, click.Option) and not option.help
    ]
    assert unexplained == []


def test_every_command_has_an_example_of_wrong_use() -> None:
    assert {words[0] for words in WRONG} == set(NAMES)


def test_wrong_use_is_reported_in_one_line(run_command, wording: Wording) -> None:
    told: dict[str, str] = {}
    for words in WRONG:
        is_grouped = words[0] in GROUPS and words[1] in GROUPS[words[0]]
        path = " ".join(words[:2]) if is_grouped else words[0]
        code, out, err = run_command(*words)
        assert (code, out) == (2, "")
        said = re.fullmatch(rf"agiraph: (.+) See: agiraph {path} --help\n", err)
        assert said is not None, err
        told[" ".join(words)] = said[1]
    wording(told)


@pytest.mark.parametrize("ran_before", [False, True], ids=["never", "before"])
def test_without_a_server_a_command_says_how_to_start_one(
    run_command, tmp_path: Path, port: int, ran_before: bool
) -> None:
    if ran_before:
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "token").write_text("kept\n")
    told = f"No agiraph is running at http://127.0.0.1:{port}; start it with `agiraph up`."
    for words in NEEDS_SERVER:
        assert run_command(*words) == (1, "", f"agiraph: {told}\n"), words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_each_shell(run_command, shell: str) -> None:
    code, out, err = run_command("completion", shell)
    assert (code, err) == (0, "")
    assert "_AGIRAPH_COMPLETE" in out


def test_a_partial_command_name_is_completed(run_command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_AGIRAPH_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "agiraph tok")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert run_command() == (0, "plain,tokens\n", "")
