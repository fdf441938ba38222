"""Three operators of DALI in numpy and Pillow, within one grey level of DALI's own.

Images are arrays of height, width, channels (HWC). `tests/local_aws/triton/backends/test_dali.py` compares with
DALI on the CPU where it is installed.
"""

from __future__ import annotations

import io
import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

__all__ = ["crop_mirror_normalize", "decode_image", "resize"]


def decode_image(encoded: NDArray[np.uint8], channels: Literal["RGB", "BGR"] = "RGB") -> NDArray[np.uint8]:
    """Decode a JPEG, PNG, …, turned by its EXIF orientation (DALI's `adjust_orientation` is on)."""
    with Image.open(io.BytesIO(encoded.tobytes())) as image:
        decoded = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    return decoded if channels == "RGB" else decoded[:, :, ::-1]


def resize(image: NDArray[np.uint8], width: int, height: int) -> NDArray[np.uint8]:
    """Scale to `width` x `height` with DALI's defaults: linear, antialiased where it shrinks.

    That is a triangular filter between half-pixel centres, as wide as the scale where it shrinks. Pillow's "bilinear"
    is the same filter; on float images it does not round between the two directions, as DALI does not. At the border
    Pillow drops taps and DALI repeats the last pixel, hence the padding.
    """
    old_height, old_width, channels = image.shape
    margin_x = math.ceil(max(1.0, old_width / width)) + 1
    margin_y = math.ceil(max(1.0, old_height / height)) + 1
    padded = np.pad(image, ((margin_y, margin_y), (margin_x, margin_x), (0, 0)), mode="edge").astype(np.float32)
    box = (margin_x, margin_y, margin_x + old_width, margin_y + old_height)
    scaled = [
        np.asarray(Image.fromarray(padded[:, :, c]).resize((width, height), Image.Resampling.BILINEAR, box=box))
        for c in range(channels)
    ]
    result: NDArray[np.uint8] = np.rint(np.stack(scaled, axis=-1)).clip(0, 255).astype(np.uint8)
    return result


def crop_mirror_normalize(
    image: NDArray[np.uint8],
    *,
    crop: tuple[int, int] | None,
    mean: NDArray[np.float32],
    std: NDArray[np.float32],
    layout: Literal["HWC", "CHW"],
    dtype: type[np.floating[Any]],
) -> NDArray[Any]:
    """Cut `crop` (height, width) out of the middle, then (pixel - mean) / std, then reorder.

    Raises:
        ValueError: the crop is larger than the image.
    """
    if crop is not None:
        height, width = crop
        if height > image.shape[0] or width > image.shape[1]:
            raise ValueError(f"crop {height}x{width} is larger than the image {image.shape[0]}x{image.shape[1]}")
        # DALI rounds the anchor half away from zero.
        top, left = math.floor((image.shape[0] - height) / 2 + 0.5), math.floor((image.shape[1] - width) / 2 + 0.5)
        image = image[top : top + height, left : left + width]
    normalised = (image.astype(np.float32) - mean) / std
    if layout == "CHW":
        normalised = normalised.transpose(2, 0, 1)
    return np.ascontiguousarray(normalised.astype(dtype))
