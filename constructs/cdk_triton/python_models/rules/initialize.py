"""CT184: whether a Python model finds in the configuration and in its directory what `initialize` takes from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from cdk_triton.checks.derived.backend_files import BackendFile
from cdk_triton.checks.derived.releases import is_newer_than_schema
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend
from cdk_triton.python_models.modules import PythonModel, source_rule
from cdk_triton.python_models.reader.initialize import Served, failure_of
from cdk_triton.python_models.reader.values import Message
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import ModelConfig, ModelInput, ModelOutput, enum_name


@source_rule(
    "CT184",
    Severity.ERROR,
    "initialize of a Python model fails",
    source=backend("python_backend", "src/python_be.cc", 560, 600),
)
def failing_initialize(each: PythonModel) -> Iterator[Problem]:
    """`initialize` reads a value that the configuration lacks, or a file that is not in the model's directory.

    The server does not load the model. `initialize` receives a dictionary of strings with the keys `model_config`,
    `model_instance_kind`, `model_instance_name`, `model_instance_device_id`, `model_repository`, `model_version` and
    `model_name`. `model_config` is the configuration as JSON, so parse it with `json.loads`. In this JSON, the value of
    a parameter is in `string_value`. `model_repository` is the path of the model's directory, which contains the
    directories of the versions.

    Example:
        # model/config.pbtxt
        backend: "python"
        parameters { key: "threshold" value { string_value: "0.5" } }
        # model/1/model.py
        import json

        class TritonPythonModel:
            def initialize(self, args):
                config = json.loads(args["model_config"])
                self.threshold = float(config["parameters"]["threshold"])

            def execute(self, requests):
                return []

    Instead:
        # model/1/model.py
        import json

        class TritonPythonModel:
            def initialize(self, args):
                config = json.loads(args["model_config"])
                self.threshold = float(config["parameters"]["threshold"]["string_value"])

            def execute(self, requests):
                return []

    Limits:
        The rule follows the method up to the first statement that may not run or whose effect is unknown, for example a
        call of another method. The rule reports a missing file only if another directory of the model contains a file
        of the same name, and no earlier statement may have created the file. The rule skips a model with
        `auto_complete_config`, and the entry model of a multi-model endpoint.
    """
    file, source = each
    if source.initialize is None or source.model is None:
        return
    if "auto_complete_config" in source.model.methods or not source.model.is_complete:
        return
    if is_newer_than_schema(file.context.platform) or file.context.is_renamed(file.model):
        return
    served = Served(file.model.name, file.model.directory, file.path, _config(file), _missing_at(file))
    failure = failure_of(source.initialize, served)
    if failure is not None:
        yield file.unloadable(
            f"initialize fails in line {failure.line}",
            failure.said,
            "correct this line: use only values that the configuration, the arguments or the model's directory contain",
            line=failure.line,
        )


def _config(each: BackendFile) -> Message:
    """The configuration as the server writes it in JSON, as far as it is known."""
    config = each.config
    parameters = {name: Message({"string_value": one.string_value}) for name, one in config.parameters.items()}
    known = {
        "name": each.model.name,
        "max_batch_size": config.max_batch_size,
        "input": [_tensor(tensor) for tensor in config.input],
        "output": [_tensor(tensor) for tensor in config.output],
        "parameters": Message(parameters),
    }
    return Message(known, frozenset(ModelConfig.DESCRIPTOR.fields_by_name))


def _tensor(tensor: ModelInput | ModelOutput) -> Message:
    known = {"name": tensor.name, "data_type": enum_name(tensor, "data_type")}
    return Message(known, frozenset(tensor.DESCRIPTOR.fields_by_name))


def _missing_at(each: BackendFile) -> Callable[[PurePosixPath], bool]:
    names = {path.name for path in each.files}

    def misses(path: PurePosixPath) -> bool:
        is_own = path.is_relative_to(each.model.directory)
        return is_own and path.name in names and not each.files.has(path) and not each.files.has_directory(path)

    return misses
