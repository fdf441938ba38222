"""The container's environment, one typed field per variable that the entry point understands.

Its traps are handled here so that nobody has to know them: the script's verbose log, the ping mode that it forgets to
export, the variable that disables namespacing when it says `false`, and arguments that it splits at blanks. The source
of every field is `docker/sagemaker/serve` of triton-inference-server/server (see `cdk_triton.triton.serve`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from cdk_triton._arguments import FLAG, TEXT, one, require_type, several
from cdk_triton._tokens import refuse_token
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton.secrets import looks_secret, secret_refusal

__all__ = ["ENVIRONMENT", "MAX_BYTES", "MAX_TEXT_BYTES", "MAX_VARIABLES", "ContainerEnvironment", "container_variables"]

# SageMaker's CreateModel, botocore 1.44.5: ContainerDefinition.Environment and its documentation.
MAX_VARIABLES: Final = 100
"""Variables of a container (EnvironmentMap)."""

MAX_TEXT_BYTES: Final = 1024
"""Bytes of a variable's name, and of its value (EnvironmentKey, EnvironmentValue)."""

MAX_BYTES: Final = 32 * 1024
"""Bytes of all names and values together."""

SAGEMAKER_PORT: Final = 8080
GRPC_PORT: Final = 8001
METRICS_PORT: Final = 8002
"""Triton's defaults (src/command_line_parser.h of triton-inference-server/server)."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _is_word(value: object) -> bool:
    return isinstance(value, str) and value != ""


_WORD: Final = one(_is_word, "write a name in quotes, or leave it out")

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

    A field that is None leaves the server's default alone.

    Attributes:
        default_model_name: the model that `/invocations` of a single-model endpoint runs. None: the repository's entry
            model, which has to be chosen here where a repository has several and no ensemble (BLS).
        additional_models: models that a single-model container loads besides the entry model and the steps of an
            ensemble: those that a Python model calls by BLS. From 23.07.
        model_namespacing: every archive has its own name space, so that archives may use the same names for their
            models. Hides SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING, whose values mean the opposite of its name. From
            23.04.
        ping_mode: what `/ping` answers for: `ready` (every model is) or `live` (the server is). None: `ready` for a
            single-model endpoint, `live` for a multi-model endpoint, as NVIDIA's script intends.
        inference_type: what `/invocations` of a single-model endpoint does. From 25.03.
        log_verbose: the verbose log, or its level. The script would switch it on; it costs CloudWatch money and slows
            the server down.
        log_info: informational lines in the log.
        log_warning: warnings in the log.
        log_error: errors in the log.
        allow_metrics: answer Prometheus' requests on `metrics_port`, which nothing outside the container reaches: what
            SageMaker scrapes is port 8080. From 23.07.
        metrics_port: default 8002, and never the port of SageMaker's protocol. From 23.07.
        allow_grpc: answer gRPC on `grpc_port`; nothing outside the container reaches it. From 23.07.
        grpc_port: default 8001. From 23.07.
        thread_count: threads that answer requests; default 8.
        buffer_manager_thread_count: threads that copy tensors; default 0.
        shm_default_byte_size: bytes of shared memory that each Python model instance starts with; default 16 MiB.
            The container's /dev/shm has 64 MB.
        shm_growth_byte_size: bytes by which that memory grows; default 1 MiB.
        model_load_gpu_limit: fraction of each GPU's memory, above 0 and at most 1, beyond which no model is loaded.
            SageMaker does not unload models when it is reached: the load fails with status 400.
        tensorflow_version: 1 or 2; the backend is gone from 25.03 on.
        port: the port of SageMaker's protocol; default 8080. SageMaker sets it where it runs several containers.
        safe_port_range: first and last port that the server may use.
        additional_args: further arguments of tritonserver, one per item, without blanks and quotes. From 23.07.
        variables: other variables, for the models' own use. Do not put secrets here: everybody who may describe the
            model can read them.
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
        """Refuse a value that the script or the server would refuse, or would take for something else.

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
        self._check_number("log_verbose", 0)
        for name in ("metrics_port", "grpc_port", "port"):
            self._check_number(name, 1, 65535)
        self._check_number("thread_count", 1)
        self._check_number("buffer_manager_thread_count", 0)
        self._check_number("shm_default_byte_size", 1)
        self._check_number("shm_growth_byte_size", 1)
        self._check_fraction("model_load_gpu_limit")
        self._check_port_range()
        self._check_ports()
        self._check_words()
        self._check_variables()
        object.__setattr__(self, "additional_args", tuple(self.additional_args))
        object.__setattr__(self, "additional_models", tuple(self.additional_models))
        object.__setattr__(self, "variables", MappingProxyType(dict(self.variables)))

    def _check_flag(self, name: str, *, optional: bool = False) -> None:
        value = getattr(self, name)
        if not (optional and value is None):
            require_type(name, value, FLAG)

    def _check_choice(self, name: str, allowed: tuple[object, ...]) -> None:
        value = getattr(self, name)
        if value is not None and (isinstance(value, bool) or value not in allowed):
            choices = " or ".join(map(repr, allowed))
            raise ConfigurationError(f"{name} is {choices}, got {value!r}; choose one of them or leave it out")

    def _check_number(self, name: str, minimum: int, maximum: int | None = None) -> None:
        value = getattr(self, name)
        if value is None or (name == "log_verbose" and isinstance(value, bool)):
            return
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or value < minimum or (maximum is not None and value > maximum):
            bounds = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
            raise ConfigurationError(f"{name} is a whole number {bounds}, got {value!r}; choose one or leave it out")

    def _check_fraction(self, name: str) -> None:
        value = getattr(self, name)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (number and 0 < value <= 1):
            raise ConfigurationError(
                f"{name} is a fraction of a GPU's memory above 0 and at most 1, got {value!r}; 0.9 is 90 %"
            )

    def _check_port_range(self) -> None:
        ports = self.safe_port_range
        if ports is None:
            return
        pair = isinstance(ports, tuple | list) and len(ports) == 2 and all(isinstance(port, int) for port in ports)
        if not pair or not 1 <= ports[0] <= ports[1] <= 65535:
            raise ConfigurationError(
                f"safe_port_range is two ports from 1 to 65535, the lower one first, got {ports!r}; write (9000, 9010)"
            )

    def _check_ports(self) -> None:
        # CheckPortCollision in src/command_line_parser.cc of triton-inference-server/server: it exits.
        used: dict[int, str] = {self.port or SAGEMAKER_PORT: "port"}
        for name, allowed, default in (
            ("grpc", self.allow_grpc, GRPC_PORT),
            ("metrics", self.allow_metrics, METRICS_PORT),
        ):
            if not allowed:
                continue
            field_name, number = f"{name}_port", getattr(self, f"{name}_port") or default
            if number in used:
                raise ConfigurationError(
                    f"{field_name} is {number}, and so is {used[number]}, so that the server would not start; choose "
                    "another one"
                )
            used[number] = field_name
            if self.safe_port_range is not None and not self.safe_port_range[0] <= number <= self.safe_port_range[1]:
                raise ConfigurationError(
                    f"{field_name} is {number}, outside of safe_port_range {self.safe_port_range}, so that the server "
                    "would not start; choose one of these"
                )

    def _check_words(self) -> None:
        for name, kind in _LISTS.items():
            words = getattr(self, name)
            require_type(name, words, kind)
            for word in words:
                _check_word(name, word)
        if self.default_model_name is not None:
            require_type("default_model_name", self.default_model_name, _WORD)
            _check_word("default_model_name", self.default_model_name)
        for argument in self.additional_args:
            if not argument.startswith("-"):
                raise ConfigurationError(
                    f"additional_args holds {argument!r}, which tritonserver would take for nothing it knows; write an "
                    "option and its value as one item, for example '--exit-timeout-secs=30'"
                )

    def _check_variables(self) -> None:
        reserved = ("SAGEMAKER_TRITON_", "SAGEMAKER_MULTI_MODEL", "SAGEMAKER_BIND_TO_PORT", "SAGEMAKER_SAFE_PORT_RANGE")
        require_type("variables", self.variables, _VARIABLES)
        for name, value in self.variables.items():
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise ConfigurationError(
                    f"variables holds the name {name!r}; a name is letters, digits and '_', and starts with no digit"
                )
            if name.startswith(reserved):
                raise ConfigurationError(
                    f"variables holds {name!r}, which the container's start script reads; use the field of "
                    "ContainerEnvironment for it"
                )
            if why := looks_secret(name, str(value)):
                raise ConfigurationError(secret_refusal(name, why))
            require_type(f"the value of {name} in variables", value, TEXT)


