"""CT828: whether the next step of an ensemble accepts the shape of FIL's output."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.completion import known_backend
from cdk_triton.checks.derived.composition import End, flow_ends, passed_on
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import rapids_triton
from cdk_triton.triton.findings import Severity


@rule(
    "CT828",
    Severity.ERROR,
    "a step of an ensemble rejects the shape of FIL's output",
    source=rapids_triton("cpp/include/rapids_triton/model/shared_state.hpp", 67, 82),
)
def squeezed_output(context: CheckContext) -> Iterator[Problem]:
    """FIL removes every dimension of 1 from its output, so a step that reads the output gets fewer dimensions.

    If `output__0` has `dims: 1`, the output for a batch has the shape [batch] instead of [batch, 1]. The server loads
    the ensemble, and then responds to every request with an error, because the input of the next step has the shape
    [batch, 1]. With a `reshape` to the same dims, the output keeps them. The output of the last step needs no
    `reshape`.

    Example:
        # forest/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "false" } }
        # decision/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "SCORE" data_type: TYPE_FP32 dims: 1 }
        output { name: "DECISION" data_type: TYPE_FP32 dims: 1 }
        # pipeline/config.pbtxt
        platform: "ensemble"
        max_batch_size: 8
        input { name: "FEATURES" data_type: TYPE_FP32 dims: 4 }
        output { name: "DECISION" data_type: TYPE_FP32 dims: 1 }
        ensemble_scheduling {
          step {
            model_name: "forest"
            model_version: -1
            input_map { key: "input__0" value: "FEATURES" }
            output_map { key: "output__0" value: "score" }
          }
          step {
            model_name: "decision"
            model_version: -1
            input_map { key: "SCORE" value: "score" }
            output_map { key: "DECISION" value: "DECISION" }
          }
        }

    Instead:
        # forest/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 reshape { shape: 1 } }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "false" } }
    """
    for ensemble, tensors in flow_ends(context):
        for source, end in passed_on(tensors):
            given = _squeezed(context, source)
            if given is None or end.dims is None or end.batches != (True,) or len(end.dims) == given:
                continue
            expected = ",".join(map(str, (-1, *end.dims)))
            dims = ", ".join(map(str, source.dims or ()))
            yield ensemble.problem(
                end.field,
                f"the output 'output__0' of {source.model.name!r} has a dimension of 1, which FIL removes, so the "
                f"server would respond to every request with an error: unexpected shape for input '{end.tensor}' for "
                f"model '{end.model.name}'. Expected [{expected}]",
                f"add reshape {{ shape: [ {dims} ] }} to the output of {source.model.name!r}",
            )


def _squeezed(context: CheckContext, source: End) -> int | None:
    """The number of dims of FIL's output without those of 1; None if the tensor is no such output."""
    if source.model.is_ensemble or source.model.config is None or known_backend(context, source.model) != "fil":
        return None
    output = next((each for each in source.model.config.output if each.name == source.tensor), None)
    if source.tensor != "output__0" or output is None or output.HasField("reshape"):
        return None
    if source.dims is None or source.batches != (True,) or 1 not in source.dims:
        return None
    return sum(dim != 1 for dim in source.dims)
