"""Loading on demand, the limit and the least recently used, against a double of the server."""

from __future__ import annotations

import functools
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdk_triton_local.triton.connection import ContainerReply, ServerGoneError
from cdk_triton_local.triton.deadline import Deadline
from cdk_triton_local.triton.model_data import S3Location
from cdk_triton_local.triton.responses import ErrorResponses, RejectedInvocationError
from cdk_triton_local.triton.target_models import TargetModels

if TYPE_CHECKING:
    from golden_messages import Messages

HEADER = "X-Amzn-SageMaker-Target-Model"


class ServerDouble:
    """Keeps the rules of Triton's multi-model endpoint, and notes when somebody breaks them."""

    def __init__(self, memory: int = 1000) -> None:
        self.loaded: dict[str, str] = {}  # hash -> name
        self.loads: Counter[str] = Counter()
        self.most_loaded = 0
        self.memory = memory
        self.gate = threading.Event()  # a load waits for it
        self.gate.set()
        self.load_reply: Callable[[str], ContainerReply] | None = None
        self.is_gone = False
        self.hangs = False
        self.kills = 0
        self.overlaps = 0
        self.unload_seconds = 0.0
        self._busy = threading.Lock()
        self._lock = threading.Lock()

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> ContainerReply:
        name = (headers or {})[HEADER]
        assert timeout == 360, "loading and unloading may take SageMaker's 360 s"
        if self.is_gone:
            raise ServerGoneError
        if self.hangs:
            raise TimeoutError
        self.overlaps += not self._busy.acquire(blocking=False)
        try:
            if method == "POST":
                self.gate.wait(10)
                return self._load(name, json.loads(body or b""))
            assert method == "DELETE"
            threading.Event().wait(self.unload_seconds)
            assert self.loaded.pop(path.rpartition("/")[2]) == name
            return ContainerReply(200, {}, b"")
        finally:
            if self._busy.locked():
                self._busy.release()

    def kill(self) -> None:
        self.kills += 1

    def _load(self, name: str, model: Mapping[str, str]) -> ContainerReply:
        if self.load_reply is not None:
            return self.load_reply(name)
        assert (Path(model["url"]) / "model" / "config.pbtxt").exists()
        with self._lock:
            if len(self.loaded) >= self.memory:
                return ContainerReply(507, {}, b'{"error":"CUDA out of memory"}')
            self.loaded[model["model_name"]] = name
            self.loads[name] += 1
            self.most_loaded = max(self.most_loaded, len(self.loaded))
        return ContainerReply(200, {}, b"")


class Fixture:
    """Target models with a server double and any archive that a test asks for."""

    def __init__(
        self, directory: Path, archive: bytes, *, limit: int = 2, keep: bool = True, wait: float = 20.0
    ) -> None:
        self.wait = wait
        self.server = ServerDouble()
        self.archive = archive
        self.archives: dict[str, bytes] = {}  # others than that, by name
        self.arrivals: dict[str, threading.Event] = {}  # what the archive of a name waits for
        self.lines: list[str] = []
        self.models = TargetModels(
            self.server,  # type: ignore[arg-type]  # a double
            self,
            S3Location("bucket", "fleet/"),
            directory / "models",
            limit=limit,
            keep=keep,
            errors=ErrorResponses("fleet", account="123456789012", region="us-east-1"),
            log=self.lines.append,
        )

    def get_object(self, *, Bucket: str, Key: str) -> Any:  # noqa: N803 boto3's names
        import io

        from botocore.exceptions import ClientError

        if (arrival := self.arrivals.get(Key.removeprefix("fleet/"))) is not None:
            arrival.wait(10)
        if Key == "fleet/missing":
            raise ClientError({"Error": {"Code": "NoSuchKey"}}, "GetObject")
        return {"Body": io.BytesIO(b"broken" if Key == "fleet/broken" else self._archive_of(Key))}

    def _archive_of(self, key: str) -> bytes:
        return self.archives.get(key.removeprefix("fleet/"), self.archive)

    def use(self, name: str) -> AbstractContextManager[str]:
        return self.models.use(name, Deadline(self.wait))

    def touch(self, name: str) -> None:
        with self.use(name):
            assert name in self.server.loaded.values(), "a model in use is loaded"

    def loaded(self) -> set[str]:
        return set(self.server.loaded.values())


