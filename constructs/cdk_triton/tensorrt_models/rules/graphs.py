"""CT706: whether TensorRT's parser would take the graph of a recipe's network."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.tensorrt_models.graphs import plan_graph_faults
from cdk_triton.tensorrt_models.sources import plan_sources
from cdk_triton.triton.findings import Severity


@rule(
    "CT706",
    Severity.ERROR,
    "the network of a recipe is a graph that TensorRT cannot build",
    source="https://github.com/NVIDIA/TensorRT/blob/147005ffe1dc447bec8af9601539a9d464ca77fd/plugin/README.md",
)
def broken_network(context: CheckContext) -> Iterator[Problem]:
    """The network has a misspelt operator, operands with incompatible shapes, or a value that nothing computes.

    TensorRT's parser stops at such a fault, so the build of the plan would fail on the GPU of the build. Correct the
    network and export it again.

    Example:
        # bert/config.pbtxt
        platform: "tensorrt_plan"
        max_batch_size: 16
        input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }
        output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }
        # bert/bert.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        network (float[batch, 4] x) => (float[batch, 4] y) <float[3] bias = {1, 2, 3}> { y = Add (x, bias) }
        # bert/1/model.plan
        (built from bert/bert.onnx for x 1x4 to 16x4)

    Instead:
        # bert/bert.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        network (float[batch, 4] x) => (float[batch, 4] y) <float[4] bias = {1, 2, 3, 4}> { y = Add (x, bias) }

    Limits:
        An unknown operator may be a plugin of TensorRT. The rule reports such an operator only if its name is similar
        to the name of an ONNX operator, and never for the network of a recipe of your own class. The rule does not
        check types, and compares attributes only with the shapes of the operands. It does not check the `perm` of a
        Transpose, because TensorRT accepts some values of another length. CT701 checks all of these with the parser of
        TensorRT-RTX.
    """
    for source in plan_sources(context):
        for fault in plan_graph_faults(context, source):
            fix = "correct the network and export it again"
            yield Problem(
                source.network.path,
                f"TensorRT would not build {source.owner.name!r} from this network, because of {fault.subject}: "
                f"{fault.reason}",
                f"write {fault.fix!r} if that is meant, or {fix}" if fault.fix else fix,
            )
