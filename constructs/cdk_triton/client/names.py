"""Which endpoint and which target model a request goes to: fixed names, or those of the Parameter Store."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from cdk_triton._wording import quoted
from cdk_triton.client.catalogue import PublishedNames
from cdk_triton.client.objects import Location, location
from cdk_triton.client.runtime import default_client, foreign_errors_translated
from cdk_triton.errors import CdkTritonError, ConfigurationError, InvocationError
from cdk_triton.sagemaker.limits import MAX_NAME_LENGTH, NAME_PATTERN

__all__ = ["MAX_AGE_SECONDS", "FixedNames", "Names", "ParameterNames", "Target", "is_gone"]

MAX_AGE_SECONDS = 60.0
"""How old the names of the Parameter Store get before they are refreshed."""

_LOG = logging.getLogger(__name__)

_ENDPOINT, _INPUT, _TARGETS = "endpoint-name", "async/input", "target-models/"
_CATALOGUE = "catalogue"
_NAMES_PER_CALL = 10
"""ParameterNameList of GetParameters in botocore's service model."""

_JUST_NOW_SECONDS = 1.0
"""If a target is gone, a parameter that was read more recently than this is not read again: the request is wrong."""


@dataclass(frozen=True)
class Target:
    """The endpoint, and the target model, that a request is sent to.

    Attributes:
        endpoint_name: the endpoint.
        target_model: the archive on a multi-model endpoint; None on others.
        ensemble: the name that stands for the archive in the Parameter Store; None if the caller named the archive.
    """

    endpoint_name: str
    target_model: str | None
    ensemble: str | None = None


class Names(Protocol):
    """The source of the names that a client uses."""

    @property
    def endpoint_name(self) -> str:
        """The endpoint."""
        ...

    @property
    def input_location(self) -> Location | None:
        """The S3 location for requests of an asynchronous endpoint."""
        ...

    def target(self, ensemble: str | None, target_model: str | None) -> Target:
        """Return the target of a request; this may read the Parameter Store or S3."""
        ...

    def may_block(self, ensemble: str | None) -> bool:
        """Whether `target` would first read the Parameter Store or S3."""
        ...

    def renew(self, gone: Target) -> bool:
        """Read the names again at once, and return whether another target replaces the one that is gone."""
        ...


@dataclass(frozen=True)
class FixedNames:
    """The names that a caller gave."""

    endpoint_name: str
    input_location: Location | None = None

    @classmethod
    def of(cls, endpoint_name: str, input_location: str | None) -> FixedNames:
        """Return the names that a caller gave.

        Raises:
            ConfigurationError: a value is not a valid name or location.
        """
        if not isinstance(endpoint_name, str) or re.fullmatch(NAME_PATTERN, endpoint_name) is None:
            raise ConfigurationError(
                f"{quoted(endpoint_name)} is not the name of an endpoint: give the name, not the ARN or a CDK token "
                f"(1 to {MAX_NAME_LENGTH} letters, digits and hyphens)"
            )
        return cls(endpoint_name, None if input_location is None else location(input_location))

    def target(self, ensemble: str | None, target_model: str | None) -> Target:
        """Return the endpoint and the given target model."""
        if ensemble is not None:
            raise ConfigurationError(
                f"ensemble={ensemble!r} needs the Parameter Store: make the client by from_parameters, or give "
                "target_model="
            )
        return Target(self.endpoint_name, target_model)

    def may_block(self, ensemble: str | None) -> bool:
        """No name is looked up."""
        return False

    def renew(self, gone: Target) -> bool:
        """There is no other target."""
        return False


