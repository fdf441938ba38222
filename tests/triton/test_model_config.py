"""Reading and writing config.pbtxt."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import ParseDict
from hypothesis import given
from hypothesis import strategies as st

from cdk_triton.errors import ModelConfigError
from cdk_triton.triton import ModelConfig, format_model_config, parse_model_config


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
    ("text", "line", "column", "message"),
    [
        pytest.param(
            'name: "bert"\n  max_batchsize: 8\n',
            2,
            3,
            "bert/config.pbtxt:2:3: ModelConfig has no field 'max_batchsize' (did you mean 'max_batch_size'?)",
            id="unknown field",
        ),
        pytest.param(
            "ensemble_scheduling { step { modelname: 'x' } }",
            1,
            30,
            "bert/config.pbtxt:1:30: ModelEnsembling.Step has no field 'modelname' (did you mean 'model_name'?)",
            id="unknown field of a part",
        ),
        pytest.param(
            "version_policy { zzz { } }",
            1,
            18,
            "bert/config.pbtxt:1:18: ModelVersionPolicy has no field 'zzz' (it knows latest, all, specific)",
            id="unknown field like no other",
        ),
        pytest.param(
            "input { data_type: TYPE_FP33 }",
            1,
            20,
            "bert/config.pbtxt:1:20: DataType has no value 'TYPE_FP33' (did you mean 'TYPE_FP32'?)",
            id="unknown enum value",
        ),
        pytest.param(
            "input { data_type: TYPE_FLOAT }",
            1,
            20,
            "bert/config.pbtxt:1:20: DataType has no value 'TYPE_FLOAT' (did you mean 'TYPE_FP32'?)",
            id="a type by its name elsewhere",
        ),
        pytest.param(
            'input {\n  name: "a"\n',
            2,
            9,
            'bert/config.pbtxt:2:9: Expected "}": a block that starts before this point is not closed',
            id="truncated in a block",
        ),
        pytest.param(
            'name: "be', 1, 7, "bert/config.pbtxt:1:7: String missing ending quote: '\"be'", id="truncated in a text"
        ),
        pytest.param(
            'name: "a" name: "b"',
            1,
            17,
            'bert/config.pbtxt:1:17: Message type "inference.ModelConfig" should not have multiple "name" fields',
            id="said twice",
        ),
        pytest.param(
            b'name: "a"\nbackend: caf\xe9',
            2,
            13,
            "bert/config.pbtxt:2:13: the byte 0xe9, which is not UTF-8, stands outside quotes, where only ASCII is "
            "read; remove it, or quote it",
            id="not UTF-8",
        ),
        pytest.param(
            "\ufeffname: 'a'",
            1,
            1,
            "bert/config.pbtxt:1:1: the file begins with a byte-order mark; save it as UTF-8 without one",
            id="byte order mark",
        ),
        pytest.param(
            '{"backend": "python"}',
            1,
            1,
            "bert/config.pbtxt:1:1: a block without a name; where this is JSON, write protobuf text instead:"
            " max_batch_size: 8",
            id="JSON",
        ),
        pytest.param(
            "max_batch_size:\u00a01",
            1,
            16,
            "bert/config.pbtxt:1:16: the character U+00A0 (NO-BREAK SPACE) stands outside quotes, where only ASCII is "
            "read; remove it, or quote it",
            id="no-break space",
        ),
        pytest.param(
            'name: "a\\qb"',
            1,
            9,
            "bert/config.pbtxt:1:9: \\q is no escape sequence; write two backslashes for a backslash",
            id="unknown escape",
        ),
        pytest.param(
            'name: "\\400"',
            1,
            7,
            "bert/config.pbtxt:1:7: the escapes of this text are not UTF-8; write the characters themselves",
            id="escape of no character",
        ),
        pytest.param(
            "max_batch_size: +1",
            1,
            17,
            "bert/config.pbtxt:1:17: '+' stands before a number; leave it out",
            id="plus",
        ),
        pytest.param(
            "max_batch_size: 1_000",
            1,
            17,
            "bert/config.pbtxt:1:17: '1_000' is not a number for the server; write decimal digits",
            id="underscore in a number",
        ),
        pytest.param(
            'name: "\0"',
            1,
            8,
            "bert/config.pbtxt:1:8: the character '\\x00' cannot stand in the file; remove it",
            id="zero",
        ),
    ],
)
def test_error_points_at_the_fault(text: str | bytes, line: int, column: int, message: str) -> None:
    with pytest.raises(ModelConfigError) as caught:
        parse_model_config(text, path="bert/config.pbtxt")
    assert (str(caught.value), caught.value.path) == (message, "bert/config.pbtxt")
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize("text", ["# é\n", 'name: "é"', "name: 'a' # “x” +1", 'name: "\\n\\x41\\101"', "name: '#\\\\'"])
def test_reads_what_the_server_reads(text: str) -> None:
    parse_model_config(text)


def test_unknown_fields_can_be_skipped() -> None:
    config = parse_model_config('name: "a" future { x: [ 1, { y: 2 } ] }', allow_unknown_fields=True)
    assert config == parse_model_config('name: "a"')


def test_deep_nesting_of_unknown_fields_is_an_error_not_a_crash() -> None:
    with pytest.raises(ModelConfigError, match="the blocks are nested too deeply"):
        parse_model_config("x {" * 5000, allow_unknown_fields=True)


def test_writes_what_a_multi_model_endpoint_recognises() -> None:
    assert 'platform: "ensemble"' in format_model_config(parse_model_config("platform : 'ensemble'"))


@pytest.mark.parametrize(
    ("text", "same"),
    [
        pytest.param(b'name: "caf\xe9" # caf\xe9', 'name: "caf\u00e9"', id="not UTF-8 in quotes and comments"),
        pytest.param("input { dims: [ - 1, -\n2 ] }", "input { dims: [ -1, -2 ] }", id="a minus by itself"),
        pytest.param("name: 'a - 1' # - 1", "name: 'a - 1'", id="a minus in quotes"),
        pytest.param('name: "\'" input { dims: - 1 }', 'name: "\'" input { dims: -1 }', id="after a quote in quotes"),
    ],
)
def test_reads_what_the_server_reads_and_protobuf_in_python_does_not(text: str | bytes, same: str) -> None:
    assert parse_model_config(text) == parse_model_config(same)


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


# Texts as a file can hold them; lone surrogates and zeros are refused.
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
        return messages(field.message_type, depth - 1)
    if field.enum_type is not None:
        return st.sampled_from([value.number for value in field.enum_type.values])
    return SCALARS[field.cpp_type]


def contents(field: FieldDescriptor, depth: int) -> st.SearchStrategy[object]:
    """What a field holds: a value, a list or a map."""
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name
        return st.dictionaries(values(entry["key"], depth).map(str), values(entry["value"], depth), max_size=2)
    return st.lists(values(field, depth), max_size=3) if field.is_repeated else values(field, depth)


def messages(descriptor: Any, depth: int) -> st.SearchStrategy[object]:
    """A message as JSON, with at most one member of each choice."""
    fields = {field.name: contents(field, depth) for field in descriptor.fields} if depth else {}

    def choose(message: dict[str, object]) -> dict[str, object]:
        chosen = {choice.name: next((f.name for f in choice.fields if f.name in message), "") for choice in choices}
        return {
            name: value
            for name, value in message.items()
            if (choice := descriptor.fields_by_name[name].containing_oneof) is None or chosen[choice.name] == name
        }

    choices = descriptor.oneofs
    return st.fixed_dictionaries({}, optional=fields).map(choose)


@given(messages(ModelConfig.DESCRIPTOR, 4))
def test_what_is_written_is_read_back(values: dict[str, object]) -> None:
    config = ParseDict(values, ModelConfig())
    assert parse_model_config(format_model_config(config)) == config


def test_the_schema_is_loaded_without_grpc_and_shared_with_it() -> None:
    program = (
        "import sys, cdk_triton.triton as t; assert 'grpc' not in sys.modules; "
        "from tritonclient.grpc import model_config_pb2 as m; assert m.ModelConfig is t.ModelConfig"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
