"""The container's environment, one typed field per variable that the entry point reads.

This module handles the script's traps: its verbose log, the ping mode that it does not export, the variable that
disables namespacing when its value is `false`, and arguments that it splits at blanks. The source of every field is
`docker/sagemaker/serve` of triton-inference-server/server (see `cdk_triton.triton.serve`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from cdk_triton._arguments import FLAG, TEXT, one, require_type, several
from cdk_triton._tokens import reject_token
from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton.option_values import MAX_INT32, MAX_INT64, MAX_THREADS, least_shared_memory
from cdk_triton.triton.python_variables import NO_BYTECODE, UNBUFFERED
from cdk_triton.triton.secrets import looks_secret, secret_rejection
from cdk_triton.triton.variable_names import reserved_because

__all__ = ["ENVIRONMENT", "MAX_BYTES", "MAX_TEXT_BYTES", "MAX_VARIABLES", "ContainerEnvironment", "container_variables"]

# SageMaker's CreateModel, botocore 1.44.5: ContainerDefinition.Environment and its documentation.
MAX_VARIABLES: Final = 100
"""Variables of a container (EnvironmentMap)."""

MAX_TEXT_BYTES: Final = 1024
"""Bytes of a variable's name, and of its value (EnvironmentKey, EnvironmentValue)."""

MAX_BYTES: Final = 32 * 1024
"""Bytes of all names and values together."""

