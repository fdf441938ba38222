"""CT245: where the labels of an output may be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from posixpath import normpath

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.configured import configured
from cdk_triton.checks.derived.named_files import named_file
from cdk_triton.checks.derived.releases import is_at_least
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import core
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import Model

_WHOLE_NAMES_SINCE = "26.06"  # before, the server compares beginnings: `model2` begins with `model`


@rule(
    "CT245",
    Severity.ERROR,
    "the labels of an output are outside the model",
    source=core("src/model.cc", 112, 127),
    applies=lambda platform: is_at_least(platform, "26.02"),
)
def labels_outside_model(context: CheckContext) -> Iterator[Problem]:
    """A `label_filename` leads out of the model's directory, so servers from 26.02 on do not load the model.

    These servers read labels only from the model's directory. Copy the file into this directory.

    Example:
        $ cdk-triton validate . --platform 26.05/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        output { name: "CLASS" data_type: TYPE_FP32 dims: 10 label_filename: "../labels.txt" }
        # labels.txt
        cat

    Instead:
        $ cdk-triton validate . --platform 26.05/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        output { name: "CLASS" data_type: TYPE_FP32 dims: 10 label_filename: "labels.txt" }
        # model/labels.txt
        cat
    """
    for model, config in configured(context):
        for index, output in enumerate(config.output):
            if not output.label_filename or _is_inside(context, model, output.label_filename):
                continue
            spelled = named_file(context, model.directory, output.label_filename).spelled
            yield Problem(
                model.config_path,
                f"the labels of the output {output.name!r} are outside the model's directory, so the server would not "
                f"load {model.name!r}: label file path '{spelled}' for output '{output.name}' in model '{model.name}' "
                "is outside model directory",
                "copy the file into the model's directory, and name the copy in label_filename",
                f"output[{index}].label_filename",
            )


def _is_inside(context: CheckContext, model: Model, name: str) -> bool:
    """Whether the server takes a place for one in the model's directory; it simplifies what is not there."""
    found = named_file(context, model.directory, name)
    path = found.path if found.path is not None else PurePosixPath(normpath(found.spelled))
    if path.is_relative_to(model.directory):
        return True
    compares_beginnings = not _is_at_least(context.platform, _WHOLE_NAMES_SINCE)
    return found.is_known and compares_beginnings and str(path).startswith(str(model.directory))


def _is_at_least(platform: ServingPlatform | None, release: str) -> bool:
    return platform is not None and is_at_least(platform, release)
