"""Answers: what a research job asks its models, with the schemas, and what they answer.

Models answer with other fields, strings in place of lists, or prose. Whatever can be parsed is
used, and the job continues without the rest.
"""

import re
from collections.abc import Iterable
from typing import Any, cast, get_args

from agiraph.core.domain.text.fence import neutral, one_line
from agiraph.core.domain.value import value
from agiraph.features.research.model.jobs import Brief, Kind, SubQuestion

_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}


def _record(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_QUESTIONS: dict[str, Any] = {"type": "array", "items": _record(question=_TEXT, answer=_TEXT)}

BRIEF: dict[str, Any] = _record(
    question=_TEXT,
    language=_TEXT,
    kind={"type": "string", "enum": list(get_args(Kind))},
    sub_questions=_QUESTIONS,
    freshness=_TEXT,
    wanted=_TEXT,
    unwanted=_TEXT,
    assumptions=_TEXTS,
    subjects=_TEXTS,
    builds_on=_TEXT,
    ask=_TEXT,
)
ASK_BRIEF = """[Runtime] Plan this research. Answer with one JSON object:
{"question": what is to be found out, in the language of the person, "language": that language,
"kind": "fact" | "comparison" | "survey" | "how-to" | "watch", "sub_questions": 1 to 7 of
{"question": "…", "answer": what counts as an answer}, "freshness": how recent sources must be, or
"", "wanted": sources to prefer, or "", "unwanted": sources to leave out, or "", "assumptions":
[what you assume, "…"], "subjects": [names of products, bodies or people that it is about, "…"],
"builds_on": the id of earlier research that is shown above and whose evidence the report also
needs, or "", "ask": one question to the person, or ""}"""

GAPS: dict[str, Any] = _record(missing=_TEXTS, next=_QUESTIONS)
ASK_GAPS = """[Runtime] What is missing? Answer with one JSON object:
{"missing": [what the evidence does not answer, "…"], "next": what to read for next, at most
%d of {"question": "…", "answer": what counts as an answer}}. Both lists are empty if the evidence
answers the question."""

VERDICTS: dict[str, Any] = _record(
    verdicts={
        "type": "array",
        "items": _record(
            pair={"type": "integer"},
            verdict={"type": "string", "enum": ["yes", "partly", "no"]},
        ),
    }
)
ASK_VERDICTS = """{pairs}

[Runtime] Do the quotations support their sentences? Answer with one JSON object:
{{"verdicts": [{{"pair": number, "verdict": "yes" | "partly" | "no"}}]}}, one for each pair."""

ASK_REPORT = "[Runtime] Write the report now, as Markdown text."
AGAIN = (
    "[Runtime] That was no report. Write the whole report now, as text, from the evidence above, "
    "with the ids of its evidence in brackets."
)
FAULTS = """[Runtime] The report was compared with its evidence. This does not hold:

{faults}

Write the whole report again without these faults. What still does not hold is taken out of it."""


MOST_QUESTIONS = 7
QUESTION_CHARACTERS = 500
LINE_CHARACTERS = 300
MOST_LINES = 12
MOST_SUBJECTS = 8
KINDS: tuple[Kind, ...] = get_args(Kind)
_BULLET = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.)])\s+")


@value
class Gaps:
    """What a look at the ledger found missing."""

    questions: tuple[SubQuestion, ...] = ()
    """What to look for next."""
    missing: tuple[str, ...] = ()
    """What could not be found out so far."""


