"""CT108 and CT187 to CT189: methods, tensors and parameters of Python models that do not do what they are meant for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.completion import known_backend
from cdk_triton.checks.derived.configured import configured, ensembles
from cdk_triton.checks.derived.places import is_on_gpu
from cdk_triton.checks.registry import Problem, in_line, rule
from cdk_triton.checks.sources import backend
from cdk_triton.checks.spelling import Suggestions
from cdk_triton.python_models.modules import needed_sources, python_sources
from cdk_triton.python_models.reader.execution_environment import PARAMETER
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import enum_name

_CALLED = ("auto_complete_config", "initialize", "execute", "finalize")


@rule(
    "CT187",
    Severity.WARNING,
    "a method of a Python model never runs",
    source=backend("python_backend", "src/pb_stub.cc", 520, 600),
)
def idle_method(context: CheckContext) -> Iterator[Problem]:
    """A method has a name similar to that of a method that the server calls, or is a coroutine that nothing awaits.

    The server calls `auto_complete_config`, `initialize`, `execute` and `finalize` if the class has them. The server
    awaits only `execute`, so the body of `initialize` or `finalize` never runs if this method is a coroutine.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        class TritonPythonModel:
            def initialise(self, args):
                self.limit = 8

            def execute(self, requests):
                return []

    Instead:
        # model/1/model.py
        class TritonPythonModel:
            def initialize(self, args):
                self.limit = 8

            def execute(self, requests):
                return []

    Limits:
        The rule accepts a name that begins with the name of the server's method, such as `initialized`. The rule skips
        a model that passes itself to other code, because this code may call any method of the model.
    """
    suggestions = Suggestions()
    for each, source in python_sources(context):
        model = source.model
        if model is None or not model.is_complete:
            continue
        for name in ("initialize", "finalize"):
            method = model.methods.get(name)
            if method is not None and method.returns == ("coroutine",):
                yield each.problem(
                    f"{name} in line {method.line} is a coroutine, but the server does not await the coroutine, so the "
                    f"body of {name} never runs",
                    f"write def {name}, without async",
                    line=method.line,
                )
        own = {*model.methods, *model.values}
        for unread in model.unread:
            meant = None if unread.name in _CALLED else suggestions.closest(unread.name, _CALLED)
            if meant is not None and meant not in own and not unread.name.startswith(meant):
                does = f"defines the method {unread.name!r}, but neither the model nor the server calls it"
                yield in_line(each.path, unread.line, does, f"did you mean {meant!r}?")


@rule(
    "CT188",
    Severity.WARNING,
    "a Python model reads a BF16 tensor as a numpy array",
    source=backend("python_backend", "src/pb_tensor.cc", 580, 595),
)
def bfloat16_as_numpy(context: CheckContext) -> Iterator[Problem]:
    """The type `TYPE_BF16` has no numpy type, so `as_numpy` raises an error.

    Read the tensor with `to_dlpack`, or use another data type.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_BF16 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        # model/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return [self.answer(request) for request in requests]

            def answer(self, request):
                values = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
                return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", values)])

    Instead:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
    """
    for each, sources in needed_sources(context):
        bfloat16 = {one.name for one in each.config.input if enum_name(one, "data_type") == "TYPE_BF16"}
        for path, source in sources.items():
            for read in (one for one in source.references.numbers if one.name in bfloat16):
                yield in_line(
                    path,
                    read.line,
                    f"reads {read.name!r} with as_numpy, so {each.model.name!r} fails in this line: Tensor dtype is "
                    "BF16 and cannot be converted to NumPy. Use to_dlpack() and from_dlpack() instead.",
                    "read the tensor with to_dlpack, or use another data type",
                )


@rule(
    "CT108",
    Severity.WARNING,
    "a Python model reads an input on the GPU with as_numpy",
    source=backend("python_backend", "src/pb_tensor.cc", 579, 590),
)
def input_on_gpu(context: CheckContext) -> Iterator[Problem]:
    """`as_numpy()` reads an input that an earlier step of the ensemble leaves in the memory of the GPU.

    With the parameter `FORCE_CPU_ONLY_INPUT_TENSORS` set to `no`, a Python model gets its inputs where the earlier step
    wrote them: [CT198](files.md#ct198) lists the backends that write to the GPU. Every such read fails on an instance
    with a GPU, and works on a machine without one. Remove the parameter, or read the tensor with `to_dlpack`.

    Example:
        # ensemble/config.pbtxt
        platform: "ensemble"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        ensemble_scheduling {
          step {
            model_name: "network" model_version: -1
            input_map { key: "IN" value: "IN" }
            output_map { key: "OUT" value: "scores" }
          }
          step {
            model_name: "last" model_version: -1
            input_map { key: "SCORES" value: "scores" }
            output_map { key: "OUT" value: "OUT" }
          }
        }
        # network/config.pbtxt
        backend: "onnxruntime"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        # network/1/model.onnx
        <ir_version: 8, opset_import: ["": 17]>
        network (float[4] IN) => (float[4] OUT) { OUT = Relu(IN) }
        # last/config.pbtxt
        backend: "python"
        input { name: "SCORES" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "no" } }
        # last/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return [self.answer(request) for request in requests]

            def answer(self, request):
                scores = pb_utils.get_input_tensor_by_name(request, "SCORES").as_numpy()
                return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", scores * 2)])

    Instead:
        # last/config.pbtxt
        backend: "python"
        input { name: "SCORES" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }

    Limits:
        The limits of CT198 apply. The rule skips tensors that come from an ensemble within the ensemble.
    """
    held = _inputs_on_gpu(context)
    for each, sources in needed_sources(context) if held else ():
        for path, source in sources.items():
            for read in source.references.numbers if not source.references.handles_places else ():
                if (writer := held.get((each.model.name, read.name))) is not None:
                    yield in_line(
                        path,
                        read.line,
                        f"reads the input {read.name!r} with as_numpy(), but {writer!r} leaves it on the GPU, and "
                        f"FORCE_CPU_ONLY_INPUT_TENSORS of {each.model.name!r} is 'no', so each request fails: "
                        "Tensor is stored in GPU and cannot be converted to NumPy.",
                        "remove the parameter, or read the tensor with to_dlpack",
                    )


def _inputs_on_gpu(context: CheckContext) -> Mapping[tuple[str, str], str]:
    """Python model and input that it gets in the memory of the GPU → the model that writes it."""
    models = {each.name: each for each in configured(context)}
    taking = {
        name
        for name, each in models.items()
        if known_backend(context, each.model) == "python"
        and "FORCE_CPU_ONLY_INPUT_TENSORS" in each.config.parameters
        and each.config.parameters["FORCE_CPU_ONLY_INPUT_TENSORS"].string_value == "no"
    }
    held = {}
    for ensemble in ensembles(context) if taking else ():
        for tensor in ensemble.model.graph.tensors.values():
            writers = [
                step.model_name
                for step in tensor.writers
                for output, written in step.output_map.items()
                if written == tensor.name and step.model_name in models and is_on_gpu(models[step.model_name], output)
            ]
            for step in tensor.readers if writers else ():
                for name, read in step.input_map.items():
                    if read == tensor.name and step.model_name in taking:
                        held[step.model_name, name] = writers[0]
    return held


@rule(
    "CT189",
    Severity.WARNING,
    "a parameter of a Python model has nearly the name of one that the server reads",
    source=backend("python_backend", "src/python_be.cc", 2085, 2100),
)
def misspelt_parameter(context: CheckContext) -> Iterator[Problem]:
    """The Python backend reads only the parameters `EXECUTION_ENV_PATH` and `FORCE_CPU_ONLY_INPUT_TENSORS`.

    The model itself may read other parameters, so the server reports no error for a misspelt name, and serves the model
    without this setting.

    Example:
        # model/config.pbtxt
        backend: "python"
        parameters { key: "FORCE_CPU_ONLY_INPUT_TENSOR" value { string_value: "no" } }

    Instead:
        # model/config.pbtxt
        backend: "python"
        parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "no" } }
    """
    suggestions = Suggestions()
    known = (PARAMETER, "FORCE_CPU_ONLY_INPUT_TENSORS")
    for each in configured(context):
        if not each.config.parameters or known_backend(context, each.model) != "python":
            continue
        for name in sorted(set(each.config.parameters).difference(known)):
            meant = suggestions.closest(name.upper(), known)
            if meant is not None:
                yield each.problem(
                    f'parameters["{name}"]',
                    f"the server does not read the parameter {name!r} of {each.name!r}",
                    f"did you mean {meant!r}?",
                )
