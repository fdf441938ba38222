"""The real tritonserver as judge of how `config.pbtxt` is read: odd but legal text, numbers of enums, escapes.

Each value of a row stands in the row's text. The checks find an error exactly where the server does not load the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from cdk_triton.triton import ModelRepository
from judging.scheduling import Refusal, model


def words(text: str) -> list[str]:
    return text.split()


ENUM = "optimization { priority: %s }"
BOOL = "dynamic_batching { preserve_ordering: %s }"
BOOLS = 'sequence_batching { control_input { name: "S" control { bool_false_true: [ false, %s ] } } }'
FLOAT = "max_batch_size: 4 sequence_batching { direct { minimum_slot_utilization: %s } }"
FLOATS = 'sequence_batching { control_input { name: "S" control { fp32_false_true: [ 0, %s ] } } }'
UNSIGNED = "dynamic_batching { default_queue_policy { max_queue_size: %s } }"
SIGNED = "instance_group { kind: KIND_CPU count: %s }"
TEXT = 'metric_tags { key: "k" value: "%s" }'
KEY = "parameters { key: 'a%sb' value { string_value: 'x' } }"
TAGS = "metric_tags { %s }"
PRIORITIES = "dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { %s } }"
PARAMETERS = "parameters { %s }"
CONTROL = 'sequence_batching { control_input { name: "S" control { %s } } }'
WHOLE = "%s"

NUMBERS = words("0 00 -0 - 0x1 0X1 0x 0xg 010 018 1f 1. 1e1 1_0 +1 -1 --1 2147483648 4294967296 18446744073709551616")
BOOLEANS = [*NUMBERS, *words("01 0x01 000001 02 -00 -0x0 t T True TRUE f False FALSE yes '1'")]
FRACTIONS = [*NUMBERS, *words("0.5 .5 0.5F 1ff inf inff nan nanf infinity infinityf INF -nan 0x1p-1 00.5 0.5e 1e999")]
ENUMS = [
    *NUMBERS,
    *words("11 013 0xB 15 99 -013 -0x1 2147483647 -2147483648 -2147483649 4294967307 11.0 type_fp32"),
    "99999999999999999999999",
]
ESCAPES = [
    *words(r"\x4 \X41 \x \xg \x414 \400 \777 \8 \0 \u00e9 \u00e \U0001f600 \U00110000 \U001fffff \U00200000 \377"),
    *words(r"\ud83d\ude00 \ud83d \ude00\ud83d \ud83dx \ud83d\n \303\251 \xc3\xa9 \e \? \' \z \u0000 \1234 \\ud83d"),
    *words(r"\\\ud83d \U0000d83d\ude00 \ud83d\U0000de00 \a\b\f\v \xffffff"),
]
KINDS = [
    "instance_group { kind: 77 }",
    "instance_group { kind: -2 }",
    "instance_group { kind: 3 }",
    "instance_group { kind: 9 gpus: 0 }",
    'instance_group { name: "own" kind: 9 }',
    'input { name: "MORE" data_type: 14 dims: 1 format: 9 }',
    'batch_input { kind: 17 target_name: "X" data_type: TYPE_FP32 source_input: "IN" }',
    'batch_input { kind: 17 target_name: "X" data_type: TYPE_FP32 }',
    'batch_input { kind: 3 target_name: "X" data_type: 99 source_input: "IN" }',
    'batch_output { kind: -1 target_name: "OUT" source_input: "IN" }',
    'sequence_batching { state { input_name: "a" output_name: "b" data_type: 66 dims: 1 } }',
    'model_warmup { name: "w" batch_size: 1 inputs { key: "IN" value { data_type: 55 dims: 4 zero_data: true } } }',
    "optimization { priority: 44 }",
    "dynamic_batching { default_queue_policy { timeout_action: 7 } }",
    "instance_group { kind: KIND_CPU secondary_devices { kind: 6 } }",
]
CONTROLS = [
    "kind: 9 int32_false_true: [ 0, 1 ]",
    "kind: 9",
    "kind: 9 int32_false_true: [ 0, 1, 2 ]",
    "kind: -9 int32_false_true: [ 0, 1 ] fp32_false_true: [ 0, 1 ]",
    "kind: CONTROL_SEQUENCE_CORRID data_type: 88",
]
ENTRIES = [
    'key: "a" key: "b" value: "c"',
    'key: "" key: "b"',
    'key: "a" value: "" value: ""',
    'key: "" value: ""',
    'value: "x"',
    "",
]
LEVELS = ["key: 0 key: 1 value { }", "key: 0x0 key: 1", "key: 1 value { } value { }", "key: 00 value { }"]
VALUES = ['key: "" key: "a"', 'key: "a" value { string_value: "" string_value: "y" }', 'key: "a" value { } value { }']
SYNTAX = [
    "max_batch_size: 0 max_batch_size: 1",
    "max_batch_size: 1 max_batch_size: 0",
    "max_batch_size: [ 1 ]",
    "max_batch_size 1",
    "max_batch_size: 1,;",
    "max_batch_size:1instance_group{}",
    "max_batch_size: - # comment\n 0",
    "instance_group [ { }, ]",
    "instance_group < }",
    "name: \"mo\"\n#comment\n'del'",
    "[a.b]: 1",
    "5: 1",
    "optimization { } optimization { }",
    "version_policy { latest { } all { } }",
    "instance_group [ { count: 1 kind: KIND_CPU }, ]",
    "dynamic_batching { preferred_batch_size: [ 1, ] }",
    "max_batch_size: 8,\n,",
    "max_batch_size: 8;;",
    "max_batch_size: 8 // eight",
    "max_batch_size: 8 -- eight",
    "default_model_filename: model.py",
    'default_model_filename = "model.py"',
    'default_model_filename: [ "model.py" ]',
    'max_batch_size: "8"',
    "max_batch_size: 8k",
    "max_batch_size: -2147483649",
    'input { name: "MORE" data_type: "TYPE_FP32" dims: 1 }',
    'input { name: "MORE" data_type: TYPE_FP32 dims: [ 1 2 ] }',
    "dynamic_batching: true",
    'parameters { key: "a" value: "b" }',
    'parameters { "a": "b" }',
    "dynamic_batching { preferred_batch_size: 4, 8 }",
    "max_batch_size: 8 }",
    "model_metrics { metric_control { histogram_options { buckets: [ -inf ] } } } input { data_type: 2147483648 }",
]

ROWS: Mapping[str, tuple[str, list[str]]] = {
    "enum": (ENUM, ENUMS),
    "bool": (BOOL, BOOLEANS),
    "bools in a list": (BOOLS, BOOLEANS),
    "float": (FLOAT, FRACTIONS),
    "floats in a list": (FLOATS, FRACTIONS),
    "unsigned": (UNSIGNED, NUMBERS),
    "signed": (SIGNED, NUMBERS),
    "escapes in a value": (TEXT, ESCAPES),
    "escapes in a key": (KEY, ESCAPES),
    "entries of texts": (TAGS, ENTRIES),
    "entries by number": (PRIORITIES, LEVELS),
    "entries of blocks": (PARAMETERS, VALUES),
    "kinds of controls": (CONTROL, CONTROLS),
    "kinds": (WHOLE, KINDS),
    "syntax": (WHOLE, SYNTAX),
}


@pytest.mark.slow
@pytest.mark.parametrize(("text", "values"), ROWS.values(), ids=ROWS)
def test_the_checks_and_the_server_read_the_same(
    tmp_path: Path, refusal: Refusal, text: str, values: list[str]
) -> None:
    disagreements = {}
    for index, value in enumerate(values):
        root = tmp_path / str(index)
        for name, content in model(text.replace("%s", value)).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content)
        repository = ModelRepository.from_directory(root)
        errors = [str(finding) for finding in repository.check() if finding.severity == "error"]
        said = refusal(repository)
        if (said is None) != (errors == []) or any("CT001" in error for error in errors):
            disagreements[value] = (said and said[-500:], errors)
    assert disagreements == {}
