"""What a build leaves and what it reads is looked at before anything is committed; the services are in memory."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from artifacts import inputs
from artifacts.reports import MAX_REPORT_BYTES
from build_model import Cloud, Fault, Poll
from build_model.cloud import STORE
from build_model.plans import ASSETS, ONNX, OTHER
from build_model.steps import ONE, WITH_AN_ASSET, deploy, job, poll


def before(cloud: Cloud, operation: str, key: str, act: Callable[[], object], *, skip: int = 0) -> None:
    """Let `act` happen once, before S3 sees a call about an object, after so many other ones."""
    answer, waiting = getattr(cloud.s3, operation), [None] * (skip + 1)

    def call(parameters: Any) -> Any:
        if key in (parameters["Key"], str(parameters.get("CopySource")).partition("/")[2]) and waiting:
            waiting.pop()
            if not waiting:
                act()
        return answer(parameters)

    setattr(cloud.s3, operation, call)


class Built:
    """A finished build of one ensemble, whose output a test changes before it is committed."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.stack = deploy(cloud, ONE)
        poll(self.stack)
        (self.commit,) = cloud.plans[ONE].builds
        live = job(cloud)
        self.build = cloud.live_jobs()[live]
        cloud.end(live, "SUCCEEDED", {})
        self.archive = f"staging/{self.build}/out/{self.commit['artifact_key']}/model.tar.gz"
        self.report = f"staging/{self.build}/out/{self.commit['artifact_key']}/build.json"

    def change_report(self, **changes: Any) -> None:
        found = self.cloud.read(self.report)
        assert found is not None
        archive = found["archive"] | changes.pop("archive", {})
        self.cloud.s3.put(STORE, self.report, json.dumps(found | {"archive": archive} | changes).encode())

    def parts(self) -> list[str]:
        found = self.cloud.read(self.report)
        assert found is not None
        parts: list[str] = found["archive"]["parts"]
        return parts

    def content(self) -> bytes:
        found = self.cloud.s3.get(STORE, self.archive)
        assert found is not None
        return found

    def assert_refused(self) -> None:
        """The request fails, nothing is committed, and the next deployment builds again."""
        failure = poll(self.stack).failure
        assert failure is not None
        assert "build.json" in failure
        for name in ("archive", "manifest"):
            assert self.cloud.s3.get(STORE, self.commit[name]) is None
        assert poll(deploy(self.cloud, ONE)) == Poll()
        assert len(self.cloud.live_jobs()) == 1


@pytest.fixture(name="built")
def _built(cloud: Cloud) -> Built:
    return Built(cloud)


