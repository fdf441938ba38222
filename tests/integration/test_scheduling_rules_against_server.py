"""The real tritonserver as judge of CT230 to CT249 and CT270 to CT289: batching, instances, cache, backend."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from judging.scheduling import (
    CACHE,
    DECOUPLED,
    STEP,
    TENSORS,
    Files,
    Refusal,
    batching,
    check_loaded,
    check_refused,
    ensemble,
    errors_of,
    group,
    model,
    write,
)

RANGE = "must be in range [1, 2] for model"
LIBRARY = 'parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "/opt/ml/model/x.so" } }'
PLAN = 'platform: "tensorrt_plan"'
CACHE_OF_DECOUPLED = (
    "Response Cache does not currently support model {} with 'decoupled' transaction policy. Please disable the "
    "response cache"
)

TEXTS = {
    "model/config.pbtxt": 'backend: "null" input { name: "IN" data_type: TYPE_STRING dims: 2 } model_warmup { '
    'name: "w" batch_size: 1 inputs { key: "IN" value { data_type: TYPE_STRING dims: 2 input_data_file: "f" } } }',
    "model/1/weights": "",
}

REFUSED: Mapping[str, tuple[str, Files, str]] = {
    "no configuration": (
        "CT243",
        {"model.identity/1/weights": ""},
        "model configuration is not provided for model 'model.identity'",
    ),
    "no configuration of a graph definition": (
        "CT243",
        {"model/1/model.graphdef": ""},
        "model configuration is not provided for model 'model'",
    ),
    "kind of an instance group": (
        "CT242",
        group('name: "own" kind: 4'),
        "instance group own of model model has unexpected kind KIND_AUTO",
    ),
    "texts of a warm-up": (
        "CT249",
        {**TEXTS, "model/warmup/f": "\x01\0\0\0a"},
        "expected 2 string elements for inference input 'IN' for model 'model', got 1",
    ),
    "too many texts of a warm-up": (
        "CT249",
        {**TEXTS, "model/warmup/f": "\0" * 12},
        "unexpected number of string elements 3 for inference input 'IN' for model 'model', expecting 2",
    ),
    "a negative warm-up": (
        "CT248",
        {
            "model/config.pbtxt": 'backend: "null" input { name: "IN" data_type: TYPE_FP32 dims: -1 } model_warmup { '
            'name: "w" batch_size: 1 inputs { key: "IN" value { data_type: TYPE_FP32 dims: -2 zero_data: true } } }',
            "model/1/weights": "",
        },
        "input byte size mismatch for input 'IN' for model 'model'. Expected -8, got 18446744073709551608",
    ),
    "an agent without a name": (
        "CT246",
        model("model_repository_agents { agents { } }"),
        "unable to find 'libtritonrepoagent_.so' for repo agent ''",
    ),
    "kind of a batch output": (
        "CT242",
        model('batch_output { kind: 1 target_name: "OUT" source_input: "IN" }'),
        "unknown batch output kind '' for model",
    ),
    "max_batch_size >= 0": (
        "CT230",
        model("max_batch_size: -1"),
        "'max_batch_size' must be non-negative value for model",
    ),
    "preferred size of 0": (
        "CT231",
        batching("preferred_batch_size: 0"),
        "dynamic batching preferred size must be positive for model",
    ),
    "preferred size above the maximum": (
        "CT232",
        batching("preferred_batch_size: 9"),
        "dynamic batching preferred size must be <= max batch size for model",
    ),
    "preferred size without batching": (
        "CT232",
        model("dynamic_batching { preferred_batch_size: 1 }"),
        "dynamic batching preferred size must be <= max batch size for model",
    ),
    "default priority level left out": ("CT233", batching("priority_levels: 2"), f"default priority level {RANGE}"),
    "default priority level above the levels": (
        "CT233",
        batching("priority_levels: 2 default_priority_level: 3"),
        f"default priority level {RANGE}",
    ),
    "queue policy for no level": (
        "CT234",
        batching("priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 value { } }"),
        "priority queue policy must have priority level in range [1, 2] for model",
    ),
    "priorities and ordering": (
        "CT236",
        batching("preserve_ordering: true priority_levels: 2 default_priority_level: 1"),
        "Only one priority level is allowed when 'preserve_ordering' is true for model",
    ),
    "delay and ordering": (
        "CT237",
        batching(
            "preserve_ordering: true default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 1 }"
        ),
        "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for model",
    ),
    "delay of one priority and ordering": (
        "CT237",
        batching(
            "preserve_ordering: true priority_levels: 1 default_priority_level: 1 "
            "priority_queue_policy { key: 1 value { timeout_action: DELAY default_timeout_microseconds: 1 } }"
        ),
        "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for model",
    ),
    "batching library beside sequences": (
        "CT240",
        model("sequence_batching { }" + LIBRARY),
        "TRITON_BATCH_STRATEGY_PATH cannot be specified with sequence batcher, using default batching strategy",
    ),
    "batching library that is not there": (
        "CT241",
        model(LIBRARY),
        "Batching library path not found: /opt/ml/model/x.so",
    ),
    "GPUs of KIND_CPU": (
        "CT270",
        group("kind: KIND_CPU gpus: 0"),
        "instance group model_0 of model model has kind KIND_CPU but specifies one or more GPUs",
    ),
    "GPUs of KIND_MODEL": (
        "CT270",
        group('name: "g" kind: KIND_MODEL gpus: 0'),
        "instance group g of model model has kind KIND_MODEL but specifies one or more GPUs",
    ),
    "negative GPU of KIND_AUTO": (
        "CT270",
        group("gpus: -1"),
        "instance group model_0 of model model has kind KIND_CPU but specifies one or more GPUs",
    ),
    "negative GPU of KIND_GPU": (
        "CT271",
        group("kind: KIND_GPU gpus: -1"),
        "instance group model_0 of model model specifies invalid or unsupported gpu id -1",
    ),
    "profile of another platform": (
        "CT273",
        group('profile: "0"'),
        "instance group model_0 of model model and platform specifies profile field which is only supported for "
        "TensorRT models",
    ),
    "profile that is negative": (
        "CT274",
        {**group('profile: "-1"', PLAN), "model/1/model.plan": ""},
        "specifies invalid profile -1",
    ),
    "profile that is no number": (
        "CT274",
        {**group('profile: "max"', PLAN), "model/1/model.plan": ""},
        "unable to parse 'max': stoi",
    ),
    "profile that is empty": (
        "CT274",
        {**group('profile: ""', PLAN), "model/1/model.plan": ""},
        "profile name must not be empty",
    ),
    "profile that is huge": (
        "CT274",
        {**group('profile: "2147483648"', PLAN), "model/1/model.plan": ""},
        "std::out_of_range",
    ),
    "response cache with decoupled": ("CT280", model(CACHE + DECOUPLED), CACHE_OF_DECOUPLED.format("model")),
    "response cache of an ensemble with a decoupled step": (
        "CT280",
        ensemble(CACHE, DECOUPLED),
        CACHE_OF_DECOUPLED.format("whole"),
    ),
    "response cache of a nested ensemble with a decoupled step": (
        "CT280",
        {
            **ensemble("", DECOUPLED),
            "outer/config.pbtxt": f'platform: "ensemble" {TENSORS} {STEP.replace("child", "whole")} {CACHE}',
            "outer/1/.gitkeep": "",
        },
        CACHE_OF_DECOUPLED.format("outer"),
    ),
    "response cache with sequences": (
        "CT281",
        model("sequence_batching { }" + CACHE),
        "Response Cache does not currently support model model with sequence batching scheduler. Please disable the "
        "response cache",
    ),
    **{
        f"platform {name}": (
            "CT283",
            model("", f'platform: "{name}"'),
            f"unexpected platform type '{name}' for model",
        )
        for name in ("python", "tensorrt", "onnx", "libtorch", "dali", "Ensemble")
    },
    "a file name that tells no backend": (
        "CT283",
        model("", 'default_model_filename: "bert.onnx"'),
        "unexpected platform type '' for model",
    ),
    **{
        f"{platform} and {backend}": (
            "CT284",
            model("", f'platform: "{platform}" backend: "{backend}"'),
            f"unexpected 'platform' and 'backend' pair, got:{platform}, {backend}",
        )
        for platform, backend in (
            ("tensorrt_plan", "onnxruntime"),
            ("onnxruntime_onnx", "tensorrt"),
            ("x", "pytorch"),
            ("tensorflow_graphdef", "onnxruntime"),
        )
    },
    "tensorflow without platform": (
        "CT284",
        model("", 'backend: "tensorflow"'),
        "unexpected 'platform' and 'backend' pair, got:, tensorflow",
    ),
    **{
        f"a name that says {backend}": (
            "CT284",
            {f"model.{backend}/1/weights.bin": "0"},
            f"unexpected 'platform' and 'backend' pair, got:, {backend}",
        )
        for backend in ("onnxruntime", "pytorch", "tensorflow", "tensorrt")
    },
    "a file name of another platform": (
        "CT284",
        model("", 'platform: "onnxruntime_onnx" default_model_filename: "model.plan"'),
        "unexpected 'platform' and 'backend' pair, got:onnxruntime_onnx, tensorrt",
    ),
    "ensemble with backend": (
        "CT285",
        ensemble("", backend='backend: "null"'),
        "Ensemble model 'whole' must have platform type 'ensemble' and empty backend type",
    ),
    "ensemble with a file that tells a backend": (
        "CT285",
        ensemble("", backend='default_model_filename: "model.py"'),
        "Ensemble model 'whole' must have platform type 'ensemble' and empty backend type",
    ),
}


@pytest.mark.parametrize(("code", "files", "words"), REFUSED.values(), ids=REFUSED)
def test_the_server_rejects_it_in_the_words_quoted(
    tmp_path: Path, refusal: Refusal, code: str, files: Files, words: str
) -> None:
    check_refused(write(tmp_path / "repository", files), refusal, code, words)


LOADED: Mapping[str, Files] = {
    "a control of unknown kind": model('sequence_batching { control_input { name: "S" control { kind: 9 } } }'),
    "a sound model": model(""),
    "as many texts of a warm-up": {**TEXTS, "model/warmup/f": "\0" * 8},
    "name, version policy and instance group are completed": model(""),
    "a dynamic batcher without batching": model("dynamic_batching { }"),
    "a batching library of an ensemble": ensemble(LIBRARY),
    "priorities": batching("priority_levels: 2 default_priority_level: 2 priority_queue_policy { key: 1 value { } }"),
    "CT235: a default level without levels": batching("default_priority_level: 3"),
    "CT235: a policy for a level without levels": batching("priority_queue_policy { key: 7 value { } }"),
    "ordering with one priority": batching("preserve_ordering: true priority_levels: 1 default_priority_level: 1"),
    "CT238: ordering with a delay that never comes": batching(
        "preserve_ordering: true default_queue_policy { timeout_action: DELAY }"
    ),
    "ordering that rejects": batching(
        "preserve_ordering: true default_queue_policy { timeout_action: REJECT default_timeout_microseconds: 1 }"
    ),
    "CT272: negative count": group("count: -1"),
    "two groups of one name": model('instance_group { name: "g" } instance_group { name: "g" }'),
    "some passive instances": model("instance_group { passive: true } instance_group { }"),
    "CT277: resources that would contradict each other": group(
        'rate_limiter { resources { name: "R" count: 2 } resources { name: "R" global: true count: 2 } }'
    ),
    "CT278: secondary devices": group("secondary_devices { kind: KIND_NVDLA device_id: 0 }"),
    "CT279: host policy": group('host_policy: "x"'),
    "a profile with blanks and letters": {**group('profile: " 1st"', PLAN), "model/1/model.plan": ""},
    "CT282: response cache": model(CACHE),
    "CT282: response cache of an ensemble": ensemble(CACHE),
    "decoupled ensemble": ensemble("", DECOUPLED),
    "any platform of another backend": model("", 'platform: "x" backend: "null"'),
    "openvino with a platform": model("", 'platform: "x" backend: "openvino"'),
    "a file name that tells the backend": model("", 'default_model_filename: "model.graphdef"'),
    "an ensemble with any file name": ensemble("", backend='default_model_filename: "model.graphdef"'),
    "every version": model("version_policy { all { } }"),
}


@pytest.mark.parametrize("files", LOADED.values(), ids=LOADED)
def test_the_server_loads_what_is_no_error(tmp_path: Path, refusal: Refusal, files: Files) -> None:
    check_loaded(write(tmp_path / "repository", files), refusal)


BEYOND_THE_JUDGE: Mapping[str, tuple[str, Files]] = {
    "refused by the TensorRT backend": (
        "CT275",
        {**group("kind: KIND_CPU", PLAN), "model/1/model.plan": ""},
    ),
    "refused by the OpenVINO backend": ("CT275", group("kind: KIND_MODEL", 'backend: "openvino"')),
    "crashes at the first request": ("CT276", group("passive: true")),
}


@pytest.mark.parametrize(("code", "files"), BEYOND_THE_JUDGE.values(), ids=BEYOND_THE_JUDGE)
def test_the_server_loads_with_null_backends_what_fails_later(
    tmp_path: Path, refusal: Refusal, code: str, files: Files
) -> None:
    """What loading with null backends does not show; should that change, the rule can be judged above."""
    repository = write(tmp_path / "repository", files)
    assert [found for found, _ in errors_of(repository)] == [code]
    assert refusal(repository) is None