MAX_PORT: Final = 65535
SAGEMAKER_PORT: Final = 8080
HTTP_PORT: Final = 8000
GRPC_PORT: Final = 8001
METRICS_PORT: Final = 8002
"""Triton's defaults (src/command_line_parser.h of triton-inference-server/server)."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _is_word(value: object) -> bool:
    return isinstance(value, str) and value != ""


_WORD: Final = one(_is_word, "write a name in quotes, or omit it")

_LISTS: Final = {
    "additional_args": several(_is_word, "use a list with one item per argument, such as ['--exit-timeout-secs=30']"),
    "additional_models": several(_is_word, "use a list of names, such as ['bert']"),
}

_VARIABLES: Final = one(
    lambda value: isinstance(value, Mapping), "use a mapping from names to texts, such as {'NAME': 'value'}"
)

# What bash would split, expand or leave standing wrongly in an unquoted expansion.
_UNSAFE = re.compile(r"[\s'\"\\*?\[\]]")


@dataclass(frozen=True)
class ContainerEnvironment:
    """How a SageMaker Triton container starts its server.

    The server's default applies to each field without a value. "From 23.07" means that a field needs Triton 23.07 or
    newer.

    Attributes:
        default_model_name: the model that `/invocations` of a single-model endpoint runs. None: the repository's entry
            model. Set this field if the repository has several models and no ensemble, for example if a Python model
            calls the others (BLS).
        additional_models: models that a single-model container loads in addition to the entry model and the steps of an
            ensemble. List here the models that a Python model calls (BLS). From 23.07.
        model_namespacing: whether every archive has its own namespace, so that archives can use the same names for
            their models. False sets SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING to `false`, which switches namespaces
            off: the values of this variable mean the opposite of its name. From 23.04.
        ping_mode: when `/ping` succeeds: `ready` (every model is ready) or `live` (the server is live). None: `ready`
            for a single-model endpoint, `live` for a multi-model endpoint. NVIDIA's script means to set these defaults,
            but does not export the variable, so the library sets them.
        inference_type: the protocol of a single-model endpoint: `infer`; `generate`, for `TritonClient.generate`; or
            `generate_stream`, for `TritonClient.stream`. None: `infer`. From 25.03.
        log_verbose: whether to write the verbose log, or its level. Off by default, because it raises the CloudWatch
            bill and slows the server down; NVIDIA's script would switch it on.
        log_info: whether to log informational messages.
        log_warning: whether to log warnings.
        log_error: whether to log errors.
        allow_metrics: whether the server serves metrics for Prometheus on `metrics_port`, which is not reachable from
            outside the container. SageMaker's own collector does not get these metrics, because it reads port 8080.
            From 23.07.
        metrics_port: the port of the metrics for Prometheus; default 8002. It must differ from `port`. From 23.07.
        allow_grpc: whether the server accepts gRPC requests on `grpc_port`, which is not reachable from outside the
            container. From 23.07.
        grpc_port: the port of gRPC; default 8001. From 23.07.
        thread_count: the number of threads that process HTTP requests, up to 1,024; default 8.
        buffer_manager_thread_count: the number of threads that copy tensors, up to 1,024; default 0.
        shm_default_byte_size: the bytes of shared memory that each Python model instance starts with, at least 1 MiB (4
            MiB before 23.09). None: the minimum. An instance takes more if its tensors need more, and all instances
            share the 64 MB of the container's /dev/shm.
        shm_growth_byte_size: the bytes by which the shared memory grows; default 1 MiB.
        model_load_gpu_limit: the fraction of each GPU's memory, above 0 and at most 1, up to which the server loads
            models. A load that would exceed this limit fails with status 400, and SageMaker unloads no other model.
        tensorflow_version: the version of the TensorFlow backend, 1 or 2. Releases from 25.03 on do not have this
            backend.
        port: the port of SageMaker's protocol; default 8080. SageMaker sets it if an endpoint runs several containers.
        safe_port_range: the first and the last port that the server is allowed to use.
        additional_args: further arguments of tritonserver, such as "--exit-timeout-secs=5", without blanks or quotes.
            The value of an option may be a separate item. From 23.07.
        variables: other variables, for the models' own use. Names that the start script, its shell or the dynamic
            loader read are rejected. Do not put secrets here: everybody with permission to describe the SageMaker Model
            can read them.
    """

    default_model_name: str | None = None
    additional_models: tuple[str, ...] = ()
    model_namespacing: bool = True
    ping_mode: Literal["ready", "live"] | None = None
    inference_type: Literal["infer", "generate", "generate_stream"] | None = None
    log_verbose: bool | int = False
    log_info: bool | None = None
    log_warning: bool | None = None
    log_error: bool | None = None
    allow_metrics: bool = False
    metrics_port: int | None = None
    allow_grpc: bool = False
    grpc_port: int | None = None
    thread_count: int | None = None
    buffer_manager_thread_count: int | None = None
    shm_default_byte_size: int | None = None
    shm_growth_byte_size: int | None = None
    model_load_gpu_limit: float | None = None
    tensorflow_version: Literal[1, 2] | None = None
    port: int | None = None
    safe_port_range: tuple[int, int] | None = None
    additional_args: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Reject a value that the script or the server would reject, or would read as another value.

        Raises:
            ConfigurationError: names the field, the value and what is allowed.
        """
        for name in ("model_namespacing", "allow_metrics", "allow_grpc"):
            self._check_flag(name)
        for name in ("log_info", "log_warning", "log_error"):
            self._check_flag(name, optional=True)
        self._check_choice("ping_mode", ("ready", "live"))
        self._check_choice("inference_type", ("infer", "generate", "generate_stream"))
        self._check_choice("tensorflow_version", (1, 2))
        self._check_number("log_verbose", 0, MAX_INT32)
        for name in ("metrics_port", "grpc_port", "port"):
            self._check_number(name, 1, MAX_PORT)
        self._check_number("thread_count", 1, MAX_THREADS)
        self._check_number("buffer_manager_thread_count", 0, MAX_THREADS)
        self._check_number("shm_default_byte_size", least_shared_memory(None), MAX_INT64)
        self._check_number("shm_growth_byte_size", 1, MAX_INT64)
        self._check_fraction("model_load_gpu_limit")
        self._check_port_range()
        self._check_words()
        self._check_ports()
        self._check_variables()
        object.__setattr__(self, "additional_args", tuple(map(str.__str__, self.additional_args)))
        object.__setattr__(self, "additional_models", tuple(map(str.__str__, self.additional_models)))
        texts = {str.__str__(name): str.__str__(value) for name, value in self.variables.items()}
        object.__setattr__(self, "variables", MappingProxyType(texts))

    def _check_flag(self, name: str, *, optional: bool = False) -> None:
        value = getattr(self, name)
        if not (optional and value is None):
            require_type(name, value, FLAG)

    def _check_choice(self, name: str, allowed: tuple[object, ...]) -> None:
        value = getattr(self, name)
        if value is not None and not (isinstance(value, type(allowed[0])) and value in allowed and value is not True):
            choices = " or ".join(map(repr, allowed))
            raise ConfigurationError(f"{name} must be {choices}, got {value!r}; give one of these, or omit {name}")

    def _check_number(self, name: str, minimum: int, maximum: int) -> None:
        value = getattr(self, name)
        if value is None or (name == "log_verbose" and isinstance(value, bool)):
            return
        reject_token(value, name)
        if not _is_whole(value) or not minimum <= value <= maximum:
            bounds = f"from {minimum} to {maximum}" if maximum <= MAX_PORT else f"from {minimum:,} to {maximum:,}"
            raise ConfigurationError(f"{name} must be a whole number {bounds}, got {value!r}; give one, or omit {name}")

    def _check_fraction(self, name: str) -> None:
        value = getattr(self, name)
        reject_token(value, name)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        # std::stod, by which the server reads it, rejects what is too small for a normal number.
        if value is not None and not (number and sys.float_info.min <= value <= 1):
            raise ConfigurationError(
                f"{name} must be a fraction of a GPU's memory above 0 and at most 1, got {value!r}; write 0.9 for 90 %"
            )

    def _check_port_range(self) -> None:
        ports = self.safe_port_range
        if ports is None:
            return
        for port in ports if isinstance(ports, tuple | list) else ():
            reject_token(port, "a port of safe_port_range")
        pair = isinstance(ports, tuple | list) and len(ports) == 2 and all(map(_is_whole, ports))
        if not pair or not 1 <= ports[0] <= ports[1] <= MAX_PORT:
            raise ConfigurationError(
                f"safe_port_range must be two ports from 1 to 65535, the lower port first, got {ports!r}; write a "
                "range such as (9000, 9010)"
            )
        object.__setattr__(self, "safe_port_range", tuple(ports))

    def _check_ports(self) -> None:
        # CheckPortCollision in src/command_line_parser.cc of triton-inference-server/server: it exits.
        used: dict[int, str] = {self.port or SAGEMAKER_PORT: "port"}
        for label, number in self._public_ports():
            if number in used:
                raise ConfigurationError(
                    f"{label} and {used[number]} are both {number}, so the server would not start; choose another port "
                    f"for {label}"
                )
            used[number] = label
            if self.safe_port_range is not None and not self.safe_port_range[0] <= number <= self.safe_port_range[1]:
                raise ConfigurationError(
                    f"{label} is {number}, outside of safe_port_range {self.safe_port_range}, so the server "
                    "would not start; choose a port in this range"
                )

    def _public_ports(self) -> Iterator[tuple[str, int]]:
        """The ports that SageMaker does not use, each with its field or option."""
        given = _option_values(self.additional_args)
        for service, allowed, port, default in (
            ("http", False, None, HTTP_PORT),
            ("grpc", self.allow_grpc, self.grpc_port, GRPC_PORT),
            ("metrics", self.allow_metrics, self.metrics_port, METRICS_PORT),
        ):
            switch, option = given.get(f"allow-{service}"), given.get(f"{service}-port")
            if not (allowed if switch is None else switch.lower() in ("true", "on", "1")):
                continue
            if {f"{service}-address", "http-address"} & given.keys():
                continue  # the server compares the ports of one address only
            field_name = f"{service}_port" if service in ("grpc", "metrics") else f"--{service}-port"
            yield field_name if option is None else f"--{service}-port", int(option or port or default)

    def _check_words(self) -> None:
        for name, kind in _LISTS.items():
            words = getattr(self, name)
            require_type(name, words, kind)
            for word in words:
                _check_word(name, word)
        if self.default_model_name is not None:
            require_type("default_model_name", self.default_model_name, _WORD)
            _check_word("default_model_name", self.default_model_name)
        _check_arguments(tuple(self.additional_args))

    def _check_variables(self) -> None:
        require_type("variables", self.variables, _VARIABLES)
        for name, value in self.variables.items():
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise ConfigurationError(
                    f"variables holds the name {quoted(name)}; use letters, digits and '_' only, and do not begin with "
                    "a digit"
                )
            if (reserved := reserved_because(name)) is not None:
                reason, fix = reserved
                raise ConfigurationError(f"variables holds {quoted(name)}, {reason}; {fix}")
            if why := looks_secret(name, str(value)):
                raise ConfigurationError(secret_rejection(name, why))
            require_type(f"the value of {name!r} in variables", value, TEXT)
            _check_encodable(f"the value of {name!r} in variables", value)


