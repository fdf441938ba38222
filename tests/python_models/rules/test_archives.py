"""The rule CT167: members of an environment's archive that newer servers do not unpack."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Change, Write

IMAGE = f"example.com/triton@sha256:{'0' * 64}"
SOUND = ("bin/activate", "conda-meta/python-3.12.4-h5148396_1.json")
CONFIGURATION = (
    'backend: "python"',
    'backend: "python" parameters { key: "EXECUTION_ENV_PATH" '
    'value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" } }',
)


def archive(*members: str, sound: tuple[str, ...] = SOUND) -> bytes:
    """An archive of members; `a -> b` is a symbolic link, `a = b` a hard link."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as target:
        for each in (*sound, *members):
            name, kind, link = each.partition(" -> ") if " -> " in each else each.partition(" = ")
            member = tarfile.TarInfo(name)
            member.linkname = link
            member.type = {" -> ": tarfile.SYMTYPE, " = ": tarfile.LNKTYPE}.get(kind, tarfile.REGTYPE)
            target.addfile(member)
    return buffer.getvalue()


def codes(write: Write, release: str, *members: str, sound: tuple[str, ...] = SOUND) -> list[str]:
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge", image=IMAGE)
    environment = archive(*members, sound=sound)
    change: dict[str, Change] = {"preprocess/config.pbtxt": CONFIGURATION, "preprocess/env.tar.gz": environment}
    return [each.code for each in write(change).check(platform=platform) if each.code in ("CT154", "CT155", "CT167")]


UNSAFE = [
    ["/etc/passwd"],
    ["../outside"],
    ["lib/../../outside"],
    ["lib/.."],
    ["lib64 -> lib", "lib64/x"],
    ["a -> /tmp", "./a//b/c"],
    ["x = /etc/passwd"],
    ["x = ../outside"],
    ["lib64 -> lib", "x = lib64/y"],
]
SAFE = [
    [],
    ["./", "./lib/./x"],
    ["lib/..x", "lib/...", "x.."],
    ["bin/python -> /usr/bin/python3", "lib64 -> lib", "lib/up -> ../../up"],
    ["lib64 -> lib", "lib64", "lib64/x"],
    ["lib/x", "lib64 -> lib", "lib64 -> other"],
    ["x = bin/activate"],
]


@pytest.mark.parametrize("members", UNSAFE)
def test_a_member_that_leads_out_is_rejected(write: Write, members: list[str]) -> None:
    assert codes(write, "26.06", *members) == ["CT167"]


@pytest.mark.parametrize(("release", "found"), [("26.05", []), ("26.06", ["CT167"]), ("26.11", ["CT167"])])
def test_only_newer_releases_reject_it(write: Write, release: str, found: list[str]) -> None:
    assert codes(write, release, "../outside") == found


@pytest.mark.parametrize("members", SAFE)
def test_other_members_are_unpacked(write: Write, members: list[str]) -> None:
    assert codes(write, "26.06", *members) == []


@pytest.mark.parametrize(("release", "found"), [("26.05", ["CT155"]), ("26.06", ["CT167"])])
def test_one_mistake_is_reported_once(write: Write, release: str, found: list[str]) -> None:
    assert codes(write, release, "/bin/activate", sound=()) == found


def test_messages(messages: Messages, write: Write) -> None:
    platform = ServingPlatform(release="26.06", instance_type="ml.g5.xlarge", image=IMAGE)
    environment = archive("lib64 -> lib", "lib64/x")
    change: dict[str, Change] = {"preprocess/config.pbtxt": CONFIGURATION, "preprocess/env.tar.gz": environment}
    found = [each for each in write(change).check(platform=platform) if each.code == "CT167"]
    assert messages.of(found) == [("CT167", "preprocess/env.tar.gz", "")]
