"""The rules CT286 to CT288: what the dynamic batcher of a release does wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.triton import ContainerEnvironment
from sample_repositories import platform_with
from sample_repositories.one_step import IN, OUT, python

if TYPE_CHECKING:
    from cdk_triton.triton import Finding
    from golden_messages import Messages
    from sample_repositories import Write

CPU = "instance_group { kind: KIND_CPU count: 2 }"
ORDER = "dynamic_batching { preserve_ordering: true }"
CACHE = "response_cache { enable: true }"
CACHED = ContainerEnvironment(additional_args=("--cache-config=local,size=1048576",))


def found(
    write: Write, text: str, release: str, instance_type: str = "ml.g5.xlarge", env: ContainerEnvironment | None = None
) -> list[Finding]:
    repository = write(python(f"max_batch_size: 8\n{text}\n{IN}{OUT}"), base={})
    platform = platform_with(release, instance_type)
    findings = repository.check(platform=platform, environment=env)
    return [each for each in findings if "CT282" <= each.code <= "CT289"]


@pytest.mark.parametrize(
    ("release", "codes"), [("25.08", []), ("25.09", ["CT286"]), ("26.07", ["CT286"]), ("26.08", [])]
)
def test_the_order_of_several_instances(messages: Messages, write: Write, release: str, codes: list[str]) -> None:
    places = messages.of(found(write, ORDER + CPU, release))
    assert places == [(code, "model/config.pbtxt", "dynamic_batching.preserve_ordering") for code in codes]


@pytest.mark.parametrize(
    ("groups", "instance_type", "codes"),
    [
        pytest.param("", "ml.g5.12xlarge", [], id="none said"),
        pytest.param("instance_group { kind: KIND_GPU }", "ml.g5.xlarge", [], id="on one GPU"),
        pytest.param("instance_group { kind: KIND_GPU }", "ml.g5.12xlarge", ["CT286"], id="on each of four"),
        pytest.param("instance_group { kind: KIND_GPU gpus: 0 }", "ml.g5.12xlarge", [], id="on one of four"),
        pytest.param("instance_group { gpus: [ 0, 1 ] }", "ml.g5.12xlarge", ["CT286"], id="on two of four"),
        pytest.param("instance_group { }", "ml.g5.12xlarge", [], id="where the server likes"),
        pytest.param("instance_group { count: -1 kind: KIND_CPU }", "ml.g5.xlarge", [], id="a negative count"),
        pytest.param(
            "instance_group [ { kind: KIND_CPU }, { kind: KIND_GPU } ]", "ml.g5.xlarge", ["CT286"], id="two groups"
        ),
    ],
)
def test_how_many_instances_there_are(write: Write, groups: str, instance_type: str, codes: list[str]) -> None:
    codes_found = [each.code for each in found(write, ORDER + groups, "25.09", instance_type)]
    assert [code for code in codes_found if code == "CT286"] == codes


@pytest.mark.parametrize(
    ("release", "environment", "codes"),
    [
        pytest.param("26.07", None, ["CT282"], id="26.07, no environment"),
        pytest.param("26.08", None, ["CT287"], id="26.08, no environment"),
        pytest.param("26.10", None, ["CT287"], id="26.10, no environment"),
        pytest.param("26.11", None, ["CT282"], id="26.11, no environment"),
        pytest.param("26.10", ContainerEnvironment(), ["CT282"], id="26.10, no cache"),
        pytest.param("26.10", CACHED, ["CT287"], id="26.10, a cache"),
        pytest.param("25.09", CACHED, ["CT287"], id="25.09, a cache"),
        pytest.param("26.11", CACHED, [], id="26.11, a cache"),
    ],
)
def test_order_and_cache(
    messages: Messages, write: Write, release: str, environment: ContainerEnvironment | None, codes: list[str]
) -> None:
    findings = found(write, ORDER + CACHE, release, env=environment)
    assert messages.of(findings) == [(code, "model/config.pbtxt", "response_cache.enable") for code in codes]


@pytest.mark.parametrize("text", [ORDER, CACHE], ids=["order alone", "a cache alone"])
def test_one_of_them_alone_is_no_fault(write: Write, text: str) -> None:
    assert found(write, text, "26.10", env=CACHED) == []


def batching(policy: str, more: str = "max_queue_delay_microseconds: 500") -> str:
    return f"dynamic_batching {{ {more} {policy} }}"


TIMEOUT = "default_queue_policy { default_timeout_microseconds: 1000 }"


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        pytest.param(batching(TIMEOUT) + CPU, True, id="a timeout"),
        pytest.param(batching("default_queue_policy { max_queue_size: 9 }") + CPU, True, id="a limit"),
        pytest.param(batching("priority_levels: 2 default_priority_level: 1") + CPU, True, id="priorities"),
        pytest.param(batching("default_queue_policy { }") + CPU, False, id="an empty policy"),
        pytest.param(batching("") + CPU, False, id="no policy"),
        pytest.param(batching(TIMEOUT, "") + CPU, False, id="no delay"),
        pytest.param(batching(TIMEOUT), False, id="one instance"),
        pytest.param("max_batch_size: 1" + batching(TIMEOUT) + CPU, False, id="no batches"),
    ],
)
@pytest.mark.parametrize(
    ("release", "is_wrong"), [("23.07", False), ("23.08", True), ("26.07", True), ("26.08", False)]
)
def test_instances_that_get_no_work(
    messages: Messages, write: Write, text: str, is_found: bool, release: str, is_wrong: bool
) -> None:
    repository = write(python(f"{'' if 'max_batch' in text else 'max_batch_size: 8'}\n{text}\n{IN}{OUT}"), base={})
    platform = platform_with(release)
    findings = [each for each in repository.check(platform=platform) if each.code == "CT288"]
    field = "dynamic_batching.max_queue_delay_microseconds"
    expected = [("CT288", "model/config.pbtxt", field)] if is_found and is_wrong else []
    assert messages.of(findings) == expected
