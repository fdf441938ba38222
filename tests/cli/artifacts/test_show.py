"""`cdk-triton artifacts show`: how an archive was made."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.artifacts.conftest import BUILD, key_of

from cdk_triton.protocol import layout

if TYPE_CHECKING:
    from tests.cli.artifacts.conftest import World

    from golden_messages import Messages


@pytest.mark.parametrize("by", ["key", "repository and key", "target model"])
def test_an_archive_that_was_published_without_a_manifest_is_shown_from_the_catalogue(
    run: Any, world: World, by: str
) -> None:
    target = "tenant-2.tar.gz"
    key = key_of(target)
    world.serve("fleet", target, key)
    world.published("fleet", "tenant", target, "tenant-1.tar.gz")
    name = {"key": key[:12], "repository and key": f"tenant/{key[:12]}", "target model": target}[by]

    shown = run("artifacts", "show", name, "--store", world.stack, "--format", "json")
    text = run("artifacts", "show", name, "--store", world.stack).out

    document = json.loads(shown.out)
    (archive,) = document["archives"]
    assert document["manifest"] is None
    assert datetime.fromisoformat(archive.pop("stored")) < datetime.now(UTC)
    assert archive == {
        "artifact_key": key,
        "target_model": target,
        "prefix": "fleets/fleet/25.09-a10g/",
        "size": 4,
        "state": "current",
        "multi_model": "fleet",
        "ensemble": "tenant",
        "repository": "tenant",
        "live": "2026-11-01T12:00:00+00:00",
        "publisher": "p",
        "execution": "e",
    }
    assert "ensemble: tenant\n" in text


def test_published_archives_whose_keys_begin_alike_are_named(messages: Messages, run: Any, world: World) -> None:
    for digit in "01":
        world.serve("fleet", f"tenant-{digit}.tar.gz", "ab" + digit * 62)
    world.published("fleet", "tenant", "tenant-1.tar.gz", "tenant-0.tar.gz")

    outcome = run("artifacts", "show", "ab", "--store", world.stack)

    assert outcome.status == 2
    messages.record("cdk-triton artifacts", outcome.said)


def test_show_says_what_was_built_and_how(run: Any, world: World) -> None:
    key = world.commit("text", "1", build=BUILD)

    outcome = run("artifacts", "show", key[:8], "--store", world.stack)

    assert outcome.status == 0
    for line in (
        "repository: text",
        "    tensorrt: 10.13.3.9",
        "  warnings: DALI is 1.51.1, and the release has 1.51.2",
        "  stand_ins: trtexec",
        "    - name: the TensorRT plan of bert",
        "        - trtexec --onnx=model.onnx --fp16",
        "          tolerance: 0.01",
    ):
        assert line in outcome.out.splitlines()
    as_json = run("artifacts", "show", key, "--store", world.stack, "--format", "json")
    assert json.loads(as_json.out)["build"] == BUILD


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("xyz", id="no digits"),
        pytest.param("0000", id="unknown"),
        pytest.param("", id="empty"),
    ],
)
def test_a_key_that_means_nothing_is_a_usage_error(messages: Messages, run: Any, world: World, key: str) -> None:
    outcome = run("artifacts", "show", key, "--store", world.stack)
    assert (outcome.status, outcome.out) == (2, "")
    messages.record("cdk-triton artifacts", outcome.said.replace(world.bucket, "BUCKET"))


@pytest.mark.slow
def test_a_key_that_means_several_is_a_usage_error_with_their_names(run: Any, world: World) -> None:
    starts = sorted(world.commit("text", str(number)) for number in range(17))  # there are 16 digits
    shared = next(a[0] for a, b in itertools.pairwise(starts) if a[0] == b[0])

    outcome = run("artifacts", "show", shared, "--store", world.stack)

    assert outcome.status == 2
    assert f"text/{shared}" in outcome.said


def test_one_content_under_two_names_is_shown_by_the_name_that_was_said(
    messages: Messages, run: Any, world: World
) -> None:
    """Their keys are the same to the last digit, so that more of it says nothing."""
    key = world.commit("text", "1")
    assert world.commit("copy", "1") == key
    outcome = run("artifacts", "show", key, "--store", world.stack)
    assert outcome.status == 2
    assert f"copy/{key}, text/{key}" in outcome.said
    messages.record("cdk-triton artifacts", outcome.said.replace(world.bucket, "BUCKET"))

    shown = run("artifacts", "show", f"copy/{key}", "--store", world.stack, "--format", "json")

    assert json.loads(shown.out)["repository"] == "copy"


@pytest.mark.slow
def test_show_compares_the_figures_of_rehearsals_between_versions(
    run: Any, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    latency = {"concurrency": 4, "answers": 900, "p50_milliseconds": 4.0, "p90_milliseconds": 5.0}
    memory = {"gpu": {"before": 300.0, "peak": 2411.0}, "host": {"peak": 800.0}, "shared": {"peak": 16.0}}
    before = world.commit("text", "1")
    world.rehearse("text", before, "r", load_seconds=3.0, memory=memory)
    other = world.commit("image", "3")
    world.rehearse("image", other, "r", load_seconds=99.0)
    monkeypatch.setattr(world, "age", timedelta(days=1))
    now = world.commit("text", "2")
    figures = {"latency": {**latency, "p99_milliseconds": 9.5}, "memory": {**memory, "gpu": None}}
    world.rehearse("text", now, "r", load_seconds=4.5, requests=[{}, {}], stand_ins=["serve"], **figures)
    world.put(layout.pass_key("text", now, key_of("x")), b'{"schema": 9}')

    document = json.loads(run("artifacts", "show", now, "--store", world.stack, "--format", "json").out)

    (found,) = document["rehearsals"]
    previous = found.pop("previous")
    assert {name: found[name] for name in ("load_seconds", "p99_milliseconds", "gpu_memory_mib", "requests")} == {
        "load_seconds": 4.5,
        "p99_milliseconds": 9.5,
        "gpu_memory_mib": None,
        "requests": 2,
    }
    assert (previous["artifact_key"], previous["load_seconds"], previous["gpu_memory_mib"]) == (before, 3.0, 2411.0)
    text = " ".join(run("artifacts", "show", now, "--store", world.stack).out.split())
    assert "load_seconds: 4.5" in text
    assert "previous: artifact_key:" in text
