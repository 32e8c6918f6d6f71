"""MCP content: what a server answered, as bounded text for a model."""

from collections.abc import Iterable
from typing import Any

import orjson

from agiraph.tools.base import NO_TEXT

LONGEST = 200_000
"""Characters of one answer; more is cut. The runtime writes a long answer to a file."""


def text_of(result: Any) -> str:
    """Return the answer of a tool call as text. `result` is the SDK's `CallToolResult`."""
    parts = [_block(block) for block in result.content]
    structured = getattr(result, "structured_content", None)
    # The specification asks servers to repeat structured content as text; some do not.
    if structured is not None and not any(part.strip() for part in parts):
        parts = [orjson.dumps(structured, option=orjson.OPT_INDENT_2).decode()]
    return bounded("\n".join(parts)) or "(an empty answer)"


def resource_text(result: Any) -> str:
    """Return the contents of a resource as text. `result` is the SDK's `ReadResourceResult`."""
    return bounded("\n".join(_contents(one) for one in result.contents)) or "(an empty resource)"


def prompt_text(result: Any) -> str:
    """Return the messages of a prompt as text. `result` is the SDK's `GetPromptResult`."""
    said = (f"{message.role}: {_block(message.content)}" for message in result.messages)
    return bounded("\n\n".join(said)) or "(an empty prompt)"


def listed(things: Iterable[Any], *, key: str) -> str:
    """Return one line for each resource or prompt: its address or name, and what it is."""
    lines: list[str] = []
    for thing in things:
        about = " ".join(str(getattr(thing, "description", "") or thing.name or "").split())
        lines.append(f"- {getattr(thing, key)}: {about[:200]}")
    return bounded("\n".join(lines)) or "(none)"


def bounded(text: str) -> str:
    """Return the text, cut if it is too long."""
    text = text.replace("\0", NO_TEXT)
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}\n… {len(text) - LONGEST:,} more characters were left out."


def _block(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            return f"({block.type}, {block.mime_type}, {_size(block.data)} bytes: not shown)"
        case "resource":
            return _contents(block.resource)
        case "resource_link":
            return f"(resource {block.uri}: read it as a resource of this server)"
        case _:
            return f"({block.type}: not shown)"


def _contents(contents: Any) -> str:
    if (text := getattr(contents, "text", None)) is not None:
        return str(text)
    return f"({contents.uri}, {contents.mime_type}, {_size(contents.blob)} bytes: not shown)"


def _size(encoded: str) -> int:
    return len(encoded) * 3 // 4