ENVIRONMENT: Final = one(
    lambda value: isinstance(value, ContainerEnvironment),
    "use a ContainerEnvironment, such as ContainerEnvironment(variables={'NAME': 'value'})",
)
"""As an argument."""


def container_variables(
    environment: ContainerEnvironment, *, multi_model: bool, default_model: str | None = None
) -> dict[str, str]:
    """Return the variables of the container definition, sorted by name.

    SageMaker adds SAGEMAKER_MULTI_MODEL itenvironment.

    Args:
        environment: how the container starts its server.
        multi_model: whether the container serves a multi-model endpoint.
        default_model: the repository's entry model, for a single-model endpoint; `default_model_name` wins.

    Raises:
        ConfigurationError: a field means nothing to such a container, or the variables are more than SageMaker
            takes.
    """
    if multi_model:
        _refuse_single_model_fields(environment)
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
        "SAGEMAKER_SAFE_PORT_RANGE": None if ports is None else f"{ports[0]}-{ports[1]}",
        "SAGEMAKER_TRITON_ADDITIONAL_ARGS": " ".join(arguments) or None,
    }
    variables = {key: _text(value) for key, value in values.items() if value is not None}
    return _within_limits(variables | dict(environment.variables))


def _refuse_single_model_fields(environment: ContainerEnvironment) -> None:
    for name in ("default_model_name", "additional_models", "inference_type"):
        if value := getattr(environment, name):
            raise ConfigurationError(
                f"{name}={value!r} means nothing to a multi-model endpoint, whose archives say what is loaded and "
                "which always infers; leave it out"
            )