class ParameterNames:
    """The names below an endpoint's `ssm_parameter_path`, which this class keeps and refreshes in the background.

    An update of a multi-model endpoint leaves replaced target models callable, so a name may be older than the update.

    Args:
        path: the endpoint's `ssm_parameter_path`.
        ssm: a boto3 `ssm` client; by default a client of boto3's default session.
        max_age: seconds after which a use of a name starts a refresh in the background. The name of a published
            ensemble is read again before it is used.
        s3: a boto3 `s3` client, for published ensembles; by default a client of boto3's default session.
        clock: a monotonic clock, in seconds.

    Raises:
        ConfigurationError: `max_age` is negative, or there is no parameter `endpoint-name` below the path.
        InvocationError: the caller has no permission to read the parameters, or the service failed.
    """

    def __init__(
        self, path: str, ssm: Any, max_age: float, *, s3: Any = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not max_age >= 0:
            raise ConfigurationError(f"max_age is {max_age!r}: give a number of seconds, 0 or more")
        self._path, self._max_age, self._clock = path, max_age, clock
        self._ssm = default_client("ssm") if ssm is None else ssm
        self._lock = threading.Lock()
        self._looking_up, self._renewing = threading.Lock(), threading.Lock()
        self._is_refreshing = False
        self._refreshed_at = clock()
        self._published = PublishedNames(self._catalogue, s3, max_age, clock)
        self._values = self._fetch([_ENDPOINT, _INPUT])
        if _ENDPOINT not in self._values:
            raise ConfigurationError(
                f"the Parameter Store has no {path}/{_ENDPOINT}: give the ssm_parameter_path of a TritonEndpoint, and "
                "its region"
            )

    @property
    def endpoint_name(self) -> str:
        """The endpoint."""
        self._refresh_if_old()
        return self._values[_ENDPOINT]

    @property
    def input_location(self) -> Location | None:
        """The S3 location for requests of an asynchronous endpoint."""
        uri = self._values.get(_INPUT)
        return None if uri is None else location(uri)

    def target(self, ensemble: str | None, target_model: str | None) -> Target:
        """Return the endpoint, and the target model of the ensemble.

        Raises:
            ConfigurationError: both are given, or there is no parameter for the ensemble.
            InvocationError: the caller has no permission to read the parameter or the catalogue, or the service failed.
        """
        if ensemble is None:
            return Target(self.endpoint_name, target_model)
        if target_model is not None:
            raise ConfigurationError(
                f"ensemble={ensemble!r} and target_model={target_model!r} both name a target model: give one of them"
            )
        name = f"{_TARGETS}{ensemble}"
        if name not in self._values and not self._published.has(ensemble):
            with self._looking_up:
                self._look_up(name, ensemble)
        archive = self._values.get(name)
        return Target(self.endpoint_name, self._published.target(ensemble) if archive is None else archive, ensemble)

    def _look_up(self, name: str, ensemble: str) -> None:
        """Read a name, unless another thread just did: from its parameter, or from the catalogue."""
        if name in self._values or self._published.has(ensemble):
            return
        # A call of its own: IAM rejects a call if the caller may not read one of its names.
        try:
            found = self._fetch([name])
        except InvocationError:
            # Nobody may read the parameter of a published ensemble, because it does not have one.
            if not self._published.look_up(ensemble):
                raise
            return
        if found:
            with self._lock:
                self._values = self._values | found
        elif not self._published.look_up(ensemble):
            raise ConfigurationError(f"the Parameter Store has no {self._path}/{name}, and {self._why_unpublished()}")

    def _why_unpublished(self) -> str:
        if self._published.has_catalogue:
            return (
                "no such ensemble is published: give the name of an ensemble of the multi-model endpoint, or publish "
                "the ensemble"
            )
        return (
            f"no {self._path}/{_CATALOGUE} that this caller can read, so no ensemble is published: give the name of an "
            "ensemble that the stack deploys; or, if the publisher was removed, deploy the stack with add_publisher() "
            "again"
        )

    def _catalogue(self) -> str | None:
        """The URI of the catalogue; None also if reading it is denied, as IAM does if the endpoint has no catalogue."""
        try:
            return self._fetch([_CATALOGUE]).get(_CATALOGUE)
        except InvocationError:
            return None

    def may_block(self, ensemble: str | None) -> bool:
        """Whether `target` reads the name first: it was not read yet, or is published and too old."""
        if ensemble is None or f"{_TARGETS}{ensemble}" in self._values:
            return False
        return not self._published.is_fresh(ensemble)

    def renew(self, gone: Target) -> bool:
        """Look the names up at once, unless another thread just did; return whether there is another target now."""
        with self._renewing:
            if self._known(gone) == gone and self._clock() - self._refreshed_at >= _JUST_NOW_SECONDS:
                self._refresh()
                if gone.ensemble is not None and self._published.has(gone.ensemble):
                    self._published.refresh(gone.ensemble)
        return self._known(gone) != gone

    def _known(self, target: Target) -> Target:
        archive = target.target_model
        if target.ensemble is not None:
            archive = self._values.get(f"{_TARGETS}{target.ensemble}") or self._published.target(target.ensemble)
        return Target(self._values[_ENDPOINT], archive, target.ensemble)

    def _refresh_if_old(self) -> None:
        with self._lock:
            if self._is_refreshing or self._clock() - self._refreshed_at < self._max_age:
                return
            self._is_refreshing = True
        threading.Thread(target=self._refresh, name="cdk-triton-parameters", daemon=True).start()

    def _refresh(self) -> None:
        """Read every name that was read before. If that fails, log the reason and keep the last known names."""
        try:
            found = self._fetch({_ENDPOINT, _INPUT, *self._values})
            missing = [name for name in self._values if name not in found and name != _INPUT]
            if missing:
                _LOG.warning(
                    "parameters below '%s': %s does not exist any more; the client uses its last known value",
                    self._path,
                    ", ".join(missing),
                )
            with self._lock:
                self._values = self._values | found
        except CdkTritonError as error:
            _LOG.warning("%s; the last known endpoint and targets are used", error)
        finally:
            with self._lock:
                self._refreshed_at = self._clock()
                self._is_refreshing = False

    def _fetch(self, names: Iterable[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        prefix, wanted = f"{self._path}/", [f"{self._path}/{name}" for name in names]
        with foreign_errors_translated(f"parameters below '{self._path}'", "ssm:GetParameters on these parameters"):
            for first in range(0, len(wanted), _NAMES_PER_CALL):
                answer = self._ssm.get_parameters(Names=wanted[first : first + _NAMES_PER_CALL])
                found |= {each["Name"].removeprefix(prefix): each["Value"] for each in answer["Parameters"]}
        return found


def is_gone(error: InvocationError) -> bool:
    """Whether SageMaker may have rejected a request because its endpoint or target model does not exist any more.

    In this case SageMaker answers with a ValidationError, whose texts AWS does not document, before a container gets
    the request.
    """
    response: Any = getattr(error.__cause__, "response", None) or {}
    return type(error) is InvocationError and response.get("Error", {}).get("Code") == "ValidationError"
