"""Specialists from files: shipped ones, those of a home, and agent files of Claude Code."""

import logging
from pathlib import Path
from random import Random

import pytest
import yaml

import agiraph
from agiraph.core.domain.agents import Specialist
from agiraph.core.domain.errors import Refused
from agiraph.core.home import front_matter
from agiraph.core.home.layout import Home
from agiraph.core.home.specialists import LONGEST, parse, specialists
from agiraph.core.tools.toolsets import BUILT_IN, ROLES

SHIPPED = ["analyst", "coder", "researcher", "reviewer", "tester", "writer"]
LATER = {"web_search", "web_fetch", "memory_search", "knowledge_search"}
"""Tools that an installation may have or not."""

CODE_REVIEWER = """\
---
name: code-reviewer
description: Use this agent when you have written code: it looks for bugs, and for style. Examples:
  <example>Context: The user has just written a function. user: "Please check it" assistant: "I'll \
use the code-reviewer agent" <commentary>Code was written: review it.</commentary></example>
tools: Read, Grep, Bash
model: sonnet
color: red
---

You are a senior reviewer.

- name: what is wrong
---
Be kind.
"""

ESCAPED = """\
---
name: test-writer
description: Use for tests. Examples:\\n<example>\\nContext: A module: no tests.\\nuser: "Test it"\
\\n</example>
model: inherit
---
You write tests.
"""

