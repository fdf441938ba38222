"""CT245 and CT298: where the labels of an output may be, and what they name."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath

from cdk_triton.checks.derived.backend_files import is_pointer
from cdk_triton.checks.derived.configured import ConfiguredModel, model_rule
from cdk_triton.checks.derived.named_files import named_file
from cdk_triton.checks.derived.releases import is_at_least
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import core, server
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import enum_name

_NO_SCORES = ("FP16", "BF16", "BOOL", "STRING")  # the types of which the server makes no classes
_LARGEST = 16 * 2**20  # bytes of a file whose lines are counted
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
        output { name: "CLASS" data_type: TYPE_FP32 dims: 2 label_filename: "../labels.txt" }
        # labels.txt
        cat
        dog

    Instead:
        $ cdk-triton validate . --platform 26.05/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        output { name: "CLASS" data_type: TYPE_FP32 dims: 2 label_filename: "labels.txt" }
        # model/labels.txt
        cat
        dog
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


@model_rule(
    "CT298",
    Severity.WARNING,
    "the labels of an output do not fit its elements",
    source=server("src/classification.cc", 38, 140),
)
def labels_of_other_elements(each: ConfiguredModel) -> Iterator[Problem]:
    """A file of labels has more or fewer lines than the output has elements, or the output's type has no classes.

    If a request asks for the classes of an output (`class_count`), the server takes the elements of the whole output,
    without the batch dimension, for the scores of classes. It returns the largest elements, and names each of them with
    the line at its position. So the file needs a line for each element. An element without a line has no name in the
    answer. If the file has more lines, a line at the beginning is often too much, such as "background", and each
    class gets the name of another one.

    Labels fit only an output that contains one score for each class. They do not name the boxes of a detector, or an
    output that contains the numbers of classes. For such an output, remove `label_filename`, and let the caller look up
    the names. The server also cannot return classes of the types `TYPE_FP16`, `TYPE_BF16`, `TYPE_BOOL` and
    `TYPE_STRING`.

    Example:
        # model/config.pbtxt
        backend: "python"
        output { name: "BOXES" data_type: TYPE_FP32 dims: [ 25200, 9 ] label_filename: "labels.txt" }
        # model/labels.txt
        cat
        dog

    Instead:
        # model/config.pbtxt
        backend: "python"
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 label_filename: "labels.txt" }
        # model/labels.txt
        cat
        dog

    Limits:
        The rule does not count empty lines at the end of the file, and skips an output with a dimension of variable
        size and a file of more than 16 MiB.
    """
    files = {file.path: file for file in each.model.files}
    for output in each.parts("output", each.config.output):
        name, named = output.message.name, output.message.label_filename
        place = named_file(each.context, each.model.directory, named).path if named else None
        file = files.get(place) if place is not None else None
        if file is None or is_pointer(each.context, file):
            continue  # reported by another rule, such as CT127 or CT245, or made by a build
        data_type = enum_name(output.message, "data_type").removeprefix("TYPE_")
        if data_type in _NO_SCORES:
            said = data_type.replace("STRING", "BYTES")
            yield output.problem(
                "label_filename",
                f"the output {name!r} has labels, but the server answers every request for its classes with an error: "
                f"class result not available for output due to unsupported type '{said}'",
                "return the scores as TYPE_FP32, or remove label_filename",
            )
            continue
        elements = math.prod(output.message.dims)
        count = elements if file.size > _LARGEST else each.context.contents(_lines, file)
        if count in (None, elements) or min(output.message.dims, default=0) < 1:
            continue
        so = f"the elements from position {count} on have no name" if count < elements else "names may be shifted"
        yield output.problem(
            "label_filename",
            f"the output {name!r} has {elements:,} elements, but {file.path} has {count:,} lines, and the server names "
            f"each element by the line at the same position, so {so}",
            "write a line for each element, or remove label_filename if the elements are not the scores of classes",
        )


def _lines(file: Path) -> int | None:
    """The lines of a file, without empty ones at its end; None if it cannot be read."""
    try:
        text = file.read_bytes().rstrip()
    except OSError:
        return None
    return text.count(b"\n") + bool(text)
