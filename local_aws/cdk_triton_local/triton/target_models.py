"""The models of a multi-model endpoint: downloaded and loaded on demand, unloaded when the room is needed.

This is the part of SageMaker that calls the container (docs.aws.amazon.com: mms-container-apis and
invoke-multi-model-endpoint). Triton names a model by the header X-Amzn-SageMaker-Target-Model if it is sent, so load,
invoke and unload all send it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from cdk_triton._load_failures import rejected_load
from cdk_triton.errors import LocalError
from cdk_triton_local.endpoints.metrics import Record
from cdk_triton_local.triton.connection import ContainerReply, ServerGoneError
from cdk_triton_local.triton.deadline import Deadline
from cdk_triton_local.triton.inner_models import SharedNames
from cdk_triton_local.triton.model_data import (
    ModelDataNotFoundError,
    ObjectStore,
    S3Location,
    fetch_archive,
    move_deeper,
    use_cpu_instances,
)
from cdk_triton_local.triton.own_builds import use_own_builds
from cdk_triton_local.triton.responses import ErrorResponses, RejectedInvocationError
from cdk_triton_local.triton.server import TritonServer

__all__ = ["TARGET_MODEL_HEADER", "TargetModels"]

TARGET_MODEL_HEADER: Final = "X-Amzn-SageMaker-Target-Model"

INSUFFICIENT_STORAGE: Final = 507
"""How a container reports that its memory is full: SageMaker then unloads other models and tries again."""

_ALREADY_LOADED: Final = 409
_LOAD_SECONDS: Final = 360.0  # how long SageMaker lets a model load, and unload


class _State(Enum):
    LOADING = "loading"
    READY = "ready"
    UNLOADING = "unloading"


@dataclass(eq=False)  # a model that was given up is not the later one of its name
class _Model:
    name: str
    directory: Path
    state: _State = _State.LOADING
    is_fetched: bool = False
    has_place: bool = False
    users: int = 0  # requests that use it or wait for it
    rejection: RejectedInvocationError | None = None

    @property
    def hash(self) -> str:
        return self.directory.name

    @property
    def is_idle(self) -> bool:
        return self.state is _State.READY and self.users == 0


class TargetModels:
    """The target models that one tritonserver holds.

    To make room for another model, the least recently used model is unloaded, but never one that a request uses or
    waits for. Concurrent first requests load a model once. A load continues after the request that started it has given
    up.

    Archives are fetched in parallel, and models get their places in the order of their first requests, except those
    whose archive has not arrived yet, or whose requests have all given up. The server loads or unloads one model at a
    time: while it loads a model, Triton 24.10 reads the repositories of all of them again, and an unload meanwhile
    could make it wait for ever for a directory that is gone. So a model gets its place when the server is ready for it;
    until then, the model that it replaces stays and answers.

    Args:
        server: the server.
        store: where the archives are.
        prefix: the endpoint's ModelDataUrl.
        directory: for the unpacked archives; emptied.
        limit: how many models may be loaded at a time.
        keep: False unloads a model as soon as it is idle (ModelCacheSetting: Disabled).
        errors: the endpoint's error responses.
        log: gets a line per load and unload, and one where loaded archives share the names of inner models.
        record: gets the values of the variant's metrics.
    """

    def __init__(
        self,
        server: TritonServer,
        store: ObjectStore,
        prefix: S3Location,
        directory: Path,
        *,
        limit: int,
        keep: bool,
        errors: ErrorResponses,
        log: Callable[[str], None],
        record: Record = lambda name, value: None,
    ) -> None:
        self._server = server
        self._store = store
        self._prefix = prefix
        self._directory = directory
        self._keep = keep
        self._errors = errors
        self._log = log
        self._record = record
        self._models: OrderedDict[str, _Model] = OrderedDict()  # the least recently used first
        self._places = limit
        self._queue: deque[_Model] = deque()  # models that wait for a place, in the order in which they were asked for
        self._is_loading = False  # whether a model that has left the queue is not loaded yet
        self._shared_names = SharedNames(log)
        self._changed = threading.Condition()  # guards all of the above
        self._turn = threading.Lock()  # held while the server loads or unloads
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)

    @contextmanager
    def use(self, name: str, deadline: Deadline) -> Iterator[str]:
        """Keep the model `name` loaded; yields the path of its invocations on the server.

        Raises:
            RejectedInvocationError: the model cannot be loaded, or not before the deadline.
        """
        since = time.monotonic()
        model = self._reserve(name, deadline)
        try:
            was_ready = model.state is _State.READY
            self._record("ModelCacheHit", float(was_ready))
            self._wait_for(model, deadline)
            if not was_ready:
                self._record("ModelLoadingWaitTime", time.monotonic() - since)
            yield f"/models/{model.hash}/invoke"
        finally:
            self._release(model)

    @property
    def count(self) -> int:
        """How many models are loaded."""
        with self._changed:
            return sum(model.state is _State.READY for model in self._models.values())

    @property
    def is_changing(self) -> bool:
        """Whether the server loads or unloads a model now, in a thread that may then answer no other request."""
        return self._turn.locked()

    def make_room(self) -> bool:
        """Unload the idle model whose last use is longest ago; False if no model is idle."""
        with self._changed:
            victim = self._claim_victim()
        if victim is None:
            return False
        self._unload(victim)
        return True

    def _reserve(self, name: str, deadline: Deadline) -> _Model:
        """The model stays until `_release`; it is loaded or being loaded."""
        with self._changed:

            def is_unloading() -> bool:
                model = self._models.get(name)
                return model is not None and model.state is _State.UNLOADING

            if not self._changed.wait_for(lambda: not is_unloading(), deadline.left):
                raise self._errors.model_not_ready(name)
            model = self._models.get(name)
            if model is None:
                model = self._models[name] = _Model(name, self._directory / _model_hash(name))
                self._queue.append(model)
                threading.Thread(target=self._load, args=[model], name=f"load {name}", daemon=True).start()
            model.users += 1
            self._models.move_to_end(name)
            return model

    def _wait_for(self, model: _Model, deadline: Deadline) -> None:
        """Raises the model's rejection if it cannot be loaded."""
        with self._changed:
            if not self._changed.wait_for(lambda: model.state is not _State.LOADING, deadline.left):
                raise self._errors.model_not_ready(model.name)
            if model.rejection is not None:
                raise model.rejection

    def _release(self, model: _Model) -> None:
        with self._changed:
            model.users -= 1
            done_with = self._claim_if_done_with(model)
            self._changed.notify_all()
        if done_with:
            threading.Thread(target=self._unload, args=[model], name=f"unload {model.name}", daemon=True).start()

    def _load(self, model: _Model) -> None:
        try:
            self._fetch(model)  # first: a name that does not exist costs no other model its place
            with self._turn_to_load(model):
                self._tell_of_shared_names(model)
                reply = self._ask_to_load(model)
                while reply.status == INSUFFICIENT_STORAGE and self.make_room():
                    reply = self._ask_to_load(model)
            if reply.status not in (200, _ALREADY_LOADED):
                self._log(
                    f"could not load target model {model.name}: {rejected_load(reply.text, model.directory / 'model')}"
                )
                raise self._errors.container_error(reply)
        except RejectedInvocationError as rejection:
            self._give_up(model, rejection)
        except (ServerGoneError, TimeoutError):
            self._give_up(model, self._errors.container_gone())
        except Exception as error:  # whatever it is, those who wait for the model have to hear of it
            self._give_up(model, self._errors.internal(f"loading {model.name!r} failed: {error!r}"))
            raise
        else:
            self._log(f"loaded target model {model.name}")
            with self._changed:
                model.state = _State.READY
                # Without a cache, a model whose requests have all given up is done with before it was used.
                done_with = self._claim_if_done_with(model)
                self._changed.notify_all()
            if done_with:
                self._unload(model)

    @contextmanager
    def _turn_to_load(self, model: _Model) -> Iterator[None]:
        """Wait for a place and for earlier loads. The next model waits until this context ends."""

        def may_go() -> bool:
            has_room = self._places > 0 or self._has_idle()
            return not self._is_loading and has_room and self._next_to_load() is model

        with self._changed:
            model.is_fetched = True
            self._changed.notify_all()
            if not self._changed.wait_for(may_go, _LOAD_SECONDS):
                raise self._errors.model_not_ready(model.name)
            self._queue.remove(model)
            self._is_loading = True
            victim = None if self._places > 0 else self._claim_victim()
            self._places -= 1  # of the victim, which gives its own back when it is gone
            model.has_place = True
        try:
            if victim is not None:
                self._unload(victim)
            yield
        finally:
            with self._changed:
                self._is_loading = False
                self._changed.notify_all()

    def _next_to_load(self) -> _Model | None:
        fetched = [model for model in self._queue if model.is_fetched]
        return min(fetched, key=lambda model: model.users == 0, default=None)  # of equals the first

    def _fetch(self, model: _Model) -> None:
        location = self._prefix.child(model.name)
        repository = model.directory / "model"
        try:
            with self._timed("ModelDownloadingTime"):
                fetch_archive(self._store, location, repository)
        except ModelDataNotFoundError:
            raise self._errors.model_data_missing(location.bucket, location.key) from None
        except LocalError as error:
            raise self._errors.model_data_unusable(str(error)) from error
        use_cpu_instances(repository)
        use_own_builds(repository, self._log)
        move_deeper(repository)

    def _ask_to_load(self, model: _Model) -> ContainerReply:
        body = json.dumps({"model_name": model.hash, "url": str(model.directory / "model")}).encode()
        headers = {"Content-Type": "application/json", TARGET_MODEL_HEADER: model.name}
        with self._turn, self._timed("ModelLoadingTime"):
            return self._ask("POST", "/models", body, headers)

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> ContainerReply:
        try:
            return self._server.request(method, path, body, headers, timeout=_LOAD_SECONDS)
        except TimeoutError:
            # It would load nothing any more; its watcher starts another one.
            self._log(f"tritonserver did not answer {method} {path} in {_LOAD_SECONDS:g} s; killing it")
            self._server.kill()
            raise

    @contextmanager
    def _timed(self, metric: str) -> Iterator[None]:
        since = time.monotonic()
        yield
        self._record(metric, time.monotonic() - since)

    def _give_up(self, model: _Model, rejection: RejectedInvocationError) -> None:
        shutil.rmtree(model.directory, ignore_errors=True)
        with self._changed:
            model.rejection = rejection
            self._forget(model)

    def _unload(self, model: _Model) -> None:
        """The model's state is UNLOADING already."""
        headers = {TARGET_MODEL_HEADER: model.name}
        with self._turn:
            try:
                with self._timed("ModelUnloadingTime"):
                    reply = self._ask("DELETE", f"/models/{model.hash}", None, headers)
                outcome = "unloaded" if reply.status == 200 else f"could not unload ({reply.status} {reply.text})"
                self._log(f"{outcome} target model {model.name}")
            except (ServerGoneError, TimeoutError):
                pass  # gone with its models; whoever asks next hears of it
            shutil.rmtree(model.directory, ignore_errors=True)  # before the next load looks into it
        with self._changed:
            self._forget(model)

    def _forget(self, model: _Model) -> None:
        model.state = _State.UNLOADING
        self._models.pop(model.name, None)
        if model in self._queue:
            self._queue.remove(model)
        self._places += model.has_place
        self._changed.notify_all()

    def _claim_if_done_with(self, model: _Model) -> bool:
        done_with = not self._keep and model.is_idle
        if done_with:
            model.state = _State.UNLOADING
        return done_with

    def _tell_of_shared_names(self, model: _Model) -> None:
        with self._changed:
            held = {other.name: other.directory / "model" for other in self._models.values() if other.has_place}
        self._shared_names.look(model.name, held)

    def _claim_victim(self) -> _Model | None:
        for model in self._models.values():
            if model.is_idle:
                model.state = _State.UNLOADING
                return model
        return None

    def _has_idle(self) -> bool:
        return any(model.is_idle for model in self._models.values())


def _model_hash(name: str) -> str:
    """In the form of SageMaker's own names of models."""
    return hashlib.sha256(name.encode()).hexdigest()[:32]
