"""CT702, CT703, CT705 and CT707: what the files show about a plan that is to be built, or about an existing one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cdk_triton._wording import listed
from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import backend
from cdk_triton.onnx_models.reader.file import OnnxTensor
from cdk_triton.tensorrt_models.recipe import dims_in_plan
from cdk_triton.tensorrt_models.sources import (
    PlanSource,
    largest_batch,
    plan_sources,
    profile_fault,
    smallest_batch,
    unloaded_plan_sources,
)
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.releases import tensorrt_bounds
from cdk_triton.triton.schema import ModelConfig, ModelInput, ModelOutput, enum_name

__all__ = ["contradicted_by_recipes", "names_contradicted_by_recipes"]

# Of other types TensorRT has no tensors, or makes something else of them.
_KEPT_TYPES = {"FP32", "FP16", "BF16", "INT8", "UINT8", "INT32", "BOOL"}


@rule(
    "CT702",
    Severity.ERROR,
    "a recipe's profiles do not fit the network or max_batch_size",
    source=backend("tensorrt_backend", "src/model_state.cc", 661, 697),
)
def impossible_profile(context: CheckContext) -> Iterator[Problem]:
    """An optimisation profile of a recipe does not fit the recipe's network, or does not reach `max_batch_size`.

    For each input, a profile has a minimum, an optimum and a maximum shape, with the batch dimension. TensorRT does not
    build a plan for a shape that the network does not have. The server does not load a plan if its profiles end below
    `max_batch_size`. The rule also checks models that the server does not load, because the build runs their recipes
    too.

    Example:
        # bert/config.pbtxt
        platform: "tensorrt_plan"
        max_batch_size: 32
        input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }
        output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }
        # bert/bert.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        network (float[batch, 4] x) => (float[batch, 4] y) { y = Relu (x) }
        # bert/1/model.plan
        (built from bert/bert.onnx for x 1x4 to 16x4)

    Instead:
        # bert/1/model.plan
        (built from bert/bert.onnx for x 1x4 to 32x4)

    Limits:
        The rule checks only the inputs of the network. CT704 checks the whole network with TensorRT-RTX.
    """
    for source in (*plan_sources(context), *unloaded_plan_sources(context)):
        if not source.has_recipe or source.onnx is None:
            continue
        faults = [profile_fault(profile, source.onnx) for profile in source.profiles]
        for index, fault in enumerate(faults):
            if fault is not None:
                yield Problem(
                    source.network.path,
                    f"TensorRT would not build a plan for {source.owner.name!r} from this network with profile {index} "
                    f"of the recipe: {fault.reason}",
                    fault.fix,
                )
        reached, most = largest_batch(source.profiles, source.onnx), source.owner.config.max_batch_size
        if not any(faults) and reached is not None and reached < most:
            yield source.owner.unloadable(
                "max_batch_size",
                f"the largest batch of the plan's profiles is {reached}",
                f"configuration specified max-batch {most} but TensorRT engine only supports max-batch {reached}",
                f"write max_batch_size: {reached}, or raise the maximum of the profile",
            )


@rule(
    "CT707",
    Severity.WARNING,
    "the plan of a recipe does not take small batches",
    source=backend("tensorrt_backend", "src/tensorrt_utils.cc", 314, 340),
)
def least_batch(context: CheckContext) -> Iterator[Problem]:
    """Every profile of a recipe begins above batch 1, so the server rejects each smaller batch.

    The dynamic batcher sends what the queue contains when `max_queue_delay_microseconds` is over, so a large
    `preferred_batch_size` does not help. Write 1 as the batch of the minimum. The plan remains fastest at the optimum.

    Example:
        # bert/config.pbtxt
        platform: "tensorrt_plan"
        max_batch_size: 16
        input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }
        output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }
        # bert/bert.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        network (float[batch, 4] x) => (float[batch, 4] y) { y = Relu (x) }
        # bert/1/model.plan
        (built from bert/bert.onnx for x 8x4 to 16x4)

    Instead:
        # bert/1/model.plan
        (built from bert/bert.onnx for x 1x4 to 16x4)

    Limits:
        The rule checks only models with `max_batch_size`. It does not check the other dimensions of a minimum.
    """
    for source in plan_sources(context):
        if not source.has_recipe or source.onnx is None or source.owner.config.max_batch_size < 1:
            continue
        inputs = {each.name for each in source.owner.config.input if not each.is_shape_tensor}
        inputs -= {each.name for each in source.owner.config.input if each.allow_ragged_batch}
        least = smallest_batch(source.profiles, inputs)
        if least is not None and least > 1 and not any(profile_fault(each, source.onnx) for each in source.profiles):
            yield source.owner.problem(
                "max_batch_size",
                f"the smallest batch of the profiles of {source.owner.name!r} is {least}, so the server would answer a "
                f"smaller batch with an error: model expected the shape of dimension 0 to be between {least} and "
                f"{largest_batch(source.profiles, source.onnx)} but received 1",
                "write 1 as the batch of the minimum in a profile",
            )


@rule(
    "CT703",
    Severity.WARNING,
    "a TensorRT model's tensors are not those of the network beside its plan",
    source=backend("tensorrt_backend", "src/instance_state.cc", 2240, 2283),
)
def unlike_neighbour(context: CheckContext) -> Iterator[Problem]:
    """The `model.onnx` in a version directory has other inputs or outputs than the configuration.

    The server does not read this file, and the plan may be built from another network. If the plan is built from this
    network, however, the server does not load the model. Change the configuration, or delete the `model.onnx` if the
    plan is built from another network. Up to TensorRT 8, a plan has an INT32 input for each INT64 input of the network.
    From TensorRT 10 on, the plan keeps INT64, and the server rejects a configuration that was right for TensorRT 8.

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
        # bert/config.pbtxt
        platform: "tensorrt_plan"
        max_batch_size: 16
        input { name: "ids" data_type: TYPE_INT32 dims: [ 4 ] }
        output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }
        # bert/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        network (int64[batch, 4] ids) => (float[batch, 4] y) { y = Cast <to = 1> (ids) }
        # bert/1/model.plan
        plan

    Instead:
        # bert/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        network (int32[batch, 4] ids) => (float[batch, 4] y) { y = Cast <to = 1> (ids) }

    Limits:
        The rule does not compare a dimension that is variable in the network, or -1 in the configuration. If the
        configuration has no inputs or no outputs, the rule does not compare these, because the server takes them from
        the plan.
    """
    for source in plan_sources(context):
        for each in _unlike(source) if not source.has_recipe else ():
            yield source.owner.unloadable(
                each.field,
                each.found,
                each.words,
                f"{each.fix}; delete {source.network.path} if the plan is built from another network",
                joint="; if the plan is built from this network, ",
            )


@rule(
    "CT705",
    Severity.ERROR,
    "a TensorRT model's tensors are not those of the network that its recipe builds",
    source=backend("tensorrt_backend", "src/instance_state.cc", 2240, 2283),
)
def unlike_network(context: CheckContext) -> Iterator[Problem]:
    """The inputs or outputs of the configuration and of the network differ in names, types or dimensions.

    An input with `allow_ragged_batch` needs exactly one dimension in the network, because the server joins the values
    of a batch.

    The server does not load the model. Up to TensorRT 8, a plan has an INT32 input for each INT64 input of the network.
    From TensorRT 10 on, the plan keeps INT64, and the server rejects a configuration that was right for TensorRT 8.

    Example:
        # bert/config.pbtxt
        platform: "tensorrt_plan"
        max_batch_size: 16
        input { name: "input_ids" data_type: TYPE_INT32 dims: [ 4 ] }
        output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }
        # bert/bert.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        network (int32[batch, 4] ids) => (float[batch, 4] y) { y = Cast <to = 1> (ids) }
        # bert/1/model.plan
        (built from bert/bert.onnx for ids 1x4 to 16x4)

    Instead:
        # bert/config.pbtxt
        platform: "tensorrt_plan"
        max_batch_size: 16
        input { name: "ids" data_type: TYPE_INT32 dims: [ 4 ] }
        output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }

    Limits:
        The rule does not compare a dimension that is variable in the network, or -1 in the configuration. If the
        configuration has no inputs or no outputs, the rule does not compare these, because the server takes them from
        the plan. The rule does not check whether a recipe changes the types of the network's tensors.
    """
    for source in plan_sources(context):
        for each in _unlike(source) if source.has_recipe else ():
            yield source.owner.unloadable(each.field, each.found, each.words, each.fix)


def contradicted_by_recipes(context: CheckContext) -> Iterator[tuple[str, str]]:
    """Model and field of each difference that CT705 reports."""
    for source in plan_sources(context):
        if source.has_recipe:
            yield from ((source.owner.name, each.field) for each in _unlike(source))


def names_contradicted_by_recipes(context: CheckContext) -> Iterator[tuple[str, str, str]]:
    """Model, side and name of each tensor that only the network or only the configuration has, as CT705 reports."""
    for source in plan_sources(context):
        for each in _unlike(source) if source.has_recipe else ():
            if each.misnamed is not None:
                yield source.owner.name, each.field.partition("[")[0], each.misnamed


class _Difference(NamedTuple):
    """A difference between the network and the configuration.

    Attributes:
        found: the difference.
        words: the server's message about it.
        fix: what to do.
        field: the field of the configuration.
        misnamed: the name, if only the network or only the configuration has a tensor of this name.
    """

    found: str
    words: str
    fix: str
    field: str
    misnamed: str | None = None


def _unlike(source: PlanSource) -> Iterator[_Difference]:
    if source.onnx is None:
        return
    config = source.owner.config
    yield from _side(source, config.input, source.onnx.inputs, _other_inputs(config), "input")
    yield from _side(source, config.output, source.onnx.outputs, _other_outputs(config), "output")
    yield from _shapes(source, config.input, source.onnx.inputs, _other_inputs(config), "input")
    yield from _shapes(source, config.output, source.onnx.outputs, _other_outputs(config), "output")
    yield from _ragged(source, config.input, source.onnx.inputs)


def _side(
    source: PlanSource,
    configured: Sequence[ModelInput | ModelOutput],
    tensors: tuple[OnnxTensor, ...],
    others: set[str],
    kind: str,
) -> Iterator[_Difference]:
    network = f"the network {source.network.path}"
    in_network = {tensor.name: tensor.data_type for tensor in tensors}
    allowed = listed(sorted(in_network), shown=20)
    for index, tensor in enumerate(configured):
        if tensor.name not in in_network:
            yield _Difference(
                f"{network} has no {kind} {tensor.name!r}",
                f"unexpected inference {kind} '{tensor.name}', allowed {kind}s are: {allowed}",
                f"use the name that the {kind} has in the network",
                f"{kind}[{index}].name",
                tensor.name,
            )
            continue
        written, given = enum_name(tensor, "data_type"), _type_in_plan(source.owner.context, in_network[tensor.name])
        if in_network[tensor.name] == "INT64" and written == "TYPE_INT64":
            continue  # in a release whose TensorRT has no INT64 this is CT604
        if given and written not in ("TYPE_INVALID", given) and not tensor.is_shape_tensor:
            yield _Difference(
                f"the {kind} {tensor.name!r} has the type {written} in the configuration, but {given} in a "
                f"plan of {network}",
                f"unexpected datatype {given} for inference {kind} '{tensor.name}', expecting {written}",
                f"write data_type: {given}, or export the network with the other type",
                f"{kind}[{index}].data_type",
            )
    for missing in sorted(in_network.keys() - {tensor.name for tensor in configured} - others) if configured else ():
        yield _Difference(
            f"{network} has the {kind} {missing!r}, but the configuration does not",
            f"expected configuration for {kind} '{missing}'",
            f"add the {kind} to the configuration, or export the network without it",
            kind,
            missing,
        )


def _shapes(
    source: PlanSource,
    configured: Sequence[ModelInput | ModelOutput],
    tensors: tuple[OnnxTensor, ...],
    others: set[str],
    kind: str,
) -> Iterator[_Difference]:
    """The tensors whose dimensions differ, as CompareDimsSupported of the backend compares them (tensorrt_utils.cc)."""
    shapes = {tensor.name: tensor.shape for tensor in tensors}
    for index, tensor in enumerate(configured):
        shape, written = shapes.get(tensor.name), _compared_dims(tensor)
        if shape is None or written is None or tensor.name in others:
            continue
        with_batch = (-1, *written)
        # Without max_batch_size the backend sets it where the dimensions are those of a network that takes batches.
        readings = (with_batch,) if source.owner.config.max_batch_size > 0 else (written, with_batch)
        if any(_agree(reading, shape) for reading in readings):
            continue
        own = "reshape.shape" if tensor.HasField("reshape") else "dims"
        added = " (max_batch_size adds the batch dimension)" if source.owner.config.max_batch_size > 0 else ""
        without = " without the batch dimension" if added else ""
        yield _Difference(
            f"the {kind} {tensor.name!r} has the {own} {_text(written)} in the configuration{added}, but the shape "
            f"{_text(shape)} in the network {source.network.path}",
            f"model '{source.owner.name}', tensor '{tensor.name}': the model expects {len(shape)} dimensions but the "
            f"model configuration specifies {len(readings[0])} dimensions",
            f"write the dimensions of the network{without} into {own}, or export the network with other dimensions",
            f"{kind}[{index}].{own}",
        )


def _ragged(
    source: PlanSource, configured: Sequence[ModelInput], tensors: tuple[OnnxTensor, ...]
) -> Iterator[_Difference]:
    """The ragged inputs whose shape in the network is not the one dimension of the configuration."""
    shapes = {tensor.name: tensor.shape for tensor in tensors}
    for index, tensor in enumerate(configured):
        shape, written = shapes.get(tensor.name), dims_in_plan(tensor)
        if not tensor.allow_ragged_batch or not written or shape is None:
            continue
        engine = [size if isinstance(size, int) else -1 for size in shape]
        if engine == [written[0]]:
            continue
        yield _Difference(
            f"the input {tensor.name!r} is ragged and has the dims {_text(written)} in the configuration, but the "
            f"shape {_text(shape)} in the network {source.network.path}",
            f"model '{source.owner.name}', tensor '{tensor.name}': for the model to support ragged input, the engine "
            f"shape is: {engine} while the model config shape is: {list(written)}",
            "remove allow_ragged_batch, or write dims: [ -1 ] and export the network with one variable dimension",
            f"input[{index}].allow_ragged_batch",
        )


def _compared_dims(tensor: ModelInput | ModelOutput) -> tuple[int, ...] | None:
    """The dimensions that the backend compares; None if it takes them from the plan, or checks other things."""
    if not tensor.dims or tensor.is_shape_tensor or (isinstance(tensor, ModelInput) and tensor.allow_ragged_batch):
        return None
    return tuple(tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims)


def _agree(written: Sequence[int], shape: Sequence[int | str | None]) -> bool:
    return len(written) == len(shape) and all(
        said in (-1, own) for said, own in zip(written, shape, strict=True) if isinstance(own, int)
    )


def _text(shape: Sequence[int | str | None]) -> str:
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


def _type_in_plan(context: CheckContext, in_network: str | None) -> str:
    """The type that a tensor of the network has in the release's plans; "" if that is not known."""
    if in_network in _KEPT_TYPES:
        return f"TYPE_{in_network}"
    if in_network != "INT64" or context.platform is None or context.platform.release is None:
        return ""
    oldest, newest = tensorrt_bounds(context.platform.release)
    if oldest is not None and oldest >= (10,):
        return "TYPE_INT64"
    return "TYPE_INT32" if newest is not None and newest < (10,) else ""


def _other_inputs(config: ModelConfig) -> set[str]:
    """Inputs that the configuration names elsewhere: controls and states of sequences, batch inputs."""
    sequence = config.sequence_batching
    names = {control.name for control in sequence.control_input} | {state.input_name for state in sequence.state}
    return names | {target for batch in config.batch_input for target in batch.target_name}


def _other_outputs(config: ModelConfig) -> set[str]:
    names = {state.output_name for state in config.sequence_batching.state}
    return names | {target for batch in config.batch_output for target in batch.target_name}