ENVIRONMENT: Final = one(
    lambda value: isinstance(value, ContainerEnvironment),
    "use a ContainerEnvironment, such as ContainerEnvironment(variables={'NAME': 'value'})",
)
"""As an argument."""


def container_variables(
    environment: ContainerEnvironment, *, multi_model: bool, default_model: str | None = None
) -> dict[str, str]:
    """Return the variables of the container definition, sorted by name.

    SageMaker adds SAGEMAKER_MULTI_MODEL itself.

    Args:
        environment: how the container starts its server.
        multi_model: whether the container serves a multi-model endpoint.
        default_model: the repository's entry model, for a single-model endpoint; `default_model_name` takes precedence.

    Raises:
        ConfigurationError: a field has no effect in such a container, or there are more variables than SageMaker
            accepts.
    """
    if multi_model:
        _reject_single_model_fields(environment)
    name = None if multi_model else (environment.default_model_name or default_model)
    if name is not None:
        _check_word("default_model_name", name)
    ping_mode = environment.ping_mode or ("live" if multi_model else "ready")
    arguments = (*environment.additional_args, *(f"--load-model={model}" for model in environment.additional_models))
    ports = environment.safe_port_range
    values: dict[str, bool | int | float | str | None] = {
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": name,
        # Inverted by the script, which passes the value on as --model-namespacing=<value>.
        "SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING": None if environment.model_namespacing else False,
        # Not exported by the script: only a variable that exists already reaches the server.
        "SAGEMAKER_TRITON_PING_MODE": ping_mode,
        # The script replaces PING_MODE by this one, or by its own default.
        "SAGEMAKER_TRITON_OVERRIDE_PING_MODE": environment.ping_mode,
        "SAGEMAKER_TRITON_INFERENCE_TYPE": environment.inference_type,
        "SAGEMAKER_TRITON_LOG_VERBOSE": environment.log_verbose,
        "SAGEMAKER_TRITON_LOG_INFO": environment.log_info,
        "SAGEMAKER_TRITON_LOG_WARNING": environment.log_warning,
        "SAGEMAKER_TRITON_LOG_ERROR": environment.log_error,
        "SAGEMAKER_TRITON_ALLOW_METRICS": environment.allow_metrics or None,
        "SAGEMAKER_TRITON_METRICS_PORT": environment.metrics_port,
        "SAGEMAKER_TRITON_ALLOW_GRPC": environment.allow_grpc or None,
        "SAGEMAKER_TRITON_GRPC_PORT": environment.grpc_port,
        "SAGEMAKER_TRITON_THREAD_COUNT": environment.thread_count,
        "SAGEMAKER_TRITON_BUFFER_MANAGER_THREAD_COUNT": environment.buffer_manager_thread_count,
        "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": environment.shm_default_byte_size,
        "SAGEMAKER_TRITON_SHM_GROWTH_BYTE_SIZE": environment.shm_growth_byte_size,
        "SAGEMAKER_TRITON_MODEL_LOAD_GPU_LIMIT": environment.model_load_gpu_limit,
        "SAGEMAKER_TRITON_TENSORFLOW_VERSION": environment.tensorflow_version,
        "SAGEMAKER_BIND_TO_PORT": environment.port,
        "SAGEMAKER_SAFE_PORT_RANGE": None if ports is None else "-".join(map(_server_text, ports)),
        "SAGEMAKER_TRITON_ADDITIONAL_ARGS": " ".join(arguments) or None,
        # Keeps a load of one archive from loading models of other archives again; see `NO_BYTECODE`.
        NO_BYTECODE: 1 if multi_model else None,
        UNBUFFERED: 1,
    }
    variables = {key: _server_text(value) for key, value in values.items() if value is not None}
    return _checked_limits(variables | dict(environment.variables))


