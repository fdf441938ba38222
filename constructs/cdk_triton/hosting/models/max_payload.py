"""`max_payload`: how large the JSON of a request to Triton may be.

Sources, all of triton-inference-server/server: the option `--http-max-input-size` exists since 25.06
(src/command_line_parser.cc, af8bb9302), with a default of 64 MiB. It limits each input tensor that JSON contains, and
from 25.10 on the JSON of a request as a whole (`EVBufferToJson` in src/http_server.cc). Binary tensors behind the JSON
are not limited. SageMaker's front end gets the option from 26.03 on (src/sagemaker_server.h, a5b45da57); from 25.06 to
26.02, the front end's limit is the default, whatever the option is. Releases before 25.06 have no limit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from aws_cdk import Size, SizeRoundingBehavior
from constructs import Construct

from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.per_construct import path_of
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.sagemaker.limits import MAX_ASYNC_BYTES, MAX_INVOCATION_BYTES
from cdk_triton.triton import ContainerEnvironment
from cdk_triton.triton.releases import is_at_least
from cdk_triton.triton.server_options import given_options

if TYPE_CHECKING:
    from cdk_triton.hosting.models.interface import ITritonModel

__all__ = ["check_real_time_payload", "payload_bytes", "with_max_payload"]

OPTION: Final = "http-max-input-size"

FIXED_SINCE: Final = "25.06"
SETTABLE_SINCE: Final = "26.03"


def payload_bytes(scope: Construct, max_payload: Size | None, platform: ServingPlatform) -> int | None:
    """The limit in bytes.

    Args:
        scope: the model.
        max_payload: the argument of the app; None: no limit of its own.
        platform: release and instance type.

    Raises:
        ConfigurationError: the size is a token, not a whole number of bytes, or more than SageMaker passes on; or the
            release's SageMaker front end does not read the option.
    """
    if max_payload is None:
        return None
    what = f"max_payload of {path_of(scope)}"
    if max_payload.is_unresolved():
        raise ConfigurationError(f"{what} is an unresolved token: write it out, such as Size.mebibytes(500)")
    size = max_payload.to_bytes(rounding=SizeRoundingBehavior.NONE)
    if not (1 <= size <= MAX_ASYNC_BYTES and size == int(size)):
        raise ConfigurationError(
            f"{what} is {size:,.10g} bytes: use whole bytes up to {MAX_ASYNC_BYTES:,}, the largest request of an "
            "asynchronous endpoint"
        )
    release = platform.release
    if release is None:
        return int(size)  # an image of the user, which may support the option
    if not is_at_least(release, FIXED_SINCE):
        raise ConfigurationError(
            f"{what} is {int(size):,} bytes, but Triton {release} has no limit for requests and no option "
            f"--{OPTION}: omit max_payload, or serve with release {SETTABLE_SINCE} or newer"
        )
    if not is_at_least(release, SETTABLE_SINCE):
        raise ConfigurationError(
            f"{what} is {int(size):,} bytes, but the SageMaker front end of Triton {release} limits JSON to 64 MiB and "
            f"ignores --{OPTION}: serve with release {SETTABLE_SINCE} or newer, or omit max_payload and "
            "send binary tensors, which have no limit"
        )
    return int(size)


def check_real_time_payload(what: str, model: ITritonModel) -> None:
    """Reject a limit that no request to a real-time endpoint can reach.

    Args:
        what: the variant or component, as a sentence names it.
        model: what it serves.

    Raises:
        ConfigurationError: the model's `max_payload` is larger than a request of InvokeEndpoint may be.
    """
    size = getattr(model, "max_payload", None)
    if isinstance(size, int) and size > MAX_INVOCATION_BYTES:
        raise ConfigurationError(
            f"the model {model.node.path} has a max_payload of {size:,} bytes, but {what} is real-time, and SageMaker "
            f"takes at most {MAX_INVOCATION_BYTES:,} bytes in a request to a real-time endpoint: serve the model on an "
            "asynchronous TritonEndpoint, or omit max_payload"
        )


def with_max_payload(environment: ContainerEnvironment, size: int | None) -> ContainerEnvironment:
    """The environment with the option.

    Raises:
        ConfigurationError: the environment has the option already.
    """
    if size is None:
        return environment
    given = dict(given_options(environment.additional_args)).get(OPTION)
    if given is not None:
        raise ConfigurationError(
            f"additional_args contain --{OPTION}={given}, and max_payload sets the same option to {size}: use one of "
            "the two"
        )
    return replace(environment, additional_args=(*environment.additional_args, f"--{OPTION}={size}"))
