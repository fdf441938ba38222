"""A production variant in service: one tritonserver that is restarted when it dies."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cdk_triton.sagemaker import image_release, limits
from cdk_triton_local.endpoints import Container, Variant
from cdk_triton_local.endpoints.metrics import Record
from cdk_triton_local.triton.backends import RELEASE
from cdk_triton_local.triton.deadline import Deadline
from cdk_triton_local.triton.inference_type import read_variables
from cdk_triton_local.triton.model_data import (
    ObjectStore,
    S3Location,
    fetch_archive,
    fetch_files,
    use_cpu_instances,
)
from cdk_triton_local.triton.own_builds import use_own_builds
from cdk_triton_local.triton.responses import ErrorResponses
from cdk_triton_local.triton.server import ServerSettings, TritonServer
from cdk_triton_local.triton.target_models import TargetModels

__all__ = ["RetiredError", "RunningVariant", "VariantSettings"]

_STEADY_SECONDS: Final = 10.0  # a server that lived so long is started again at once when it dies
_LONGEST_PAUSE: Final = 30.0
_PING_SECONDS: Final = 5.0  # between two pings; how often SageMaker pings, and how often in vain, is not documented
_PINGS_IN_VAIN: Final = 6
_GRACE: Final = 35.0  # the server's own exit timeout is 30 s
_LAST_SECOND: Final = 1.0
_LAST_GRACE: Final = 10.0  # an idle server with Python models takes two to four seconds


@dataclass(frozen=True)
class VariantSettings:
    """The settings that all variants of a host share.

    Attributes:
        server: for its servers.
        store: given the ARN of an execution role, returns where the model data is.
        max_loaded_models: how many target models a multi-model variant holds at a time.
        closing: set when the host closes; a server that is starting is then given up.
        log: gets a line per event.
    """

    server: ServerSettings
    store: Callable[[str], ObjectStore]
    max_loaded_models: int
    closing: threading.Event
    log: Callable[[str], None]


class RetiredError(Exception):
    """The variant was stopped after it was chosen and before it was used: choose again."""


@dataclass(frozen=True)
class _Generation:
    """A server and the models in it, which end together."""

    server: TritonServer
    models: TargetModels | None


class RunningVariant:
    """A variant whose server is ready.

    Args:
        variant: its entry in the endpoint configuration.
        settings: the settings with which the server starts.
        directory: for model data; of this variant alone, made here and removed when it stops.
        log_file: gets what the servers print.
        errors: the endpoint's error responses.
        record: gets the values of the variant's metrics.

    Raises:
        LocalError: the model data or the server cannot be used.
    """

    def __init__(
        self,
        variant: Variant,
        settings: VariantSettings,
        directory: Path,
        log_file: Path,
        errors: ErrorResponses,
        record: Record,
    ) -> None:
        self.name = variant.name
        self.weight = variant.weight
        self.is_multi_model = variant.container.mode == "MultiModel"
        self._container = variant.container
        self._settings = settings
        self._directory = directory
        self._log_file = log_file
        self._errors = errors
        self.record = record
        is_prefix = self.is_multi_model or not variant.container.compressed
        self._location = S3Location.from_url(variant.container.model_data_url, is_prefix=is_prefix)
        self._users = 0
        self._retired = threading.Event()
        self._changed = threading.Condition()  # guards _users, _retired and _generation
        try:
            self._fetch_model_data()
            self._generation: _Generation | None = self._start()
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        self._watchers = [
            threading.Thread(target=watch, name=f"watch {variant.name}", daemon=True)
            for watch in (self._watch, self._watch_health)
        ]
        for watcher in self._watchers:
            watcher.start()

    @contextmanager
    def use(self, deadline: Deadline) -> Iterator[tuple[TritonServer, TargetModels | None]]:
        """Reserve the server, and its target models if it has several, for one invocation.

        Waits until the deadline while a server that died is replaced.

        Raises:
            RetiredError: the variant has been stopped.
            RejectedInvocationError: the server is not back in time.
        """
        with self._changed:
            ready = self._changed.wait_for(lambda: self._in_service() or self._retired.is_set(), deadline.left)
            if self._retired.is_set():
                raise RetiredError
            generation = self._generation
            if not ready or generation is None:
                raise self._errors.container_timeout()
            self._users += 1
        try:
            yield generation.server, generation.models
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    def stop(self) -> None:
        """Take no more invocations, let those in flight end, then stop the server and remove the model data.

        When the host closes, it waits a second for invocations in flight, and a few for the server.
        """
        with self._changed:
            self._retired.set()
            self._changed.notify_all()
            deadline = Deadline(limits.MAX_INVOCATION_SECONDS)
            while self._users and not deadline.is_over and not self._settings.closing.is_set():
                self._changed.wait(min(_LAST_SECOND, deadline.left))
            if self._settings.closing.is_set():
                self._changed.wait_for(lambda: self._users == 0, _LAST_SECOND)
            generation = self._generation
        if generation is not None:
            generation.server.stop(grace=_LAST_GRACE if self._settings.closing.is_set() else _GRACE)
        for watcher in self._watchers:
            watcher.join()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _in_service(self) -> bool:
        return self._generation is not None and not self._generation.server.is_lost

    def _fetch_model_data(self) -> None:
        if not self.is_multi_model:
            fetch = fetch_archive if self._container.compressed else fetch_files
            fetch(self._settings.store(self._container.role), self._location, self._repository)
            use_cpu_instances(self._repository)
            use_own_builds(self._repository, self._settings.log)
        else:
            self._repository.mkdir(parents=True)  # `serve` starts a multi-model server with an empty repository

    @property
    def _repository(self) -> Path:
        return self._directory / "repository"

    def _start(self) -> _Generation:
        server = TritonServer(
            self._settings.server,
            _environment_in_sagemaker(self._container),
            self._repository,
            self._log_file,
            lambda: self._retired.is_set() or self._settings.closing.is_set(),
        )
        self._settings.log(f"variant {self.name}: tritonserver is ready at 127.0.0.1:{server.port}")
        if not self.is_multi_model:
            return _Generation(server, None)
        models = TargetModels(
            server,
            self._settings.store(self._container.role),
            self._location,
            self._directory / "models",
            limit=self._settings.max_loaded_models,
            keep=self._container.model_cache,
            errors=self._errors,
            log=self._settings.log,
            record=self.record,
        )
        return _Generation(server, models)

    def _watch(self) -> None:
        """Replace the server whenever it dies: at once the first time, then after growing pauses."""
        pause = 0.0
        generation = self._generation
        while generation is not None:
            since = time.monotonic()
            status = generation.server.wait()
            with self._changed:
                if self._retired.is_set():
                    return
                self._generation = None
            self._settings.log(f"variant {self.name}: tritonserver died (exit status {status}); starting it again")
            pause = 0.0 if time.monotonic() - since > _STEADY_SECONDS else pause
            generation, pause = self._replace(pause)

    def _watch_health(self) -> None:
        """Kill a server that does not answer pings; `_watch` then replaces it."""
        in_vain = 0
        while not self._retired.wait(_PING_SECONDS):
            generation = self._generation
            models = None if generation is None else generation.models
            if models is not None:
                self.record("LoadedModelCount", models.count)
            if generation is None or (models is not None and models.is_changing):
                in_vain = 0
                continue
            in_vain = 0 if generation.server.answers_ping() else in_vain + 1
            if in_vain >= _PINGS_IN_VAIN:
                self._settings.log(f"variant {self.name}: tritonserver did not answer {in_vain} pings; killing it")
                generation.server.is_lost = True  # the next invocations wait for its successor
                generation.server.kill()
                in_vain = 0

    def _replace(self, pause: float) -> tuple[_Generation | None, float]:
        while not self._retired.wait(pause):
            pause = min(max(0.5, 2 * pause), _LONGEST_PAUSE)
            try:
                generation = self._start()
            except Exception as error:  # whatever it is (a full disk), it may pass, and this thread has to live
                if not self._retired.is_set():
                    self._settings.log(f"variant {self.name}: {error}")
                continue
            with self._changed:
                if not self._retired.is_set():
                    self._generation = generation
                    self._changed.notify_all()
                    return generation, pause
            generation.server.stop(grace=_LAST_GRACE)
        return None, pause


def _environment_in_sagemaker(container: Container) -> dict[str, str]:
    environment = read_variables(container.environment, container.image)
    if (release := image_release(container.image)) is not None:
        environment[RELEASE] = release
    if container.mode == "MultiModel":
        environment["SAGEMAKER_MULTI_MODEL"] = "true"
    return environment