def _reject_single_model_fields(environment: ContainerEnvironment) -> None:
    for name in ("default_model_name", "additional_models", "inference_type"):
        if value := getattr(environment, name):
            raise ConfigurationError(
                f"{name}={value!r} has no effect on a multi-model endpoint, which loads the models of the requested "
                f"archive and always uses the inference type 'infer'; remove {name}"
            )
    if (model := _option_values(environment.additional_args).get("load-model")) is not None:
        raise ConfigurationError(
            f"additional_args holds --load-model for {model!r}, but a multi-model endpoint starts without a model; "
            "remove the option"
        )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_word(name: str, word: str) -> None:
    reject_token(word, name)
    _check_encodable(name, word)
    if match := _UNSAFE.search(word):
        raise ConfigurationError(
            f"{name} holds {word!r}, which the start script expands without quotes, so {match.group()!r} would split "
            "or change the text; write the text without blanks, quotes, backslashes and * ? [ ]"
        )


def _check_encodable(label: str, text: str) -> None:
    found = "the character NUL" if "\0" in text else None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = f"half of a surrogate pair ({text[error.start]!r})"
    if found is not None:
        raise ConfigurationError(
            f"{label} holds {text!r}, with {found}, which no environment variable can hold; remove this character"
        )


def _check_arguments(arguments: Sequence[str]) -> None:
    """Reject arguments with which no release of tritonserver starts as SageMaker needs it."""
    if not arguments:
        return
    from cdk_triton.triton.server_options import argument_fault

    if (fault := argument_fault(arguments)) is not None:
        raise ConfigurationError(f"additional_args holds {fault.argument!r}, {fault.reason}; {fault.fix}")


