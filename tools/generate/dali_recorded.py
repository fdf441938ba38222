"""The pictures that DALI decoded and resized: tests/local_aws/triton/backends/dali_recorded.npz, for `test_dali.py`.

DALI is too large for every test run, so its results are recorded. Install the distributions of the extra `dali` by
`pip install --target <folder>/dali …` and run `make generate SOURCES=<folder>`. Without DALI the file is checked by its
hashes.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from tools.generate import ROOT, Files, GenerateError, Generator
from tools.generate._tables import canonical, checked, existing

RECORDED = "tests/local_aws/triton/backends/dali_recorded.npz"
HEADER = "tests/local_aws/triton/backends/dali_recorded.json"
ABOUT = (
    "Small pictures as NVIDIA DALI decodes and resizes them on a CPU. "
    "The data are in the file of the same name that ends with .npz."
)
SIZES = ((48, 40), (131, 97))  # width, height: smaller and larger than some of the pictures


def pictures() -> dict[str, NDArray[np.uint8]]:
    """Small encoded pictures with noise, gradients and hard edges, one of each kind that a decoder tells apart."""
    random = np.random.default_rng(7)

    def picture(height: int, width: int) -> Image.Image:
        noise = Image.fromarray((random.random((8, 8, 3)) * 255).astype(np.uint8))
        pixels = np.array(noise.resize((width, height), Image.Resampling.BICUBIC))
        pixels[height // 3], pixels[:, width // 4], pixels[-1] = 255, 0, 255
        return Image.fromarray(pixels)

    def encode(image: Image.Image, **options: Any) -> NDArray[np.uint8]:
        buffer = io.BytesIO()
        image.save(buffer, **options)
        return np.frombuffer(buffer.getvalue(), np.uint8)

    return {
        "jpeg": encode(picture(120, 160), format="JPEG", quality=90),
        "progressive": encode(picture(150, 100), format="JPEG", quality=90, progressive=True),
        "small": encode(picture(20, 30), format="JPEG", quality=95),
        "grey": encode(picture(100, 125).convert("L"), format="JPEG", quality=90),
        "odd": encode(picture(121, 161), format="JPEG", quality=75),
        "png": encode(picture(75, 125), format="PNG"),
    }


def through_dali(dali: Any, encoded: list[NDArray[np.uint8]], width: int, height: int) -> NDArray[np.uint8]:
    """Grey levels after decoding and resizing: with mean 0 and deviation 1 DALI's floats are whole numbers."""

    @dali.pipeline_def(batch_size=len(encoded), num_threads=1, device_id=None)  # type: ignore[untyped-decorator]
    def pipeline() -> Any:
        fn, types = dali.fn, dali.types
        images = fn.decoders.image(fn.external_source(device="cpu", name="IN"), device="cpu", output_type=types.RGB)
        images = fn.resize(images, resize_x=width, resize_y=height)
        return fn.crop_mirror_normalize(
            images, dtype=types.FLOAT, output_layout="HWC", mean=[0.0, 0.0, 0.0], std=[1.0, 1.0, 1.0]
        )

    built = pipeline()
    built.build()
    built.feed_input("IN", encoded)
    values = np.stack([np.asarray(sample) for sample in built.run()[0]])
    if not np.array_equal(values, values.round()):
        raise GenerateError("DALI's values are not whole numbers, so that recording them as bytes would lose something")
    grey_levels: NDArray[np.uint8] = values.astype(np.uint8)
    return grey_levels


def _from_dali(packages: Path) -> Files:
    """Inputs, outputs and DALI's version."""
    sys.path.append(str(packages))
    try:
        dali = importlib.import_module("nvidia.dali")
        importlib.import_module("nvidia.dali.fn")
    except ImportError as error:
        raise GenerateError(f"{packages} has no DALI: {error}") from error
    finally:
        sys.path.remove(str(packages))
    inputs = pictures()
    outputs = {
        f"output {width}x{height}": through_dali(dali, list(inputs.values()), width, height) for width, height in SIZES
    }
    named = {f"input {name}": value for name, value in inputs.items()}
    stream = io.BytesIO()
    np.savez_compressed(stream, version=np.array(dali.__version__), **named, **outputs)
    recorded = stream.getvalue()
    committed = existing(HEADER)
    is_same = committed.get("content_sha256") == _sha256(recorded)
    return _with_header(recorded, committed["retrieved"] if is_same else datetime.now(UTC).date().isoformat())


def _committed() -> Files:
    """The files as they are.

    Raises:
        GenerateError: a hash of the header is not that of the data.
    """
    table, _ = checked(HEADER)
    recorded = (ROOT / RECORDED).read_bytes()
    if _sha256(recorded) != table["content_sha256"]:
        raise GenerateError(
            f"{RECORDED} does not have the `content_sha256` of {HEADER}. Undo the change of either file"
        )
    return _with_header(recorded, table["retrieved"])


def _with_header(recorded: bytes, retrieved: str) -> Files:
    arrays = np.load(io.BytesIO(recorded))
    inputs = {name: arrays[name] for name in sorted(arrays.files) if name.startswith("input ")}
    header = {
        "about": ABOUT,
        "retrieved": retrieved,
        "sources": [f"nvidia-dali-cuda120 {arrays['version']}: decoders.image, resize and crop_mirror_normalize"],
        "generator": "tools/generate/dali_recorded.py",
        "input_sha256": _input_sha256(inputs),
        "content_sha256": _sha256(recorded),
    }
    return {RECORDED: recorded, HEADER: canonical(header)}


def _input_sha256(inputs: Mapping[str, NDArray[np.uint8]]) -> str:
    return _sha256(b"".join(name.encode() + value.tobytes() for name, value in inputs.items()))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


GENERATOR = Generator(_committed, source="dali", from_source=_from_dali)
