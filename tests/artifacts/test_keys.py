"""The keys: what changes them, what does not, and that they never change by themselves."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdk_triton.artifacts import artifact_key, source_key, write_archive
from cdk_triton.errors import ConfigurationError
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ModelRepository

if TYPE_CHECKING:
    from golden_messages import Messages


WriteFiles = Callable[[Path, Mapping[str, bytes]], Path]

A10G = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")


def key_of(root: Path) -> str:
    return source_key(ModelRepository.from_directory(root))


def key_for(root: Path, platform: ServingPlatform) -> str:
    return artifact_key(ModelRepository.from_directory(root), platform)


def overwrite(file: Path, change: Callable[[bytes], bytes]) -> None:
    file.write_bytes(change(file.read_bytes()))


def set_times(*paths: Path) -> None:
    for path in paths:
        os.utime(path, (1, 1))


def test_keys_are_the_same_in_every_version_of_the_library(repository: Path) -> None:
    """If this fails, an upgrade of the library makes everybody build and deploy everything again.

    Undo the change, unless BUILDER_VERSION was raised on purpose.
    """
    assert key_of(repository) == "ffb64d0d895a4247a97269df93babe8136a9a35fd2fd317a31521ec8719312ec"
    assert key_for(repository, A10G) == "48f009f08c1341f9b95d5b88ca5b2d6a64ab8d45eb1f68c00ba8d06058fb3c59"


@pytest.mark.parametrize(
    "change",
    [
        lambda root: overwrite(root / "network/1/model.onnx", lambda content: b"\xff" + content[1:]),
        lambda root: overwrite(root / "network/1/model.onnx", lambda content: content + b"\0"),
        lambda root: (root / "network/1/model.onnx").rename(root / "network/1/model.plan"),
        lambda root: (root / "preprocess/1/vocabulary/words.txt").unlink(),
        lambda root: (root / "preprocess/1/vocabulary/empty.txt").touch(),
        lambda root: (root / "network").rename(root / "bert"),
    ],
    ids=["a byte", "a byte more", "a name", "a file less", "an empty file more", "a model's name"],
)
def test_what_changes_the_archive_changes_the_keys(repository: Path, change: Callable[[Path], object]) -> None:
    before = key_of(repository), key_for(repository, A10G)
    change(repository)
    after = key_of(repository), key_for(repository, A10G)
    assert len({*before, *after}) == 4


@pytest.mark.parametrize(
    "change",
    [
        lambda root: set_times(*root.rglob("*")),
        lambda root: [path.chmod(0o700) for path in root.rglob("*")],
        lambda root: root.rename(root.parent / "other") and (root.parent / "other").rename(root),
        lambda root: [(root / "network/1" / name).touch() for name in (".DS_Store", "model.onnx.swp", "._model.onnx")],
        lambda root: (root / "preprocess/1/__pycache__").mkdir(),
        lambda root: (root / "ensemble/1").rmdir(),
        lambda root: (root / "ensemble/1/.keep").touch(),
        lambda root: (root / "network/2").mkdir(),
    ],
    ids=[
        "times",
        "modes",
        "inodes",
        "litter",
        "litter's directory",
        "git lost 1/",
        "unpacked again",
        "empty directory",
    ],
)
def test_what_leaves_the_archive_as_it_is_leaves_the_keys(
    repository: Path, tmp_path: Path, change: Callable[[Path], object]
) -> None:
    def everything() -> tuple[str, str, bytes]:
        archive = write_archive(repository, tmp_path / "model.tar.gz").path.read_bytes()
        return key_of(repository), key_for(repository, A10G), archive

    before = everything()
    change(repository)
    assert everything() == before


FILES = st.dictionaries(st.text("ab/", min_size=1, max_size=6), st.binary(max_size=20), min_size=1, max_size=5)


@settings(max_examples=60)
@given(FILES, FILES, st.randoms())
def test_keys_are_equal_exactly_where_files_are(
    write_files: WriteFiles, one: dict[str, bytes], other: dict[str, bytes], order: object
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        keys, contents = [], []
        for number, files in enumerate((one, other, dict(reversed(one.items())))):
            root = Path(directory, str(number), "same name" if number else "another name")
            usable = {f"m/{name.strip('/')}x": content for name, content in files.items()}
            # "a" is no directory where "ax" is a file, because every file's name ends in x.
            write_files(root, {"m/config.pbtxt": b"", **usable})
            repository = ModelRepository.from_directory(root)
            keys.append(source_key(repository))
            contents.append({file.path: file.source.read_bytes() for file in repository.files})
        assert (keys[0] == keys[1]) == (contents[0] == contents[1])
        assert (keys[0] == keys[2]) == (contents[0] == contents[2])


DIGEST = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("platform", "same"),
    [
        (ServingPlatform(release="25.09", instance_type="ml.g5.48xlarge"), True),
        (ServingPlatform(release="25.09", instance_type="ml.g5.xlarge", inference_ami_version=None), True),
        (ServingPlatform(release="25.04", instance_type="ml.g5.xlarge"), False),
        (ServingPlatform(release="25.09", instance_type="ml.g6.xlarge"), False),
        (ServingPlatform(release="25.09", instance_type="ml.p4d.24xlarge"), False),
        (ServingPlatform(release="25.09", image=f"r/t@sha256:{DIGEST}", instance_type="ml.g5.xlarge"), False),
    ],
    ids=lambda value: value.label if isinstance(value, ServingPlatform) else "",
)
def test_image_and_gpu_are_in_the_artifact_key(repository: Path, platform: ServingPlatform, same: bool) -> None:
    assert (key_for(repository, platform) == key_for(repository, A10G)) is same


def test_two_gpus_of_one_compute_capability_have_two_keys(repository: Path) -> None:
    l4, l40s = (ServingPlatform(release="25.09", instance_type=f"ml.{family}.xlarge") for family in ("g6", "g6e"))
    assert l4.compute_capability == l40s.compute_capability
    assert key_for(repository, l4) != key_for(repository, l40s)


def test_where_an_image_is_stored_is_not_in_the_key(repository: Path) -> None:
    keys = {
        key_for(repository, ServingPlatform(image=f"{registry}/t@sha256:{DIGEST}", instance_type="ml.g5.xlarge"))
        for registry in (
            "1.dkr.ecr.eu-west-1.amazonaws.com",
            "${Token[AWS.AccountId.8]}.dkr.ecr.us-east-1.amazonaws.com",
        )
    }
    assert len(keys) == 1


def test_keys_are_sha256_in_hexadecimal(repository: Path) -> None:
    assert re.fullmatch("[0-9a-f]{64}", key_of(repository))
    assert re.fullmatch("[0-9a-f]{64}", key_for(repository, A10G))


@pytest.mark.parametrize("token", ["${Token[TOKEN.42]}", "#{Token[AWS.Region.4]}"])
def test_a_token_in_an_input_is_rejected(messages: Messages, repository: Path, token: str) -> None:
    (repository / "network/1" / f"{token}.bin").touch()
    with messages.raises(ConfigurationError):
        key_of(repository)


def test_progress_tells_what_had_to_be_read(repository: Path, settle: Callable[..., None]) -> None:
    read = ModelRepository.from_directory(repository)
    settle(*(file.source for file in read.files))
    calls: list[tuple[int, int]] = []
    source_key(read, progress=lambda *call: calls.append(call))
    assert calls[-1] == (read.size, read.size)
    calls.clear()
    artifact_key(read, A10G, progress=lambda *call: calls.append(call))
    small = read.size - (repository / "network" / "1" / "model.onnx").stat().st_size
    assert calls[-1] == (small, small)  # these are read each time