@pytest.fixture
def fleet(tmp_path: Path, adder: Any) -> Callable[..., Fixture]:
    return lambda **arguments: Fixture(tmp_path, adder(1), **arguments)


def test_a_model_is_loaded_once_and_by_the_name_of_its_header(fleet: Any) -> None:
    f = fleet()
    f.touch("a")
    f.touch("a")
    assert f.server.loads == {"a": 1}


def test_concurrent_first_requests_load_a_model_once(fleet: Any) -> None:
    f = fleet()
    f.server.gate.clear()
    with ThreadPoolExecutor(8) as pool:
        requests = [pool.submit(f.touch, "a") for _ in range(8)]
        f.server.gate.set()
        for request in requests:
            request.result(10)
    assert f.server.loads == {"a": 1}


def test_the_least_recently_used_model_makes_room(messages: Messages, fleet: Any) -> None:
    f = fleet(limit=2)
    for name in ("a", "b", "a", "c"):
        f.touch(name)
    assert f.loaded() == {"a", "c"}
    assert f.server.most_loaded == 2
    assert [line.split()[-1] for line in f.lines[-2:]] == ["b", "c"]
    messages.record("log", "\n".join(f.lines[-2:]))


def test_a_model_with_a_request_in_flight_stays(fleet: Any) -> None:
    f = fleet(limit=2)
    with f.use("a"):
        for name in ("b", "c", "d"):
            f.touch(name)
        assert f.loaded() == {"a", "d"}


def test_when_all_are_busy_a_new_model_waits_for_a_place(fleet: Any) -> None:
    f = fleet(limit=1)
    with ThreadPoolExecutor(1) as pool:
        with f.use("a"):
            waiting = pool.submit(f.touch, "b")
            assert f.loaded() == {"a"}
        waiting.result(10)
    assert f.loaded() == {"b"}
    assert f.server.most_loaded == 1


def test_a_request_gives_up_while_its_model_goes_on_loading(messages: Messages, fleet: Any) -> None:
    f = fleet(wait=0.05)
    f.server.gate.clear()
    with pytest.raises(RejectedInvocationError) as rejected:
        f.touch("a")
    messages.record("ModelNotReadyException", json.loads(rejected.value.response.body)["Message"])
    assert rejected.value.response.status == 429
    assert rejected.value.response.headers["x-amzn-ErrorType"] == "ModelNotReadyException"
    f.server.gate.set()
    f.wait = 10.0
    f.touch("a")
    assert f.server.loads == {"a": 1}


def test_a_model_stays_for_the_request_that_waits_for_it(fleet: Any) -> None:
    """Also when another model wants the place at the moment when the first one is ready."""
    f = fleet(limit=1)
    f.server.gate.clear()
    with ThreadPoolExecutor(8) as pool:
        requests = [pool.submit(f.touch, name) for name in "abcdefgh"]
        f.server.gate.set()
        for request in requests:
            request.result(10)
    assert f.server.loads == dict.fromkeys("abcdefgh", 1)


def test_models_get_their_places_in_the_order_of_the_requests(fleet: Any) -> None:
    f = fleet(limit=1)
    names = "bcdefgh"
    with ThreadPoolExecutor(len(names)) as pool:
        with f.use("a"):
            requests = [pool.submit(f.touch, name) for name in waiting_in_turn(f, names)]
            assert eventually(lambda: all(each.is_fetched for each in f.models._queue))
        for request in requests:
            request.result(10)
    assert list(f.server.loads) == ["a", *names]


