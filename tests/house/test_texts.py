"""Texts: where the runtime looks at how a text begins or ends, or at words in it, and why it may.

What decides is a column, an enum of a call or an event. A text that agiraph, a person or a model
wrote is compared with words only where this list says what kind of text that is.
"""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "agiraph"
DECIDING = (
    *(f"core/{part}" for part in ("domain", "policies", "run_context", "runtime", "services")),
    *("core/store", "core/tools", "doctor"),
    *(f"features/{name}" for name in ("channels", "chat_api", "history", "knowledge", "programs")),
    "features/research",
    "features/reviews",
)
"""The folders whose decisions are looked at; the others read formats, or only show."""
METHODS = frozenset(
    {"count", "endswith", "find", "index", "partition", "removeprefix", "removesuffix"}
    | {"rpartition", "split", "startswith"}
)

MAY_COMPARE: dict[str, dict[str, str]] = {
    "ids, and keys that consist of a kind and an id; no model and no person chooses them": {
        "core/domain/persons": "_PREFIX",
        "core/domain/records/notes": "FRONT",
        "core/runtime/compaction": "'msg_'",
        "core/services/access": "_TWO_PARTS",
        "core/services/lifecycle/digest": "'msg_', file_labels.PREFIX",
        "features/history/spans": "'agent'",
        "features/knowledge/verbs/items": "file_labels.PREFIX",
        "features/knowledge/verbs/moments": "AT, PREFIX, f'{UNVERIFIED}/'",
        "features/knowledge/verbs/notes": "PREFIXES, f'memory/{UNVERIFIED}/'",
        "features/programs/mailbox": "'msg_'",
        "features/programs/runs": "_RUN",
        "features/research/verbs/frame": "RESEARCHER",
    },
    "the sources of a label, of a cost and of a thread's words, in the form that rows hold": {
        "core/domain/provenance/labels": "'folder:', 'program:'",
        "core/services/board/labels": "'client:', 'nodes/', ('mcp:', 'client:')",
        "core/services/board/team_hosts": "'page:', ('.local', '.localhost', '.internal')",
        "features/chat_api/reply_stream": "'client:'",
        "features/research/verbs/reading_budget": "'search:'",
    },
    "a field of a call, a setting or a command with a format that we define": {
        "core/domain/agents": "':ro', ':rw'",
        "core/services/lifecycle/answers": "FOLDER",
        "core/tools/acceptance": "'file:', 'scratch/', _DOCUMENTS",
        "features/channels/kinds/configured": "PREFIX",
        "features/chat_api/side_calls": "'tasks.'",
        "features/research/verbs/delivery": "== 'key findings'",
        "features/reviews/tools": "'file:'",
    },
    "hosts, addresses and the addresses of databases and models": {
        "core/domain/records/search": "('https://', 'http://')",
        "core/runtime/tracing": "'text/'",
        "core/services/lifecycle/journal": "'text/'",
        "core/store/engine/connect": "'sqlite:///', ('postgresql://', 'postgres://')",
        "doctor/surroundings": "'sparse+'",
        "features/research/model/sources": "'www.'",
        "features/research/model/report_check": "'[.,\\\\u066b\\\\u066c]', 'www.'",
        "features/research/verbs/ledger": "'www.'",
    },
    "only chooses what is shown": {
        "core/domain/window_use": "_MEMORY, _OTHERS",
        "core/store/rows": "'Stored'",
        "core/domain/text/fence": "_CLOSINGS",
        "core/domain/text/spoken": "in '[Budget]', in '[Runtime]'",
        "core/domain/work": "ASKED_PERSON",
        "core/tools/files/given_folders": (
            "'file', in 'Permission denied', in 'Read-only file system'"
        ),
        "features/history/spans": "_PROVIDER_WORDS",
    },
    "words for search, and the parts of a file, in every language": {
        "core/domain/text/passages": "'\\\\n\\\\s*\\\\n', 'ies', ('ss', 'us', 'is')",
        "core/domain/times/cron": "== 'day of week'",
        "features/knowledge/recall": "'\\\\{\\\\w*\\\\}|\\\\$\\\\w+'",
    },
    "the format or the error texts of others: mail, Telegram, git, SQL, SQLite, pydantic, models": {
        "core/policies/breaker": "'functions.'",
        "core/store/engine/postgres": "'select '",
        "core/store/engine/sqlite": "'SQLITE_BUSY'",
        "core/store/engine/sqlite_errors": (
            "('SQLITE_BUSY', 'SQLITE_LOCKED'), ('SQLITE_IOERR', 'SQLITE_CANTOPEN'), "
            "_DAMAGE, _ENVIRONMENT, in 'Could not decode to UTF-8'"
        ),
        "core/tools/base": "'Value error, '",
        "core/tools/commands/command_gate": "'[remote \"'",
        "features/channels/kinds/mail_reading": "_PASSED_ON",
        "features/channels/kinds/telegram": "'https:', UNDO",
    },
    "types of events": {
        "core/runtime/background/trigger_worker": "('trigger.', 'team.')",
        "features/history/boards": "'node.', 'stage.', _SUBJECTS",
    },
    "names of files and folders": {
        "core/services/board/briefs": "'nodes/'",
        "core/store/engine/migrate": "'.sql'",
        "core/store/texts/file_labels": "GIVEN",
        "core/tools/commands/shell": "'folders/', 'nodes/', in 'No such file'",
        "core/tools/delegation": "'scratch/'",
        "core/tools/files/kept_writes": "QUOTE",
        "core/tools/replies/foreground": "'nodes/', 'published/', ('.md', '.txt')",
        "core/tools/team": "'nodes/', 'published'",
        "core/tools/web/web": "'/scratch/'",
        "features/knowledge/note_files": "'.md', EARLIER, f'{ARCHIVE}/', f'{UNVERIFIED}/'",
        "features/knowledge/note_writes": "'agents/', 'memory/', f'{UNVERIFIED}/'",
        "features/knowledge/tools": "f'{UNVERIFIED}/'",
    },
    "a delivered file without content": {
        "core/tools/objections": "'loremipsum'",
    },
    "the script that Unicode's name of a character says": {
        "core/domain/text/spoken": "'GREEK '",
    },
}
"""What each module compares texts with, by the kind of these texts."""


