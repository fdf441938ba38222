"""The step that packs an environment of wheels: real pip and venv, and an index that is a directory."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from build_program import wheels
from build_program.step import BuildError
from build_program.stop import Stop, StoppedError
from build_program.work import BuildWork, Journal
from cdk_triton.python_models.reader.packed_environment import PackedEnvironment, packed_environment
from wheel_index import WheelIndex

if TYPE_CHECKING:
    from golden_messages import Messages


Make = Callable[..., BuildWork]

pytestmark = pytest.mark.slow

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
STEP = {"requirements": "generate/requirements.txt", "target": "generate/env.tar.gz"}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WheelIndex:
    """The only place where pip looks; its package numpy is an empty one."""
    (tmp_path / "index").mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return WheelIndex(tmp_path / "index")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "repository/generate").mkdir(parents=True)
    return tmp_path / "repository"


def build(repository: Path, work: BuildWork, *requirements: str) -> dict[str, Any]:
    (repository / STEP["requirements"]).write_text("".join(requirements))
    return wheels.build(STEP, work)


def members(repository: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(repository / STEP["target"], "r:gz") as packed:
        return {member.name: member for member in packed}


def test_an_environment_is_packed_as_the_server_wants_it(
    index: WheelIndex, repository: Path, make_work: Make, journal: Journal
) -> None:
    requirements = index.add("words", requires="numpy"), index.add("numpy")
    report = build(repository, make_work(repository), *requirements)
    assert report == {"outputs": ["generate/env.tar.gz"], "parity": None}
    assert packed_environment(repository / STEP["target"]) == PackedEnvironment(PYTHON, True, "")
    packed = members(repository)
    packages = f"lib/python{PYTHON}/site-packages"
    assert {"bin/activate", "bin/python3", f"{packages}/numpy/__init__.py"} <= packed.keys()
    assert packed["bin/python3"].mode == 0o755
    # No link, which servers from 26.07 on do not unpack; no compiled file; no program with a path of this machine.
    assert all(member.isreg() or member.isdir() for member in packed.values())
    assert not [name for name in packed if name.endswith(".pyc")]
    assert [name for name in packed if name.startswith("bin/")] == ["bin/activate", "bin/python3"]
    assert f"{packages}/bin" not in packed
    assert journal == Journal([], [])


def test_an_unpacked_environment_works_wherever_it_is(
    index: WheelIndex, repository: Path, make_work: Make, tmp_path: Path
) -> None:
    build(repository, make_work(repository), index.add("numpy"), index.add("words", code="SAID = 'hello'\n"))
    place = tmp_path / "some where" / "0"
    place.mkdir(parents=True)
    subprocess.run(["tar", "-xf", repository / STEP["target"], "-C", place], check=True)
    # As the server starts a model's process through 25.07.
    script = f"source '{place}/bin/activate' && exec python3 -c 'import sys, words; print(sys.prefix, words.SAID)'"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout == f"{place} hello\n"


def test_two_builds_give_the_same_bytes(index: WheelIndex, repository: Path, make_work: Make) -> None:
    requirements = [index.add("numpy"), index.add("words"), index.add("letters")]
    archives = []
    for order in (requirements, requirements[::-1]):
        build(repository, make_work(repository), *order)
        archives.append((repository / STEP["target"]).read_bytes())
    assert archives[0] == archives[1]
    packed = members(repository)
    assert list(packed) == sorted(packed)
    assert {(member.mtime, member.uid, member.gid, member.uname) for member in packed.values()} == {(0, 0, 0, "")}


def test_what_cannot_be_installed_is_one_sentence(
    messages: Messages, index: WheelIndex, repository: Path, make_work: Make
) -> None:
    numpy = index.add("numpy")
    index.add("letters")
    cases = {
        "a requirement that is not pinned": (numpy, index.add("words", requires="letters")),
        "a wheel for another Python": (numpy, index.add("later", tag="cp399-cp399-manylinux_2_28_x86_64")),
        "a package that is nowhere": (numpy, numpy.replace("numpy", "nowhere")),
        "another hash": (numpy.replace("sha256:", "sha256:0123")[:-5] + "\n",),
        "no numpy": (index.add("alone"),),
    }
    for case, requirements in cases.items():
        with pytest.raises(BuildError) as raised:
            build(repository, make_work(repository), *requirements)
        messages.record(case, raised.value.reason.replace(PYTHON, "3.X"))
        assert not (repository / STEP["target"]).exists()


def test_another_python_than_the_image_has_is_told_where_stand_ins_build(
    index: WheelIndex, repository: Path, make_work: Make, journal: Journal
) -> None:
    numpy = index.add("numpy")
    work = make_work(repository)
    work.platform = {"python": "3.99"}
    build(repository, work, numpy)
    assert journal == Journal([], [])  # in an image: the probe has warned of the table of releases already
    work = make_work(repository)
    work.platform = {"python": "3.99"}
    journal.stand_ins.append("nvidia-smi")
    build(repository, work, numpy)
    assert journal.stand_ins == ["nvidia-smi", "Python 3.99"]
    assert journal.warnings == [
        f"the environment is packed for the Python {PYTHON} of this machine, in place of the 3.99 of the image"
    ]


def test_installing_sees_no_credentials(
    index: WheelIndex, repository: Path, make_work: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "watch").mkdir()
    # Python imports this module in each process that it starts.
    (tmp_path / "watch/sitecustomize.py").write_text(
        f"import os, sys\nwith open({str(tmp_path / 'seen')!r}, 'a') as file:\n"
        "    print('pip' in sys.orig_argv, 'AWS_SECRET_ACCESS_KEY' in os.environ, file=file)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "watch"))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret")
    build(repository, make_work(repository), index.add("numpy"))
    seen = (tmp_path / "seen").read_text().splitlines()
    assert "True False" in seen  # pip, without the secret
    assert {line.split()[1] for line in seen} == {"False"}


def test_packing_ends_when_the_job_has_to(
    index: WheelIndex, repository: Path, make_work: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = make_work(repository)
    packing = wheels._pack

    def late(*arguments: Any) -> None:
        work.stop = Stop(0)
        packing(*arguments)

    monkeypatch.setattr(wheels, "_pack", late)
    with pytest.raises(StoppedError):
        build(repository, work, index.add("numpy"))