ON_SEVERAL_LINES = """\
---
name: "planner"
description: Plans. Examples:

<example>
Context: The user wants a plan: a good one.
user: "How do we go about it?"
assistant: "I'll ask the planner: it knows."
</example>
tools: [Read, 'Write']
model: opus
---
You plan.
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "home" / "agents").mkdir(parents=True)
    return Home.open(tmp_path / "home")


def put(home: Home, name: str, text: str) -> None:
    (home.path / "agents" / name).write_text(text)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


# Front matter parsing.


def test_front_matter_with_every_field_is_read() -> None:
    text = (
        "---\nname: scout\ndescription: Looks around.\ntools: [read_file, bash, read_file]\n"
        "model: openai/gpt-x\nexamples:\n  - '\"Where?\" → scout'\n  - second\n"
        "when_not_to_use: You know where.\n---\nYou look.\n\nTwice.\n"
    )
    assert parse(text, "file") == Specialist(
        name="scout",
        description="Looks around.",
        prompt="You look.\n\nTwice.",
        tools=("read_file", "bash"),
        model="openai/gpt-x",
        examples=('"Where?" → scout', "second"),
        when_not_to_use="You know where.",
    )


@pytest.mark.parametrize(
    "text",
    [
        "---\ndescription: Looks.\n---\nLook.",
        "---\r\ndescription: Looks.\r\n---\r\nLook.\r\n",
        "\ufeff---\ndescription: Looks.\n---  \nLook.",
        "--- \ndescription: >\n  Looks.\n---\n\n\nLook.\n\n",
        '---\ndescription: "Looks."\nname: ""\ntools:\nmodel:\n---\nLook.',
    ],
)
def test_without_a_name_the_file_name_is_the_name(text: str) -> None:
    assert parse(text, "Scout") == Specialist(name="scout", description="Looks.", prompt="Look.")


def test_a_single_example_and_a_list_of_reasons_against_are_read() -> None:
    text = "---\ndescription: d\nexamples: only, one\nwhen_not_to_use: [late, early]\n---\n"
    found = parse(text, "scout")
    assert (found.examples, found.when_not_to_use, found.prompt) == (
        ("only, one",),
        "late; early",
        "",
    )


# Agent files of Claude Code load as they are.


def test_a_claude_code_file_with_colons_in_its_description_is_read() -> None:
    found = parse(CODE_REVIEWER, "x")
    assert (found.name, found.tools, found.model) == ("code-reviewer", ("read_file", "bash"), "")
    assert found.description.startswith("Use this agent when you have written code: it looks for")
    assert found.description.endswith("Code was written: review it.</commentary></example>")
    assert found.prompt == "You are a senior reviewer.\n\n- name: what is wrong\n---\nBe kind."


def test_a_claude_code_file_with_escaped_line_breaks_is_read() -> None:
    found = parse(ESCAPED, "x")
    assert (found.name, found.model, found.tools) == ("test-writer", "", ())
    assert found.description.splitlines() == [
        "Use for tests. Examples:",
        "<example>",
        "Context: A module: no tests.",
        'user: "Test it"',
        "</example>",
    ]


def test_a_claude_code_file_with_a_multi_line_example_is_read() -> None:
    found = parse(ON_SEVERAL_LINES, "x")
    assert (found.name, found.tools, found.model) == ("planner", ("read_file", "write_file"), "")
    assert found.description.splitlines()[-3:] == [
        'user: "How do we go about it?"',
        'assistant: "I\'ll ask the planner: it knows."',
        "</example>",
    ]


@pytest.mark.parametrize(
    ("named", "ours"),
    [
        ("Read, Grep, Bash", ("read_file", "bash")),
        ("Read,Write,Edit,MultiEdit", ("read_file", "write_file", "edit_file")),
        ("[Glob, LS, Bash]", ("list_files", "bash")),
        ("WebSearch, WebFetch", ("web_search", "web_fetch")),
        ("Task", ("assign_task", "task_output")),
        ("TodoWrite, mcp__github__search", ("TodoWrite", "mcp__github__search")),
        ("", ()),
        ("'*'", ()),
    ],
)
def test_tool_names_of_claude_code_are_translated(named: str, ours: tuple[str, ...]) -> None:
    assert parse(f"---\ndescription: d\ntools: {named}\n---\n", "x").tools == ours


@pytest.mark.parametrize(
    ("written", "model"),
    [
        ("sonnet", ""),
        ("opus", ""),
        ("inherit", ""),
        ("", ""),
        ("anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("openrouter/meta/llama:free", "openrouter/meta/llama:free"),
    ],
)
def test_a_model_without_a_provider_means_the_model_of_the_hiring_agent(
    written: str, model: str
) -> None:
    assert parse(f"---\ndescription: d\nmodel: {written}\n---\n", "x").model == model


# Broken files are skipped and logged.

BROKEN = {
    "plain.md": ("You are a poet.", "it does not begin with front matter between two lines of ---"),
    "open.md": ("---\nname: open\n", "it does not begin with front matter"),
    "empty.md": ("", "it does not begin with front matter"),
    "silent.md": ("---\nname: silent\n---\nSay nothing.", "it has no description: say when to use"),
    "list.md": ("---\n- a\n- b\n---\n", "it has no description"),
    "Two Words.md": ("---\ndescription: d\n---\n", "its name 'two words' is not made of small"),
    "path.md": ("---\nname: ../up\ndescription: d\n---\n", "its name '../up' is not made of small"),
    "boss.md": ("---\nname: Coordinator\ndescription: d\n---\n", "the name 'coordinator' is"),
    "human.md": ("---\ndescription: d\n---\n", "the name 'human' is reserved"),
    "long.md": (
        f"---\ndescription: d\n---\n{'ü' * (LONGEST // 2)}",
        "it is longer than 65,536 bytes",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_with_what_is_wrong(name: str) -> None:
    text, said = BROKEN[name]
    with pytest.raises(Refused, match=said.replace("(", r"\(")):
        parse(text, name.removesuffix(".md"))


def test_broken_files_are_skipped_and_logged_and_the_others_are_loaded(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    for name, (text, _) in BROKEN.items():
        put(home, name, text)
    put(home, "scout.md", "---\ndescription: Looks.\n---\nLook.")

    found = specialists(home)
    assert list(found) == sorted([*SHIPPED, "scout"])
    assert [w.split(" (home)")[0] for w in warnings(caplog)] == [
        f"agents/{name}" for name in sorted(BROKEN)
    ]
    assert all(
        BROKEN[name][1] in w for name, w in zip(sorted(BROKEN), warnings(caplog), strict=True)
    )


@pytest.mark.parametrize(
    "odd", ["when: 2024-99-99", "x: [" * 3000, "x: !!python/name:os.system", "\tname: x", "a: b: c"]
)
def test_invalid_yaml_does_not_break_the_loading(home: Home, odd: str) -> None:
    put(home, "odd.md", f"---\nname: odd\ndescription: d\n{odd}\n---\nBe.")

    found = specialists(home)
    assert set(SHIPPED) < set(found)
    assert found["odd"].description.splitlines()[0] == "d"


def test_folders_links_and_other_files_are_skipped(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    outside = home.path.parent / "secret.md"
    outside.write_text("---\ndescription: d\n---\n")
    (home.path / "agents" / "folder.md").mkdir()
    (home.path / "agents" / "link.md").symlink_to(outside)
    put(home, "notes.txt", "---\ndescription: d\n---\n")
    (home.path / "agents" / "bytes.md").write_bytes(b"---\ndescription: caf\xe9\n---\n\xff")

    found = specialists(home)
    assert list(found) == sorted([*SHIPPED, "bytes"])
    assert (found["bytes"].description, found["bytes"].prompt) == ("caf\ufffd", "\ufffd")
    assert warnings(caplog) == []


def test_an_agents_path_that_is_not_a_folder_is_skipped_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = Home.open(tmp_path)
    (tmp_path / "agents").write_text("What?")

    assert list(specialists(home)) == SHIPPED
    [said] = warnings(caplog)
    assert said.startswith("agents/ (home) is left out: ")


# A file in the home replaces a shipped one.


def test_a_file_in_the_home_replaces_a_shipped_specialist(home: Home) -> None:
    put(home, "writer.md", "---\ndescription: Writes verse.\n---\nRhyme.")
    put(home, "other.md", "---\nname: Tester\ndescription: Tries.\n---\nTry.")

    found = specialists(home)
    assert list(found) == SHIPPED
    assert found["writer"] == Specialist(
        name="writer", description="Writes verse.", prompt="Rhyme."
    )
    assert found["tester"].prompt == "Try."
    assert found["coder"] == specialists()["coder"]


def test_a_home_without_agents_has_the_shipped_specialists(tmp_path: Path) -> None:
    assert specialists(Home.open(tmp_path)) == specialists()


# The shipped specialists.


def test_the_shipped_specialists_are_these_six(caplog: pytest.LogCaptureFixture) -> None:
    assert list(specialists()) == SHIPPED
    assert warnings(caplog) == []


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_specialist_says_when_to_use_it_and_when_not(name: str) -> None:
    one = specialists()[name]
    assert one.name == name
    assert 20 < len(one.description) < 200
    assert one.when_not_to_use.endswith(".")
    assert one.model == ""
    assert one.examples
    assert all(f'assign_task(agent="{name}", task="' in example for example in one.examples)
    assert all('description="' in example for example in one.examples)
    assert 200 < len(one.prompt) < 2000


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_specialists_have_only_tools_of_workers(name: str) -> None:
    named = set(specialists()[name].tools)
    assert "read_file" in named
    assert named - LATER <= set(BUILT_IN) & ROLES["worker"].tools


PIECES = (
    "a", "no", "Null", "x1", ": ", ":", " #", "#", " ", "- ", '"', "\\", "[", "]", ", ", "é",
    "→", "'", "{", "&", "*", "!", "|", ">", "%", "@", "key: ", "\nk:", '\n  - "', '"\n', "\n",
    "=", "~", ".", "\t", "\u0085", "\u2028",
)  # fmt: skip


def test_front_matter_without_marks_is_read_as_yaml_reads_it() -> None:
    rng, plain = Random(3), 0
    for _ in range(20_000):
        begin = rng.choice(("", "a: ", "ab: x", 'l:\n  - "', "t: [a, "))
        text = begin + "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 6)))
        if (read := front_matter._plain(text)) is not None:
            plain += 1
            assert read == yaml.safe_load(text), text
    assert plain > 500


def test_specialists_of_agiraph_are_read_without_a_parser_of_yaml() -> None:
    for file in (Path(agiraph.__file__).parent / "specialists").glob("*.md"):
        head = file.read_text().split("---\n")[1].removesuffix("\n")
        assert front_matter._plain(head) == yaml.safe_load(head)