def read_brief(value: Any, *, question: str) -> Brief | None:
    """Return the brief in an answer; None if it is not an object or names nothing to find out.

    `question` is what was asked. It stands in for a question that the answer leaves out.
    """
    given = _object(value)
    asked = _questions(_first(given, "sub_questions", "questions", "subquestions"))
    if not given or not (asked or _text(given.get("question"))):
        return None
    own = _text(given.get("question"), QUESTION_CHARACTERS)
    kind = _text(given.get("kind")).lower().replace("_", "-")
    return Brief(
        question=own or first_words(question),
        language=_text(given.get("language"), 40),
        kind=kind if kind in KINDS else "comparison" if len(asked) > 1 else "fact",
        sub_questions=asked or (SubQuestion(question=own),),
        freshness=_text(given.get("freshness"), LINE_CHARACTERS),
        wanted=_text(_first(given, "wanted", "wanted_sources"), LINE_CHARACTERS),
        unwanted=_text(_first(given, "unwanted", "unwanted_sources"), LINE_CHARACTERS),
        assumptions=_lines(given.get("assumptions")),
        subjects=_lines(given.get("subjects"))[:MOST_SUBJECTS],
        builds_on=_text(given.get("builds_on"), LINE_CHARACTERS),
        ask=_text(given.get("ask"), LINE_CHARACTERS),
    )


def plain_brief(question: str) -> Brief:
    """Return the brief of a job whose model made none: the question as it was asked."""
    asked = first_words(question)
    return Brief(
        question=asked,
        language="",
        kind="fact",
        sub_questions=(SubQuestion(question=asked),),
        assumptions=(),
    )


def first_words(question: str) -> str:
    return one_line(question)[:QUESTION_CHARACTERS]


def read_gaps(value: Any) -> Gaps | None:
    """Return the gaps in an answer; None if the answer has none of the fields."""
    given = _object(value)
    names = ("next", "next_questions", "questions", "missing", "gaps", "contradictions")
    if not any(name in given for name in names):
        return None
    return Gaps(
        questions=_questions(_first(given, "next", "next_questions", "questions")),
        missing=_lines(_first(given, "missing", "gaps")),
    )


def read_verdicts(value: Any, *, pairs: int) -> dict[int, str] | None:
    """Return the verdicts in an answer by the number of their pair; None if it has none."""
    listed = _object(value).get("verdicts", value)
    if isinstance(listed, dict):
        entries = cast(dict[Any, Any], listed)
        listed = [{"pair": number, "verdict": word} for number, word in entries.items()]
    if not isinstance(listed, list):
        return None
    found: dict[int, str] = {}
    for entry in map(_object, cast(list[Any], listed)):
        number = re.search(r"\d+", str(entry.get("pair", "")))
        word = _text(entry.get("verdict")).lower()
        if number and 1 <= int(number[0]) <= pairs and word in ("yes", "partly", "no"):
            found[int(number[0])] = word
    return found or None


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, list) and len(cast(list[Any], value)) == 1:
        value = cast(list[Any], value)[0]
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _first(given: dict[str, Any], *names: str) -> Any:
    return next((given[name] for name in names if given.get(name)), None)


def _text(value: Any, longest: int = 1000) -> str:
    return one_line(neutral(value))[:longest] if isinstance(value, str) else ""


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, str):
        return [_BULLET.sub("", line) for line in value.splitlines()]
    return cast(list[Any], value) if isinstance(value, list) else ()


def _lines(value: Any) -> tuple[str, ...]:
    found: list[str] = []
    for item in _items(value):
        said = item if isinstance(item, str) else next(iter(_object(item).values()), "")
        if line := _text(said, LINE_CHARACTERS):
            found.append(line)
    return tuple(dict.fromkeys(found))[:MOST_LINES]


def _questions(value: Any) -> tuple[SubQuestion, ...]:
    found: dict[str, SubQuestion] = {}
    for item in _items(value):
        fields = _object(item)
        asked = _text(item) or _text(_first(fields, "question", "sub_question", "text"))
        if asked:
            asked = asked[:QUESTION_CHARACTERS]
            answer = _text(_first(fields, "answer", "counts_as_answer", "why"), LINE_CHARACTERS)
            found.setdefault(asked.casefold(), SubQuestion(question=asked, answer=answer))
    return tuple(found.values())[:MOST_QUESTIONS]
