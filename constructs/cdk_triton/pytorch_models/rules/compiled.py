"""CT861 to CT865: what the PyTorch backend does with models that AOTInductor compiled, by release."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton._wording import listed_in_quotes
from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.backend_files import BackendFile, backend_files, file_rule
from cdk_triton.checks.derived.configured import ConfiguredModel
from cdk_triton.checks.derived.releases import is_older, is_within
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend
from cdk_triton.pytorch_models.models import compiled_rule, is_compiled, torch_contents
from cdk_triton.pytorch_models.reader.compiled import CallSpec, CompiledModel
from cdk_triton.pytorch_models.reader.file import TorchFile
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import enum_name

_STATE = "src/pt2/model_instance_state.cc"
_NAMED_SINCE = "26.05"  # branches of pytorch_backend: r26.05 reads the call specification
_PREFIXES = {"input": "INPUT__", "output": "OUTPUT__"}
_NAMES = {"input": ("ARGS", "KWARGS"), "output": ("RESULT",)}


@compiled_rule(
    "CT861",
    Severity.ERROR,
    "a compiled PyTorch model cannot have sequences or batch inputs",
    source=backend("pytorch_backend", _STATE, 1648, 1662),
)
def unsupported_feature(each: ConfiguredModel) -> Iterator[Problem]:
    """From 26.05 on, the backend rejects `sequence_batching` and `batch_input` for the platform `torch_aoti`.

    The server does not load the model. Serve it as TorchScript, or without the setting.

    Example:
        # model/config.pbtxt
        platform: "torch_aoti"
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        sequence_batching { }
        # model/1/model.pt2
        (compiled for cuda: 1 input)

    Instead:
        # model/config.pbtxt
        platform: "torch_aoti"
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
    """
    if not _reads_call_spec(each.context):
        return
    fix = "remove it, or serve the model as TorchScript"
    if each.config.HasField("sequence_batching"):
        yield each.unloadable(
            "sequence_batching",
            "the configuration has sequence_batching",
            "Boolean sequence control validation is not supported for model instance",
            fix,
        )
    if each.config.batch_input:
        count = len(each.config.input)
        yield each.unloadable(
            "batch_input",
            "the configuration has batch inputs",
            f"configuration expects {count + len(each.config.batch_input)} inputs, but model configuration has {count} "
            "inputs.",
            fix,
        )


def _reads_call_spec(context: CheckContext) -> bool:
    return context.platform is None or not is_older(context.platform, _NAMED_SINCE)


@compiled_rule(
    "CT862",
    Severity.ERROR,
    "releases before 26.05 load a compiled PyTorch model only with two inputs",
    source="https://github.com/triton-inference-server/pytorch_backend/blob/r26.03/src/pt2/model_instance_state.cc#L1824-L1845",
    applies=lambda platform: is_within(platform, "26.03", "26.05"),
)
def not_two_inputs(each: ConfiguredModel) -> Iterator[Problem]:
    """The releases 26.03 and 26.04 read the two parts of the call specification as the names of two inputs.

    One part describes the inputs, and the other the outputs. So these releases do not load a model of the platform
    `torch_aoti` whose configuration has any other number of inputs.

    Example:
        $ cdk-triton validate . --platform 26.04/ml.g5.xlarge
        # model/config.pbtxt
        platform: "torch_aoti"
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        # model/1/model.pt2
        (compiled for cuda: 1 input)

    Instead:
        $ cdk-triton validate . --platform 26.05/ml.g5.xlarge
    """
    config = each.config
    given = len(config.input) + len(config.batch_input)
    if given != 2 and not config.HasField("sequence_batching"):
        yield each.unloadable(
            "input",
            f"the configuration has {given} input{'s'[: given != 1]}",
            f'Failed to load model "{each.said_name}_0_0" configuration expects {given} inputs, but model expects 2 '
            "inputs.",
            "use release 26.05 or later, or serve the model as TorchScript",
        )


@compiled_rule(
    "CT863",
    Severity.ERROR,
    "a compiled PyTorch model does not have an input or output of the configuration",
    source=backend("pytorch_backend", _STATE, 1722, 1790),
)
def unknown_tensor(each: ConfiguredModel) -> Iterator[Problem]:
    """From 26.05 on, the tensors of a `torch_aoti` model have the names that follow from its call specification.

    `INPUT__0` is the first input and `OUTPUT__0` the first output. The inputs are also named after their places,
    `ARGS[0]` or `ARGS[1][key]`, and the outputs `RESULT`, `RESULT[0]` or `RESULT[key]`. The names of the arguments of
    `forward` are not valid. The configuration must have all inputs. Otherwise, the server does not load the model.

    Example:
        # model/config.pbtxt
        platform: "torch_aoti"
        input { name: "input_ids" data_type: TYPE_INT64 dims: 128 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        # model/1/model.pt2
        (compiled for cuda: 1 input)

    Instead:
        # model/config.pbtxt
        platform: "torch_aoti"
        input { name: "INPUT__0" data_type: TYPE_INT64 dims: 128 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }

    Limits:
        If the archive does not contain the call specification as text, the rule checks only the form of the names.
    """
    if not _reads_call_spec(each.context) or each.config.batch_input or each.config.HasField("sequence_batching"):
        return  # CT861's
    spec, given = _call_specs(each.context).get(each.name), len(each.config.input)
    expected = len(spec.inputs) if spec is not None else None
    if given == 0 or (expected is not None and given != expected):
        yield each.unloadable(
            "input",
            f"the configuration has {given} input{'s'[: given != 1]}"
            + (f", and the compiled model {expected}" if expected is not None else ""),
            f'Failed to load model "{each.said_name}_0_0" configuration expects {given} inputs, but model expects '
            f"{expected if expected is not None else 'more'} inputs.",
            "write every input of the compiled model",
        )
        return
    yield from _unknown_names(each, spec, "input", [tensor.name for tensor in each.config.input])
    if not each.config.output:
        yield each.unloadable(
            "output",
            "the configuration has no output",
            f'Configuration for model "{each.said_name}_0_0" must define at least one output, none were specified.',
            "write the outputs of the compiled model",
        )
    yield from _unknown_names(each, spec, "output", [tensor.name for tensor in each.config.output])


def _unknown_names(each: ConfiguredModel, spec: CallSpec | None, side: str, names: list[str]) -> Iterator[Problem]:
    known = _known_names(spec, side, each.context)
    for index, name in enumerate(names):
        if name and not _is_known(name, known, side, len(names)):
            choice = known or [f"{_PREFIXES[side]}0"]
            yield each.unloadable(
                f"{side}[{index}].name",
                f"the compiled model has no {side} {name!r}",
                f'{side.capitalize()} "{name}" for model instance "{each.said_name}_0_0" is not found in model {side} '
                "map.",
                f"name the {side}s by their places: {listed_in_quotes(choice)}" + ("" if known else ", and so on"),
            )


def _known_names(spec: CallSpec | None, side: str, context: CheckContext) -> list[str]:
    """Every name of the side; none if the call specification is not known."""
    if spec is None:
        return []
    own = spec.inputs if side == "input" else spec.outputs
    ordinals = [f"{_PREFIXES[side]}{index}" for index in range(len(own))]
    later = context.platform is None or not is_within(context.platform, _NAMED_SINCE, "26.06")
    documented = list(spec.keywords.values()) if side == "input" and later else []
    return [*ordinals, *own, *documented]


def _is_known(name: str, known: list[str], side: str, count: int) -> bool:
    if known:
        return name in known
    index = name.removeprefix(_PREFIXES[side])
    if index != name:
        is_number = index.isascii() and index.isdigit() and (index == "0" or index[0] != "0")
        return is_number and (side == "output" or int(index[:9]) < count)
    return name.startswith(_NAMES[side])


@per_check
def _call_specs(context: CheckContext) -> dict[str, CallSpec]:
    return {
        each.model.name: model.call_spec
        for each, model in _archives(context)
        if model.call_spec is not None and not model.call_spec.fault
    }


@per_check
def _archives(context: CheckContext) -> Iterator[tuple[BackendFile, CompiledModel]]:
    for each in backend_files(context):
        read = torch_contents(each)
        if isinstance(read, TorchFile) and read.compiled is not None and is_compiled(context, each.model):
            yield each, read.compiled


@compiled_rule(
    "CT864",
    Severity.WARNING,
    "batches of a compiled PyTorch model are not supported",
    source="https://github.com/triton-inference-server/pytorch_backend/blob/266fd386ef7567cecb4b4772fb0fdc83ea5884d4/README.md#L304-L306",
)
def batches_of_compiled(each: ConfiguredModel) -> Iterator[Problem]:
    """The README of the backend says that batches of more than one are not available for the platform `torch_aoti`.

    Set `max_batch_size: 0` and write the whole shape, or serve the model as TorchScript.

    Example:
        # model/config.pbtxt
        platform: "torch_aoti"
        max_batch_size: 8
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        # model/1/model.pt2
        (compiled for cuda: 1 input)

    Instead:
        # model/config.pbtxt
        platform: "torch_aoti"
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: [ 1, 4 ] }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 1, 4 ] }
    """
    if each.config.max_batch_size > 1:
        yield each.problem(
            "max_batch_size",
            f"max_batch_size is {each.config.max_batch_size}, and the backend does not support batches of compiled "
            f"models such as {each.name!r}: Support for batch sizes greater than 1 has not been completed",
            "set max_batch_size: 0 and write the whole shape, or serve the model as TorchScript",
        )


@file_rule(
    "CT865",
    Severity.ERROR,
    "a compiled PyTorch model is for another machine",
    source=backend("pytorch_backend", "src/pt2/model_state.cc", 381, 402),
)
def other_machine(each: BackendFile) -> Iterator[Problem]:
    """An archive of AOTInductor contains a library for one operating system, processor and kind of device.

    The instances of SageMaker with GPUs have Linux on x86-64. A model that was compiled for the CPU cannot run in
    instances on the GPU, which are the default, and a model for the GPU cannot run in instances with `KIND_CPU`: every
    request fails or ends the server. Compile the model on a machine like the endpoint's, after `model.to("cuda")`.

    Example:
        # model/config.pbtxt
        platform: "torch_aoti"
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        # model/1/model.pt2
        (compiled for cpu: 1 input)

    Instead:
        # model/1/model.pt2
        (compiled for cuda: 1 input)

    Limits:
        The rule reads what the compiler noted in the archive, and does not check for which GPU the model was compiled.
    """
    read = torch_contents(each)
    if not isinstance(read, TorchFile) or read.compiled is None or not is_compiled(each.context, each.model):
        return
    noted = read.compiled.metadata
    machine, system = noted.get("AOTI_MACHINE", "x86_64"), noted.get("AOTI_PLATFORM", "linux")
    if machine not in ("x86_64", "AMD64") or system != "linux":
        yield each.problem(
            f"the archive was compiled for {system} on {machine}, so the server, which is Linux on x86_64, would not "
            f"load {each.model.name!r}",
            "compile the model on Linux on x86_64",
        )
        return
    device, kinds = noted.get("AOTI_DEVICE_KEY", ""), {enum_name(group, "kind") for group in each.config.instance_group}
    if "KIND_MODEL" in kinds:
        return  # the model chooses the device
    if device == "cpu" and kinds != {"KIND_CPU"}:
        fix = 'compile the model on the GPU, after model.to("cuda"), or write instance_group { kind: KIND_CPU }'
    elif device == "cuda" and kinds == {"KIND_CPU"}:
        fix = 'compile the model for the CPU, after model.to("cpu"), or write instance_group { kind: KIND_GPU }'
    else:
        return
    place = "CPU" if kinds == {"KIND_CPU"} else "GPU"
    yield each.problem(
        f"the archive was compiled for the device {device!r}, and the instances of {each.model.name!r} run on the "
        f"{place}, so every request would fail or end the server",
        fix,
    )
