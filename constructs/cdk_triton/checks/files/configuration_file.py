"""CT101 to CT107: whether the server can read a model's `config.pbtxt`."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.message import Message

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.configured import ConfiguredModel, completed_pair, configured, model_rule, said_name
from cdk_triton.checks.derived.releases import is_newer_than_schema
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import core
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import CONFIG_NAME
from cdk_triton.triton.model_config import fault_of
from cdk_triton.triton.releases import release_order
from cdk_triton.triton.schema import SCHEMA_RELEASE
from cdk_triton.triton.text_format_reader import repeated_keys
from cdk_triton.triton.versions import is_version_name

_READ_TEXT_PROTO = core("src/filesystem/api.cc", 590, 604)
_SIMILAR = ("config.pbtx", "config.pbtxt", "config.pbtxt.txt", "config.pbtext", "config.pbxt", "config.prototxt")

# Field → the first release whose schema has it, for fields added since 22.07: model_config.proto of
# triton-inference-server/common, branches r22.07 to r26.07.
_FIELD_SINCE = {
    "inference.ModelEnsembling.Step.model_namespace": "23.03",
    "inference.ModelSequenceBatching.StrategyOldest.preserve_ordering": "23.08",
    "inference.ModelSequenceBatching.State.use_same_buffer_for_input_output": "23.11",
    "inference.ModelSequenceBatching.State.use_growable_memory": "23.11",
    "inference.ModelSequenceBatching.iterative_sequence": "23.11",
    "inference.ModelConfig.runtime": "24.01",
    "inference.ModelInput.is_non_linear_format_io": "24.08",
    "inference.ModelOutput.is_non_linear_format_io": "24.08",
    "inference.ModelConfig.model_metrics": "24.11",
    "inference.ModelEnsembling.max_inflight_requests": "25.11",
}


@rule("CT101", Severity.ERROR, "config.pbtxt is not a model configuration", source=_READ_TEXT_PROTO)
def unreadable_configuration(context: CheckContext) -> Iterator[Problem]:
    """The server does not load a model if it cannot parse the model's `config.pbtxt`.

    The server reads the file as protobuf text, and rejects fields that the server's schema (`model_config.proto`) does
    not define. If `config.pbtxt` is a directory, the server crashes.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batchsize: 8

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
    """
    for model in context.loaded_models:
        if model.config_error is not None and model.config is None:
            yield Problem(
                model.config_path,
                f"{fault_of(model.config_error)}; the server would not load {model.name!r}: "
                f"failed to read text proto from {model.config_path}",
                model.config_error.fix or "correct the file; Triton's model_config.proto lists every field",
            )
        if CONFIG_NAME in model.subdirectories:
            yield Problem(
                model.config_path,
                "config.pbtxt is a directory, so the server would crash when it reads the directory: "
                "basic_string::_M_replace_aux",
                "replace the directory with a file that contains the configuration",
            )


@model_rule(
    "CT102",
    Severity.WARNING,
    "config.pbtxt has a field that only a newer schema may have",
    source=_READ_TEXT_PROTO,
    applies=is_newer_than_schema,
)
def field_unknown_to_schema(each: ConfiguredModel) -> Iterator[Problem]:
    """A field is not in the schema that the checks use, but may be in the newer schema of the serving release.

    If the release's schema does not have the field either, the server does not load the model. Look for the field in
    the release's `model_config.proto`, or install a newer `tritonclient`: this package contains the schema that the
    checks use.

    Example:
        $ cdk-triton validate . --platform 26.10/ml.g5.xlarge --image $IMAGE
        # model/config.pbtxt
        backend: "python"
        max_batchsize: 8

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
    """
    error = each.model.config_error
    if error is not None:
        yield each.problem(
            "",
            f"{fault_of(error)}; the check used the schema of {SCHEMA_RELEASE}, but the server is "
            f"{each.context.release}, whose schema may have more fields",
            f"{error.fix} Or check the name against the release's model_config.proto"
            if error.fix
            else "check the name against the release's model_config.proto, or install a newer tritonclient",
        )


@rule(
    "CT103",
    Severity.ERROR,
    "config.pbtxt has a field that the server's release does not have yet",
    source=_READ_TEXT_PROTO,
    applies=lambda platform: platform.release is not None,
)
def field_newer_than_release(context: CheckContext) -> Iterator[Problem]:
    """The server does not load the model, because a later release added the field.

    The server rejects the whole `config.pbtxt` because of this one field. Remove the field, or serve with a release
    that has the field.

    Example:
        $ cdk-triton validate . --platform 24.05/ml.g5.xlarge
        # model/config.pbtxt
        platform: "tensorrt_plan"
        input { name: "IN" data_type: TYPE_FP32 dims: [ 3, 4, 4 ] is_non_linear_format_io: true }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }

    Instead:
        # model/config.pbtxt
        platform: "tensorrt_plan"
        input { name: "IN" data_type: TYPE_FP32 dims: [ 3, 4, 4 ] }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }

    Limits:
        The rule skips fields that every release since 22.07 has.
    """
    release = context.release
    if release is None:
        return
    newer = {field: since for field, since in _FIELD_SINCE.items() if release_order(release) < release_order(since)}
    names = {full_name.rpartition(".")[2] for full_name in newer}
    for each in configured(context):
        if not any(name in (each.model.config_text or "") for name in names):
            continue  # a text that does not contain the name cannot set the field
        for field, full_name in _fields_set(each.config):
            if (since := newer.get(full_name)) is not None:
                message, _, name = full_name.rpartition(".")
                yield each.problem(
                    field,
                    f"the field exists from {since} on, but the server is {release}, which would not load "
                    f'{each.name!r}: Message type "{message}" has no field named "{name}"',
                    f"remove the field, or serve with {since} or newer",
                )


def _fields_set(message: Message, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every field that a message sets, at any depth: its path as in a finding, and its full name."""
    for descriptor, value in message.ListFields():
        path = f"{prefix}{descriptor.name}"
        yield path, descriptor.full_name
        if descriptor.message_type is None or descriptor.message_type.GetOptions().map_entry:
            continue
        items = [(f"{path}[{i}].", item) for i, item in enumerate(value)] if descriptor.is_repeated else None
        for below, item in [(f"{path}.", value)] if items is None else items:
            yield from _fields_set(item, below)


