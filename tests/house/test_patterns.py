"""Patterns: which modules may use regular expressions or words of a language, and what for.

Nothing in the runtime reads from the wording of a sentence what people or models mean. A module
that needs `re` stands in this list with the reason.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "agiraph"

MAY_USE_PATTERNS: dict[str, str] = {
    "a report's sentences against their quotations; decides only what is struck from a report": (
        "features/research/model/page_quotes features/research/model/report_check"
        " features/research/model/report features/research/model/sentences"
    ),
    "the form of a research's parts: `yes` or `no` in JSON, headings that we ask for": (
        "features/research/verbs/answers features/research/verbs/delivery"
    ),
    "spaces and punctuation, so that a quotation is found in its page": (
        "features/research/verbs/ledger"
    ),
    "the evidence and summaries of an end: files, addresses, commands and exit codes": (
        "core/tools/acceptance core/tools/web/addresses core/tools/objections"
    ),
    "the wire format of a vendor or of a model's chat template": (
        "models/facts/server_facts models/http/events"
        " models/options models/servers models/wires/anthropic models/wires/chat_completions"
        " models/wires/effort models/wires/gemini models/wires/request_buffer"
        " models/wires/responses models/wires/text models/wires/text_calls"
        " models/wires/trained_calls models/searching core/tools/calls/call_reading"
        " core/domain/text/json_text"
    ),
    "names of models in the price list, with a date or described by a pattern": (
        "models/facts/prices"
    ),
    "the error codes and waiting times that servers send": (
        "models/catalogue models/http/errors models/http/rate_limits"
    ),
    "endless repetition of the same characters, in any language": "models/wires/pieces",
    "marks of our own prompts (fences, notices) that a text repeats or imitates": (
        "core/domain/text/fence core/domain/text/spoken core/policies/breaker"
        " features/knowledge/recall core/tools/replies/foreground"
    ),
    "shell commands: programs, sleeps, paths, chained commands": (
        "core/domain/text/command_words core/policies/batches"
        " core/policies/permission core/tools/commands/shell"
        " sandbox/folders/git_guard"
    ),
    "times, ids and counters in the output of programs": "core/policies/loops",
    "names, ids, hosts and paths": (
        "core/domain/records/attached_files"
        " features/research/model/sources features/backup/archive"
        " features/backup/archive_reading core/home/file_versions sandbox/folders/git_settings"
        " core/home/layout core/home/named_secrets core/home/file_search"
        " core/home/specialists core/home/settings_file features/mcp/settings"
        " features/mcp/toolbox core/services/lifecycle/answers core/services/members/roster"
        " core/tools/delegation core/tools/web/reading web/links web/reading_hosts"
        " features/extensions/own_services features/extensions/own_tools"
        " features/extensions/skills features/channels/kinds/configured"
    ),
    "Markdown: headings, lists, fences, links": (
        "features/knowledge/note_files core/runtime/prompts/prompt"
        " core/services/lifecycle/settings web/excerpts web/markdown"
    ),
    "words for search, in every script; no word means anything": (
        "core/domain/text/passages core/domain/text/similarity"
        " features/knowledge/verbs/briefings core/services/search core/tools/files/files"
    ),
    "files and protocols with a standard: cron, cgroups, git, ZIP, mail, PDF, package indexes": (
        "core/domain/times/cron sandbox/cgroups core/home/front_matter sandbox/commands"
        " core/home/zip_stream features/channels/kinds/mail_reading sandbox/gate/forwarding"
        " sandbox/gate/git_reading sandbox/gate/indexes sandbox/gate/package_names"
        " sandbox/gate/python_index web/open_sources web/pdf_page web/pdf_text"
    ),
    "a field or command with a format that we define: hours, moments, amounts, codes, settings": (
        "api/access_control api/deps features/chat_api/requests api/middleware"
        " api/routes/models features/backup/routes cli/settings config core/domain/sections"
        " core/domain/times/hours core/domain/times/moments features/extensions/signatures"
        " features/channels/kinds/telegram features/programs/mailbox"
        " core/services/lifecycle/overspending features/channels/pairing core/tools/scheduling"
    ),
    "a person's own passage, word for word, up to the ends of its sentences": (
        "core/domain/text/quotations"
    ),
    "only chooses what is shown": (
        "features/sharing/page cli/prompts cli/session core/domain/agents"
        " core/domain/text/visible logs core/domain/text/language core/domain/work"
    ),
    "forms of keys and passwords, which are kept out of everything that is written": "redaction",
    "names of variables in the settings file": "secret_variables",
    "compiles the patterns of other modules": "late_patterns",
    "SQL": "core/store/engine/postgres core/store/engine/sqlite",
    "the demonstration and the tests' own models, which follow a script": (
        "models/demo testing/prompts"
    ),
}
"""The modules that import `re`, by what their patterns are about."""

WORDS = re.compile(
    r"(?<!\w)(?:nicht|keine?|bitte|wird|und|pas|est|les|está|por|não|не|нет|sono)(?!\w)"
    r"|[\u0621-\u064a\u0904-\u0939\u3041-\u3096\u4e00-\u9ffe]"
)
"""Common words and letters of other languages: where they stand, a language is read."""
MAY_HAVE_WORDS: dict[str, str] = {
    "names the language in which a reply is asked for; nothing else hangs on it": (
        "core/domain/text/language"
    ),
    "the words of magnitude that a quotation may not be cut off before": (
        "features/research/model/page_quotes"
    ),
    "the ranges of scripts without spaces between words, for search": "core/domain/text/passages",
    "the prefixes that mail programs put before a subject": "features/channels/kinds/mail_reading",
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix().removesuffix(".py"), ast.parse(path.read_text())


def uses_patterns(module: ast.Module) -> bool:
    for node in ast.walk(module):
        match node:
            case ast.Import(names=names) if any(n.name in ("re", "regex") for n in names):
                return True
            case ast.ImportFrom(module="re" | "regex" | "agiraph.late_patterns"):
                return True
            case _:
                pass
    return False


def has_words(module: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Constant) and isinstance(node.value, str) and WORDS.search(node.value)
        for node in ast.walk(module)
    )


def named(reasons: dict[str, str]) -> list[str]:
    return sorted(name for names in reasons.values() for name in names.split())


def test_each_module_with_patterns_is_listed_with_its_reason_and_no_other() -> None:
    assert [name for name, module in modules() if uses_patterns(module)] == named(MAY_USE_PATTERNS)


def test_words_of_other_languages_stand_only_where_the_list_says_why() -> None:
    assert [name for name, module in modules() if has_words(module)] == named(MAY_HAVE_WORDS)


def test_the_checks_find_an_import_and_a_word() -> None:
    assert uses_patterns(ast.parse("def f():\n    import re"))
    assert uses_patterns(ast.parse("from re import compile"))
    assert not uses_patterns(ast.parse("import record"))
    assert has_words(ast.parse("PATTERN = 'bitte|please'"))
    assert has_words(ast.parse("PATTERN = '请'"))
    assert not has_words(ast.parse("bitte = 1"))
