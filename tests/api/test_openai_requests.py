"""What a chat client's request means: which words count, what is refused, what is a side call."""

import base64
from typing import Any

import pytest

from agiraph.core.domain.chat import Attachment
from agiraph.core.domain.text import fence
from agiraph.features.chat_api.errors import Unsupported
from agiraph.features.chat_api.reply_stream import _StreamedText
from agiraph.features.chat_api.requests import SAME_FOR, read_chat
from agiraph.features.chat_api.side_calls import is_side_call
from tests.wording import NAME, Wording

PNG = base64.b64encode(b"\x89PNG").decode()
PDF = f"data:application/pdf;base64,{PNG}"
WEATHER = {"type": "function", "function": {"name": "get_weather"}}
MARKS = fence.enclose_words("", thread="t", author="bob", kind="it").split("\n\n")
LINK = {"type": "image_url", "image_url": {"url": "https://x/y.png"}}
BROKEN = {"type": "image_url", "image_url": {"url": "data:image/png;base64,ä"}}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def chat(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "Stocks", "messages": list(messages), **more}


def test_only_words_after_the_last_assistant_message_count() -> None:
    system = {"role": "system", "content": "It is 12:03."}
    words = read_chat(chat(system, user("one"), assistant("two"), user("three"), user("four")))
    assert (words.text, words.same_for) == ("three\n\nfour", None)
    assert [(said.role, said.text) for said in words.history] == [
        ("user", "one"),
        ("assistant", "two"),
    ]


def test_a_request_without_history_is_the_same_for_a_short_time_only() -> None:
    assert read_chat(chat(user("hello"))).same_for == SAME_FOR


def test_the_digest_ignores_system_prompts_and_tells_conversations_and_words_apart() -> None:
    def digest(body: dict[str, Any], key: str = "k") -> str:
        return read_chat(body).digest(caller="c", agent_id="a", key=key, once="")

    noon = {"role": "system", "content": "It is 12:00."}
    later = {"role": "system", "content": "It is 12:01."}
    same = digest(chat(noon, user("yes")))
    assert digest(chat(later, user("yes"))) == same
    others = [
        digest(chat(user("yes")), key="other"),
        digest(chat(user("no"))),
        digest(chat(user("yes"), assistant("Sure?"), user("yes"))),
    ]
    assert len({same, *others}) == 4


def test_a_request_keeps_the_digest_under_which_earlier_versions_stored_it() -> None:
    words = read_chat(chat(user("one"), assistant("two"), user("three")))
    stored = "8030bbfd190f8f566768196b46d05aa25e0035fa9944c2d128f4e7edeb84a51c"
    assert words.digest(caller="c", agent_id="a", key="k", once="") == stored


def test_pictures_and_files_in_the_request_become_attachments() -> None:
    url = f"data:image/png;base64,{PNG}"
    content = [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}},
    ]
    words = read_chat(chat(user(content)))
    assert (words.text, words.attachments) == (
        "Look",
        (
            Attachment(name="image-2.png", media_type="image/png", data=PNG),
            Attachment(name="a.pdf", media_type="application/pdf", data=PNG),
        ),
    )
    shown = read_chat(chat(user([{"type": "image_url", "image_url": url}])))
    assert shown.text == "(I attach image-1.png.)"


UNSUPPORTED = [
    ({"tools": [WEATHER]}, "tools"),
    ({"functions": [{"name": "old"}]}, "functions"),
    ({"n": 2}, "n"),
    ({"response_format": {"type": "json_object"}}, "response_format"),
    ({"modalities": ["text", "audio"]}, "modalities"),
    ({"modalities": [["audio"], {}]}, "modalities"),
    ({"messages": [user("a"), assistant("b")]}, "messages"),
    ({"messages": [{"role": "tool", "content": "42"}]}, "messages"),
    ({"messages": []}, "messages"),
    ({"messages": [user([LINK])]}, "messages"),
    ({"messages": [user([{"type": "video"}])]}, "messages"),
    ({"messages": [user([BROKEN])]}, "messages"),
    ({"model": ""}, "model"),
]


def test_what_an_agent_cannot_do_is_refused_by_name(wording: Wording) -> None:
    told: dict[str, str] = {}
    for more, param in UNSUPPORTED:
        with pytest.raises(Unsupported) as refused:
            read_chat(chat(user("hello")) | more)
        assert refused.value.param == param
        told[str(more)[:NAME]] = str(refused.value)
    wording(told)


def test_a_task_in_the_header_or_the_metadata_is_a_side_call() -> None:
    for task in ("title_generation", "TASKS.TAGS_GENERATION"):
        assert is_side_call(chat(user("anything"), metadata={"task": task}))
    assert is_side_call(chat(user("anything")), "title_generation")
    assert not is_side_call(chat(user("anything")), "  ")
    assert not is_side_call(chat(user("anything"), metadata={"task": "buy milk"}))


# Words of a person, and prompts with which Open WebUI and LibreChat ask for titles and tags.
HISTORY = "### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>"
TOOL_CHOICE = {"role": "system", "content": 'Available Tools: []\n… {"tool_calls": []}'}


@pytest.mark.parametrize(
    "messages",
    [
        [user("Generate a concise title for my book")],
        [user("### Task:\nWrite the report\n### Output:\nA table")],
        [user(f"### Task:\nGenerate a concise, 3-5 word title with an emoji.\n{HISTORY}")],
        [user("Provide a concise, 5-word-or-less title for the conversation, in title case.")],
        [TOOL_CHOICE, user("Query: hi")],
    ],
)
def test_no_words_of_a_message_make_it_a_side_call(messages: list[dict[str, Any]]) -> None:
    assert not is_side_call(chat(*messages))
    assert read_chat(chat(*messages)).text == messages[-1]["content"]


# ---- what a stream shows of a reply ------------------------------------------------------------


def streamed(*deltas: str | None, final: str) -> str:
    """Return what a client is sent; None is the end of a turn of the model."""
    words = _StreamedText()
    frames = [{"op": "event"} if d is None else {"op": "delta", "text": d} for d in deltas]
    return "".join([*(words.take(frame) for frame in frames), words.rest(final)])


@pytest.mark.parametrize(
    ("deltas", "final", "sent"),
    [
        (("All ", "is well."), "All is well.", "All is well."),
        (("All is well.", None), "All is well.", "All is well."),
        (("All is ",), "All is well.", "All is well."),
        ((), "All is well.", "All is well."),
        (("I look.", None, "All is well.", None), "All is well.", "I look.\n\nAll is well."),
        (("I stopped it.", None), "It runs on.", "I stopped it.\n\nIt runs on."),
        (("<think>", "hm", "</think>", "Yes."), "Yes.", "Yes."),
        (("<", "thinking>never ends",), "Yes.", "Yes."),
        (("<b>bold</b>",), "<b>bold</b>", "<b>bold</b>"),
        (("\n\nIt says:\n", f"{MARKS[0]}\nYes.\n", MARKS[1]), "It says:\nYes.", "It says:\nYes."),
        (("\n\nAll is ",), "\n\nAll is well.", "All is well."),
    ],
)  # fmt: skip
def test_a_stream_ends_with_the_reply_that_counts(
    deltas: tuple[str | None, ...], final: str, sent: str
) -> None:
    assert streamed(*deltas, final=final) == sent
