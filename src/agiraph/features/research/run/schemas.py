"""Schemas: the questions that a research job asks its models, and the JSON schemas of the
answers."""

from typing import Any, get_args

from agiraph.features.research.model.jobs import Kind

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
