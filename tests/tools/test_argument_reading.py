"""Argument reading: for any tool and any arguments, nothing is invented or changed for nothing."""

import json
from collections.abc import Iterable
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.text.json_text import object_in, objects_in_a_row, repaired
from agiraph.core.tools.calls import call_reading
from agiraph.core.tools.calls.call_reading import read_calls
from agiraph.core.tools.calls.schemas import whole_schema
from agiraph.core.tools.toolsets import BUILT_IN

TOOLS = sorted(BUILT_IN)
SLOW = (HealthCheck.too_slow,)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**31), 2**31)
    | st.floats(-1e9, 1e9)
    | st.sampled_from(
        ["", " ", "null", "None", "[]", "{}", "30", "1.5", "true", "a", "(1,)", "{'a'"]
    )
    | st.text(max_size=8)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
given_values = values | values.map(json.dumps) | values.map(repr)


@st.composite
def tool_and_arguments(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    name = draw(st.sampled_from(TOOLS))
    schema = whole_schema(BUILT_IN[name].arguments)
    found: dict[str, Any] = {}
    for key, form in schema.get("properties", {}).items():
        if draw(st.booleans()):
            found[key] = draw(fitting(form, schema) | given_values)
    if draw(st.integers(0, 5)) == 0:
        found[draw(st.sampled_from(["arguments", "description", "x"]))] = draw(given_values)
    return name, found


def fitting(form: dict[str, Any], schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return values that the schema allows, mostly, also inside of strings."""
    if "$ref" in form:
        form = schema["$defs"][form["$ref"].rpartition("/")[2]]
    if "anyOf" in form:
        return st.one_of([fitting(choice, schema) for choice in form["anyOf"]])
    if "enum" in form:
        return st.sampled_from(form["enum"])
    match form.get("type"):
        case "array":
            made = st.lists(fitting(form.get("items", {}), schema), max_size=3)
            return made | made.map(json.dumps)
        case "object":
            fields = {k: fitting(v, schema) for k, v in form.get("properties", {}).items()}
            made = st.fixed_dictionaries({}, optional=fields)
            return made | made.map(json.dumps)
        case "integer":
            return st.integers(1, 5) | st.integers(1, 5).map(str)
        case "string":
            return st.text(min_size=1, max_size=12)
        case _:
            return values


def keys_in(value: Any) -> Iterable[str]:
    """Yield all keys in a value, also of objects inside of strings."""
    if isinstance(value, str):
        value = repaired(value)
    if isinstance(value, dict):
        for key, inner in cast(dict[str, Any], value).items():
            yield key
            yield from keys_in(inner)
    elif isinstance(value, list):
        for inner in cast(list[Any], value):
            yield from keys_in(inner)


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=SLOW)
@given(tool_and_arguments())
def test_reading_is_idempotent_and_invents_nothing(case: tuple[str, dict[str, Any]]) -> None:
    name, written = case
    tool = BUILT_IN[name]
    before = json.dumps(written)
    was_valid = call_reading.is_valid(tool.arguments, written)

    read = call_reading.read_arguments(tool.arguments, whole_schema(tool.arguments), written)

    assert json.dumps(written) == before
    assert set(keys_in(read.arguments)) <= set(keys_in(written))
    if was_valid:
        assert read == call_reading.ReadArguments(written)
    assert bool(read.notes) == (read.arguments != written)
    again = call_reading.read_arguments(
        tool.arguments, whole_schema(tool.arguments), read.arguments
    )
    assert again == call_reading.ReadArguments(read.arguments)
    if read.notes:
        assert call_reading.is_valid(tool.arguments, read.arguments)


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=SLOW)
@given(
    st.sampled_from(
        [*TOOLS, "Bash", "functions.read_file", "Edit", "multi_tool_use.parallel", "?"]
    ),
    st.text(max_size=30) | given_values.map(str) | values.map(json.dumps).map(json.dumps),
    st.booleans(),
)
def test_any_text_in_place_of_arguments_gives_calls_that_stay_the_same(
    name: str, text: str, is_cut: bool
) -> None:
    first = read_calls([ToolCall(id="a", name=name, malformed=text)], BUILT_IN, is_cut=is_cut)

    assert first
    again = read_calls([read.call for read in first], BUILT_IN, is_cut=is_cut)
    assert [read.call for read in again] == [read.call for read in first]
    for read in first:
        assert (read.call.malformed is None) or not read.call.arguments
        assert json.dumps(read.call.arguments)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2,], "b": {"c": 1,},}', {"a": [1, 2], "b": {"c": 1}}),
        ('{"a": ",]", "b": ",}"}', {"a": ",]", "b": ",}"}),
        ('{"a": ",]",}', {"a": ",]"}),
        ('{"a": "one\ntwo\t", }', {"a": "one\ntwo\t"}),
        ("{'a': \"it's\", 'b': None, 'c': True}", {"a": "it's", "b": None, "c": True}),
        (r"{'a': 'x\ny'}", {"a": "x\ny"}),
        (r"{'a': '\x41'}", None),
        ("{'a': {1, 2}}", None),
        ("{'a': b'x'}", None),
        ("{'a': 1j}", None),
        ("{1: 'a'}", None),
        ("{'a': 99999999999999999999999}", None),
        ("['a']", None),
        ("{'a': __import__('os')}", None),
        ('{"a": 1', None),
        ("", None),
        ("{" * 5000, None),
        ("{'a': " * 90 + "1" + "}" * 90, None),
    ],
)
def test_text_is_repaired_only_to_what_it_must_mean(text: str, value: Any) -> None:
    assert object_in(text) == value


def test_objects_in_a_row_are_read_only_if_there_is_nothing_else() -> None:
    assert objects_in_a_row('{"a": 1}\n {"b": 2}{"a": 1}') == [{"a": 1}, {"b": 2}]
    assert objects_in_a_row('{"a": 1}{"a": 1}') == [{"a": 1}]
    alone = ['{"a": 1}', "", '{"a": 1} and {"b": 2}', '{"a": 1}[1]', '{"a": 1}{"b": NaN}', '{"a"']
    assert [objects_in_a_row(text) for text in alone] == [[]] * len(alone)
