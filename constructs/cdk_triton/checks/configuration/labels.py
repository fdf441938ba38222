"""CT245: where the labels of an output may be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from posixpath import normpath

from cdk_triton.checks.derived.configured import ConfiguredModel, model_rule
from cdk_triton.checks.derived.named_files import named_file
from cdk_triton.checks.derived.releases import is_at_least
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import core
from cdk_triton.triton.findings import Severity

_WHOLE_NAMES_SINCE = "26.06"  # before, the server compares beginnings: `model2` begins with `model`


@model_rule(
    "CT245",
    Severity.ERROR,
    "the labels of an output are outside the model",
    source=core("src/model.cc", 112, 127),
    applies=lambda platform: is_at_least(platform, "26.02"),
)
def labels_outside_model(each: ConfiguredModel) -> Iterator[Problem]:
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
    model = each.model
    for output in each.parts("output", each.config.output):
        name, file = output.message.name, output.message.label_filename
        if file and not _is_inside(each, file):
            spelled = named_file(each.context, model.directory, file).spelled
            yield output.unloadable(
                "label_filename",
                f"the labels of the output {name!r} are outside the model's directory",
                f"label file path '{spelled}' for output '{name}' in model '{model.name}' is outside model directory",
                "copy the file into the model's directory, and name the copy in label_filename",
            )


def _is_inside(each: ConfiguredModel, name: str) -> bool:
    """Whether the server takes a place for one in the model's directory; it simplifies a path that does not exist."""
    directory, platform = each.model.directory, each.context.platform
    found = named_file(each.context, directory, name)
    path = found.path if found.path is not None else PurePosixPath(normpath(found.spelled))
    if path.is_relative_to(directory):
        return True
    compares_beginnings = platform is None or not is_at_least(platform, _WHOLE_NAMES_SINCE)
    return found.is_known and compares_beginnings and str(path).startswith(str(directory))
