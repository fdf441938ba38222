"""CT701 and CT704: what TensorRT's own parser reports about a network, before a GPU is paid to build its plan.

They run where they are asked for (`preflight`): a network may take the parser a minute. Its opinion is not the
release's own, so that both are warnings.
"""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.tensorrt_models.graphs import plan_graph_faults
from cdk_triton.tensorrt_models.reader.parser import ParsedNetwork, TensorRTParser
from cdk_triton.tensorrt_models.recipe import Profile
from cdk_triton.tensorrt_models.sources import PlanSource, plan_sources, profile_fault
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.releases import release

_SHOWN_SHAPES = 4
_NO_REASON = "false"  # the parser quotes the condition of its assertion, and has no importer for the operator


@rule(
    "CT701",
    Severity.WARNING,
    "TensorRT's parser rejects the network of a plan",
    source="https://docs.nvidia.com/deeplearning/tensorrt/latest/_static/python-api/parsers/Onnx/pyOnnx.html",
    asks_parser=True,
)
def unparsed_network(context: CheckContext) -> Iterator[Problem]:
    """TensorRT's ONNX parser rejects an operator or a type of the network, or the file itself.

    The rule uses the parser of TensorRT-RTX, which runs without a GPU (`pip install 'cdk-triton[preflight]'`). This
    parser is related to the parser of the release's TensorRT, but it is a different version. If the release's parser
    rejects the network too, no plan can be built. But the release may accept an operator that this parser rejects, or a
    plugin may add the operator. The rule reads the network of a recipe, and a `model.onnx` in the version directory of
    a TensorRT model. Replace the rejected parts when you export the network, or run the network with ONNX Runtime. If a
    plugin or the release's TensorRT supports these parts, acknowledge CT701.

    Example:
        $ cdk-triton validate . --preflight
        # bert/config.pbtxt
        platform: "tensorrt_plan"
        max_batch_size: 8
        input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }
        output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }
        # bert/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        network (float[batch, 4] x) => (float[batch, 4] y) { y = Bernoulli (x) }
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
        The parser of the release's TensorRT may give another result. The rule does not build a plan, so it does not
        find errors that occur only on a GPU.
    """
    for source, network in _networks(context):
        first: dict[str, str] = {}
        reported = {fault.operator for fault in plan_graph_faults(context, source)}
        for fault in network.faults:
            if fault.operator in reported:
                continue  # CT706
            where = f"the operator {fault.operator}" if fault.operator else "the file"
            where += f" (node {fault.node!r})" if fault.node else ""
            reason = "" if fault.reason == _NO_REASON else f": {fault.reason}"
            first.setdefault(fault.operator, f"does not support {where}{reason}")
        for said in (network.failure, *first.values()):
            if said:
                yield Problem(
                    source.network.path,
                    f"the parser of {_versions(context, network)} {said}; if the parser of the release's TensorRT "
                    f"fails too, no plan can be built for {source.owner.name!r}",
                    "replace the unsupported parts when you export the network, run the network with ONNX Runtime, or "
                    "acknowledge CT701 if a plugin or the release's TensorRT supports these parts",
                )


@rule(
    "CT704",
    Severity.WARNING,
    "TensorRT-RTX rejects the required shapes of a plan",
    source="https://docs.nvidia.com/deeplearning/tensorrt/latest/inference-library/work-dynamic-shapes.html",
    asks_parser=True,
)
def rejected_profile(context: CheckContext) -> Iterator[Problem]:
    """TensorRT-RTX would not build a plan from the network for an optimisation profile.

    If the release's TensorRT rejects the profile too, no plan can be built. With a recipe, the rule tries the profiles
    of the recipe. Without a recipe, the rule tries a `model.onnx` in the version directory with the shapes of the
    configuration: batches from 1 to `max_batch_size`, and the `dims`. A network that was exported without a dynamic
    batch dimension accepts only one batch size. Export the network with dynamic dimensions, or declare the network's
    shapes.

    Example:
        $ cdk-triton validate . --preflight
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

    Instead:
        # bert/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        network (float[batch, 4] x) => (float[batch, 4] y) { y = Relu (x) }

    Limits:
        The release's TensorRT may give another result. The rule does not check whether inputs have equal lengths if the
        network requires this. Without a recipe, the rule does not try a profile with a dimension of -1.
    """
    for source, network in _networks(context):
        for profile, said in zip(source.profiles, network.rejections, strict=False):  # none: it was not parsed
            if said and not _is_reported(source, profile):
                whose = "its recipe" if source.has_recipe else "its config.pbtxt"
                yield Problem(
                    source.network.path,
                    f"{_versions(context, network)} would not build {source.owner.name!r} for the shapes of {whose} "
                    f"({_shapes(profile)}): {said}; if the release's TensorRT fails too, no plan can be built",
                    "export the network with these dimensions dynamic, or declare the shapes of the network",
                )


def _is_reported(source: PlanSource, profile: Profile) -> bool:
    """Whether CT702 reports the profile, or CT703 reports its names."""
    if source.onnx is None:
        return False
    if source.has_recipe:
        return profile_fault(profile, source.onnx) is not None
    return not profile.keys() <= {tensor.name for tensor in source.onnx.inputs}


def _networks(context: CheckContext) -> Iterator[tuple[PlanSource, ParsedNetwork]]:
    for source in plan_sources(context):
        yield source, context.contents(TensorRTParser.for_profiles(source.profiles), source.network)


def _versions(context: CheckContext, network: ParsedNetwork) -> str:
    own = f"TensorRT-RTX {network.version}"
    if context.platform is None or context.platform.release is None:
        return f"{own} (you did not name the endpoint's release)"
    row = release(context.platform.release)
    doubt = ", unverified" if row.tensorrt_confidence == "unverified" else ""
    return f"{own} (release {row.release} has TensorRT {row.tensorrt}{doubt})"


def _shapes(profile: Profile) -> str:
    shown = [
        f"{name} {'x'.join(map(str, shapes.minimum))} to {'x'.join(map(str, shapes.maximum))}"
        for name, shapes in list(profile.items())[:_SHOWN_SHAPES]
    ]
    return ", ".join(shown + ["…"] * (len(profile) > _SHOWN_SHAPES))