def test_a_late_archive_keeps_the_place_of_its_request_in_the_queue(fleet: Any) -> None:
    f = fleet(limit=1)
    f.arrivals["b"] = threading.Event()
    with ThreadPoolExecutor(3) as pool:
        with f.use("a"):
            requests = [pool.submit(f.touch, name) for name in waiting_in_turn(f, "bc")]
            f.arrivals["b"].set()
            assert eventually(lambda: all(each.is_fetched for each in f.models._queue))
        for request in requests:
            request.result(10)
    assert list(f.server.loads) == ["a", "b", "c"]


def test_a_model_whose_archive_is_on_its_way_lets_others_go_first(fleet: Any) -> None:
    f = fleet(limit=1)
    f.arrivals["b"] = threading.Event()
    with ThreadPoolExecutor(3) as pool:
        requests = [pool.submit(f.touch, name) for name in waiting_in_turn(f, "b")]
        f.touch("c")
        f.arrivals["b"].set()
        requests[0].result(10)
    assert list(f.server.loads) == ["c", "b"]


def test_a_model_whose_requests_have_given_up_lets_others_go_first(fleet: Any) -> None:
    f = fleet(limit=1)
    with ThreadPoolExecutor(2) as pool:
        with f.use("a"):
            f.wait = 0.05
            with pytest.raises(RejectedInvocationError):
                f.touch("b")
            f.wait = 10.0
            [request] = [pool.submit(f.touch, name) for name in waiting_in_turn(f, "c", before=1)]
            assert eventually(lambda: all(each.is_fetched for each in f.models._queue))
        request.result(10)
    assert eventually(lambda: list(f.server.loads) == ["a", "c", "b"])


def test_a_model_answers_until_the_server_has_time_to_unload_it(fleet: Any) -> None:
    f = fleet(limit=2)
    for name in "ab":
        f.touch(name)
    f.server.gate.clear()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(f.touch, "c")
        assert eventually(lambda: f.loaded() == {"b"})
        second = pool.submit(f.touch, "d")
        assert eventually(lambda: any(each.is_fetched for each in f.models._queue))
        f.touch("b")
        f.server.gate.set()
        for request in (first, second):
            request.result(10)
    assert f.server.loads["b"] == 1


@pytest.mark.slow
def test_a_request_waits_no_longer_than_its_deadline_for_the_unload_and_the_load_together(fleet: Any) -> None:
    f = fleet(limit=1, wait=2.0)
    f.touch("a")
    f.server.unload_seconds = 1.8
    f.server.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(f.models.make_room)
        assert eventually(lambda: not f.models._has_idle())
        since = time.monotonic()
        with pytest.raises(RejectedInvocationError):
            f.touch("a")
        assert time.monotonic() - since < 3.5, "1.8 s for the unload, and only the rest of 2 s for the load"
        f.server.gate.set()
        assert other.result(10)


def test_loaded_archives_that_share_inner_names_are_told_of_once(messages: Messages, fleet: Any, packed: Any) -> None:
    def ensemble(*inner: str) -> bytes:
        archive: bytes = packed(
            {"model/config.pbtxt": 'platform: "ensemble"', "model/1": None}
            | {f"{name}/config.pbtxt": 'backend: "python"' for name in inner}
        )
        return archive

    f = fleet(limit=2)
    f.archives = {"a": ensemble("decode", "detect"), "b": ensemble("decode", "track"), "c": ensemble("segment")}
    for name in ("c", "a", "b", "a"):
        f.touch(name)
    [line] = [line for line in f.lines if "decode" in line]
    assert not any("segment" in line or "detect" in line for line in f.lines)
    messages.record("log", line)


def test_out_of_memory_unloads_others_and_tries_again(fleet: Any) -> None:
    f = fleet(limit=10)
    f.server.memory = 2
    for name in ("a", "b", "c"):
        f.touch(name)
    assert f.loaded() == {"b", "c"}


def test_out_of_memory_with_nothing_to_unload_is_the_containers_error(fleet: Any) -> None:
    f = fleet()
    f.server.memory = 0
    with pytest.raises(RejectedInvocationError) as rejected:
        f.touch("a")
    assert json.loads(rejected.value.response.body)["OriginalStatusCode"] == 507