@model_rule(
    "CT104",
    Severity.ERROR,
    "the name of a model differs from its directory",
    source=core("src/model_repository_manager/model_repository_manager.cc", 1693, 1711),
)
def name_is_not_directory(each: ConfiguredModel) -> Iterator[Problem]:
    """The `name` in `config.pbtxt` differs from the name of the model's directory.

    The server then does not load the model. You may omit the field `name`. The entry model of a multi-model endpoint
    may have any `name`, because the server gives this model another name.

    Example:
        # model/config.pbtxt
        name: "another"
        backend: "python"

    Instead:
        # model/config.pbtxt
        name: "model"
        backend: "python"
    """
    name = each.config.name
    if each.context.repository.hidden_models:
        return  # reported by CT401
    if name not in ("", each.name) and not each.context.is_renamed(each.model):
        yield each.problem(
            "name",
            f"the name is {name!r} in the directory {each.name!r}, so the server would not load the model: unexpected "
            f"directory name '{each.name}' for model '{name}', directory name must equal model name",
            f'write name: "{each.name}", or rename the directory to {name!r}',
        )


@rule(
    "CT105",
    Severity.ERROR,
    "a configuration does not name the backend of its model",
    source=core("src/model_config_utils.cc", 1284, 1309),
)
def no_backend(context: CheckContext) -> Iterator[Problem]:
    """A configuration sets neither `backend` nor `platform`, and no file of the model determines the backend.

    The server does not load the model. These names of files determine the backend: `model.onnx`, `model.plan`,
    `model.pt`, `model.pt2` (from 26.03), `model.xml`, `model.py`, `model.graphdef` and `model.savedmodel`. If none of
    these files exists and the model's name contains a dot, the server uses the text after the first dot as the backend.

    Example:
        # model/config.pbtxt
        max_batch_size: 8
        # model/1/weights.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N, 4] IN) => (float[N, 4] OUT) { OUT = Identity(IN) }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        max_batch_size: 8
        default_model_filename: "weights.onnx"
    """
    for model in context.loaded_models:
        config = model.config
        unread = model.config_error is not None or CONFIG_NAME in model.subdirectories  # reported by CT101
        if unread or model.is_ensemble or completed_pair(context, model)[1]:
            continue
        if config is not None and config.HasField("ensemble_scheduling"):
            continue  # meant as an ensemble: reported by CT311
        if config is not None and (config.platform or config.default_model_filename):
            continue  # reported by CT283
        if model.looks_like_a_repository:
            continue  # reported by CT110
        said = f"Could not determine backend for model '{model.name}' with no backend in model configuration"
        if "." in model.name:  # the name ends in its first dot, so that the backend after the dot is empty
            said = f"unexpected platform type '' for {said_name(model)}"
        yield Problem(
            model.directory if model.config_text is None else model.config_path,
            f"the configuration does not name a backend, and the files of {model.name!r} do not determine the backend, "
            f"so the server would not load the model: {said}",
            'name the backend, for example backend: "python"',
            "backend",
        )


