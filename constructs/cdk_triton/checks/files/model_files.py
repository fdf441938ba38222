"""CT120 to CT129: whether the files are there that a model's backend loads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.backend_files import (
    BackendFile,
    backend_files,
    below,
    file_rule,
    is_pointer,
    model_files,
)
from cdk_triton.checks.derived.configured import ConfiguredModel, configured, model_rule
from cdk_triton.checks.derived.named_files import named_file
from cdk_triton.checks.derived.releases import is_at_least
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import backend, core
from cdk_triton.python_models.environments import environments
from cdk_triton.tree_models.parameters import FILES, formats
from cdk_triton.tree_models.pickles import conversion, pickles_among
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import Model
from cdk_triton.triton.releases import backends_in
from cdk_triton.triton.repository import RepositoryFile

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")


@rule(
    "CT120",
    Severity.ERROR,
    "a model's file is missing",
    source=backend("onnxruntime_backend", "src/onnxruntime.cc", 409, 418),
)
def missing_file(context: CheckContext) -> Iterator[Problem]:
    """A version of the model lacks the file that the model's backend loads.

    The server does not load a model without this file. If the file of a Python model is missing, the server does not
    even report a failure. It waits for the model until SageMaker's time limit ends.

    Each backend loads a file with a default name, unless `default_model_filename` sets another name. The default names
    are `model.onnx`, `model.plan`, `model.pt` (`model.pt2` for the platform `torch_aoti`), `model.xml`,
    `model.graphdef`, the directory `model.savedmodel`, `model.py`, and `model.dali` or `dali.py`. `model.onnx` may be a
    directory that contains a file `model.onnx`. For the backend `fil`, the parameter `model_type` determines the name.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/main.py
        class TritonPythonModel:
            def execute(self, requests):
                return []

    Instead:
        # model/config.pbtxt
        backend: "python"
        default_model_filename: "main.py"

    Limits:
        If `cc_model_filenames` has an entry for the compute capability of the GPU, the server loads the file that this
        entry names. If no platform is given, CT122 checks the files in `cc_model_filenames`, and this rule does not.
        CT601 reports a backend that SageMaker's image of the release does not have.
    """
    missing = set()
    for file in backend_files(context):
        if file.is_there or _is_gone(context, file.backend):
            continue
        if file.backend == "python" and file.files.has_directory(file.path):
            continue  # a directory in its place is CT146's
        missing.add(file.path)
        yield file.problem(f"the file is missing, so {_consequence(file)}", _fix(file))
    for each, path in _completing_files(context):
        if path not in missing:
            yield Problem(
                path,
                "the file is missing; the backend completes inputs and outputs from this file and not from those in "
                f"cc_model_filenames, so the server would not load {each.name!r}: unable to find '{path}' for model "
                f"instance '{each.name}'",
                f"name inputs and outputs in the configuration, or add the file as {path.name}",
                "input" if not each.config.input else "output",
            )


def _is_gone(context: CheckContext, backend: str) -> bool:
    """Whether SageMaker's image of the release does not have the backend."""
    platform = context.platform
    if platform is None or platform.release is None or platform.image is not None:
        return False
    return backend not in backends_in(platform.release)


def _completing_files(context: CheckContext) -> Iterator[tuple[ConfiguredModel, PurePosixPath]]:
    """The missing files from which the ONNX Runtime backend would complete models with `cc_model_filenames`."""
    for each in configured(context):
        config, model = each.config, each.model
        if model.backend_name != "onnxruntime" or not config.cc_model_filenames:
            continue
        if config.output and (config.input or config.batch_input):
            continue
        files = model_files(context)[model.name]
        for version in model.served_versions:
            path = below(model.directory / str(version), config.default_model_filename or "model.onnx")
            if version in model.versions and not files.has(path) and not files.has(path / "model.onnx"):
                yield each, path


def _consequence(each: BackendFile) -> str:
    name = each.model.name
    if each.backend == "python":
        return f"the server would wait for {name!r} for ever: Python model file not found in '{each.path}'"
    locations = ", ".join(map(str, (each.path, *each.alternatives)))
    words = {
        "tensorrt": f"unable to load plan file to auto complete config: {each.path}",
        "dali": f"Failed to load model file. The program looked in the following locations: {locations}",
        "openvino": f"unable to find '{each.path}' for model '{name}'",
        "fil": "its backend loads no other file",
    }.get(each.backend, f"unable to find '{each.path}' for model instance '{name}'")
    return f"the server would not load {name!r}: {words}"


def _fix(each: BackendFile) -> str:
    if each.backend == "fil" and (pickles := pickles_among(each.files.names_in(each.version))):
        return conversion(each.version / pickles[0], "", each.context.platform)
    if each.backend == "fil" and not each.field and (types := _types_of(each)):
        return f'write parameters {{ key: "model_type" value {{ string_value: "{types[0]}" }} }} for {FILES[types[0]]}'
    like = [name for name in each.files.names_in(each.version) if PurePosixPath(name).suffix == each.path.suffix]
    if len(like) == 1 and not each.field:
        return f'rename {each.version / like[0]} to {each.path.name}, or write default_model_filename: "{like[0]}"'
    if len(like) == 1:
        return f"write {like[0]!r} if that is meant, or add the file"
    return "add the file" if each.field else "add the file, or name another file in default_model_filename"