def test_a_failed_load_takes_no_place_and_is_tried_again(fleet: Any) -> None:
    f = fleet(limit=1)
    f.touch("a")
    f.server.load_reply = lambda name: ContainerReply(400, {}, b'{"error":"no"}')
    for _ in range(3):
        with pytest.raises(RejectedInvocationError):
            f.touch("b")
    f.server.load_reply = None
    f.touch("b")
    assert f.loaded() == {"b"}
    assert [path.name for path in (f.models._directory).iterdir()] == list(f.server.loaded)


def test_a_name_without_an_archive_costs_nobody_a_place(fleet: Any) -> None:
    f = fleet(limit=1)
    f.touch("a")
    with pytest.raises(
        RejectedInvocationError, match=r"Failed to download model data\(bucket: bucket, key: fleet/missing\)"
    ) as rejected:
        f.touch("missing")
    assert rejected.value.response.status == 400
    assert f.loaded() == {"a"}


def test_a_broken_archive_is_a_model_error(messages: Messages, fleet: Any) -> None:
    f = fleet()
    with pytest.raises(RejectedInvocationError) as rejected:
        f.touch("broken")
    assert rejected.value.response.headers["x-amzn-ErrorType"] == "ModelError"
    # In parentheses is what the library says that unpacks it.
    text = json.loads(rejected.value.response.body)["Message"]
    messages.record("ModelError", re.sub(r"\(.*?\)", "(CAUSE)", text, count=1))


def test_without_a_cache_an_idle_model_is_unloaded(fleet: Any) -> None:
    f = fleet(keep=False)
    with f.use("a"), f.use("a"):
        pass
    f.touch("b")
    f.touch("a")  # waits until the first one is gone
    assert f.server.loads["a"] == 2


def test_a_server_that_dies_while_it_loads_is_reported(fleet: Any) -> None:
    f = fleet()
    f.server.is_gone = True
    with pytest.raises(RejectedInvocationError, match="could not get a response"):
        f.touch("a")


def test_a_server_that_does_not_load_in_time_is_killed(messages: Messages, fleet: Any) -> None:
    f = fleet()
    f.server.hangs = True
    with pytest.raises(RejectedInvocationError, match="could not get a response"):
        f.touch("a")
    assert f.server.kills == 1
    messages.record("log", f.lines[-1])


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    limit=st.integers(1, 3),
    memory=st.integers(1, 4),
    keep=st.booleans(),
    requests=st.lists(st.sampled_from("abcd"), min_size=1, max_size=30),
)
def test_any_mix_of_requests_keeps_the_rules(
    tmp_path_factory: pytest.TempPathFactory, adder: Any, limit: int, memory: int, keep: bool, requests: list[str]
) -> None:
    """A model in use is loaded, never more than the limit are, and every request is answered."""
    f = Fixture(tmp_path_factory.mktemp("mix"), adder(1), limit=limit, keep=keep)
    f.server.memory = memory
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda name: outcome(f, name), requests))
    assert f.server.most_loaded <= min(limit, memory)
    assert f.server.overlaps == 0
    # Out of memory is an answer too: others may hold all of it at that moment.
    assert set(outcomes) <= ({200} if memory >= limit else {200, 424})


def waiting_in_turn(f: Fixture, names: str, *, before: int = 0) -> Iterator[str]:
    """Each name once the model before it waits for its place."""
    for count, name in enumerate(names, before + 1):
        yield name
        assert eventually(functools.partial(lambda expected: len(f.models._queue) == expected, count))


def eventually(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def outcome(f: Fixture, name: str) -> int:
    try:
        f.touch(name)
    except RejectedInvocationError as rejection:
        return rejection.response.status
    return 200


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    for thread in threading.enumerate():
        if thread.name.startswith(("load ", "unload ")):
            thread.join(10)
            assert not thread.is_alive()
