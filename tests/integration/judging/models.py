"""Strategies for one valid model: a backend, its files, and any of the settings that a configuration may have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from google.protobuf import text_format
from hypothesis import strategies as st

from cdk_triton.triton import ModelConfig
from cdk_triton.triton.releases import backends_in
from cdk_triton.triton.schema import DataType, ModelInput, ModelOutput
from judging.drafts import Draft, Tensor, model_files, type_of

__all__ = ["TYPES", "add_model", "chance", "merge", "shapes", "versions"]

TYPES = tuple(type_of(name) for name in ("FP32", "INT32", "INT64", "FP16", "UINT8", "BOOL", "STRING"))

shapes = st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=1, max_size=3).map(tuple)

BACKENDS: Mapping[str, Sequence[str]] = {
    "python": ['backend: "python"', "", 'backend: "python" default_model_filename: "main.py"'],
    "onnxruntime": [
        'backend: "onnxruntime"',
        'platform: "onnxruntime_onnx"',
        'platform: "onnxruntime_onnx" backend: "onnxruntime"',
        'backend: "onnxruntime" default_model_filename: "net.onnx"',
        "",
    ],
    "tensorrt": ['backend: "tensorrt"', 'platform: "tensorrt_plan"', 'default_model_filename: "model.plan"', ""],
    "pytorch": ['backend: "pytorch"', 'platform: "pytorch_libtorch"', ""],
    "tensorflow": ['platform: "tensorflow_savedmodel"', 'platform: "tensorflow_graphdef"', ""],
    "openvino": ['backend: "openvino"', ""],
    "dali": ['backend: "dali"'],
    "fil": ['backend: "fil" parameters { key: "output_class" value { string_value: "false" } }'],
    "identity": ['backend: "identity"'],
}
KINDS: Mapping[str, Sequence[str]] = {"tensorrt": ["KIND_GPU", "KIND_AUTO"], "openvino": ["KIND_CPU", "KIND_AUTO"]}
WITHOUT_STRINGS = {"tensorrt", "openvino", "pytorch", "dali", "fil"}


def chance(draw: st.DrawFn, percent: int) -> bool:
    """True in about so many cases; shrinks to False."""
    return draw(st.integers(0, 99)) >= 100 - percent


def merge(config: ModelConfig, text: str) -> None:
    """Add fields in protobuf's text format."""
    text_format.Merge(text, config)


def wildcards(draw: st.DrawFn, shape: Sequence[int]) -> list[int]:
    """The shape with -1 in some places."""
    return [-1 if chance(draw, 20) else size for size in shape]


def add_model(
    draw: st.DrawFn,
    draft: Draft,
    name: str,
    inputs: Sequence[tuple[int, Sequence[int]]],
    outputs: Sequence[tuple[int, Sequence[int]]],
    max_batch_size: int,
) -> ModelConfig:
    """Add a model with these inputs and outputs, given as data types and dims, and its version directories."""
    strings = any(data_type == type_of("STRING") for data_type, _ in (*inputs, *outputs))
    there = [each for each in BACKENDS if each in backends_in(draft.release)]
    fitting = [each for each in there if not (strings and each in WITHOUT_STRINGS)]
    if not _is_of_trees(inputs, outputs):
        fitting = [each for each in fitting if each != "fil"]
    backend = draw(st.sampled_from(fitting))
    spelled = draw(st.sampled_from(BACKENDS[backend]))
    config = ModelConfig(max_batch_size=max_batch_size)
    if chance(draw, 70):
        config.name = name
    merge(config, spelled)
    before, after = {"pytorch": ("INPUT__", "OUTPUT__"), "fil": ("input__", "output__")}.get(backend, ("IN", "OUT"))
    for index, (data_type, dims) in enumerate(inputs):
        config.input.add(name=f"{before}{index}", data_type=data_type, dims=dims)
    for index, (data_type, dims) in enumerate(outputs):
        config.output.add(name=f"{after}{index}", data_type=data_type, dims=dims)
    draft.configs[name] = config
    directories = versions(draw, config)
    _scheduling(draw, config)
    for feature in draw(st.lists(st.sampled_from(FEATURES), max_size=3, unique=True)):
        feature(draw, config, draft, name, backend)
    if backend == "pytorch":
        _name_by_index(config)
    named = ModelConfig()
    named.CopyFrom(config)
    if not config.backend and not config.platform:
        merge(named, BACKENDS[backend][0])  # the files alone say the backend
    for directory in directories:
        for file, content in model_files(named).items():
            draft.files[f"{name}/{directory}/{file}"] = content
    return config


