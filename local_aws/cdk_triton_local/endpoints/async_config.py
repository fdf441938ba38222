"""Reads the asynchronous part of an endpoint configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdk_triton_local.endpoints.hosting import AsyncConfig

__all__ = ["async_of"]


def async_of(configuration: Mapping[str, Any]) -> AsyncConfig | None:
    """The asynchronous configuration, as DescribeEndpointConfig answers it; None of a real-time endpoint."""
    asked = configuration.get("AsyncInferenceConfig")
    if not asked:
        return None
    output = asked.get("OutputConfig") or {}
    notified = output.get("NotificationConfig") or {}
    return AsyncConfig(
        output=output["S3OutputPath"].rstrip("/"),
        failures=str(output.get("S3FailurePath") or "").rstrip("/") or None,
        success_topic=notified.get("SuccessTopic"),
        error_topic=notified.get("ErrorTopic"),
        concurrency=(asked.get("ClientConfig") or {}).get("MaxConcurrentInvocationsPerInstance"),
    )
