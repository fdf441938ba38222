"""The target models of published ensembles, from the catalogue of the artifact store."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from typing import Any

from cdk_triton.client.objects import Location, location
from cdk_triton.client.runtime import default_client, foreign_errors_translated
from cdk_triton.errors import CdkTritonError, ConfigurationError

__all__ = ["PublishedNames"]

_LOG = logging.getLogger(__name__)

_MISSING = ("NoSuchKey", "404")


class PublishedNames:
    """The target models of ensembles that no stack names.

    A name is read again when it is used after `max_age`. If that fails, the last known one is used.

    Args:
        find: returns the URI of the catalogue; None if the endpoint does not have one.
        s3: a boto3 `s3` client; by default one is made from the environment.
        max_age: seconds.
        clock: seconds that only grow.
    """

    def __init__(self, find: Callable[[], str | None], s3: Any, max_age: float, clock: Callable[[], float]) -> None:
        self._find, self._s3, self._max_age, self._clock = find, s3, max_age, clock
        self._place: Location | None = None
        self._lock = threading.Lock()
        self._read: dict[str, tuple[str, float]] = {}

    def has(self, ensemble: str) -> bool:
        """Whether the ensemble was found before."""
        return ensemble in self._read

    def is_fresh(self, ensemble: str) -> bool:
        """Whether the ensemble was read within `max_age`."""
        found = self._read.get(ensemble)
        return found is not None and self._clock() - found[1] < self._max_age

    def forget_age(self, ensemble: str) -> None:
        """Let the next use of an ensemble read it again."""
        with self._lock:
            if ensemble in self._read:
                self._read[ensemble] = (self._read[ensemble][0], self._clock() - self._max_age)

    def target(self, ensemble: str) -> str:
        """The target model of an ensemble that was found before.

        Raises:
            ConfigurationError: the ensemble is not published any more.
        """
        if not self.is_fresh(ensemble):
            try:
                is_published = self.look_up(ensemble)
            except CdkTritonError as error:
                _LOG.warning("%s; the last known target model of '%s' is used", error, ensemble)
            else:
                if not is_published:
                    raise ConfigurationError(f"the ensemble {ensemble!r} is not published any more")
        return self._read[ensemble][0]

    def look_up(self, ensemble: str) -> bool:
        """Read an ensemble; whether it is published.

        Raises:
            InvocationError: the caller may not read the catalogue, or the service failed.
        """
        if self._place is None:
            uri = self._find()
            if uri is None:
                return False
            self._place = location(uri)
        key = f"{self._place.key}/{ensemble}.json"
        with foreign_errors_translated(
            f"the catalogue {self._place}", "s3:GetObject there, as grant_read_catalogue does"
        ):
            current = self._current(self._place.bucket, key)
        if current is None:
            return False
        with self._lock:
            self._read[ensemble] = (current, self._clock())
        return True

    def _current(self, bucket: str, key: str) -> str | None:
        from botocore.exceptions import ClientError

        if self._s3 is None:
            self._s3 = default_client("s3")
        try:
            body = self._s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        except ClientError as error:
            if error.response["Error"]["Code"] in _MISSING:
                return None
            raise
        current = json.loads(body)["current"]
        return None if current is None else str(current)