@rule(
    "CT106",
    Severity.WARNING,
    "a file looks like config.pbtxt, but the server does not read the file",
    source=_READ_TEXT_PROTO,
)
def misplaced_configuration(context: CheckContext) -> Iterator[Problem]:
    """The server reads `config.pbtxt` in the model's own directory, and uses the defaults if the file is missing.

    The server ignores a file with a similar name, and a `config.pbtxt` in a version directory. So the server serves the
    model without the settings in this file, such as batching and instances, or does not load the model at all. Move the
    file to the path that the server reads.

    Example:
        # model/1/config.pbtxt
        backend: "python"
        max_batch_size: 8
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests): ...

    Instead:
        # model/1/config.pbtxt is removed
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
    """
    for model in context.loaded_models:
        if model.config_text is not None or CONFIG_NAME in model.subdirectories:
            continue
        for file in model.files:
            *below, name = file.path.relative_to(model.directory).parts
            in_version = name == CONFIG_NAME and len(below) == 1 and is_version_name(below[0])
            if in_version or (not below and name.lower() in _SIMILAR):
                yield Problem(
                    file.path,
                    f"the server does not read this file, and {model.config_path} is missing, so the server would "
                    f"serve {model.name!r} with the defaults, or not load {model.name!r}",
                    f"move this file to {model.config_path}",
                )


@model_rule(
    "CT107",
    Severity.WARNING,
    "a map in config.pbtxt has a key twice",
    source="https://protobuf.dev/programming-guides/proto3/#maps",
)
def repeated_key(each: ConfiguredModel) -> Iterator[Problem]:
    """`input_map`, `output_map`, `parameters` or another map has several entries with the same key.

    The server uses only the last of these entries, and prints no warning. Remove the other entries, or correct their
    keys.

    Example:
        # model/config.pbtxt
        backend: "python"
        parameters { key: "threshold" value { string_value: "0.5" } }
        parameters { key: "threshold" value { string_value: "0.7" } }

    Instead:
        # model/config.pbtxt
        backend: "python"
        parameters { key: "threshold" value { string_value: "0.7" } }
    """
    for field, key in repeated_keys(each.model.config_text or "", each.config):
        yield each.problem(
            field,
            f"{each.name!r} has several entries with the key {key!r}, of which the server uses only the last",
            "remove the other entries, or correct their keys",
        )