def _is_of_trees(inputs: Sequence[tuple[int, Sequence[int]]], outputs: Sequence[tuple[int, Sequence[int]]]) -> bool:
    """Whether the tensors can be those of a tree model: numbers of 32 bits, and one value for each row."""
    is_float = all(data_type == type_of("FP32") for data_type, _ in (*inputs, *outputs))
    return is_float and all(list(dims) in ([1], [-1]) for _, dims in outputs)


def _name_by_index(config: ModelConfig) -> None:
    """Name what else the PyTorch backend passes to a model as that backend requires it."""
    batching = config.sequence_batching
    places = iter(range(len(config.input), 100))
    for batch in config.batch_input:
        batch.target_name[:] = [f"{name}__{next(places)}" for name in batch.target_name]
    for signal in batching.control_input:
        signal.name = f"{signal.name}__{next(places)}"
        for control in signal.control:
            if control.data_type not in (type_of("INT32"), type_of("INT64"), type_of("INVALID")):
                control.data_type = type_of("INT64")
    for place, state in enumerate(batching.state, start=len(config.output)):
        state.input_name, state.output_name = f"{state.input_name}__{next(places)}", f"{state.output_name}__{place}"


def versions(draw: st.DrawFn, config: ModelConfig) -> list[str]:
    """Version directories and a policy that serves at least one of them."""
    numbers = sorted(
        draw(st.sets(st.sampled_from([1, 2, 3, 7, 10, 0]), min_size=1, max_size=3)) if chance(draw, 30) else [1]
    )
    policy = draw(st.sampled_from(["none", "none", "none", "empty", "all", "latest", "specific"]))
    if policy == "empty":
        merge(config, "version_policy { }")
    elif policy == "all":
        merge(config, "version_policy { all { } }")
    elif policy == "latest":
        merge(config, f"version_policy {{ latest {{ num_versions: {draw(st.integers(1, 3))} }} }}")
    elif policy == "specific":
        chosen = draw(st.lists(st.sampled_from(numbers), min_size=1, max_size=2, unique=True))
        merge(config, f"version_policy {{ specific {{ versions: {chosen} }} }}")
    return [str(number) for number in numbers]


def served(config: ModelConfig, directories: Sequence[int]) -> list[int]:
    """The versions that the policy serves."""
    choice = config.version_policy.WhichOneof("policy_choice")
    if choice == "all":
        return sorted(directories)
    if choice == "specific":
        return sorted(set(directories) & set(config.version_policy.specific.versions))
    count = config.version_policy.latest.num_versions if choice == "latest" else 1
    return sorted(directories)[-count:]


Feature = Callable[[st.DrawFn, ModelConfig, Draft, str, str], None]


def _scheduling(draw: st.DrawFn, config: ModelConfig) -> None:
    kind = draw(st.sampled_from(["none", "none", "dynamic", "dynamic", "direct", "oldest"]))
    if kind == "dynamic":
        _dynamic_batching(draw, config)
    elif kind != "none":
        _sequence_batching(draw, config, kind)


def _sizes(draw: st.DrawFn, config: ModelConfig) -> list[int]:
    """Preferred batch sizes."""
    if config.max_batch_size == 0:
        return []
    return draw(st.lists(st.integers(1, config.max_batch_size), max_size=2))


def _queue_policy(draw: st.DrawFn, *, delay: bool = True) -> str:
    action = draw(st.sampled_from(["REJECT", "DELAY"] if delay else ["REJECT"]))
    timeout = draw(st.sampled_from([0, 1000]))
    size = draw(st.sampled_from([0, 8]))
    override = str(draw(st.booleans())).lower()
    return (
        f"timeout_action: {action} default_timeout_microseconds: {timeout} "
        f"allow_timeout_override: {override} max_queue_size: {size}"
    )


