"""Texts: where the runtime looks at how a text begins or ends, or at words in it, and why it may.

What decides is a column, an enum of a call or an event. A text that agiraph, a person or a model
wrote is compared with words only where this list says what kind of text that is.
"""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "agiraph"
DECIDING = ("domain", "doctor", "policies", "run_context", "runtime", "services", "store", "tools")
"""The packages whose decisions are looked at; the others read formats, or only show."""
METHODS = frozenset(
    {"count", "endswith", "find", "index", "partition", "removeprefix", "removesuffix"}
    | {"rpartition", "split", "startswith"}
)

MAY_COMPARE: dict[str, dict[str, str]] = {
    "ids, and keys that consist of a kind and an id; no model and no person chooses them": {
        "domain/persons": "_PREFIX",
        "runtime/compaction": "'msg_'",
        "runtime/program_mailbox": "'msg_'",
        "runtime/program_runs": "_RUN",
        "services/access": "_TWO_PARTS",
        "services/history/spans": "'agent'",
        "services/knowledge/items": "files.PREFIX",
        "services/knowledge/notes": "FRONT, PREFIXES, f'memory/{UNVERIFIED}/'",
        "services/lifecycle/digest": "'msg_', AT, files.PREFIX",
        "services/research/parts": "RESEARCHER",
    },
    "the key by which a message is found again; it begins with what the message is about": {
        "services/board/approvals": "_RERUN",
        "services/lifecycle/answers": "LATE",
        "services/lifecycle/burn_rate": "REF",
        "services/lifecycle/incoming": "LATE",
        "services/mail/deliveries": "messages.DIGEST",
        "store/messages": "_SAID_IN",
    },
    "the sources of a label, of a cost and of a thread's words, in the form that rows hold": {
        "domain/labels": "'folder:', 'program:'",
        "services/board/labels": "'client:', 'nodes/', ('mcp:', 'client:')",
        "services/board/named_hosts": "'page:', ('.local', '.localhost', '.internal')",
        "services/research/state": "'search:'",
        "store/turn_details": "'the program '",
    },
    "types of events": {
        "runtime/trigger_worker": "('trigger.', 'team.')",
        "services/history/boards": "'node.', 'stage.', _SUBJECTS",
    },
    "names of files and folders": {
        "services/board/briefs": "'nodes/'",
        "store/file_labels": "GIVEN",
        "store/migrate": "'.sql'",
        "tools/delegation": "'scratch/'",
        "tools/file_labels": "f'{UNVERIFIED}/'",
        "tools/kept_writes": "'agents/', 'memory/', QUOTE, f'{UNVERIFIED}/'",
        "tools/knowledge": "f'{UNVERIFIED}/'",
        "tools/looking": "'nodes/', 'published/', ('.md', '.txt')",
        "tools/shell": "'folders/', 'nodes/', in 'No such file'",
        "tools/team": "'nodes/', 'published'",
        "tools/web": "'/scratch/'",
    },
    "hosts, addresses and the addresses of databases and models": {
        "domain/report_check": "'[.,\\\\u066b\\\\u066c]', 'www.'",
        "domain/research_report": "'www.'",
        "domain/search": "('https://', 'http://')",
        "runtime/tracing": "'text/'",
        "services/research/pages": "'www.'",
        "store/connect": "'sqlite:///', ('postgresql://', 'postgres://')",
    },
    "a field of a call, a setting or a command with a format that we define": {
        "domain/folders": "':ro', ':rw'",
        "runtime/channels/configured": "PREFIX",
        "services/lifecycle/grants": "FOLDER",
        "services/research/support": "== 'key findings'",
        "tools/acceptance": "'file:', 'scratch/', _DOCUMENTS",
        "tools/reviewing": "'file:'",
    },
    "the format or the error texts of others: mail, Telegram, git, SQL, SQLite, pydantic, models": {
        "policies/written_call": "'functions.'",
        "runtime/channels/mail_reading": "_PASSED_ON",
        "runtime/channels/telegram": "'https:', UNDO",
        "store/postgres": "'select '",
        "store/sqlite": "'SQLITE_BUSY'",
        "store/sqlite_errors": (
            "('SQLITE_BUSY', 'SQLITE_LOCKED'), ('SQLITE_IOERR', 'SQLITE_CANTOPEN'), _DAMAGE,"
            " _ENVIRONMENT, in 'Could not decode to UTF-8'"
        ),
        "tools/base": "'Value error, '",
        "tools/command_gate": "'[remote \"'",
    },
    "words for search, and the parts of a file, in every language": {
        "domain/cron": "== 'day of week'",
        "domain/passages": "'\\\\n\\\\s*\\\\n', 'ies', ('ss', 'us', 'is')",
        "services/knowledge/recall": "'\\\\{\\\\w*\\\\}|\\\\$\\\\w+'",
    },
    "a delivered file without content": {"tools/objections": "'loremipsum'"},
    "a page that was kept as a document of numbered pages is read from the document again": {
        "tools/saved_pages": "'## Page 1\\n'",
    },
    "only chooses what is shown": {
        "doctor/model_checks": "'model '",
        "domain/fence": "_CLOSINGS",
        "domain/spoken": "in '[Budget]', in '[Runtime]'",
        "domain/waits": "ASKED_PERSON",
        "services/lifecycle/answers": "'[Runtime] '",
        "tools/given_folders": "'file', in 'Permission denied', in 'Read-only file system'",
        "services/history/spans": "_PROVIDER_WORDS",
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
        path.relative_to(SOURCE).as_posix().removesuffix(".py"): ", ".join(sorted(words))
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).parts[0].removesuffix(".py") in DECIDING
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
