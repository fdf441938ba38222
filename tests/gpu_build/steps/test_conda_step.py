"""The step that packs a conda environment: real conda-pack, and a test double for micromamba."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import importlib.util
import io
import json
import os
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from build_program import conda
from build_program.conda_driver import PackError, normalise
from build_program.step import BuildError
from build_program.work import BuildWork, Journal
from cdk_triton.python_models.reader.packed_environment import PackedEnvironment, packed_environment

if TYPE_CHECKING:
    from golden_messages import Messages


Make = Callable[..., BuildWork]

CHANNEL = "https://conda.example/conda-forge/linux-64"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
PLACEHOLDER = "/opt/placeholder"


class Channel:
    """A directory of hand-made packages beside the double."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def add(
        self, name: str, version: str, files: dict[str, str], links: dict[str, str] | None = None
    ) -> dict[str, str]:
        """Write a package, and return what a plan says of it."""
        links = links or {}
        kinds = {**dict.fromkeys(files, "hardlink"), **dict.fromkeys(links, "softlink")}
        paths = [{"_path": path, "path_type": kind} for path, kind in kinds.items()]
        for entry in paths:
            if PLACEHOLDER in files.get(entry["_path"], ""):
                entry.update(file_mode="text", prefix_placeholder=PLACEHOLDER)
        info = {
            "info/index.json": json.dumps({"name": name, "version": version, "build": "0"}),
            "info/paths.json": json.dumps({"paths": paths}),
        }
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as archive:
            for path, text in {**files, **info}.items():
                member = tarfile.TarInfo(path)
                member.size, member.mode = len(text.encode()), 0o755 if path.startswith("bin/") else 0o644
                archive.addfile(member, io.BytesIO(text.encode()))
            for path, target in links.items():
                member = tarfile.TarInfo(path)
                member.type, member.linkname = tarfile.SYMTYPE, target
                archive.addfile(member)
        content = bz2.compress(stream.getvalue())
        file_name = f"{name}-{version}-0.tar.bz2"
        (self.directory / file_name).write_bytes(content)
        return {
            "url": f"{CHANNEL}/{file_name}",
            "algorithm": "sha256",
            "digest": hashlib.sha256(content).hexdigest(),
        }

    def python(self, version: str = f"{PYTHON}.4") -> dict[str, str]:
        library = f"lib/python{'.'.join(version.split('.')[:2])}"
        major, minor, *_ = version.split(".")
        # A python of the version that it says, as far as the step asks.
        answer = f"#!/bin/sh\nexec {sys.executable} -c 'print(\"Python {major}.{minor}\")'\n"
        return self.add(
            "python",
            version,
            {
                f"bin/python{major}.{minor}": answer,
                "bin/tool": f"#!{PLACEHOLDER}/bin/python\n",
                "etc/where.txt": f"{PLACEHOLDER}/etc\n",
                f"{library}/os.py": "# os\n",
                f"{library}/__pycache__/os.pyc": "compiled at some time",
            },
            {"bin/python": f"python{major}.{minor}"},
        )