def _dynamic_batching(draw: st.DrawFn, config: ModelConfig) -> None:
    parts = [f"preferred_batch_size: {_sizes(draw, config)}"]
    if chance(draw, 50):
        parts.append(f"max_queue_delay_microseconds: {draw(st.sampled_from([0, 100, 5000]))}")
    ordered = chance(draw, 20)
    if ordered:
        parts.append("preserve_ordering: true")
    if chance(draw, 40):
        parts.append(f"default_queue_policy {{ {_queue_policy(draw, delay=not ordered)} }}")
    if chance(draw, 40):
        levels = 1 if ordered else draw(st.integers(1, 4))
        parts.append(f"priority_levels: {levels} default_priority_level: {draw(st.integers(1, levels))}")
        for level in draw(st.sets(st.integers(1, levels), max_size=2)):
            policy = _queue_policy(draw, delay=not ordered)
            parts.append(f"priority_queue_policy {{ key: {level} value {{ {policy} }} }}")
    merge(config, f"dynamic_batching {{ {' '.join(parts)} }}")


def _sequence_batching(draw: st.DrawFn, config: ModelConfig, kind: str) -> None:
    parts = []
    if chance(draw, 30):
        parts.append("max_sequence_idle_microseconds: 5000000")
    values = ["int32_false_true: [0, 1]", "fp32_false_true: [0, 1]", "bool_false_true: [false, true]"]
    for control in ("START", "END", "READY"):
        if chance(draw, 60):
            value = draw(st.sampled_from(values))
            parts.append(
                f'control_input {{ name: "{control}" control {{ kind: CONTROL_SEQUENCE_{control} {value} }} }}'
            )
    if chance(draw, 40):
        data_type = draw(st.sampled_from(["UINT64", "INT64", "UINT32", "INT32", "STRING"]))
        control = f"control {{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_{data_type} }}"
        parts.append(f'control_input {{ name: "CORRID" {control} }}')
    if chance(draw, 30):
        parts.append(f"state {{ {_state(draw)} }}")
    if kind == "direct":
        delay, slots = draw(st.sampled_from([0, 100])), draw(st.sampled_from([0, 0.5, 1]))
        parts.append(f"direct {{ max_queue_delay_microseconds: {delay} minimum_slot_utilization: {slots} }}")
    else:
        count, sizes = draw(st.sampled_from([0, 1, 4])), _sizes(draw, config)
        parts.append(f"oldest {{ max_candidate_sequences: {count} preferred_batch_size: {sizes} }}")
    merge(config, f"sequence_batching {{ {' '.join(parts)} }}")


def _state(draw: st.DrawFn) -> str:
    """A state whose tensors are no inputs and outputs of the model."""
    data_type = draw(st.sampled_from(["FP32", "INT32"]))
    dims = draw(shapes)
    text = f'input_name: "STATE_IN" output_name: "STATE_OUT" data_type: TYPE_{data_type} dims: {list(dims)}'
    if chance(draw, 50):
        text += f' initial_state {{ name: "zero" data_type: TYPE_{data_type} dims: {list(dims)} zero_data: true }}'
    return text


def _instances(draw: st.DrawFn, config: ModelConfig, draft: Draft, name: str, backend: str) -> None:
    for index in range(draw(st.integers(1, 2))):
        kind = draw(st.sampled_from(KINDS.get(backend, ["KIND_CPU", "KIND_AUTO", "KIND_GPU", "KIND_MODEL"])))
        text = f"kind: {kind} count: {draw(st.integers(1, 2))}"
        if chance(draw, 30):
            text += f' name: "group{index}"'
        if chance(draw, 30):
            resource = f'resources {{ name: "R{index}" global: {str(chance(draw, 30)).lower()} count: 2 }}'
            text += f" rate_limiter {{ {resource} priority: {draw(st.integers(0, 2))} }}"
        if chance(draw, 20) and kind == "KIND_GPU":
            text += f" gpus: {draw(st.sampled_from(['0', '[0, 1]']))}"
        if chance(draw, 20) and backend == "tensorrt":
            text += ' profile: "0"'
        if chance(draw, 10):
            text += ' host_policy: "cpu_0"'
        merge(config, f"instance_group {{ {text} }}")


def _reshape(draw: st.DrawFn, config: ModelConfig, draft: Draft, name: str, backend: str) -> None:
    tensors: list[ModelInput | ModelOutput] = [*config.input, *config.output]
    tensors = [tensor for tensor in tensors if -1 not in tensor.dims]
    for tensor in draw(st.lists(st.sampled_from(tensors), max_size=1)) if tensors else []:
        count = prod(tensor.dims)
        ways = [[count], [1, count], [count, 1]]
        if count == 1 and config.max_batch_size > 0:
            ways.append([])
        tensor.reshape.shape.extend(draw(st.sampled_from(ways)))
        tensor.reshape.SetInParent()


