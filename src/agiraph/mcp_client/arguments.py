"""MCP arguments: checks the arguments of a call by the schema that the server gave for its tool."""

from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, create_model, model_validator

from agiraph.tools.base import WAIT


def form_of(name: str, schema: Mapping[str, Any]) -> type[BaseModel]:
    """Return a pydantic class that accepts the arguments that the schema allows.

    Its error messages are agiraph's own, because the server wrote the texts in the schema.
    """
    properties = schema.get("properties")
    order = list(cast(dict[str, Any], properties)) if isinstance(properties, dict) else []

    class Arguments(BaseModel):
        model_config = ConfigDict(extra="allow")

        @model_validator(mode="before")
        @classmethod
        def check(cls, given: Any) -> Any:
            if fault := fault_in(schema, cast(dict[str, Any], given)):
                raise ValueError(fault)
            return given

        def model_post_init(self, context: Any, /) -> None:
            # `Tool.read` takes the attributes. A rule of the team looks at the first of them, in
            # the order of the schema.
            own = vars(self)
            if own.get(WAIT, ...) is None:
                del own[WAIT]
            every = {**own, **(self.__pydantic_extra__ or {})}
            own.clear()
            own.update({key: every[key] for key in order if key in every})
            own.update(every)

        @classmethod
        def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
            return dict(schema)

    if WAIT not in order:
        return Arguments
    # An argument of this name belongs to the server's tool, not to the runtime.
    return create_model(name, __base__=Arguments, **{WAIT: (Any, None)})  # pyright: ignore


def fault_in(schema: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """Return what is wrong with the arguments; empty if nothing is wrong, or if the schema is
    invalid."""
    from jsonschema import Draft202012Validator

    checker: Any = Draft202012Validator(schema)
    try:
        faults: list[Any] = sorted(checker.iter_errors(given), key=lambda e: len(e.path))
    except Exception:  # an invalid schema: the server checks the arguments
        return ""
    if not faults:
        return ""
    first = faults[0]
    where = ".".join(str(part) for part in first.absolute_path if _is_plain(part))
    inside = f" in {where!r}" if where else ""
    if first.validator == "required":
        missing = [one for one in first.validator_value if one not in (first.instance or {})]
        named = ", ".join(repr(one) for one in missing if _is_plain(one))
        return f"{named or 'an argument'} is missing{inside}"
    if first.validator == "additionalProperties":
        return f"there is an argument that the tool does not know{inside}"
    return f"{where or 'an argument'!r} does not fit the schema ({first.validator})"


def _is_plain(part: object) -> bool:
    return isinstance(part, int) or (
        isinstance(part, str) and len(part) <= 40 and part.replace("-", "_").isidentifier()
    )
