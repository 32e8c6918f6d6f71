"""Text signature: the arguments of a tool on one line, for models that read of tools in text."""

from typing import Any, cast

import orjson

Schema = dict[str, Any]

_PLAIN = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "true or false",
    "object": "object",
}
_KNOWN = frozenset({"type", "description", "default", "enum", "items"})


def signature(schema: Schema) -> str:
    """Return the arguments as one line; a schema with nested ones as JSON schema."""
    fields = cast(dict[str, Schema], schema.get("properties", {}))
    required = schema.get("required", [])
    shown: list[str] = []
    for name, field in fields.items():
        kind = _kind(field)
        if kind is None:
            return f"(arguments as a JSON schema: {orjson.dumps(schema).decode()})"
        optional = "" if name in required else "?"
        about = f" ({field['description']})" if field.get("description") else ""
        shown.append(f'"{name}"{optional}: {kind}{about}')
    return "{" + ", ".join(shown) + "}"


def _kind(field: Schema) -> str | None:
    """Return what a value is, in words; None for one that words are too short for."""
    if not field.keys() <= _KNOWN:
        return None
    if "enum" in field:
        return " or ".join(orjson.dumps(choice).decode() for choice in field["enum"])
    if field.get("type") == "array":
        inner = _kind(field.get("items", {}))
        return None if inner is None else f"[{inner}, …]"
    return _PLAIN.get(field.get("type", ""))