def _option_values(arguments: Sequence[str]) -> dict[str, str]:
    """The last value of an option counts, as for the server."""
    if not arguments:
        return {}  # without a table that most apps do not need
    from cdk_triton.triton.server_options import given_options

    return dict(given_options(arguments))


def _server_text(value: bool | int | float | str) -> str:
    """Numbers and flags in the form that the server reads; of an enumeration, its value."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return str.__str__(value)
    return int.__repr__(value) if isinstance(value, int) else float.__repr__(value)


def _checked_limits(variables: dict[str, str]) -> dict[str, str]:
    if len(variables) > MAX_VARIABLES:
        raise ConfigurationError(
            f"the container would have {len(variables)} environment variables, but SageMaker takes at most "
            f"{MAX_VARIABLES}; put some of the values into a file of the model repository"
        )
    for name, value in variables.items():
        for what, text, fix in (
            ("name", name, "shorten the name"),
            ("value", value, "put the value into a file of the model repository"),
        ):
            if (size := len(text.encode())) > MAX_TEXT_BYTES:
                raise ConfigurationError(
                    f"the {what} of the environment variable {name[:60]!r} has {size:,} bytes, but SageMaker takes at "
                    f"most {MAX_TEXT_BYTES:,}; {fix}"
                )
    total = sum(len(text.encode()) for variable in variables.items() for text in variable)
    if total > MAX_BYTES:
        raise ConfigurationError(
            f"the names and values of the container's environment variables have {total:,} bytes together, but "
            f"SageMaker takes at most {MAX_BYTES:,}; put the longest value into a file of the model repository"
        )
    return dict(sorted(variables.items()))
