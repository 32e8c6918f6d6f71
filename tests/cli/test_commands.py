"""Commands without a server: their output for people, their JSON output, and their errors."""

import asyncio
import os
import re
import shutil
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest
from click.testing import CliRunner

from agiraph.cli import SECTIONS
from agiraph.cli import agiraph as commands
from agiraph.testing import ModelServer, call, says
from tests.cli.shell import Ended, Shell
from tests.cli.test_run import use_model_server


@pytest.fixture(scope="module")
def waiting_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose only team waits for an answer. Tests use a copy of it."""

    async def begin(home: Path) -> None:
        step = says(
            call("write_file", path="a.md", content="kept"),
            call("ask_human", question="Red or\nblue?", options=["red", "blue"]),
        )
        async with ModelServer([step]) as server:
            assert (
                await use_model_server(Shell(home).prepared(), server)("run", "Paint [red] it")
            ).code == 1

    home = tmp_path_factory.mktemp("waiting") / "home"
    asyncio.run(begin(home))
    return home


@pytest.fixture
def asked(agiraph: Shell, waiting_home: Path) -> str:
    """The id of a team that waits for an answer."""
    shutil.copytree(waiting_home, agiraph.home, dirs_exist_ok=True)
    [team] = (agiraph.home / "teams").iterdir()
    return team.name


@pytest.mark.slow
async def test_help_says_what_each_command_does(either: Shell) -> None:
    said = {
        (): "Give a goal to a team of agents, watch them work, and get the result.",
        ("run",): "Work on a GOAL until it is reached, and show the progress.",
        ("teams",): "List all teams, with their open questions and their cost.",
        ("board",): "Show the tasks of a TEAM (its id or name) with their status and result.",
        ("inbox",): "List questions, approvals, results and failures for you; or read one ITEM by",
        ("answer",): "Answer a QUESTION by its id with TEXT.",
        ("export",): "Write all data and files of a TEAM (its id or name) to FOLDER, as readable",
        ("db",): "Maintain the database.",
        ("db", "upgrade"): "Upgrade the database schema to this version.",
    }
    for command, words in said.items():
        shown = CliRunner().invoke(commands, [*command, "--help"])
        assert (shown.exit_code, words in shown.output) == (0, True), command
    asked, listed = await asyncio.gather(either("run", "--help"), either("-h"))

    assert (asked.code, said[("run",)] in asked.out) == (0, True)
    names = [name for section in SECTIONS.values() for name in section]
    assert set(names) >= {command[0] for command in said if command}
    assert [name for name in names if f"\n  {name} " not in listed.out] == []
    assert not either.home.exists()


async def test_without_a_command_the_help_is_shown_with_exit_code_2(agiraph: Shell) -> None:
    bare, version, unknown, missing = await asyncio.gather(
        agiraph(), agiraph("--version"), agiraph("bord"), agiraph("board")
    )

    assert (bare.code, "Run agiraph:" in bare.err) == (2, True)
    assert (version.code, version.out.split()[0]) == (0, "agiraph")
    assert unknown == Ended(
        2, "", "agiraph: No such command 'bord'. Did you mean 'board'? See: agiraph --help\n"
    )
    assert missing == Ended(2, "", "agiraph: Missing argument 'TEAM'. See: agiraph board --help\n")


@pytest.mark.slow
async def test_commands_on_an_empty_home_say_how_to_begin(either: Shell) -> None:
    upgraded = await either("db", "upgrade")
    teams, inbox, json_ = await asyncio.gather(
        either("teams"), either("inbox"), either("teams", "--json")
    )

    assert teams == Ended(0, 'No teams yet. Create one with: agiraph new "GOAL"\n')
    assert inbox == Ended(0, "The inbox is empty.\n")
    assert json_ == Ended(0, "[]\n")
    assert upgraded == Ended(0, "The database is up to date.\n")


async def test_output_for_people_contains_ids_and_names(agiraph: Shell, asked: str) -> None:
    teams, board, inbox, by_name = await asyncio.gather(
        agiraph("teams"),
        agiraph("board", asked),
        agiraph("inbox", "--open"),
        agiraph("board", "Paint [red] it"),
    )

    assert [e.code for e in (teams, board, inbox, by_name)] == [0] * 4
    assert f"{asked}  Paint [red] it" in teams.out
    assert re.search(r"node_\w{18} ", board.out)
    assert "waiting" in board.out
    words = board.out.split()
    assert ("you:" in words, "human:" in words) == (True, False)
    assert by_name.out == board.out
    assert re.search(r"msg_\w{18}  question  open +Red or", inbox.out)


async def test_json_output_has_all_fields(agiraph: Shell, asked: str) -> None:
    outputs = await asyncio.gather(
        agiraph("teams", "--json"),
        agiraph("board", asked, "--json"),
        agiraph("inbox", "--json"),
        agiraph("inbox", "--open", "--json"),
    )

    [team], [node], [question], open_ones = [orjson.loads(e.out) for e in outputs]
    assert (team["id"], team["name"], team["goal"], team["status"]) == (
        asked,
        "Paint [red] it",
        "Paint [red] it",
        "active",
    )
    assert (node["team_id"], node["status"], node["waiting_reason"]) == (
        asked,
        "waiting",
        "asked the human: Red or\nblue?",
    )
    assert (question["text"], question["options"]) == ("Red or\nblue?", ["red", "blue"])
    assert open_ones == [question]


async def test_only_an_open_question_takes_an_answer_and_only_one(
    agiraph: Shell, asked: str
) -> None:
    [question] = orjson.loads((await agiraph("inbox", "--json")).out)
    unknown = await agiraph("answer", "msg_nobody", "blue")
    empty = await agiraph("answer", question["id"], " ")
    first = await agiraph("answer", question["id"], "blue")
    second = await agiraph("answer", question["id"], "red")

    assert unknown == Ended(
        1,
        "",
        "agiraph: There is no question 'msg_nobody'. `agiraph inbox --open` lists the open ones.\n",
    )
    assert empty == Ended(
        1,
        "",
        "agiraph: The answer is empty: write a text.\n",
    )
    assert first == Ended(0, f"Answered. Continue with: agiraph run --resume {asked}\n")
    assert second.code == 1
    assert "the first answer stands" in second.err


async def test_an_export_is_complete_and_needs_an_empty_folder(
    agiraph: Shell, asked: str, tmp_path: Path
) -> None:
    scratch = next((agiraph.home / "teams" / asked / "nodes").iterdir()) / "scratch"
    (scratch / "dangling").symlink_to("nowhere")
    os.mkfifo(scratch / "pipe")
    target, full = tmp_path / "out" / "export", tmp_path / "full"
    full.mkdir()
    (full / "mine.txt").write_text("mine")

    wrote, refused, unknown = await asyncio.gather(
        agiraph("export", asked, str(target)),
        agiraph("export", asked, str(full)),
        agiraph("export", "nobody", str(tmp_path / "never")),
    )

    assert wrote == Ended(0, f"Wrote 'Paint [red] it' to {target}.\n")
    assert {p.name for p in target.iterdir()} == {
        "agents.jsonl",
        "board.jsonl",
        "conversation.jsonl",
        "costs.jsonl",
        "events.jsonl",
        "file_labels.jsonl",
        "firings.jsonl",
        "home",
        "insights.jsonl",
        "knowledge_changes.jsonl",
        "memories.jsonl",
        "notes.jsonl",
        "stages.jsonl",
        "team.jsonl",
        "threads",
        "threads.jsonl",
        "triggers.json",
    }
    copied = target / "home" / scratch.relative_to(agiraph.home / "teams" / asked)
    assert sorted(p.name for p in copied.iterdir()) == ["a.md", "dangling"]
    assert (copied / "a.md").read_text() == "kept"
    assert refused == Ended(
        1, "", f"agiraph: {str(full)!r} is not an empty folder; name a new one.\n"
    )
    assert [p.name for p in full.iterdir()] == ["mine.txt"]
    assert (unknown.code, (tmp_path / "never").exists()) == (1, False)


async def test_a_wrong_settings_file_is_reported_with_its_path(tmp_path: Path) -> None:
    damages = {
        b"model = ": "is not valid TOML: Invalid value (at end of document).",
        b'colour = "red"': "has unknown settings ['colour']; it knows: ",
        b"model = 5": ": model must be text, in quotes.",
        b"\xff": "is not valid TOML: 'utf-8' codec can't decode byte 0xff in position 0: ",
    }
    shells = [Shell(tmp_path / f"home{number}") for number in range(len(damages))]
    for shell, written in zip(shells, damages, strict=True):
        shell.home.mkdir()
        (shell.home / "agiraph.toml").write_bytes(written)

    ended = await asyncio.gather(*(shell("teams") for shell in shells))

    for shell, told, said in zip(shells, ended, damages.values(), strict=True):
        assert (told.code, told.out, told.err.count("\n")) == (1, "", 1)
        assert told.err.startswith(f"agiraph: {shell.home / 'agiraph.toml'}")
        assert said in told.err


async def test_the_environment_overrides_the_settings_file(agiraph: Shell) -> None:
    (agiraph.home / "agiraph.toml").write_text('model = "openai/from-file"\n')
    done = says(call("finish", summary="done"))
    async with ModelServer([done, done]) as server:
        agiraph.environment = {"OPENAI_BASE_URL": server.openai_url}
        await agiraph("run", "By the file", "--accept", "answer")
        agiraph.environment["AGIRAPH_MODEL"] = "openai/from-environment"
        await agiraph("run", "By the environment", "--accept", "answer")

    assert [seen.model for seen in server.requests] == ["from-file", "from-environment"]


async def test_an_unusable_home_or_database_is_reported_in_one_line(
    agiraph: Shell, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "agiraph.db").write_bytes(b"not a database, " * 100)
    shells = {
        "not a folder": Shell(tmp_path / "file"),
        "damaged": Shell(tmp_path / "damaged"),
        "other kind": Shell(agiraph.home, {"AGIRAPH_DATABASE_URL": "mysql://x"}),
        "nobody there": Shell(
            agiraph.home, {"AGIRAPH_DATABASE_URL": "postgresql://x:secret@127.0.0.1:1/x"}
        ),
    }
    ended = await asyncio.gather(*(shell("teams") for shell in shells.values()))
    told = dict(zip(shells, ended, strict=True))

    assert [(e.code, e.out, e.err.count("\n")) for e in ended] == [(1, "", 1)] * 4
    assert "Set AGIRAPH_HOME to a folder that you may write to." in told["not a folder"].err
    assert "is damaged" in told["damaged"].err
    assert "is not sqlite:///PATH or postgresql://…." in told["other kind"].err
    assert "secret" not in told["nobody there"].err


async def test_an_empty_postgresql_database_must_be_upgraded_first(
    agiraph: Shell, postgres: Any
) -> None:
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        connection.execute("create database never_used")
    agiraph.environment["AGIRAPH_DATABASE_URL"] = postgres.url("never_used")
    unready = await agiraph("teams")
    upgraded = await agiraph("db", "upgrade")
    again = await agiraph("db", "upgrade")
    ran = await agiraph("run", "Show me")

    assert (unready.code, unready.err.count("\n")) == (1, 1)
    assert unready.err.endswith("run `agiraph db upgrade`.\n")
    assert (upgraded.code, upgraded.out.startswith("Applied: 0001")) == (0, True)
    assert again == Ended(0, "The database is up to date.\n")
    assert (ran.code, ran.err, "\nDone. 4 turns" in ran.out) == (0, "", True)
