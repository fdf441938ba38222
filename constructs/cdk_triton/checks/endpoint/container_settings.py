"""CT420 to CT424: settings of the container's environment that its release does not take, or does not read.

`ContainerEnvironment` itself rejects what no release takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cdk_triton._wording import in_words, listed_in_quotes
from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.releases import is_at_least, is_older
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import backend, core, server
from cdk_triton.triton.environment import ContainerEnvironment, container_variables
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.option_values import MIB, least_shared_memory
from cdk_triton.triton.releases import backends_in
from cdk_triton.triton.server_options import argument_fault, given_options, reads_variable, variable_since

_SERVE = "docker/sagemaker/serve"
_RESTRICTED_SINCE = "26.03"
_INVOKE_RESTRICTED_SINCE = "26.07"
_WITHOUT_TENSORFLOW_1 = "23.04"

# Variable → the field that writes it. additional_models has a rule of its own (CT406), and a release without
# namespaces does what model_namespacing=False asks for.
_FIELDS: Mapping[str, str] = {
    "SAGEMAKER_TRITON_ADDITIONAL_ARGS": "additional_args",
    "SAGEMAKER_TRITON_ALLOW_GRPC": "allow_grpc",
    "SAGEMAKER_TRITON_ALLOW_METRICS": "allow_metrics",
    "SAGEMAKER_TRITON_GRPC_PORT": "grpc_port",
    "SAGEMAKER_TRITON_INFERENCE_TYPE": "inference_type",
    "SAGEMAKER_TRITON_METRICS_PORT": "metrics_port",
    "SAGEMAKER_TRITON_MODEL_LOAD_GPU_LIMIT": "model_load_gpu_limit",
    "SAGEMAKER_TRITON_OVERRIDE_PING_MODE": "ping_mode",
    "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": "shm_default_byte_size",
    "SAGEMAKER_TRITON_SHM_GROWTH_BYTE_SIZE": "shm_growth_byte_size",
    "SAGEMAKER_TRITON_TENSORFLOW_VERSION": "tensorflow_version",
}


@rule(
    "CT420",
    Severity.ERROR,
    "the release's tritonserver rejects an argument",
    source=server("src/command_line_parser.cc", 1330, 1345),
    applies=lambda platform: platform.release is not None,
)
def rejected_argument(context: CheckContext) -> Iterator[Problem]:
    """`additional_args` of the container's environment has an option or a value that the release does not accept.

    The server prints its usage and ends, so SageMaker does not create the endpoint. `ContainerEnvironment` itself
    rejects an option that no release has. You may abbreviate an option if no other option of the release begins with
    the abbreviation.

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
        # environment=ContainerEnvironment(additional_args=["--allow-client-shm=true"])
        # model/config.pbtxt
        backend: "python"

    Instead:
        $ cdk-triton validate . --platform 26.05/ml.g5.xlarge

    Limits:
        The rule does not look for files that an argument names. For a release that is newer than the library's tables,
        the rule uses the options of the newest release in these tables.
    """
    if context.environment is None or context.platform is None:
        return
    if (fault := argument_fault(context.environment.additional_args, context.platform.release)) is not None:
        yield Problem(
            ".",
            f"additional_args of the container's environment holds {fault.argument!r}, {fault.reason}, so SageMaker "
            "would not create the endpoint",
            fault.fix,
        )


@rule(
    "CT421",
    Severity.WARNING,
    "the release does not read a setting of the container's environment",
    source=server(_SERVE, 28, 154),
    applies=lambda platform: platform.release is not None,
)
def unread_setting(context: CheckContext) -> Iterator[Problem]:
    """A field of `ContainerEnvironment` becomes a variable that the release's start script and server do not read.

    The container starts, but the setting has no effect. Releases from 25.03 on read `inference_type`, and releases from
    22.12 on read `model_load_gpu_limit`. Releases from 23.07 on read `additional_args`, `ping_mode`, `allow_metrics`,
    `metrics_port`, `allow_grpc` and `grpc_port`. From 25.03 on, `tensorflow_version` has no effect, because the images
    do not have the TensorFlow backend any more.

    Example:
        $ cdk-triton validate . --platform 24.09/ml.g5.xlarge
        # environment=ContainerEnvironment(inference_type="generate")
        # model/config.pbtxt
        backend: "python"

    Instead:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
    """
    release = context.release
    if context.environment is None or release is None:
        return
    written = _written(context.environment)
    for variable, field in _FIELDS.items():
        if variable not in written or (field == "ping_mode" and _is_default_ping_mode(context)):
            continue
        if field == "additional_args" and not context.environment.additional_args:
            continue  # additional_models alone: reported by CT406
        since, reader = variable_since(variable), f"the start script of {release} does not read {variable}"
        if field == "tensorflow_version" and "tensorflow" not in backends_in(release):
            reader = f"Triton {release} has no backend 'tensorflow'"
            yield _unread(context.environment, field, reader, "remove the field")
        elif not reads_variable(release, variable):
            yield _unread(context.environment, field, reader, f"serve with {since} or newer, or remove the field")


@rule(
    "CT422",
    Severity.ERROR,
    "the release's Python backend requires a larger shm_default_byte_size",
    source=backend("python_backend", "src/python_be.cc", 2301, 2319),
    applies=lambda platform: is_older(platform, "23.09"),
)
def too_small_shared_memory(context: CheckContext) -> Iterator[Problem]:
    """`shm_default_byte_size` of the container's environment is less than 4 MiB, and the release is older than 23.09.

    The Python backend then fails, so the server does not load any Python model. From 23.09 on, 1 MiB is enough,
    although the backend's error message still says 4 MiB.

    Example:
        $ cdk-triton validate . --platform 23.07/ml.g5.xlarge
        # environment=ContainerEnvironment(shm_default_byte_size=2097152)
        # model/config.pbtxt
        backend: "python"

    Instead:
        # environment=ContainerEnvironment(shm_default_byte_size=4194304)
    """
    release = context.release
    size = context.environment.shm_default_byte_size if context.environment is not None else None
    least = least_shared_memory(release)
    models = [model.name for model in context.loaded_models if model.backend_name == "python"]
    if size is not None and size < least and models:
        yield Problem(
            ".",
            f"shm_default_byte_size of the container's environment is {size:,} bytes, so the Python backend of "
            f"{release} would not load {listed_in_quotes(models)}: shm-default-byte-size can't be smaller than 4 MiBs",
            f"set at least {least:,} ({least // MIB} MiB), or remove the field",
        )


@rule(
    "CT423",
    Severity.ERROR,
    "the release has no TensorFlow 1",
    source=core("src/backend_config.cc", 38, 62),
    applies=lambda platform: (
        is_at_least(platform, _WITHOUT_TENSORFLOW_1) and "tensorflow" in backends_in(platform.release)
    ),
)
def tensorflow_1(context: CheckContext) -> Iterator[Problem]:
    """`tensorflow_version` of the container's environment is 1, and the release is 23.04 or newer.

    The server then does not load any model of the backend `tensorflow`. Set `tensorflow_version=2`, or remove the
    field.

    Example:
        $ cdk-triton validate . --platform 24.09/ml.g5.xlarge
        # environment=ContainerEnvironment(tensorflow_version=1)
        # model/config.pbtxt
        platform: "tensorflow_savedmodel"
        input { name: "IN" data_type: TYPE_FP32 dims: 1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 1 }

    Instead:
        # environment=ContainerEnvironment(tensorflow_version=2)
    """
    models = [model.name for model in context.loaded_models if model.backend_name == "tensorflow"]
    if context.environment is not None and context.environment.tensorflow_version == 1 and models:
        yield Problem(
            ".",
            f"tensorflow_version of the container's environment is 1, so the server would not load "
            f"{listed_in_quotes(models)}: starting from 23.04, Triton no longer supports Tensorflow 1. Please switch "
            "to Tensorflow 2.",
            "set tensorflow_version=2, or remove the field",
        )


@rule(
    "CT424",
    Severity.ERROR,
    "an argument restricts an API that SageMaker needs",
    source=server("src/sagemaker_server.cc", 44, 52),
    applies=lambda platform: is_at_least(platform, _RESTRICTED_SINCE),
)
def restricted_endpoint(context: CheckContext) -> Iterator[Problem]:
    """`--http-restricted-api` names an API that SageMaker's requests use, and the release is 26.03 or newer.

    Before 26.03, the option restricts only Triton's own HTTP port, which is closed in the container. From 26.03 on, the
    server rejects SageMaker's requests with status 403, because SageMaker cannot send the header that the option
    requires. The API `health` contains `/ping`, `inference` contains `/invocations`, and `model-repository` contains
    the requests that load the models of a multi-model endpoint. From 26.07 on, `inference` also contains the
    invocations of a multi-model endpoint. Remove the option, because IAM authorizes the callers of the endpoint.

    Example:
        $ cdk-triton validate . --platform 26.05/ml.g5.xlarge
        # environment=ContainerEnvironment(additional_args=["--http-restricted-api=health,inference:key=secret"])
        # model/config.pbtxt
        backend: "python"

    Instead:
        # environment=ContainerEnvironment()
    """
    if context.environment is None:
        return
    for option, value in given_options(context.environment.additional_args):
        if option != "http-restricted-api":
            continue
        asked = _asked(context)
        closed = [name for name in value.partition(":")[0].split(",") if name in asked]
        if closed:
            apis = f"the API{'s' * (len(closed) > 1)} {in_words(map(repr, closed), 'and')}"
            yield Problem(
                ".",
                f"additional_args of the container's environment restricts {apis} with --{option}, so the "
                f"server would answer SageMaker's requests to {in_words([asked[name] for name in closed], 'and')} "
                "with 403",
                "remove the option, because IAM authorizes the callers of the endpoint",
            )


def _asked(context: CheckContext) -> Mapping[str, str]:
    """The paths on which SageMaker sends requests, by the API that restricts them."""
    if context.mode == "single":
        return {"health": "/ping", "inference": "/invocations"}
    asked = {"health": "/ping", "model-repository": "/models"}
    if context.platform is not None and is_at_least(context.platform, _INVOKE_RESTRICTED_SINCE):
        asked["inference"] = "/models/<model>/invoke"
    return asked


def _written(environment: ContainerEnvironment) -> set[str]:
    """The variables that differ from those of a default environment."""
    kinds = (environment, ContainerEnvironment())
    if kinds[0] == kinds[1]:
        return set()
    given, default = (container_variables(each, multi_model=False, default_model="model") for each in kinds)
    return {name for name, value in given.items() if default.get(name) != value}


def _is_default_ping_mode(context: CheckContext) -> bool:
    """Whether the setting has no effect anyway: a server before 23.07 has only the mode `ready`."""
    return context.environment is not None and context.environment.ping_mode == "ready"


def _unread(environment: ContainerEnvironment, field: str, reason: str, fix: str) -> Problem:
    value = getattr(environment, field)
    return Problem(
        ".", f"{field} of the container's environment is {value!r}, but {reason}, so the field has no effect", fix
    )
