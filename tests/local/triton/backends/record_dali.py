"""Records what DALI makes of small pictures, for `test_standin_dali.py`: DALI is too large for every test run.

Run where the extra `dali` is installed: `python tests/local/triton/backends/record_dali.py`.
"""

import io
from pathlib import Path
from typing import Any

import numpy as np
import nvidia.dali as dali
import nvidia.dali.fn as fn
import nvidia.dali.types as types
from numpy.typing import NDArray
from PIL import Image

TARGET = Path(__file__).with_name("dali_recorded.npz")
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


def through_dali(encoded: list[NDArray[np.uint8]], width: int, height: int) -> NDArray[np.uint8]:
    """Grey levels after decoding and resizing: with mean 0 and deviation 1 DALI's floats are whole numbers."""

    @dali.pipeline_def(batch_size=len(encoded), num_threads=1, device_id=None)  # type: ignore[untyped-decorator]
    def pipeline() -> Any:
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
        raise ValueError("DALI's values are not whole numbers, so that recording them as bytes would lose something")
    grey_levels: NDArray[np.uint8] = values.astype(np.uint8)
    return grey_levels


def main() -> None:
    """Write inputs, outputs and DALI's version."""
    inputs = pictures()
    outputs = {
        f"output {width}x{height}": through_dali(list(inputs.values()), width, height) for width, height in SIZES
    }
    named = {f"input {name}": value for name, value in inputs.items()}
    np.savez_compressed(TARGET, version=np.array(dali.__version__), **named, **outputs)


if __name__ == "__main__":
    main()