def _types_of(each: BackendFile) -> list[str]:
    """The values of `model_type` with which FIL would load a file that is there."""
    there, platform = each.files.names_in(each.version), each.context.platform
    known = formats(None if platform is None else platform.release)
    return [name for name in known if FILES[name] in there]


@rule(
    "CT121",
    Severity.WARNING,
    "the version directory of a model is empty",
    source="https://github.com/triton-inference-server/server/issues/3623",
)
def empty_version(context: CheckContext) -> Iterator[Problem]:
    """Git does not keep empty directories, so a fresh clone lacks the version directory of the model.

    Some backends load no file from the version directory. The server still does not load a model without a version
    directory. Add an empty file, such as `.gitkeep`, so that a clone contains the directory.

    Example:
        # model/config.pbtxt
        backend: "identity"
        # model/1/.gitignore
        *

    Instead:
        # model/1/.gitkeep

    Limits:
        CT120 reports models whose backend needs a file, and CT111 reports ensembles.
    """
    needed = {each.version for each in backend_files(context)}
    for model in context.loaded_models:
        if model.backend_name is None or model.config_error is not None:
            continue
        files = model_files(context)[model.name]
        for version in model.served_versions:
            directory = model.directory / str(version)
            if version in model.versions and directory not in needed and not files.has_directory(directory):
                yield Problem(
                    directory,
                    f"the version directory of {model.name!r} is empty; the server would not load the model from a "
                    "fresh clone, because git does not keep empty directories: at least one version must be available "
                    f"under the version policy of model '{model.name}'",
                    f"create the empty file {directory / '.gitkeep'}",
                )


@model_rule(
    "CT122",
    Severity.WARNING,
    "cc_model_filenames names a file that is missing",
    source=backend("backend", "src/backend_model_instance.cc", 96, 106),
)
def missing_file_for_capability(each: ConfiguredModel) -> Iterator[Problem]:
    """The server loads the file that `cc_model_filenames` names for the compute capability of the GPU.

    So the server loads the model on GPUs whose file exists, but not on GPUs whose file is missing. If a platform is
    given, CT120 reports the missing file of the platform's GPU.

    Example:
        # model/config.pbtxt
        backend: "tensorrt"
        max_batch_size: 8
        cc_model_filenames { key: "7.5" value: "t4.plan" }
        # model/1/.gitkeep

    Instead:
        # model/1/t4.plan
        plan
    """
    model, named = each.model, each.config.cc_model_filenames
    if not named or model.config_error is not None:
        return
    reported = {(file.version, file.path) for file in backend_files(each.context)}
    files = model_files(each.context)[model.name]
    for version in model.served_versions:
        directory = model.directory / str(version)
        for capability, name in sorted(named.items()):
            path = below(directory, name)
            if files.has(path) or (directory, path) in reported or version not in model.versions:
                continue
            yield each.problem(
                f'cc_model_filenames["{capability}"]',
                f"the file {path} for GPUs of compute capability {capability} is missing; on such a GPU the server "
                f"would not load {model.name!r}",
                "add the file, or remove it from cc_model_filenames",
            )


@file_rule(
    "CT123",
    Severity.ERROR,
    "a TensorFlow model's directory lacks the saved model",
    source=backend("tensorflow_backend", "src/tensorflow.cc", 1729, 1768),
)
def incomplete_saved_model(each: BackendFile) -> Iterator[Problem]:
    """The directory `model.savedmodel` needs the file `saved_model.pb` beside the directory `variables`.

    Without `saved_model.pb` (or `saved_model.pbtxt`), the server does not load the model. Put the content of
    TensorFlow's export directly into `model.savedmodel`.

    Example:
        # model/config.pbtxt
        platform: "tensorflow_savedmodel"
        # model/1/model.savedmodel/variables/variables.index
        weights

    Instead:
        # model/1/model.savedmodel/saved_model.pb
        graph
    """
    if each.backend != "tensorflow" or each.config.platform == "tensorflow_graphdef" or not each.is_there:
        return
    if each.path.name == "model.graphdef" or each.files.has(each.version / "model.graphdef"):
        return
    if not any(each.files.has(each.path / name) for name in ("saved_model.pb", "saved_model.pbtxt")):
        yield each.unloadable(
            "the directory contains no saved_model.pb",
            "Could not find SavedModel .pb or .pbtxt at supplied export directory path",
            "put TensorFlow's export (saved_model.pb, variables/) directly into this directory",
        )


