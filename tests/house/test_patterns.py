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
        "domain/page_quotes domain/report_check domain/research_report domain/sentences"
    ),
    "the form of a research's parts: `yes` or `no` in JSON, headings that we ask for": (
        "services/research/answers services/research/delivery services/research/support"
    ),
    "spaces and punctuation, so that a quotation is found in its page": "services/research/ledger",
    "the evidence and summaries of an end: files, addresses, commands and exit codes": (
        "tools/acceptance tools/addresses tools/objections tools/file_names"
    ),
    "the wire format of a vendor or of a model's chat template": (
        "policies/written_call providers/facts/server_facts providers/http/events"
        " providers/options providers/servers providers/wires/anthropic"
        " providers/wires/chat_completions providers/wires/effort providers/wires/gemini"
        " providers/wires/request_buffer providers/wires/responses"
        " providers/wires/text providers/wires/text_calls providers/wires/trained_calls"
        " providers/searching tools/call_reading domain/json_text"
    ),
    "the error codes and waiting times that servers send": (
        "providers/diagnosis providers/http/errors providers/http/rate_limits"
    ),
    "endless repetition of the same characters, in any language": "providers/wires/pieces",
    "marks of our own prompts (fences, notices) that a text repeats or imitates": (
        "domain/fence domain/spoken policies/forged_notice services/knowledge/recall tools/looking"
    ),
    "shell commands: programs, sleeps, paths, chained commands": (
        "domain/command_words policies/batches policies/idle_wait policies/permission"
        " tools/command_network home/git_guard"
    ),
    "times, ids and counters in the output of programs": "policies/normalized_output",
    "names, ids, hosts and paths": (
        "domain/attached_files domain/folders domain/sources home/archive home/archive_reading"
        " home/file_versions home/git_settings home/kept_files home/layout home/named_secrets"
        " home/path_lookup home/skill_folders home/specialists mcp_client/settings"
        " mcp_client/toolbox services/lifecycle/answers services/members/roster tools/delegation"
        " tools/reading web/links web/reading_hosts extensions/own_engines extensions/own_tools"
        " extensions/skills runtime/channels/configured"
    ),
    "Markdown: headings, lists, fences, links": (
        "home/notes runtime/shown_files services/lifecycle/settings web/excerpts web/markdown"
    ),
    "words for search, in every script; no word means anything": (
        "domain/passages domain/similarity services/lifecycle/briefings services/search"
        " store/search tools/nearest_lines"
    ),
    "files and protocols with a standard: cron, cgroups, git, ZIP, mail, PDF, package indexes": (
        "domain/cron home/cgroups home/front_matter home/pipes home/zip_stream"
        " runtime/channels/mail_reading web/gate/forwarding web/gate/git_reading web/gate/indexes"
        " web/gate/package_names web/gate/python_index web/open_sources web/pdf_page web/pdf_text"
    ),
    "a field or command with a format that we define: hours, moments, amounts, codes, settings": (
        "api/access_control api/deps api/features/chat_api/requests api/middleware"
        " api/routes/models api/routes/teams cli/settings config domain/hours domain/moments"
        " extensions/signatures runtime/channels/telegram runtime/program_mailbox"
        " services/lifecycle/overspending services/mail/pairing tools/scheduling"
    ),
    "a person's own passage, word for word, up to the ends of its sentences": "domain/quotations",
    "only chooses what is shown": (
        "cli/mcp cli/prompts cli/session domain/agents domain/visible logs"
        " domain/language domain/waits"
    ),
    "forms of keys and passwords, which are kept out of everything that is written": "redaction",
    "SQL": "store/postgres store/sqlite",
    "the demonstration and the tests' own models, which follow a script": (
        "providers/demo providers/demo_story testing/prompts"
    ),
}
"""The modules that import `re`, by what their patterns are about."""

WORDS = re.compile(
    r"(?<!\w)(?:nicht|keine?|bitte|wird|und|pas|est|les|está|por|não|не|нет|sono)(?!\w)"
    r"|[\u0621-\u064a\u0904-\u0939\u3041-\u3096\u4e00-\u9ffe]"
)
"""Common words and letters of other languages: where they stand, a language is read."""
MAY_HAVE_WORDS: dict[str, str] = {
    "names the language in which a reply is asked for; nothing else hangs on it": "domain/language",
    "the words of magnitude that a quotation may not be cut off before": "domain/page_quotes",
    "the headings and phrases around a report; only shown": "domain/report_words",
    "the ranges of scripts without spaces between words, for search": "domain/passages",
    "the prefixes that mail programs put before a subject": "runtime/channels/mail_reading",
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix().removesuffix(".py"), ast.parse(path.read_text())


def uses_patterns(module: ast.Module) -> bool:
    for node in ast.walk(module):
        match node:
            case ast.Import(names=names) if any(n.name in ("re", "regex") for n in names):
                return True
            case ast.ImportFrom(module="re" | "regex"):
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
