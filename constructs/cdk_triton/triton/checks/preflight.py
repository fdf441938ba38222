"""CT701 to CT703: what TensorRT would say of a network, before a GPU is paid to build its plan.

All of them need the extra `preflight`: TensorRT's own parser in its edition for RTX, which runs without a GPU. Without
it they say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdk_triton.triton.checks._sources import backend
from cdk_triton.triton.checks.engine import Check, Problem, rule
from cdk_triton.triton.contents.tensorrt import Network, TensorRTParser, is_installed
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.plans import PlanSource, Profile, plan_sources
from cdk_triton.triton.releases import release, tensorrt_bounds
from cdk_triton.triton.schema import DataType, ModelConfig, ModelInput, ModelOutput

_SHOWN_SHAPES = 4


@rule(
    "CT701",
    Severity.WARNING,
    "TensorRT's parser does not take the network of a plan",
    source="https://docs.nvidia.com/deeplearning/tensorrt/latest/_static/python-api/parsers/Onnx/pyOnnx.html",
)
def unparsed_network(check: Check) -> Iterator[Problem]:
    """TensorRT's ONNX parser stops at an operator, a type or the file itself, so that no plan can be built from it.

    The parser is the one of TensorRT-RTX, which runs without a GPU (`pip install 'cdk-triton[preflight]'`). It is of
    the same family as the release's own, not the same version: what it refuses, the release may know, and a plugin may
    add. Looked at are the network of a recipe, and a `model.onnx` in the version directory of a TensorRT model.

    Example:
        # bert/config.pbtxt
        platform: "tensorrt_plan"
        max_batch_size: 8
        input { name: "x" data_type: TYPE_FP32 dims: [ 4, 4 ] }
        output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }
        # bert/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        network (float[batch, 4, 4] x) => (float[batch] y) { y = Det (x) }
        # bert/1/model.plan
        plan
        # cdk-triton.toml
        [acknowledge]
        CT151 = "built in the serving image on the serving GPU"

    Instead:
        # bert/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        network (float[batch, 4, 4] x) => (float[batch] y) { y = ReduceSum <keepdims = 0> (x) }

    Limits:
        The parser's verdict is not the release's. Nothing is built: what only the GPU refuses is not seen.
    """
    for source, network in _networks(check):
        first: dict[str, str] = {}
        for fault in network.faults:
            where = f"the operator {fault.operator}" if fault.operator else "the file"
            where += f" (node {fault.node!r})" if fault.node else ""
            first.setdefault(fault.operator, f"does not take {where}: {fault.reason}")
        for said in (network.failure, *first.values()):
            if said:
                yield Problem(
                    source.network.path,
                    f"the parser of {_versions(check, network)} {said}; if the release's own agrees, no plan can be "
                    f"built for {source.model.name!r}",
                    "replace what it does not take when the network is exported, run it with ONNX Runtime, or "
                    "acknowledge this where a plugin or the release's TensorRT is known to take it",
                )


@rule(
    "CT702",
    Severity.ERROR,
    "a plan cannot be built for the shapes that it has to take",
    source=backend("tensorrt_backend", "src/model_state.cc", 661, 697),
)
def refused_profile(check: Check) -> Iterator[Problem]:
    """An optimisation profile does not fit its network, or does not reach `max_batch_size`.

    The profiles are those of the recipe. Without a recipe, a `model.onnx` in the version directory is tried with what
    the configuration asks for: batches from 1 to `max_batch_size`, and the dimensions. A network that was exported
    without a dynamic batch takes one size only.

    Example:
        # bert/config.pbtxt
        platform: "tensorrt_plan"
        max_batch_size: 16
        input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }
        output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }
        # bert/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        network (float[1, 4] x) => (float[1, 4] y) { y = Relu (x) }
        # bert/1/model.plan
        plan
        # cdk-triton.toml
        [acknowledge]
        CT151 = "built in the serving image on the serving GPU"

    Instead:
        # bert/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        network (float[batch, 4] x) => (float[batch, 4] y) { y = Relu (x) }

    Limits:
        Inputs that the network needs to be equally long are not compared. Without a recipe a dimension of -1 leaves
        the profile open, and it is not tried.
    """
    for source, network in _networks(check):
        for profile, refusal in _refusals(source, network):
            if refusal:
                whose = "its recipe" if source.written else "its config.pbtxt"
                yield Problem(
                    source.network.path,
                    f"TensorRT would not build {source.model.name!r} for the shapes of {whose} ({_shapes(profile)}): "
                    f"{refusal} (said by {_versions(check, network)})",
                    "export the network with these dimensions dynamic, or ask for the shapes that it has",
                )
    for source in plan_sources(check):
        config = source.model.config
        reached = _largest_batch(source.profiles)
        if config is not None and source.written and reached < config.max_batch_size:
            yield Problem(
                source.model.config_path,
                f"the largest batch of the plan's profiles is {reached}, and the server would not load "
                f"{source.model.name!r}: configuration specified max-batch {config.max_batch_size} but TensorRT engine "
                f"only supports max-batch {reached}",
                f"write max_batch_size: {reached}, or raise the maximum of the profile",
                "max_batch_size",
            )


@rule(
    "CT703",
    Severity.ERROR,
    "a TensorRT model's tensors are not those of its network",
    source=backend("tensorrt_backend", "src/instance_state.cc", 2240, 2283),
)
def unlike_network(check: Check) -> Iterator[Problem]:
    """An input or output of the configuration is not in the network, or is of another type, or one is left out.

    Up to TensorRT 8 a plan turns INT64 inputs into INT32; from TensorRT 10 on it keeps them, and the same
    configuration is refused.

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
        # cdk-triton.toml
        [acknowledge]
        CT151 = "built in the serving image on the serving GPU"

    Instead:
        # bert/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        network (int32[batch, 4] ids) => (float[batch, 4] y) { y = Cast <to = 1> (ids) }

    Limits:
        The dimensions of outputs are not compared. A model that leaves all its inputs or outputs to the server is not
        looked at, the server takes them from the plan.
    """
    for source, network in _networks(check):
        config = source.model.config
        if config is None or network.failure or network.faults:
            continue
        inputs = {tensor.name: tensor.data_type for tensor in network.inputs}
        outputs = {tensor.name: tensor.data_type for tensor in network.outputs}
        yield from _unlike(check, source, [*config.input], inputs, _other_inputs(config), "input")
        yield from _unlike(check, source, [*config.output], outputs, _other_outputs(config), "output")


def _unlike(
    check: Check,
    source: PlanSource,
    configured: Sequence[ModelInput | ModelOutput],
    in_network: dict[str, str],
    others: set[str],
    kind: str,
) -> Iterator[Problem]:
    name = source.model.name
    allowed = ", ".join(sorted(in_network))
    for index, tensor in enumerate(configured):
        if tensor.name not in in_network:
            yield Problem(
                source.model.config_path,
                f"the network {source.network.path} has no {kind} {tensor.name!r}, and the server would not load "
                f"{name!r}: unexpected inference {kind} '{tensor.name}', allowed {kind}s are: {allowed}",
                f"name the {kind} as the network does",
                f"{kind}[{index}].name",
            )
            continue
        written, given = DataType.Name(tensor.data_type), _type_in_plan(check, in_network[tensor.name])
        if written != "TYPE_INVALID" and given not in ("", written) and not tensor.is_shape_tensor:
            yield Problem(
                source.model.config_path,
                f"the type is {written} and in a plan of the network {source.network.path} {given}, so that the server "
                f"would not load {name!r}: unexpected datatype {given} for inference {kind} '{tensor.name}', expecting "
                f"{written}",
                f"write data_type: {given}, or export the network with the other type",
                f"{kind}[{index}].data_type",
            )
    for missing in sorted(in_network.keys() - {tensor.name for tensor in configured} - others) if configured else ():
        yield Problem(
            source.model.config_path,
            f"the network {source.network.path} has the {kind} {missing!r} and the configuration does not, and the "
            f"server would not load {name!r}: expected configuration for {kind} '{missing}'",
            f"add the {kind} to the configuration, or leave it out when the network is exported",
            kind,
        )


def _networks(check: Check) -> Iterator[tuple[PlanSource, Network]]:
    """What the parser says of each network; nothing where it is not installed."""
    for source in plan_sources(check):
        if is_installed():
            yield source, check.contents(TensorRTParser.for_profiles(source.profiles), source.network)


def _refusals(source: PlanSource, network: Network) -> Iterator[tuple[Profile, str]]:
    """Each profile with what TensorRT says against it; it overlooks names that are no inputs."""
    inputs = [tensor.name for tensor in network.inputs]
    for profile, refusal in zip(source.profiles, network.refusals, strict=False):  # no refusals: it was not parsed
        unknown = next((name for name in profile if name not in inputs), None)
        if unknown is None:
            yield profile, refusal
        elif source.written:  # else the name is the configuration's, which CT703 is about
            yield profile, f"the network has no input {unknown!r}, it has {' and '.join(inputs)}"


def _versions(check: Check, network: Network) -> str:
    own = f"TensorRT-RTX {network.version}"
    if check.platform is None or check.platform.release is None:
        return f"{own} (no release was named to compare it with)"
    row = release(check.platform.release)
    doubt = ", unverified" if row.tensorrt_confidence == "unverified" else ""
    return f"{own} ({row.release} has TensorRT {row.tensorrt}{doubt})"


def _type_in_plan(check: Check, in_network: str) -> str:
    """The type that a tensor of the network has in the release's plans; "" where that is not known."""
    if in_network != "TYPE_INT64":
        return in_network
    if check.platform is None or check.platform.release is None:
        return ""
    oldest, newest = tensorrt_bounds(check.platform.release)
    if oldest is not None and oldest >= (10,):
        return in_network
    return "TYPE_INT32" if newest is not None and newest < (10,) else ""


def _largest_batch(profiles: tuple[Profile, ...]) -> int:
    """GetMaxSupportedBatchSize of the backend: of each profile the input that takes least, and the best profile."""
    return max((min(shapes.maximum[0] for shapes in profile.values()) for profile in profiles if profile), default=0)


def _shapes(profile: Profile) -> str:
    shown = [
        f"{name} {'x'.join(map(str, shapes.minimum))} to {'x'.join(map(str, shapes.maximum))}"
        for name, shapes in list(profile.items())[:_SHOWN_SHAPES]
    ]
    return ", ".join(shown + ["…"] * (len(profile) > _SHOWN_SHAPES))


def _other_inputs(config: ModelConfig) -> set[str]:
    """Inputs that the configuration names elsewhere: controls and states of sequences, batch inputs."""
    sequence = config.sequence_batching
    names = {control.name for control in sequence.control_input} | {state.input_name for state in sequence.state}
    return names | {target for batch in config.batch_input for target in batch.target_name}


def _other_outputs(config: ModelConfig) -> set[str]:
    names = {state.output_name for state in config.sequence_batching.state}
    return names | {target for batch in config.batch_output for target in batch.target_name}