@pytest.mark.parametrize("change", ["a part less", "a part more"])
def test_an_archive_of_another_size_than_its_report_says_is_rejected(built: Built, change: str) -> None:
    content, size = built.content(), built.cloud.program.part_bytes
    whole = content[: (len(content) - 1) // size * size]
    built.cloud.s3.put(STORE, built.archive, whole if change == "a part less" else content + b"x" * size)

    built.assert_refused()


@pytest.mark.parametrize("change", ["a hash less", "a hash more", "another key", "another schema", "other parts"])
def test_a_report_that_does_not_fit_is_rejected(built: Built, change: str) -> None:
    changes: dict[str, dict[str, Any]] = {
        "a hash less": {"archive": {"parts": built.parts()[:-1]}},
        "a hash more": {"archive": {"parts": [*built.parts(), "0" * 64]}},
        "another key": {"artifact_key": "0" * 64},
        "another schema": {"schema": 2},
        "other parts": {"archive": {"part_bytes": 17}},
    }
    built.change_report(**changes[change])

    built.assert_refused()


@pytest.mark.parametrize("text", [b"[" * 100_000, b" " * (MAX_REPORT_BYTES + 1)], ids=["nested deeply", "too large"])
def test_a_report_that_cannot_be_read_is_rejected(built: Built, text: bytes) -> None:
    built.cloud.s3.put(STORE, built.report, text)
    built.assert_refused()


@pytest.mark.parametrize("text", [b"[" * 100_000, b" " * (MAX_REPORT_BYTES + 1)], ids=["nested deeply", "too large"])
def test_a_failure_that_cannot_be_read_is_a_failure(built: Built, text: bytes) -> None:
    built.cloud.s3.expire(STORE, built.report)
    built.cloud.s3.put(STORE, built.report.replace("build.json", "failure.json"), text)
    failure = poll(built.stack).failure
    assert failure is not None
    assert "failure.json" in failure


@pytest.mark.usefixtures("cloud")
@pytest.mark.parametrize("kind", ["slow", "crash after"])
def test_no_part_that_was_not_verified_is_committed_whenever_a_poll_is_cut_off(kind: str) -> None:
    for number in itertools.count():
        world = Cloud()
        built, fault = Built(world), Fault(kind, number)
        content = built.content()
        world.s3.put(STORE, built.archive, b"?" + content[1:])
        poll(built.stack, fault)
        for _ in range(3):
            poll(built.stack)
        assert world.s3.get(STORE, built.commit["archive"]) is None, f"call {number}"
        if fault.seen <= number:
            break
    assert number > 5


def test_an_archive_in_place_that_is_not_the_one_its_build_made_is_not_committed(built: Built) -> None:
    key = built.commit["artifact_key"]
    built.cloud.s3.put(STORE, built.commit["archive"], b"another", {"artifact-key": key, "build": built.build})

    failure = poll(built.stack).failure

    assert failure is not None
    assert built.commit["archive"] in failure
    assert built.cloud.s3.get(STORE, built.commit["manifest"]) is None


def test_an_archive_that_is_replaced_while_it_is_verified_is_looked_at_again(built: Built) -> None:
    content = built.content()

    def replace() -> None:
        built.cloud.s3.put(STORE, built.archive, content[::-1])

    before(built.cloud, "get_object", built.archive, replace)
    assert poll(built.stack) == Poll()
    built.cloud.s3.put(STORE, built.archive, content)

    assert poll(built.stack).done
    built.cloud.assert_delivered(built.cloud.plans[ONE])


class TestSources:
    def test_an_input_that_is_replaced_while_it_is_read_is_looked_at_again(self, cloud: Cloud) -> None:
        stack = deploy(cloud, ONE)
        before(cloud, "get_object", "bert.onnx", lambda: cloud.s3.put(OTHER, "bert.onnx", b"half of another"))
        assert poll(stack) == Poll()
        assert cloud.live_jobs() == {}
        cloud.s3.put(OTHER, "bert.onnx", ONNX)

        assert poll(stack) == Poll()
        assert len(cloud.live_jobs()) == 1

    def test_an_input_too_large_for_one_invocation_is_left_to_the_build(
        self, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(inputs, "HASHED_HERE_BYTES", len(ONNX) - 1)
        read: list[None] = []
        before(cloud, "get_object", "bert.onnx", lambda: read.append(None))

        assert poll(deploy(cloud, ONE)) == Poll()

        assert len(cloud.live_jobs()) == 1
        assert read == []

    def test_an_archive_that_goes_while_it_is_copied_fails_the_request_at_once(self, cloud: Cloud) -> None:
        stack = deploy(cloud, WITH_AN_ASSET)
        (plain,) = (commit for commit in cloud.plans[WITH_AN_ASSET].document["commits"] if commit["asset"])
        before(cloud, "upload_part_copy", plain["asset"], lambda: cloud.s3.expire(ASSETS, plain["asset"]), skip=1)

        failure = poll(stack).failure

        assert failure is not None
        assert plain["asset"] in failure
        assert cloud.s3.get(STORE, plain["archive"]) is None

    def test_the_upload_of_an_object_with_a_longer_name_is_left_alone(self, cloud: Cloud) -> None:
        stack = deploy(cloud, WITH_AN_ASSET)
        (plain,) = (commit for commit in cloud.plans[WITH_AN_ASSET].document["commits"] if commit["asset"])
        other = {"Bucket": STORE, "Key": plain["archive"] + ".bak"}
        upload = cloud.s3.create_multipart_upload(other)["UploadId"]

        poll(stack)

        assert cloud.s3.get(STORE, plain["archive"]) == cloud.s3.get(ASSETS, plain["asset"])
        assert cloud.s3.list_parts(other | {"UploadId": upload})["Parts"] == []
