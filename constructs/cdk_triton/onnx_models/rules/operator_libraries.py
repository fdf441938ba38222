"""CT291: whether ONNX Runtime finds the libraries of custom operators that a configuration names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.completion import known_backend
from cdk_triton.checks.derived.configured import ConfiguredModel, model_rule
from cdk_triton.checks.derived.named_files import NamedFile, named_file
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import Model
from cdk_triton.triton.serve import SINGLE_MODEL_REPOSITORY

__all__ = ["library_advice"]

_ARCHIVES = "/opt/ml/models/"  # of a multi-model endpoint
_IS_DIRECTORY = "cannot read file data: Is a directory"
_NO_FILE = "cannot open shared object file: No such file or directory"


@model_rule(
    "CT291",
    Severity.ERROR,
    "a library of custom operators is missing",
    source=backend("onnxruntime_backend", "src/onnxruntime.cc", 956, 972),
)
def library_missing(each: ConfiguredModel) -> Iterator[Problem]:
    """`op_library_filename` names a library that ONNX Runtime does not find, so the server does not load the model.

    The ONNX Runtime backend passes the text to the dynamic loader as it is. The loader looks for a name without `/` in
    the directories of the system, and for any other relative path in the server's working directory. Neither is the
    directory of the model. A single-model container unpacks the archive in `/opt/ml/model`, so write an absolute path
    below this directory. On a multi-model endpoint, SageMaker chooses the directory, so the library has to be in an
    image of your own.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        model_operations { op_library_filename: "libcustom.so" }
        # model/libcustom.so

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        model_operations { op_library_filename: "/opt/ml/model/model/libcustom.so" }

    Limits:
        Your own image may have a library at any other path. So the rule accepts absolute paths outside `/opt/ml/model`
        and `/opt/ml/models`, and with your own image also relative paths. Without a serving platform, the image is not
        known, so the rule reports a relative path only if the repository has a file with the name of the library.
    """
    context = each.context
    names = each.config.model_operations.op_library_filename
    if not names or known_backend(context, each.model) != "onnxruntime":
        return
    for index, name in enumerate(names):
        named = _in_archive(context, name)
        if (why := _why_missing(context, name, named)) is None:
            continue
        is_directory = named is not None and named.is_directory
        yield each.unloadable(
            f"model_operations.op_library_filename[{index}]",
            f"op_library_filename is {name!r}, {why}",
            f"onnx runtime error 1: Failed to load library {name} with error: {name}: "
            f"{_IS_DIRECTORY if is_directory else _NO_FILE}",
            library_advice(context, each.model) if is_directory else _fix(each, PurePosixPath(name).name),
        )


def _in_archive(context: CheckContext, name: str) -> NamedFile | None:
    """What a path below the unpacked archive of a single-model container leads to; None for another path."""
    if context.mode == "multi" or not name.startswith(SINGLE_MODEL_REPOSITORY):
        return None
    return named_file(context, PurePosixPath(), name.removeprefix(SINGLE_MODEL_REPOSITORY))


def _why_missing(context: CheckContext, name: str, named: NamedFile | None) -> str | None:
    """Why the loader does not find a library; None if it finds the library, or if that is not known."""
    if named is not None:
        missing = f"but the repository has no file {named.spelled.removeprefix('./')}" if named.error else None
        return "which is a directory" if named.is_directory else missing
    if name.startswith((SINGLE_MODEL_REPOSITORY, _ARCHIVES)):
        return "but SageMaker unpacks the archive elsewhere"
    if not name or name.startswith("/") or _may_be_in_image(context, PurePosixPath(name).name):
        return None
    where = "the server's working directory" if "/" in name else "the directories of the system"
    return f"which the dynamic loader looks for in {where}, not in the directory of the model"


def _may_be_in_image(context: CheckContext, name: str) -> bool:
    """Whether the loader may find a library in the image; NVIDIA's images do not have libraries of custom operators."""
    if context.platform is None:  # a file of this name in the repository is then probably the library that is meant
        return all(file.path.name != name for file in context.repository.files)
    return context.platform.image is not None


def _fix(each: ConfiguredModel, name: str) -> str:
    there = [file.path for file in each.model.files if file.path.name == name]
    if each.context.mode == "single" and len(there) == 1:
        return f"write {SINGLE_MODEL_REPOSITORY + str(there[0])!r}"
    return library_advice(each.context, each.model, name)


def library_advice(context: CheckContext, model: Model, name: str = "libcustom.so") -> str:
    """Where to put a library of custom operators, and the path that `op_library_filename` then names."""
    if context.mode == "multi":
        return (
            "put the library into an image of your own, and set op_library_filename to the absolute path there, "
            "because SageMaker chooses the directory of an archive"
        )
    path = f"{SINGLE_MODEL_REPOSITORY}{model.directory}/{name}"
    return f"put the library into the directory {model.directory}, and set op_library_filename to {path!r}"
