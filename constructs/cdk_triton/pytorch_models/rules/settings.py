"""CT851 and CT852: the parameters of PyTorch models."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.configured import ConfiguredModel, configured
from cdk_triton.checks.derived.releases import is_within
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import backend
from cdk_triton.checks.spelling import Suggestions
from cdk_triton.pytorch_models.models import is_compiled, is_scripted
from cdk_triton.triton.findings import Severity

_READ = (  # ParseParameters in src/pt/model_state.cc
    "DISABLE_CUDNN",
    "DISABLE_OPTIMIZED_EXECUTION",
    "ENABLE_CACHE_CLEANING",
    "ENABLE_JIT_EXECUTOR",
    "ENABLE_JIT_PROFILING",
    "ENABLE_TENSOR_FUSER",
    "ENABLE_WEIGHT_SHARING",
    "INFERENCE_MODE",
    "INTER_OP_THREAD_COUNT",
    "INTRA_OP_THREAD_COUNT",
)
_THREADS = "INTER_OP_THREAD_COUNT"
_POSITIVE = re.compile(r"\s*\+?0*[1-9].*", re.DOTALL)


@rule(
    "CT851",
    Severity.ERROR,
    "two PyTorch models set the number of threads between operators",
    source="https://github.com/triton-inference-server/pytorch_backend/pull/159",
    applies=lambda platform: is_within(platform, "24.05", "25.11"),
)
def threads_set_twice(context: CheckContext) -> Iterator[Problem]:
    """PyTorch accepts `INTER_OP_THREAD_COUNT` only once per process, and releases before 25.11 set it for each model.

    The second model with this parameter, or a second version of the same model, ends the server while it loads. From
    25.11 on, the value of the first model applies to all.

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge --default-model one --additional-model other
        # one/config.pbtxt
        backend: "pytorch"
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        parameters { key: "INTER_OP_THREAD_COUNT" value { string_value: "1" } }
        # other/config.pbtxt
        backend: "pytorch"
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        parameters { key: "INTER_OP_THREAD_COUNT" value { string_value: "1" } }

    Instead:
        # other/config.pbtxt
        backend: "pytorch"
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }

    Limits:
        On a multi-model endpoint, the models of all archives share one server. The rule sees only one archive.
    """
    first: ConfiguredModel | None = None
    for each in configured(context):
        if _THREADS not in each.config.parameters or not is_scripted(context, each.model):
            continue
        if not _POSITIVE.fullmatch(each.config.parameters[_THREADS].string_value):
            continue
        if first is not None or len(each.model.served_versions) > 1:
            other = "another version" if first is None else repr(first.name)
            yield each.problem(
                f'parameters["{_THREADS}"]',
                f"{each.name!r} and {other} set {_THREADS}, so the server would end while it loads the second: "
                "Error: cannot set number of interop threads after parallel work has started or "
                "set_num_interop_threads called",
                "keep the parameter in one model of the server, with one version, or use release 25.11 or later",
            )
        first = first or each


@rule(
    "CT852",
    Severity.WARNING,
    "the backend does not read a parameter of a PyTorch model",
    source=backend("pytorch_backend", "src/pt/model_state.cc", 283, 490),
)
def unread_parameter(context: CheckContext) -> Iterator[Problem]:
    """The backend ignores a parameter with a misspelt name, and reads no parameters for compiled models.

    The names of the parameters consist of capital letters. The server does not report an error, and serves the model
    without the setting. From 26.03 to 26.05, a model of the platform `torch_aoti` always has the default settings,
    because the backend reads its parameters only if the configuration has none.

    Example:
        # model/config.pbtxt
        backend: "pytorch"
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        parameters { key: "inference_mode" value { string_value: "true" } }

    Instead:
        # model/config.pbtxt
        backend: "pytorch"
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        parameters { key: "INFERENCE_MODE" value { string_value: "true" } }

    Limits:
        The rule reports a name only if it is similar to the name of a parameter.
    """
    suggestions, platform = Suggestions(), context.platform
    for each in configured(context):
        compiled = is_compiled(context, each.model)
        if not each.config.parameters or not (compiled or is_scripted(context, each.model)):
            continue
        reads_none = compiled and platform is not None and is_within(platform, "26.03", "26.06")
        for name in sorted(each.config.parameters):
            meant = suggestions.closest(name.upper(), _READ)
            if name in _READ and reads_none:
                fix = "remove the parameter, or serve the model as TorchScript"
            elif name not in _READ and meant is not None:
                fix = f"did you mean {meant!r}?"
            else:
                continue
            yield each.problem(
                f'parameters["{name}"]', f"the backend does not read the parameter {name!r} of {each.name!r}", fix
            )