def is_words(node: ast.expr) -> bool:
    """Whether an argument is words of ours: a literal or a constant, not a separator."""
    match node:
        case ast.Constant(value=str(text)):
            return len(text) > 1 and any(map(str.isalnum, text))
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper()
        case ast.Tuple(elts=parts):
            return any(map(is_words, parts))
        case ast.JoinedStr(values=[ast.FormattedValue(value=first), *_]):
            return is_words(first)
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return any(map(str.isalnum, text))
        case _:
            return False


def _is_phrase(node: ast.expr, marks: str) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return any(mark in text.strip() for mark in marks) and any(map(str.isalpha, text))
        case _:
            return False


def compared(module: ast.Module) -> set[str]:
    """Return the words with which a module compares texts."""
    found: set[str] = set()
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Attribute(attr=method), args=[first, *_]):
                if method in METHODS and is_words(first):
                    found.add(ast.unparse(first))
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()]):
                if _is_phrase(left, " :[]"):
                    found.add(f"in {ast.unparse(left)}")
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
                found |= {f"== {ast.unparse(n)}" for n in (left, right) if _is_phrase(n, " ")}
            case _:
                pass
    return found


def test_each_text_that_is_compared_with_words_is_listed_with_its_reason_and_no_other() -> None:
    found = {
        module: ", ".join(sorted(words))
        for path in sorted(SOURCE.rglob("*.py"))
        if (module := path.relative_to(SOURCE).as_posix().removesuffix(".py")).startswith(DECIDING)
        and (words := compared(ast.parse(path.read_text())))
    }
    listed: dict[str, list[str]] = defaultdict(list)
    for modules in MAY_COMPARE.values():
        for module, words in modules.items():
            listed[module].append(words)
    assert found == {module: ", ".join(sorted(words)) for module, words in listed.items()}


def test_the_check_finds_what_looks_at_a_text() -> None:
    seen = 'f(turn.text.startswith("[Not accepted]"), a.find(OVER), "[Runtime]" in a, a == "b c")'
    assert compared(ast.parse(seen)) == {
        "'[Not accepted]'",
        "OVER",
        "in '[Runtime]'",
        "== 'b c'",
    }
    formats = 'f(a.startswith("/"), a.partition(":"), a.startswith(b), "role" in a, a == "node")'
    assert compared(ast.parse(formats)) == set()
