"""`EndpointAlarms`: the alarms of a variant or of a component."""

from __future__ import annotations

import re
from collections.abc import Mapping

from aws_cdk import aws_cloudwatch as cloudwatch

from cdk_triton._wording import in_words
from cdk_triton.errors import ConfigurationError

__all__ = ["EndpointAlarms"]


class _NoAlarmError(ConfigurationError, AttributeError):
    """An alarm that does not exist; `hasattr` and `getattr` with a default take it for a missing attribute."""


class EndpointAlarms:
    """The alarms of one variant or of one inference component, each as an attribute.

    A kind of endpoint has only some of these alarms, and a threshold that is None omits its alarm. Reading the
    attribute of an alarm that does not exist raises a ConfigurationError, which lists the existing alarms. Code that
    handles several kinds of endpoint can use `getattr(alarms, "cache_misses", None)`.

    Args:
        owner: the variant or component, as messages call it.
        alarms: the alarms by their construct ids, such as `ServerErrors`.
    """

    def __init__(self, owner: str, alarms: Mapping[str, cloudwatch.Alarm]) -> None:
        self._owner = owner
        self._made = {re.sub("(?<!^)(?=[A-Z])", "_", name).lower(): alarm for name, alarm in alarms.items()}

    @property
    def alarms(self) -> tuple[cloudwatch.Alarm, ...]:
        """All alarms."""
        return tuple(self._made.values())

    @property
    def errors(self) -> tuple[cloudwatch.Alarm, ...]:
        """The alarms for failures of the model or the endpoint: `server_errors`, `model_errors`, `failed_requests`.

        `client_errors` is not among them, because callers cause these errors.
        """
        return self._existing("server_errors", "model_errors", "failed_requests")

    @property
    def latency(self) -> tuple[cloudwatch.Alarm, ...]:
        """The alarms that go off if responses are slow: `model_latency`."""
        return self._existing("model_latency")

    def _existing(self, *names: str) -> tuple[cloudwatch.Alarm, ...]:
        return tuple(self._made[name] for name in names if name in self._made)

    @property
    def server_errors(self) -> cloudwatch.Alarm:
        """A share of the requests gets a 5xx status."""
        return self._one("server_errors")

    @property
    def model_errors(self) -> cloudwatch.Alarm:
        """A share of the requests fails or times out in the container. Not for asynchronous endpoints."""
        return self._one("model_errors")

    @property
    def client_errors(self) -> cloudwatch.Alarm:
        """A share of the requests gets a 4xx status."""
        return self._one("client_errors")

    @property
    def model_latency(self) -> cloudwatch.Alarm:
        """The model is slow."""
        return self._one("model_latency")

    @property
    def gpu_utilization(self) -> cloudwatch.Alarm:
        """The GPUs are busy."""
        return self._one("gpu_utilization")

    @property
    def gpu_memory(self) -> cloudwatch.Alarm:
        """The memory of the GPUs is nearly full. Not for multi-model endpoints."""
        return self._one("gpu_memory")

    @property
    def memory(self) -> cloudwatch.Alarm:
        """The memory is nearly full."""
        return self._one("memory")

    @property
    def disk(self) -> cloudwatch.Alarm:
        """The disk is nearly full. Not for components."""
        return self._one("disk")

    @property
    def cache_misses(self) -> cloudwatch.Alarm:
        """Few requests find their archive loaded. Only for multi-model endpoints."""
        return self._one("cache_misses")

    @property
    def loading_wait(self) -> cloudwatch.Alarm:
        """Requests wait a long time until their archive is loaded. Only for multi-model endpoints."""
        return self._one("loading_wait")

    @property
    def failed_requests(self) -> cloudwatch.Alarm:
        """Requests have failed. Only for asynchronous endpoints."""
        return self._one("failed_requests")

    @property
    def expired_requests(self) -> cloudwatch.Alarm:
        """Requests have expired in the queue. Only for asynchronous endpoints."""
        return self._one("expired_requests")

    @property
    def oldest_request(self) -> cloudwatch.Alarm:
        """A request has waited for a long time. Only for asynchronous endpoints."""
        return self._one("oldest_request")

    @property
    def no_capacity(self) -> cloudwatch.Alarm:
        """Requests find no copy. Only for components."""
        return self._one("no_capacity")

    def _one(self, name: str) -> cloudwatch.Alarm:
        if name not in self._made:
            fix = f"use {in_words(self._made)}" if self._made else "every threshold is None"
            raise _NoAlarmError(f"{self._owner} has no alarm {name}: {fix}")
        return self._made[name]
