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
WRONG: dict[tuple[str, ...], str] = {
    ("away", "--until", "3 days", "--back"): "Say --until or --back, not both.",
    ("zone", "Europe", "Berlin"): "Got unexpected extra argument (Berlin)",
    ("changes", "x", "change_1"): (
        "Give the id of a change with either --before or --after, or none."
    ),
    ("undo",): "Missing argument 'TEAM'.",
    ("extend", "node_1"): (
        "Say how much more it gets: --turns, --tokens, --budget (dollars) or --seconds."
    ),
    ("extend", "node_1", "--turns", "0"): (
        "Invalid value for '--turns': 0 is not in the range x>=1."
    ),
    ("mcp", "remove"): "Missing argument 'NAME'.",
    ("new",): "Missing argument 'GOAL'.",
    ("new", "x", "--mode", "endless"): (
        "Invalid value for '--mode': 'endless' is not one of 'finite', 'infinite'."
    ),
    (
        "new",
        "x",
        "--budget",
        "-1",
    ): "Invalid value for '--budget' / '--usd': -1.0 is not in the range x>=0.",
    ("new", "x", "--mode", "infinite", "--wait"): (
        "An infinite team never ends, so --wait would never return: leave out --wait."
    ),
    ("new", "x", "--wait", "--json"): ("--wait is for people and --json for programs: choose one."),
    ("new", "x", "--every", "often"): (
        "Invalid value for '--every': 'often' is not a length of time; write 30m, 2h or 1d, or "
        "never."
    ),
    ("set", "csv"): "Say what to change, for example --mode infinite --every 1h.",
    ("set", "csv", "--review", "maybe"): (
        "Invalid value for '--review': 'maybe' is not one of 'auto', 'always', 'never'."
    ),
    ("goal", "csv"): "Missing argument 'GOAL'.",
    ("say", "csv"): "Missing argument 'TEXT'.",
    ("say", "csv", "Hello", "--nudge", "--wait"): (
        "A nudge gets no reply: leave out --wait or --nudge."
    ),
    ("chat",): "Missing argument 'AGENT'.",
    ("inbox", "msg_1", "all"): "Got unexpected extra argument (all)",
    ("inbox", "msg_1", "--open"): "Name one item, or list them with --open or --digest.",
    ("rate", "msg_1", "five"): "Invalid value for '{up|down}': 'five' is not one of 'up', 'down'.",
    ("broadcast", "csv"): "Missing argument 'TEXT'.",
    ("memories",): "Missing argument 'AGENT'.",
    ("insights",): "Missing argument 'AGENT'.",
    ("cancel",): "Missing argument 'TASK'.",
    ("retry",): "Missing argument 'TASK'.",
    ("schedule", "csv"): "Missing argument 'TASK'.",
    ("schedule", "csv", "Look"): "Say when, by one of --at, --every, --event and --webhook.",
    ("answer", "msg_1"): "Missing argument 'TEXT'.",
    ("board",): "Missing argument 'TEAM'.",
    ("agents",): "Missing argument 'TEAM'.",
    ("thread",): "Missing argument 'THREAD'.",
    ("tail", "csv", "--after", "-1"): "Invalid value for '--after': -1 is not in the range x>=0.",
    ("triggers",): "Missing argument 'TEAM'.",
    ("research",): "Missing argument 'TEAM'.",
    ("research", "csv", "Why?", "--depth", "abyss"): "Invalid value for '--depth': 'abyss' is not "
    "one of 'quick', 'standard', 'deep'.",
    ("evidence",): "Missing argument 'TASK'.",
    ("grants",): "Missing argument 'TEAM'.",
    ("grant", "csv", "write", "x"): "Invalid value for 'KIND': 'write' is not one of 'read', "
    "'reach', 'packages', 'tool', 'command', 'trust'.",
    ("revoke",): "Missing argument 'GRANT'.",
    ("confirm", "csv"): "Name what to confirm, or give --all.",
    ("cost", "a", "b"): "Got unexpected extra argument (b)",
    ("status", "a"): "Got unexpected extra argument (a)",
    ("teams", "--jsn"): "No such option '--jsn'. Did you mean '--json'?",
    ("stop",): "Name one team, or give --all.",
    ("pause",): "Name one team, or give --all.",
    ("delete",): "Missing argument 'TEAM'.",
    ("resume",): "Name one team, or give --all.",
    ("export", "csv"): "Missing argument 'FOLDER'.",
    ("tools", "enable"): "Missing argument 'NAME'.",
    ("skills", "disable"): "Missing argument 'NAME'.",
    ("link", "me"): "Got unexpected extra argument (me)",
    ("tokens", "new"): "Missing argument 'NAME'.",
    ("channels", "pair"): "Missing argument 'CHANNEL'.",
    ("tokens", "new", "x", "--scope", "all"): (
        "Invalid value for '--scope': 'all' is not one of 'read', 'talk', 'operate', 'admin'."
    ),
    ("tokens", "revoke"): "Missing argument 'TOKEN'.",
    ("tokens", "renew"): "No such command 'renew'. Did you mean 'new'?",
    ("completion", "tcsh"): (
        "Invalid value for '{bash|zsh|fish}': 'tcsh' is not one of 'bash', 'zsh', 'fish'."
    ),
    ("run",): 'Give a goal (agiraph run "GOAL") or continue a team (agiraph run --resume TEAM).',
    ("models", "--size"): "No such option '--size'.",
    ("prompts", "--size"): "No such option '--size'.",
    ("doctor", "x"): "Got unexpected extra argument (x)",
    ("backup",): "Missing argument 'FILE'.",
    ("restore",): "Missing argument 'FILE'.",
    ("db", "upgrade", "x"): "Got unexpected extra argument (x)",
    ("up", "now"): "Got unexpected extra argument (now)",
    ("serve", "now"): "Got unexpected extra argument (now)",
    ("work", "now"): "Got unexpected extra argument (now)",
}
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


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_use_is_reported_in_one_line(run_command, words: tuple[str, ...]) -> None:
    path = " ".join(words[:2]) if words[0] in GROUPS and words[1] in GROUPS[words[0]] else words[0]
    code, out, err = run_command(*words)
    assert (code, out) == (2, "")
    assert err == f"agiraph: {WRONG[words]} See: agiraph {path} --help\n"


@pytest.mark.parametrize("words", NEEDS_SERVER, ids=" ".join)
@pytest.mark.parametrize("ran_before", [False, True], ids=["never", "before"])
def test_without_a_server_a_command_says_how_to_start_one(
    run_command,
    tmp_path: Path,
    port: int,
    words: tuple[str, ...],
    ran_before: bool,
) -> None:
    if ran_before:
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "token").write_text("kept\n")
    told = f"No agiraph is running at http://127.0.0.1:{port}; start it with `agiraph up`."
    assert run_command(*words) == (1, "", f"agiraph: {told}\n")


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
