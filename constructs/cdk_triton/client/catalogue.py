"""The target models of published ensembles, from the catalogue of the artifact store."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from cdk_triton.client.objects import Location, location
from cdk_triton.client.runtime import default_client, foreign_errors_translated
from cdk_triton.errors import CdkTritonError, ConfigurationError, InvocationError
from cdk_triton.protocol.catalogue import REPAIR, current_of
from cdk_triton.protocol.documents import DocumentError

__all__ = ["PublishedNames"]

_LOG = logging.getLogger(__name__)

_MISSING = ("NoSuchKey", "404")


class PublishedNames:
    """Caches the target models of ensembles that no stack names, for `max_age` seconds.

    A name that is used after half of `max_age` is refreshed in the background, so requests for a busy name never wait.
    One thread reads these names, one after the other. A name that is older than `max_age` is read before it is used,
    and other users of the name wait for that read. If a read fails, this class logs the reason, and the last known
    target model stays for another `max_age`. A change of the platform moves the catalogue, so its URI is read again
    after half of `max_age`. The age of a name is that of the URI with which it was read, so all busy names are
    refreshed together.

    Args:
        find: returns the URI of the catalogue; None if the endpoint does not have one, or it cannot be read.
        s3: a boto3 `s3` client; by default a client of boto3's default session.
        max_age: seconds after which a name is read again before it is used.
        clock: a monotonic clock, in seconds.
    """

    def __init__(self, find: Callable[[], str | None], s3: Any, max_age: float, clock: Callable[[], float]) -> None:
        self._find, self._s3, self._max_age, self._clock = find, s3, max_age, clock
        self._place: tuple[Location | None, float] = None, clock()
        self._lock = threading.Condition()
        self._read: dict[str, tuple[str, float]] = {}
        self._reading: set[str] = set()
        self._old: dict[str, None] = {}
        self._is_refreshing = False

    def has(self, ensemble: str) -> bool:
        """Whether the ensemble was found before, and was published when it was last read."""
        return ensemble in self._read

    @property
    def has_catalogue(self) -> bool:
        """Whether the URI of the catalogue was found when it was last needed."""
        return self._place[0] is not None

    def is_fresh(self, ensemble: str) -> bool:
        """Whether `target` can answer without reading S3: the ensemble was read less than `max_age` ago."""
        return ensemble in self._read and not self._is_old(ensemble, self._max_age)

    def target(self, ensemble: str) -> str:
        """The target model of an ensemble that was found before.

        Raises:
            ConfigurationError: the ensemble is not published any more.
        """
        if self._is_old(ensemble, self._max_age):
            self._read_again(ensemble, self._max_age)
        elif self._is_old(ensemble, self._max_age / 2):
            self._refresh_later(ensemble)
        found = self._read.get(ensemble)
        if found is None:
            raise ConfigurationError(
                f"the ensemble {ensemble!r} is not published any more: publish it again, or give another one"
            )
        return found[0]

    def look_up(self, ensemble: str) -> bool:
        """Read an ensemble; whether it is published.

        Raises:
            InvocationError: the caller has no permission to read the catalogue, its entry is damaged, or the service
                failed.
        """
        place, placed_at = self._located()
        if place is None:
            return False
        key = f"{place.key}/{ensemble}.json"
        with foreign_errors_translated(f"the catalogue {place}", "s3:GetObject there, as grant_read_catalogue does"):
            current = self._current(place.bucket, key)
        with self._lock:
            if current is None:
                self._read.pop(ensemble, None)
            else:
                self._read[ensemble] = (current, placed_at)
        return current is not None

    def refresh(self, ensemble: str) -> None:
        """Read an ensemble again; if that fails, log the reason and keep the last known target model."""
        try:
            self.look_up(ensemble)
        except CdkTritonError as error:
            _LOG.warning("%s; the last known target model of '%s' is used", error, ensemble)
            with self._lock:
                if ensemble in self._read:
                    self._read[ensemble] = (self._read[ensemble][0], self._clock())

    def _located(self) -> tuple[Location | None, float]:
        """The last known place of the catalogue, or None if it was never found; and when the place was read."""
        place, read_at = self._place
        if place is None or self._clock() - read_at >= self._max_age / 2:
            started = self._clock()
            uri = self._find()
            self._place = (place if uri is None else location(uri)), started
        return self._place

    def _is_old(self, ensemble: str, age: float) -> bool:
        """Whether the ensemble, or the place of its catalogue, was read at least these seconds ago."""
        found = self._read.get(ensemble)
        return found is not None and self._clock() - found[1] >= age

    def _read_again(self, ensemble: str, age: float) -> None:
        """Read an ensemble of that age; if another thread reads it now, wait for that read instead."""
        with self._lock:
            if ensemble in self._reading:
                self._lock.wait_for(lambda: ensemble not in self._reading)
                return
            if not self._is_old(ensemble, age):
                return
            self._reading.add(ensemble)
        try:
            self.refresh(ensemble)
        finally:
            with self._lock:
                self._reading.remove(ensemble)
                self._lock.notify_all()

    def _refresh_later(self, ensemble: str) -> None:
        with self._lock:
            if ensemble in self._old:
                return
            self._old[ensemble] = None
            if self._is_refreshing:
                return
            self._is_refreshing = True
        threading.Thread(target=self._refresh_old, name="cdk-triton-catalogue", daemon=True).start()

    def _refresh_old(self) -> None:
        while (ensemble := self._next_old()) is not None:
            try:
                self._read_again(ensemble, self._max_age / 2)
            finally:
                with self._lock:
                    del self._old[ensemble]

    def _next_old(self) -> str | None:
        with self._lock:
            self._is_refreshing = bool(self._old)
            return next(iter(self._old), None)

    def _current(self, bucket: str, key: str) -> str | None:
        from botocore.exceptions import ClientError

        if self._s3 is None:
            from botocore.config import Config

            # A call of the endpoint waits for this read, and uses the last known name if it fails.
            config = Config(connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 2})
            self._s3 = default_client("s3", config=config)
        try:
            body = self._s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        except ClientError as error:
            if error.response["Error"]["Code"] in _MISSING:
                return None
            raise
        try:
            return current_of(body)
        except DocumentError as error:
            raise InvocationError(
                f"the entry s3://{bucket}/{key} of the catalogue cannot be read, because {error}; {REPAIR}"
            ) from error