def _optional(draw: st.DrawFn, config: ModelConfig, draft: Draft, name: str, backend: str) -> None:
    if backend == "python":
        draw(st.sampled_from(config.input)).optional = True


def _ragged(draw: st.DrawFn, config: ModelConfig, draft: Draft, name: str, backend: str) -> None:
    """Ragged batches with a tensor that says how they lie; where the model batches by itself at all."""
    if config.max_batch_size == 0 or not config.HasField("dynamic_batching"):
        return
    source = draw(st.sampled_from(config.input))
    if source.data_type == type_of("STRING") or source.HasField("reshape"):
        return
    source.allow_ragged_batch = True
    kinds = ["BATCH_ELEMENT_COUNT", "BATCH_ACCUMULATED_ELEMENT_COUNT", "BATCH_ITEM_SHAPE"]
    kind, data_type = draw(st.sampled_from(kinds)), draw(st.sampled_from(["INT32", "FP32"]))
    made = f'target_name: "INDEX" data_type: TYPE_{data_type}'
    merge(config, f'batch_input {{ kind: {kind} {made} source_input: "{source.name}" }}')
    if config.output and chance(draw, 40):
        target = f'target_name: "{config.output[0].name}"'
        merge(
            config,
            f'batch_output {{ kind: BATCH_SCATTER_WITH_INPUT_SHAPE {target} source_input: "{source.name}" }}',
        )


def _warmup(draw: st.DrawFn, config: ModelConfig, draft: Draft, name: str, backend: str) -> None:
    if config.HasField("sequence_batching"):
        return
    inputs = []
    for tensor in config.input:
        if tensor.optional and chance(draw, 50):
            continue
        dims = [3 if size == -1 else size for size in tensor.dims]
        string = tensor.data_type == type_of("STRING")
        source = draw(st.sampled_from(["zero_data: true"] if string else ["zero_data: true", "random_data: true"]))
        value = f"data_type: {DataType.Name(tensor.data_type)} dims: {dims} {source}"
        inputs.append(f'inputs {{ key: "{tensor.name}" value {{ {value} }} }}')
    size = draw(st.integers(1, config.max_batch_size)) if config.max_batch_size else 0
    merge(
        config,
        f'model_warmup {{ name: "first" batch_size: {size} count: {draw(st.integers(0, 2))} {" ".join(inputs)} }}',
    )


def _labels(draw: st.DrawFn, config: ModelConfig, draft: Draft, name: str, backend: str) -> None:
    config.output[0].label_filename = "labels.txt"
    draft.files[f"{name}/labels.txt"] = b"cat\ndog\n"


def _cache(draw: st.DrawFn, config: ModelConfig, draft: Draft, name: str, backend: str) -> None:
    if not config.HasField("sequence_batching"):
        config.response_cache.enable = draw(st.booleans())


def _transactions(draw: st.DrawFn, config: ModelConfig, draft: Draft, name: str, backend: str) -> None:
    config.model_transaction_policy.decoupled = False


def _optimization(draw: st.DrawFn, config: ModelConfig, draft: Draft, name: str, backend: str) -> None:
    ways = [
        "graph { level: 1 }",
        "priority: PRIORITY_MAX",
        "cuda { graphs: true }",
        "input_pinned_memory { enable: false } output_pinned_memory { enable: true }",
        "gather_kernel_buffer_threshold: 2",
        "eager_batching: true",
    ]
    merge(config, f"optimization {{ {draw(st.sampled_from(ways))} }}")


def _notes(draw: st.DrawFn, config: ModelConfig, draft: Draft, name: str, backend: str) -> None:
    merge(
        config,
        'parameters { key: "note" value { string_value: "any" } } metric_tags { key: "team" value: "search" }',
    )


FEATURES: Sequence[Feature] = (
    _instances,
    _reshape,
    _optional,
    _ragged,
    _warmup,
    _labels,
    _cache,
    _transactions,
    _optimization,
    _notes,
)


def tensors_of(draw: st.DrawFn, count: int, types: Sequence[int] = TYPES) -> list[Tensor]:
    """Tensors with any types and shapes."""
    return [Tensor("", draw(st.sampled_from(types)), draw(shapes)) for _ in range(count)]
