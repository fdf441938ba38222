"""The wheels of a requirements file: kept one by one, and named with their licences."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builders.environment_wheels import download_wheels, licence
from builders.errors import PreparationError
from builders.packages import Source

if TYPE_CHECKING:
    from golden_messages import Messages


def wheel(directory: Path, name: str, metadata: str = "License-Expression: MIT\n", *files: str) -> Path:
    """A wheel of version 1, with a text of its licence unless other files are given."""
    path = directory / f"{name}-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}-1.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n{metadata}")
        archive.writestr(f"{name}-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        for file in files or (f"{name}-1.dist-info/licenses/LICENSE",):
            archive.writestr(file, "text")
    return path


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """A directory in place of a package index."""
    (tmp_path / "index").mkdir()
    return tmp_path / "index"


@pytest.fixture
def source(tmp_path: Path, index: Path) -> Source:
    (tmp_path / "downloads").mkdir()
    return Source(tmp_path / "downloads", index, tmp_path)


def requirements(directory: Path, *wheels: Path) -> Path:
    digests = {path.name.split("-")[0]: hashlib.sha256(path.read_bytes()).hexdigest() for path in wheels}
    lines = [f"{name}==1 \\\n    --hash=sha256:{digest}\n    # via x\n" for name, digest in digests.items()]
    file = directory / "requirements.txt"
    file.write_text("# locked\n" + "".join(lines))
    return file


@pytest.mark.slow  # pip runs
def test_an_interruption_keeps_the_wheels_that_are_whole(tmp_path: Path, index: Path, source: Source) -> None:
    first, second = wheel(index, "first"), wheel(index, "second")
    locked = requirements(tmp_path, first, second)
    content = second.read_bytes()
    second.unlink()
    with pytest.raises(PreparationError):
        download_wheels(source, locked, tmp_path / "broken")
    first.unlink()  # from now on it can only come from the downloads
    second.write_bytes(content)
    download_wheels(source, locked, tmp_path / "wheels")
    assert sorted(path.name for path in (tmp_path / "wheels").iterdir()) == [first.name, second.name]


@pytest.mark.slow  # pip runs
def test_a_wheel_of_another_content_is_one_sentence(
    messages: Messages, tmp_path: Path, index: Path, source: Source
) -> None:
    locked = requirements(tmp_path, wheel(index, "first"))
    wheel(index, "first", "License-Expression: MIT\nSummary: another\n")
    with messages.raises(PreparationError):
        download_wheels(source, locked, tmp_path / "wheels")


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        pytest.param("License-Expression: BSD-3-Clause\nLicense: other\n", "BSD-3-Clause", id="expression"),
        pytest.param("License: MIT License\n", "MIT License", id="older field"),
        pytest.param(
            f"License: {'text ' * 20}\nClassifier: License :: OSI Approved :: BSD License\n",
            "BSD License",
            id="classifier",
        ),
    ],
)
def test_the_licence_of_a_wheel(tmp_path: Path, metadata: str, name: str) -> None:
    assert licence(wheel(tmp_path, "package", metadata)) == name


def test_the_text_of_the_apache_licence_stands_beside_the_preparation(tmp_path: Path) -> None:
    assert licence(wheel(tmp_path, "package", "License-Expression: Apache-2.0\n", "package.py")) == "Apache-2.0"


@pytest.mark.parametrize("metadata", ["License-Expression: MIT\n", ""], ids=["no text", "no licence"])
def test_a_wheel_without_a_licence_is_not_used(messages: Messages, tmp_path: Path, metadata: str) -> None:
    with messages.raises(PreparationError):
        licence(wheel(tmp_path, "package", metadata, "package.py"))
