"""Reading and writing config.pbtxt."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import ParseDict
from hypothesis import given
from hypothesis import strategies as st

from cdk_triton.errors import ModelConfigError
from cdk_triton.triton import ModelConfig, format_model_config, parse_model_config

if TYPE_CHECKING:
    from golden_messages import Messages


def test_reads_every_kind_of_field() -> None:
    config = parse_model_config("""
        # a comment
        name: 'bert'
        max_batch_size: 8
        input [ { name: "ids" data_type: TYPE_INT32 dims: [ -1, 2 ] }, { name: "mask" } ]
        parameters { key: "threads" value { string_value: "2" } }
        dynamic_batching { }
    """)
    assert config.name == "bert"
    assert list(config.input[0].dims) == [-1, 2]
    assert [tensor.name for tensor in config.input] == ["ids", "mask"]
    assert config.parameters["threads"].string_value == "2"
    assert config.HasField("dynamic_batching")
    assert not config.HasField("version_policy")


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        pytest.param('name: "bert"\n  max_batchsize: 8\n', 2, 3, id="unknown field"),
        pytest.param("ensemble_scheduling { step { modelname: 'x' } }", 1, 30, id="unknown field of a part"),
        pytest.param("version_policy { zzz { } }", 1, 18, id="unknown field like no other"),
        pytest.param("input { data_type: TYPE_FP33 }", 1, 20, id="unknown enum value"),
        pytest.param("input { data_type: TYPE_FLOAT }", 1, 20, id="a type by its name elsewhere"),
        pytest.param('input {\n  name: "a"\n', 1, 7, id="truncated in a block"),
        pytest.param("dynamic_batching: {", 1, 19, id="truncated after a brace"),
        pytest.param("input { dims: [ 1, 2", 1, 21, id="truncated in a list"),
        pytest.param("input { dims: [ 1,", 1, 19, id="truncated after a comma"),
        pytest.param("input [ { }\n", 2, 1, id="truncated in a list of blocks"),
        pytest.param("input [", 1, 8, id="truncated before a list of blocks"),
        pytest.param("optimization { priority: ", 1, 26, id="truncated before a name of an enum"),
        pytest.param("input { dims: [ 1, 2, ] }", 1, 21, id="a comma before the end of a list"),
        pytest.param("input [ { }, # the last\n ]", 1, 12, id="a comma before the end of a list of blocks"),
        pytest.param("max_batch_size: 8,\n,", 2, 1, id="two commas"),
        pytest.param("max_batch_size: 8;;", 1, 19, id="two semicolons"),
        pytest.param('dynamic_batching { preserve_ordering: "True" }', 1, 39, id="a bool in quotes"),
        pytest.param("dynamic_batching { preserve_ordering: yes }", 1, 39, id="yes"),
        pytest.param('max_batch_size: "8"', 1, 17, id="a number in quotes"),
        pytest.param("max_batch_size: 'many'", 1, 17, id="a text for a number"),
        pytest.param("max_batch_size: 1e3", 1, 17, id="an exponent in a whole number"),
        pytest.param("max_batch_size: 8.5", 1, 17, id="a fraction in a whole number"),
        pytest.param("max_batch_size: 8k", 1, 17, id="a unit after a number"),
        pytest.param("max_batch_size: 08", 1, 17, id="a leading zero"),
        pytest.param("max_batch_size: 2147483648", 1, 17, id="too large a number"),
        pytest.param("dynamic_batching { max_queue_delay_microseconds: -1 }", 1, 50, id="a negative unsigned number"),
        pytest.param("input { dims: [ 1, 9223372036854775808 ] }", 1, 20, id="too large a number in a list"),
        pytest.param("max_batch_size: [ 8 ]", 1, 17, id="a list for a number"),
        pytest.param("max_batch_size:", 1, 16, id="no number"),
        pytest.param("sequence_batching { direct { minimum_slot_utilization: x } }", 1, 56, id="no fraction"),
        pytest.param("max_batch_size: 8 // eight", 1, 19, id="a comment of C"),
        pytest.param("max_batch_size: 8 -- eight", 1, 19, id="a comment of SQL"),
        pytest.param("backend: python", 1, 10, id="no quotes"),
        pytest.param("default_model_filename: model-1.onnx", 1, 25, id="no quotes around a file"),
        pytest.param('name: [ "a" ]', 1, 7, id="a list for a text"),
        pytest.param("name: }", 1, 7, id="no text"),
        pytest.param("cc_model_filenames { key: 'a' value: 5 }", 1, 38, id="a number for a text in a map"),
        pytest.param('input { data_type: "TYPE_FP32" }', 1, 20, id="an enum in quotes"),
        pytest.param('backend = "python"', 1, 9, id="an equals sign"),
        pytest.param("max_batch_size 8", 1, 16, id="no colon"),
        pytest.param("input { dims: [ 1 2 ] }", 1, 19, id="no comma"),
        pytest.param("input { dims: [ 1 }", 1, 19, id="a list that is not closed"),
        pytest.param("dynamic_batching: true", 1, 19, id="a bool for a block"),
        pytest.param('parameters { key: "a" value: "b" }', 1, 30, id="a text for a parameter"),
        pytest.param('parameters { "a": "b" }', 1, 14, id="an entry as JSON has it"),
        pytest.param('metric_tags { key: "a" key: "b" }', 1, 29, id="another key twice"),
        pytest.param('input { name: "a" name: "b" }', 1, 25, id="another name twice"),
        pytest.param("dynamic_batching { preferred_batch_size: 4, 8 }", 1, 45, id="several values without a list"),
        pytest.param("max_batch_size: 8 }", 1, 19, id="a brace too many"),
        pytest.param('input [\n  {\n    name: "a"\n    dims: [ 1 ]\n]', 5, 1, id="a brace too few in a list"),
        pytest.param('name: "be', 1, 7, id="truncated in a text"),
        pytest.param('name: "be\\"', 1, 7, id="truncated after an escaped quote"),
        pytest.param('name: "a" name: "b"', 1, 17, id="said twice"),
        pytest.param(b'name: "a"\nbackend: caf\xe9', 2, 13, id="not UTF-8"),
        pytest.param("\ufeffname: 'a'", 1, 1, id="byte order mark"),
        pytest.param('{"backend": "python"}', 1, 1, id="JSON"),
        pytest.param("max_batch_size:\u00a01", 1, 16, id="no-break space"),
        pytest.param('name: "a\\qb"', 1, 9, id="unknown escape"),
        pytest.param('name: "a\\X41"', 1, 9, id="an escape of Python's parser"),
        pytest.param('name: "\\U00200000"', 1, 8, id="escape of no character"),
        pytest.param("input { data_type: 2147483648 }", 1, 20, id="more than 32 bits in an enum"),
        pytest.param("input {\n  data_type: -2147483649 }", 2, 14, id="less than 32 bits in an enum"),
        pytest.param(f"input {{ data_type: {'9' * 5000} }}", 1, 20, id="thousands of digits in an enum"),
        pytest.param(
            "model_metrics { metric_control { histogram_options { buckets: -inf } } } input { data_type: 2147483648 }",
            1,
            93,
            id="more than 32 bits in an enum after minus infinity",
        ),
        pytest.param("dynamic_batching { priority_levels: -0 }", 1, 37, id="a minus before an unsigned zero"),
        pytest.param(
            "dynamic_batching { priority_levels: - 0 }", 1, 38, id="a minus by itself before an unsigned zero"
        ),
        pytest.param("sequence_batching { direct { minimum_slot_utilization: 1ff } }", 1, 56, id="two f"),
        pytest.param(
            "model_metrics { metric_control { histogram_options { buckets: [ 1, inff ] } } }", 1, 68, id="inff"
        ),
        pytest.param('metric_tags { key: "" key: "b" }', 1, 23, id="a key twice"),
        pytest.param('metric_tags { value: "" value: "" }', 1, 25, id="a value twice"),
        pytest.param("input { optional: 02 }", 1, 20, id="a bool beyond one"),
        pytest.param("input { optional: -00 }", 1, 19, id="a bool with a minus"),
        pytest.param("max_batch_size: +1", 1, 17, id="plus"),
        pytest.param("max_batch_size: 1_000", 1, 17, id="underscore in a number"),
        pytest.param('name: "\0"', 1, 8, id="zero"),
        pytest.param("future: FAST input { dims: - 1 }", 1, 1, id="a word for an unknown field"),
    ],
)
def test_error_points_at_the_fault(messages: Messages, text: str | bytes, line: int, column: int) -> None:
    with messages.raises(ModelConfigError) as caught:
        parse_model_config(text, path="bert/config.pbtxt")
    assert (caught.value.path, caught.value.line, caught.value.column) == ("bert/config.pbtxt", line, column)


@pytest.mark.parametrize("text", ["# é\n", 'name: "é"', "name: 'a' # “x” +1", 'name: "\\n\\x41\\101"', "name: '#\\\\'"])
def test_reads_what_the_server_reads(text: str) -> None:
    parse_model_config(text)


def test_unknown_fields_can_be_skipped() -> None:
    config = parse_model_config('name: "a" future { x: [ 1, { y: 2 } ] }', allow_unknown_fields=True)
    assert config == parse_model_config('name: "a"')


def test_deep_nesting_of_unknown_fields_is_an_error_not_a_crash(messages: Messages) -> None:
    with messages.raises(ModelConfigError):
        parse_model_config("x {" * 5000, allow_unknown_fields=True)


def test_writes_what_a_multi_model_endpoint_recognises() -> None:
    assert 'platform: "ensemble"' in format_model_config(parse_model_config("platform : 'ensemble'"))


@pytest.mark.parametrize(
    ("text", "same"),
    [
        pytest.param(b'name: "caf\xe9" # caf\xe9', 'name: "caf\u00e9"', id="not UTF-8 in quotes and comments"),
        pytest.param("input { dims: [ - 1, -\n2 ] }", "input { dims: [ -1, -2 ] }", id="a minus by itself"),
        pytest.param("name: 'a - 1' # - 1", "name: 'a - 1'", id="a minus in quotes"),
        pytest.param("input { data_type: 013 }", "input { data_type: TYPE_FP32 }", id="an octal enum"),
        pytest.param("input { data_type: - 0x1 }", "input { data_type: -1 }", id="a negative enum in hex"),
        pytest.param("input [ { optional: 01 }, <optional: 0x0> ]", "input [ { optional: true }, {} ]", id="C's bools"),
        pytest.param("optimization { cuda { graphs: 00001 } }", "optimization { cuda { graphs: true } }", id="zeros"),
        pytest.param('name: "\\ud83d\\ude00"', 'name: "\U0001f600"', id="a pair of surrogates"),
        pytest.param('name: "\\303\\251"', 'name: "é"', id="UTF-8 in octal"),
        pytest.param('name: "\\400\\777\\?"', 'name: "\\000\u00ff?"', id="octal beyond a byte"),
        pytest.param('name: "\\x22\\x0a\\x5c"', 'name: "\\"\\n\\\\"', id="escapes of what has to be escaped"),
        pytest.param('name: "\\\\ud83d\\x41"', 'name: "\\\\ud83dA"', id="an escaped backslash"),
        pytest.param('metric_tags { key: "" value: "" }', 'metric_tags { key: "" }', id="empty, and once"),
        pytest.param('name: "\'" input { dims: - 1 }', 'name: "\'" input { dims: -1 }', id="after a quote in quotes"),
    ],
)
def test_reads_what_the_server_reads_and_protobuf_in_python_does_not(text: str | bytes, same: str) -> None:
    assert parse_model_config(text) == parse_model_config(same)


@pytest.mark.parametrize("escape", [r"\ud83d", r"\U0000dc00", r"\377", r"\xff\xfe", r"\U00110000", r"\ude00\ud83d"])
def test_reads_escapes_of_what_is_not_text(escape: str) -> None:
    config = parse_model_config(f'name: "a{escape}b" backend: "c"')
    assert (config.name[0], config.name[-1], config.backend) == ("a", "b", "c")


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode(errors="surrogatepass")))
def test_any_bytes_give_a_configuration_or_a_clear_error(content: bytes) -> None:
    with suppress(ModelConfigError):
        parse_model_config(content)


SOUND_TEXT = """name: "a"
ensemble_scheduling { step [ { model_name: "b" input_map { key: "x" value: "y" } } ] }
input { dims: [ 1, -1 ] data_type: TYPE_FP32 } # the end
"""


@given(st.integers(0, len(SOUND_TEXT)), st.integers(0, 20), st.sampled_from(["", *"{}[]\"'\\#:,+é\0", "1.5", "\n"]))
def test_a_damaged_configuration_gives_a_configuration_or_a_place(start: int, length: int, inserted: str) -> None:
    try:
        parse_model_config(SOUND_TEXT[:start] + inserted + SOUND_TEXT[start + length :])
        place = (1, 1)
    except ModelConfigError as error:
        place = (error.line or 0, error.column or 0)
    assert min(place) >= 1


# Texts as a file can hold them; lone surrogates and zeros are rejected.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)

SCALARS: Mapping[int, st.SearchStrategy[object]] = {
    FieldDescriptor.CPPTYPE_STRING: TEXTS,
    FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
    FieldDescriptor.CPPTYPE_FLOAT: st.floats(width=32, allow_nan=False, allow_infinity=False),
    FieldDescriptor.CPPTYPE_DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    FieldDescriptor.CPPTYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: st.integers(0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: st.integers(0, 2**64 - 1),
}


def values(field: FieldDescriptor, depth: int) -> st.SearchStrategy[object]:
    """One value of a field, as JSON would hold it."""
    if field.message_type is not None:
        return message(field.message_type, depth - 1)
    if field.enum_type is not None:
        return st.sampled_from([value.number for value in field.enum_type.values]) | st.integers(-(2**31), 2**31 - 1)
    return SCALARS[field.cpp_type]


def contents(field: FieldDescriptor, depth: int) -> st.SearchStrategy[object]:
    """What a field holds: a value, a list or a map."""
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name
        return st.dictionaries(values(entry["key"], depth).map(str), values(entry["value"], depth), max_size=2)
    return st.lists(values(field, depth), max_size=3) if field.is_repeated else values(field, depth)


def message(descriptor: Any, depth: int) -> st.SearchStrategy[object]:
    """A message as JSON, with at most one member of each choice."""
    fields = {field.name: contents(field, depth) for field in descriptor.fields} if depth else {}

    def choose(whole: dict[str, object]) -> dict[str, object]:
        chosen = {choice.name: next((f.name for f in choice.fields if f.name in whole), "") for choice in choices}
        return {
            name: value
            for name, value in whole.items()
            if (choice := descriptor.fields_by_name[name].containing_oneof) is None or chosen[choice.name] == name
        }

    choices = descriptor.oneofs
    return st.fixed_dictionaries({}, optional=fields).map(choose)


@given(message(ModelConfig.DESCRIPTOR, 4))
def test_what_is_written_is_read_back(values: dict[str, object]) -> None:
    config = ParseDict(values, ModelConfig())
    assert parse_model_config(format_model_config(config)) == config


def test_the_schema_is_loaded_without_grpc_and_shared_with_it() -> None:
    program = (
        "import sys, cdk_triton.triton as t; assert 'grpc' not in sys.modules; "
        "from tritonclient.grpc import model_config_pb2 as m; assert m.ModelConfig is t.ModelConfig"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
