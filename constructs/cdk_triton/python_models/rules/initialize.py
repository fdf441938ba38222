"""CT184: whether a Python model finds in the configuration and in its directory what `initialize` takes from them."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend
from cdk_triton.python_models.initialized import Initialized, initialize_rule
from cdk_triton.triton.findings import Severity


@initialize_rule(
    "CT184",
    Severity.ERROR,
    "initialize of a Python model fails",
    source=backend("python_backend", "src/python_be.cc", 560, 600),
)
def failing_initialize(each: Initialized) -> Iterator[Problem]:
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
        of the same name, and no earlier statement may have created the file. CT183 reports a file that is nowhere. The
        rule skips a model with `auto_complete_config`. It does not check uses of the name that a multi-model endpoint
        gives to the entry model.
    """
    file, failure = each.file, each.outcome.failure
    if failure is not None:
        yield file.unloadable(
            f"initialize fails in line {failure.line}",
            failure.said,
            "correct this line: use only values that the configuration, the arguments or the model's directory contain",
            line=failure.line,
        )
