"""CT510: names of models that the server takes for signs of a lack of memory."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import server
from cdk_triton.triton.findings import Severity

# A load or an invocation that fails with one of these in its message is taken for one that ran out of memory; of the
# server's list, those that can be a part of a name.
_OUT_OF_MEMORY = ("OOM", "OutOfMemory", "MemoryError", "CUDA_OUT_OF_MEMORY", "CNMEM_STATUS_OUT_OF_MEMORY")


@rule(
    "CT510",
    Severity.WARNING,
    "the name of a model makes its errors look like a lack of memory",
    source=server("src/sagemaker_server.cc", 885, 921),
    modes=("multi",),
)
def name_like_out_of_memory(context: CheckContext) -> Iterator[Problem]:
    """The name of a model contains a word, such as `OOM`, that the server treats as a sign of a lack of memory.

    The server searches the message of a failed load or invocation for such words. If it finds one, the container
    returns status 507 instead of 400, so SageMaker unloads other models and retries. Error messages quote the names of
    an ensemble's steps and the paths of files. For this reason, many errors of such a model lead to status 507,
    whatever their cause is. Rename the model.

    Example:
        $ cdk-triton validate . --mode multi
        # ZOOM/config.pbtxt
        backend: "python"

    Instead:
        # ZOOM/config.pbtxt is removed
        # zoom/config.pbtxt
        backend: "python"
    """
    for model in context.loaded_models:
        if word := next((word for word in _OUT_OF_MEMORY if word in model.name), None):
            yield Problem(
                model.directory,
                f"the name {model.name!r} contains {word!r}; if the message of an error quotes the name, the container "
                "would answer with status 507 instead of 400, and SageMaker would unload other models and retry",
                "rename the model",
            )