def _check_word(name: str, word: str) -> None:
    refuse_token(word, name)
    if match := _UNSAFE.search(word):
        raise ConfigurationError(
            f"{name} holds {word!r}, and the container's start script expands it unquoted: {match.group()!r} would "
            "split or change it; write it without blanks, quotes, backslashes and * ? [ ]"
        )


def _text(value: bool | int | float | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _within_limits(variables: dict[str, str]) -> dict[str, str]:
    """Refuse more than CreateModel takes."""
    if len(variables) > MAX_VARIABLES:
        raise ConfigurationError(
            f"the container would have {len(variables)} environment variables and SageMaker takes {MAX_VARIABLES}; "
            "put some of them into a file of the model repository"
        )
    for name, value in variables.items():
        for what, text in (("name", name), ("value", value)):
            if (size := len(text.encode())) > MAX_TEXT_BYTES:
                raise ConfigurationError(
                    f"the {what} of the environment variable {name[:60]} has {size:,} bytes and SageMaker takes "
                    f"{MAX_TEXT_BYTES:,}; put it into a file of the model repository"
                )
    total = sum(len(text.encode()) for variable in variables.items() for text in variable)
    if total > MAX_BYTES:
        raise ConfigurationError(
            f"the names and values of the container's environment variables have {total:,} bytes together and "
            f"SageMaker takes {MAX_BYTES:,}; put the longest into a file of the model repository"
        )
    return dict(sorted(variables.items()))