@pytest.fixture
def channel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Channel:
    """The double on PATH, with an empty channel."""
    programs = tmp_path / "programs"
    (programs / "channel").mkdir(parents=True)
    program = programs / "micromamba"
    double = Path(__file__).with_name("micromamba_double.py").read_text()
    program.write_text(f"#!{sys.executable}\n{double}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return Channel(programs / "channel")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    directory = tmp_path / "repository"
    directory.mkdir()
    return directory


def step(*packages: dict[str, str]) -> dict[str, Any]:
    return {"packages": list(packages), "target": "preprocess/env.tar.gz"}


def members(archive: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(archive, "r:gz") as packed:
        return {member.name: member for member in packed}


def test_an_environment_is_packed_as_the_server_wants_it(
    channel: Channel, repository: Path, make_work: Make, journal: Journal
) -> None:
    work = make_work(repository)
    report = conda.build(step(channel.python(), channel.add("words", "2.0", {"share/words.txt": "a\n"})), work)
    archive = repository / "preprocess" / "env.tar.gz"
    assert report == {"outputs": ["preprocess/env.tar.gz"], "parity": None}
    assert packed_environment(archive) == PackedEnvironment(PYTHON, True, "")
    packed = members(archive)
    assert {"bin/activate", "bin/conda-unpack", "share/words.txt", f"lib/python{PYTHON}/os.py"} <= packed.keys()
    assert packed["bin/python"].linkname == f"python{PYTHON}"
    assert not [name for name in packed if name.endswith(".pyc") or name == "conda-meta/history"]
    assert journal.stand_ins == ["micromamba"]
    assert journal.warnings == []


def test_two_builds_give_the_same_bytes(channel: Channel, repository: Path, make_work: Make) -> None:
    packages = [channel.python(), channel.add("b", "1", {"x/b": "b\n"}), channel.add("a", "1", {"x/a": "a\n"})]
    archives = []
    for order in (packages, packages[::-1]):
        conda.build(step(*order), make_work(repository))
        archives.append((repository / "preprocess" / "env.tar.gz").read_bytes())
    assert archives[0] == archives[1]
    packed = members(repository / "preprocess" / "env.tar.gz")
    assert list(packed) == sorted(packed)
    assert {(member.mtime, member.uid, member.gid, member.uname) for member in packed.values()} == {(0, 0, 0, "")}
    assert gzip.decompress(archives[0])  # one member, and whole


def test_micromamba_gets_a_hash_that_it_looks_at(channel: Channel, repository: Path, make_work: Make) -> None:
    damaged = {**channel.python(), "digest": "0" * 64}
    with pytest.raises(BuildError, match="sum doesn't match expectation 0000"):  # micromamba's words
        conda.build(step(damaged), make_work(repository))


def test_hashes_are_compared_even_if_micromamba_did_not(
    messages: Messages, channel: Channel, repository: Path, make_work: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = channel.directory.parent / "micromamba"
    program.write_text(program.read_text().replace("    check(packages / name, digest)\n", ""))
    damaged = {**channel.python(), "algorithm": "md5", "digest": "0" * 32}
    with pytest.raises(BuildError) as raised:
        conda.build(step(damaged), make_work(repository))
    content = (channel.directory / damaged["url"].rpartition("/")[2]).read_bytes()
    said = raised.value.reason.replace(hashlib.md5(content, usedforsecurity=False).hexdigest(), "ANOTHER_MD5")
    messages.record("BuildError", said.replace(PYTHON, "3.X"))


def test_the_environment_needs_the_python_of_the_image(
    messages: Messages, channel: Channel, repository: Path, make_work: Make
) -> None:
    for package in (channel.python("3.7.1"), channel.add("words", "2.0", {"share/words.txt": "a\n"})):
        with pytest.raises(BuildError) as raised:
            conda.build(step(package), make_work(repository))
        messages.record("BuildError", raised.value.reason.replace(PYTHON, "3.X"))


def test_creating_sees_no_credentials(
    channel: Channel, repository: Path, make_work: Make, monkeypatch: pytest.MonkeyPatch, log: io.StringIO
) -> None:
    monkeypatch.setenv("CODEBUILD_AUTH_TOKEN", "very-secret")
    program = channel.directory.parent / "micromamba"
    line = (
        "import os; assert os.environ['PATH'] and 'very-secret' not in os.environ.values() or '--version' in sys.argv\n"
    )
    program.write_text(program.read_text().replace("VERSION =", f"{line}VERSION ="))
    conda.build(step(channel.python()), make_work(repository))
    assert "very-secret" not in log.getvalue()


def test_another_micromamba_on_the_path_is_not_used(
    messages: Messages,
    channel: Channel,
    repository: Path,
    make_work: Make,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    program = channel.directory.parent / "micromamba"
    double = program.read_text()
    package = tmp_path / "micromamba.tar.bz2"
    with tarfile.open(package, "w:bz2") as archive:
        archive.add(program, "bin/micromamba")
    program.write_text(double.replace('VERSION = "2.8.1"', 'VERSION = "1.5.8"'))
    monkeypatch.setattr(conda, "MICROMAMBA_URL", package.as_uri())
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    with pytest.raises(BuildError) as raised:
        conda.build(step(channel.python()), make_work(repository))
    messages.record("BuildError", raised.value.reason.replace(digest, "ANOTHER_SHA256"))
    monkeypatch.setattr(conda, "MICROMAMBA_SHA256", digest)
    python = channel.python()
    # The downloaded one works in the scratch directory, where it finds no channel.
    with pytest.raises(BuildError, match=r"Download error \(404\)"):  # micromamba's words
        conda.build(step(python), make_work(repository))


def test_micromamba_is_pinned_and_fetched_over_https() -> None:
    assert conda.MICROMAMBA_URL.startswith("https://")
    assert conda.MICROMAMBA_VERSION in conda.MICROMAMBA_URL
    assert len(conda.MICROMAMBA_SHA256) == 64


def test_conda_pack_is_the_one_that_is_tested_here() -> None:
    assert importlib.util.find_spec("conda_pack") is not None, "install the extra dev"
    import conda_pack

    assert f"conda-pack=={conda_pack.__version__} " in conda._CONDA_PACK


@pytest.mark.parametrize(
    ("name", "kind", "link"),
    [
        pytest.param("../outside", tarfile.REGTYPE, "", id="a path upwards"),
        pytest.param("/etc/passwd", tarfile.REGTYPE, "", id="an absolute path"),
        pytest.param("bin/sh", tarfile.SYMTYPE, "/bin/sh", id="a link to a path"),
        pytest.param("bin/up", tarfile.SYMTYPE, "../../up", id="a link upwards"),
        pytest.param("dev/null", tarfile.CHRTYPE, "", id="a device"),
    ],
)
def test_nothing_leads_out_of_a_packed_environment(
    messages: Messages, tmp_path: Path, name: str, kind: bytes, link: str
) -> None:
    with tarfile.open(tmp_path / "environment.tar", "w") as archive:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, link
        archive.addfile(member)
    with messages.raises(PackError):
        normalise(tmp_path / "environment.tar", tmp_path / "env.tar.gz")


def test_a_hard_link_is_written_as_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "z").write_text("the same\n")
    (tmp_path / "a").hardlink_to(tmp_path / "z")
    with tarfile.open(tmp_path / "environment.tar", "w") as archive:
        archive.add(tmp_path / "z", "z")
        archive.add(tmp_path / "a", "a")
    assert normalise(tmp_path / "environment.tar", tmp_path / "env.tar.gz") == 2
    with tarfile.open(tmp_path / "env.tar.gz", "r:gz") as packed:
        contents = {member.name: packed.extractfile(member) for member in packed if member.isreg()}
        assert [name for name, file in contents.items() if file is not None] == ["a", "z"]