@file_rule(
    "CT124",
    Severity.WARNING,
    "an OpenVINO model has no file with weights",
    source=backend("openvino_backend", "src/openvino.cc", 205, 237),
)
def missing_weights(each: BackendFile) -> Iterator[Problem]:
    """OpenVINO reads the weights of `model.xml` from the file `model.bin` in the same directory.

    If the network has weights and this file is missing, the server does not load the model. Copy the `.bin` file that
    OpenVINO exported together with the `.xml` file.

    Example:
        # model/config.pbtxt
        backend: "openvino"
        # model/1/model.xml
        <net/>

    Instead:
        # model/1/model.bin
        weights

    Limits:
        A network without constants does not need the `.bin` file, but nearly every network has constants.
    """
    if each.backend != "openvino" or each.path.suffix != ".xml" or not each.is_there:
        return
    weights = each.path.with_suffix(".bin")
    if not each.files.has(weights):
        yield Problem(
            weights,
            f"the file is missing beside {each.path.name}; the server would not load a network with weights: bin file "
            "cannot be found",
            f"copy the .bin file that OpenVINO exported together with {each.path.name}",
        )


@rule(
    "CT127",
    Severity.ERROR,
    "a model's file is a pointer of Git LFS",
    source="https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md",
)
def pointer_file(context: CheckContext) -> Iterator[Problem]:
    """A clone without Git LFS contains a pointer, a text file of three lines, instead of the content of the file.

    The server does not load a model whose file is such a pointer. The backends report different errors, but the cause
    is the same: Git LFS did not fetch the content. Run `git lfs pull`. The rule checks label files, data files for
    warm-ups and initial states, packed environments, and the files of the versions that the server loads.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        # model/1/model.onnx
        version https://git-lfs.github.com/spec/v1
        oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
        size 12345

    Instead:
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N] IN) => (float[N] OUT) { OUT = Identity(IN) }
    """
    own = {each.file.path for each in backend_files(context) if each.file is not None}
    seen: set[PurePosixPath] = set()
    for model, file in _needed_files(context):
        if file.path in seen or not is_pointer(context, file):
            continue
        seen.add(file.path)
        instead = f"the content that {model.name!r} reads"
        if file.path in own:
            instead = f"the model itself, so the server would not load {model.name!r}"
        yield Problem(file.path, f"the file is a Git LFS pointer, not {instead}", "run `git lfs pull`")


def _needed_files(context: CheckContext) -> Iterator[tuple[Model, RepositoryFile]]:
    """The files that models read, as far as their places are known."""
    for model in context.loaded_models:
        places = {str(version) for version in model.served_versions} | {"warmup", "initial_state"}
        named = {each.label_filename for each in (model.config.output if model.config else ())} - {""}
        labels = {below(model.directory, name) for name in named}
        depth = len(model.directory.parts)
        for file in model.files:
            inside = file.path.parts[depth:]
            if (len(inside) > 1 and inside[0] in places) or file.path in labels:
                yield model, file
    for each in environments(context):
        if each.archive is not None:
            yield each.owner.model, each.archive


@file_rule(
    "CT128",
    Severity.ERROR,
    "a DALI model's path has a character that the backend rejects",
    source=backend("dali_backend", "src/utils/utils.h", 115, 150),
    applies=lambda platform: is_at_least(platform, "25.07"),
)
def rejected_dali_path(each: BackendFile) -> Iterator[Problem]:
    """From 25.07 on, the DALI backend accepts only ASCII letters, digits, `_`, `.`, `-` and `/` in a file's path.

    If the path of the model's file has another character, the server does not load the model. Rename the directory or
    the file.

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
        # décodage/config.pbtxt
        backend: "dali"
        max_batch_size: 8

    Instead:
        # décodage/config.pbtxt is removed
        # decodage/config.pbtxt
        backend: "dali"
        max_batch_size: 8
    """
    wrong = next((character for part in each.path.parts for character in part if character not in _PLAIN), None)
    if each.backend == "dali" and wrong is not None:
        yield each.unloadable(
            f"the path has the character {wrong!r}",
            f"File path '{each.path}' contains an invalid character: '{wrong}'",
            "use letters, digits, '_', '.' and '-' only",
        )


@model_rule(
    "CT129",
    Severity.ERROR,
    "a file with labels is missing",
    source=core("src/model.cc", 113, 128),
)
def missing_labels(each: ConfiguredModel) -> Iterator[Problem]:
    """When the server loads a model, it reads the labels of each output from the model's directory.

    If the file that `label_filename` names is missing, or is a directory, the server does not load the model.

    Example:
        # model/config.pbtxt
        backend: "python"
        output { name: "CLASS" data_type: TYPE_FP32 dims: 2 label_filename: "labels.txt" }

    Instead:
        # model/config.pbtxt
        backend: "python"
        output { name: "CLASS" data_type: TYPE_FP32 dims: 2 label_filename: "labels.txt" }
        # model/labels.txt
        cat
        dog
    """
    for output in each.parts("output", each.config.output):
        name, file = output.message.name, output.message.label_filename
        labels = named_file(each.context, each.model.directory, file) if file else None
        if labels is None or not (labels.error or labels.is_directory):
            continue
        words = f"failed to open text file for read {labels.spelled}: {labels.error}"
        found = f"the server cannot read the labels of the output {name!r} from {labels.spelled}"
        fix = f"add the file {labels.spelled}"
        if labels.is_directory:
            found, words = f"{found}, which is a directory", "std::length_error"
            fix = f"replace the directory {labels.spelled} with the file"
        yield output.unloadable("label_filename", found, words, f"{fix}, or remove label_filename")
