"""The way in which `/invocations` of a container answers a request."""

from __future__ import annotations

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.releases import is_older

__all__ = ["known_inference_type", "way_to_stream"]

_SINCE = "25.03"  # src/sagemaker_server.h of server at r25.02 does not read the variable, and that at r25.03 does


def known_inference_type(context: CheckContext) -> str | None:
    """The inference type that `/invocations` has, such as `infer`; None if it depends on an environment not given.

    A multi-model endpoint always infers, and so does every release before 25.03, whatever its environment is.
    """
    if context.mode == "multi" or (context.platform is not None and is_older(context.platform, _SINCE)):
        return "infer"
    return None if context.environment is None else context.environment.inference_type or "infer"


def way_to_stream(context: CheckContext) -> str:
    """How the container passes several responses on, as an instruction."""
    old = context.platform is not None and is_older(context.platform, _SINCE)
    release = f"of {_SINCE} or newer " if old else ""
    return f"use a single-model container {release}with inference_type='generate_stream'"
