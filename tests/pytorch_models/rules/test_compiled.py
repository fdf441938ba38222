"""The rules CT852 and CT860 to CT865: compiled PyTorch 2 archives, by release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sample_repositories.torch_models import call_spec, compiled_archive

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Write

CONFIG, MODEL = "model/config.pbtxt", "model/1/model.pt2"
TENSOR: dict[str, object] = {"type": None, "context": None, "children_spec": []}
BATCH_INPUT = """
batch_input { kind: BATCH_ELEMENT_COUNT target_name: "B" data_type: TYPE_FP32 source_input: "INPUT__0" }
"""
OLDER, NAMED = "26.04/ml.g5.xlarge", "26.05/ml.g5.xlarge"


def config(inputs: str = "INPUT__0", outputs: str = "OUTPUT__0", more: str = "") -> str:
    sides = [("input", name) for name in inputs.split()] + [("output", name) for name in outputs.split()]
    tensors = " ".join(f'{side} {{ name: "{name}" data_type: TYPE_FP32 dims: 4 }}' for side, name in sides)
    return f'platform: "torch_aoti" {tensors} {more}'


def structure(kind: str, *children: object, context: str = "null") -> dict[str, object]:
    return {"type": kind, "context": context, "children_spec": list(children)}


def spec(*arguments: object, result: object = TENSOR) -> str:
    given = structure("builtins.tuple", *arguments)
    return call_spec(structure("builtins.tuple", given, structure("builtins.dict", context="[]")), result)


@pytest.mark.parametrize(
    ("content", "text", "platform", "expected"),
    [
        pytest.param(compiled_archive(), config(), NAMED, [], id="sound"),
        pytest.param(compiled_archive(spec='R"([1, {"type": ' * 20_000), config(), NAMED, [], id="no end of a text"),
        pytest.param(
            compiled_archive(spec=spec(structure("builtins.tuple", *[TENSOR] * 2_000))),
            config(),
            NAMED,
            [],
            id="more tensors than are read",
        ),
        pytest.param(
            compiled_archive(spec=spec(structure("builtins.dict", TENSOR, context=f'["{"k" * 201}"]'))),
            config(),
            NAMED,
            [],
            id="a longer key than is read",
        ),
        pytest.param(b"PK\x03\x04", config(), NAMED, [("CT860", MODEL, "")], id="four bytes"),
        pytest.param(compiled_archive(name="encoder"), config(), NAMED, [("CT860", MODEL, "")], id="another name"),
        pytest.param(
            compiled_archive(spec=spec(structure("collections.OrderedDict", TENSOR))),
            config(),
            NAMED,
            [("CT860", MODEL, "")],
            id="a type that is not accepted",
        ),
        pytest.param(
            compiled_archive(spec=spec(structure("builtins.dict", TENSOR, context="[1]"))),
            config(),
            NAMED,
            [("CT860", MODEL, "")],
            id="a key that is no text",
        ),
        pytest.param(
            compiled_archive(spec=spec(structure("collections.OrderedDict", TENSOR))),
            config("a b"),
            OLDER,
            [],
            id="a release that does not read it",
        ),
        pytest.param(compiled_archive(), config(), OLDER, [("CT862", CONFIG, "input")], id="one input before 26.05"),
        pytest.param(compiled_archive(inputs=2), config("a b", "c"), OLDER, [], id="two inputs before 26.05"),
        pytest.param(
            compiled_archive(spec=""),
            config("INPUT__0 INPUT__2 INPUT__01"),
            NAMED,
            [("CT863", CONFIG, "input[2].name")],
            id="an index with a zero, where the specification is not known",
        ),
        pytest.param(
            compiled_archive(spec=""), config("INPUT__1"), NAMED, [("CT863", CONFIG, "input[0].name")], id="no first"
        ),
        pytest.param(compiled_archive(spec=""), config("ARGS[0] KWARGS[x]", "RESULT[y]"), NAMED, [], id="by structure"),
        pytest.param(
            compiled_archive(spec=""), config("ARGS[0]", "y"), NAMED, [("CT863", CONFIG, "output[0].name")], id="output"
        ),
        pytest.param(compiled_archive(), config("", ""), NAMED, [("CT863", CONFIG, "input")], id="no tensors"),
        pytest.param(compiled_archive(), config(outputs=""), NAMED, [("CT863", CONFIG, "output")], id="no outputs"),
        pytest.param(compiled_archive(inputs=2), config(), None, [("CT863", CONFIG, "input")], id="without a platform"),
        pytest.param(
            compiled_archive(),
            config(more=BATCH_INPUT),
            NAMED,
            [("CT861", CONFIG, "batch_input")],
            id="a batch input",
        ),
        pytest.param(compiled_archive(), config(more="max_batch_size: 1"), NAMED, [], id="batches of one"),
        pytest.param(
            compiled_archive(metadata={"AOTI_MACHINE": "aarch64"}), config(), NAMED, [("CT865", MODEL, "")], id="ARM"
        ),
        pytest.param(
            compiled_archive(metadata={"AOTI_PLATFORM": "win32"}), config(), NAMED, [("CT865", MODEL, "")], id="Windows"
        ),
        pytest.param(
            compiled_archive(),
            config(more="instance_group { kind: KIND_CPU }"),
            NAMED,
            [("CT865", MODEL, "")],
            id="for the GPU, on the CPU",
        ),
        pytest.param(
            compiled_archive("cpu"), config(more="instance_group { kind: KIND_CPU }"), NAMED, [], id="the CPU"
        ),
        pytest.param(
            compiled_archive("cpu"), config(more="instance_group { kind: KIND_MODEL }"), NAMED, [], id="its own choice"
        ),
        pytest.param(
            compiled_archive(),
            config(more='parameters { key: "INFERENCE_MODE" value { string_value: "true" } }'),
            NAMED,
            [("CT852", CONFIG, 'parameters["INFERENCE_MODE"]')],
            id="a setting that is never read",
        ),
    ],
)
def test_compiled(
    messages: Messages, write: Write, content: bytes, text: str, platform: str | None, expected: list[Place]
) -> None:
    repository = write({CONFIG: text, MODEL: content}, base={})
    assert messages.of(repository.check(platform=platform)) == expected
