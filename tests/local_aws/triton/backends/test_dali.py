"""The stand-in for DALI: what it computes, what it rejects, and how close it is where DALI is installed."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from cdk_triton_local.triton.backends import is_lacking
from cdk_triton_local.triton.backends.dali_definition import definition_file, has_dali, numpy_pipeline, real_pipeline
from cdk_triton_local.triton.backends.dali_images import crop_mirror_normalize, decode_image, resize
from cdk_triton_local.triton.backends.dali_recorder import UnsupportedError

if TYPE_CHECKING:
    from golden_messages import Messages

HEAD = """
import nvidia.dali as dali
import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali.plugin.triton import autoserialize
"""

PIPELINE = """
@autoserialize
@dali.pipeline_def(batch_size=3, num_threads=1, device_id=0)
def pipe():
    images = fn.external_source(device="cpu", name="IN")
    images = fn.decoders.image(images, device="mixed", output_type=types.RGB)
    images = fn.resize(images, resize_x={width}, resize_y={height})
    return fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="{layout}", crop={crop}, mean=[0.0, 0.0, 0.0], std=[1.0, 1.0, 1.0]
    )
"""

Pictures = dict[str, NDArray[np.uint8]]


@pytest.fixture
def definition(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "dali.py"
        path.write_text(HEAD + text)
        return path

    return write


@pytest.fixture(scope="module")
def pictures() -> Pictures:
    """Photograph-like images with hard edges, also at the border: the places where filters differ."""
    random = np.random.default_rng(1)

    def picture(height: int, width: int) -> Image.Image:
        total = np.zeros((height, width, 3), np.float32)
        for detail in (4, 16, 64):
            noise = Image.fromarray((random.random((detail, detail, 3)) * 255).astype(np.uint8))
            total += np.asarray(noise.resize((width, height), Image.Resampling.BICUBIC), np.float32) / 3
        total[height // 4 : height // 4 + 6] = 255
        total[:, width // 3 : width // 3 + 5] = 0
        total[0], total[-1], total[:, 0] = 0, 255, 255
        return Image.fromarray(total.clip(0, 255).astype(np.uint8))

    def encode(image: Image.Image, **options: Any) -> NDArray[np.uint8]:
        buffer = io.BytesIO()
        image.save(buffer, **options)
        return np.frombuffer(buffer.getvalue(), np.uint8)

    turned = Image.Exif()
    turned[0x0112] = 6
    return {
        "jpeg": encode(picture(480, 640), format="JPEG", quality=90),
        "progressive": encode(picture(900, 1200), format="JPEG", quality=90, progressive=True),
        "small": encode(picture(80, 120), format="JPEG", quality=95),
        "grey": encode(picture(400, 500).convert("L"), format="JPEG", quality=90),
        "odd": encode(picture(481, 641), format="JPEG", quality=75),
        "turned": encode(picture(480, 640), format="JPEG", quality=90, exif=turned.tobytes()),
        "png": encode(picture(300, 500), format="PNG"),
        "transparent": encode(picture(300, 500).convert("RGBA"), format="PNG"),
        "tall": encode(picture(2000, 60), format="PNG"),
    }


@pytest.mark.parametrize(("width", "height"), [(48, 40), (131, 97)])
def test_every_value_is_within_one_grey_level_of_what_dali_was_recorded_to_give(
    definition: Any, width: int, height: int
) -> None:
    recorded = np.load(Path(__file__).with_name("dali_recorded.npz"))
    names = [name for name in recorded.files if name.startswith("input ")]
    crop = (height, width)
    pipeline = numpy_pipeline(definition(PIPELINE.format(width=width, height=height, layout="HWC", crop=crop)))
    ours = pipeline({"IN": [recorded[name] for name in names]})[0]
    for name, one, dalis in zip(names, ours, recorded[f"output {width}x{height}"], strict=True):
        difference = np.abs(one - dalis.astype(np.float32))
        assert difference.max() <= 1, name
        assert difference.mean() < 0.01, name


@pytest.mark.skipif(not has_dali(), reason="the extra dali is not installed")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("images = fn.external_source(", 'unused = fn.external_source(name="MASK")\n    images = fn.external_source('),
        ('name="IN"', 'name="IN", dtype=types.UINT8, ndim=1'),
        ('name="IN"', 'name="IN", source=lambda index: [index]'),
        ('name="IN"', "source=lambda index: [index]"),
        ("device_id=0", "device_id=0, output_dtype=types.FLOAT, output_ndim=3"),
    ],
    ids=["undeclared", "an unused source", "a declared input", "a callback", "no name", "a declared output"],
)
def test_the_signature_is_that_of_dali(definition: Any, old: str, new: str) -> None:
    text = PIPELINE.format(width=8, height=8, layout="HWC", crop=None)
    assert old in text
    path = definition(text.replace(old, new, 1))
    ours, theirs = numpy_pipeline(path).signature, real_pipeline(path, batch_size=4, threads=1).signature
    assert ours.inputs == theirs.inputs
    assert [each[1:] for each in ours.outputs] == [each[1:] for each in theirs.outputs]


@pytest.mark.skipif(not has_dali(), reason="the extra dali is not installed")
@pytest.mark.parametrize(
    ("width", "height", "layout", "crop", "channels"),
    [
        (299, 299, "HWC", (299, 299), "RGB"),
        (300, 257, "CHW", (224, 224), "BGR"),
        (256, 302, "HWC", (225, 223), "RGB"),
    ],
)
def test_every_value_is_within_one_grey_level_of_dali(
    definition: Any, pictures: Pictures, width: int, height: int, layout: str, crop: tuple[int, int], channels: str
) -> None:
    text = PIPELINE.format(width=width, height=height, layout=layout, crop=crop)
    path = definition(text.replace("RGB", channels))
    batch = {"IN": list(pictures.values())}
    ours = numpy_pipeline(path)(batch)[0]
    theirs = real_pipeline(path, batch_size=16, threads=2)(batch)[0]
    for name, one, other in zip(pictures, ours, theirs, strict=True):
        assert one.shape == other.shape
        difference = np.abs(one - other)
        assert difference.max() <= 1, name
        assert difference.mean() < 0.01, name


@pytest.mark.skipif(not has_dali(), reason="the extra dali is not installed")
def test_dali_answers_each_of_several_requests(definition: Any, pictures: Pictures) -> None:
    path = definition(PIPELINE.format(width=30, height=20, layout="HWC", crop=None))
    real, expected = real_pipeline(path, batch_size=4, threads=1), numpy_pipeline(path)
    for names in (["png"], ["small"], ["jpeg", "png"], ["small"]):
        batch = {"IN": [pictures[name] for name in names]}
        [theirs], [ours] = real(batch), expected(batch)
        assert len(theirs) == len(names)
        assert all(np.abs(one - other).max() <= 1 for one, other in zip(theirs, ours, strict=True)), names


def test_blue_may_come_before_red(definition: Any, pictures: Pictures) -> None:
    text = PIPELINE.format(width=48, height=40, layout="HWC", crop=(40, 48))
    rgb = numpy_pipeline(definition(text))({"IN": [pictures["jpeg"]]})[0][0]
    bgr = numpy_pipeline(definition(text.replace("RGB", "BGR")))({"IN": [pictures["jpeg"]]})[0][0]
    np.testing.assert_array_equal(bgr, rgb[:, :, ::-1])


def triangular(old: int, new: int) -> NDArray[np.float64]:
    """The filter written out: weights of `old` pixels for each of `new`, the last pixel repeated at the border."""
    scale = old / new
    support = max(scale, 1.0)
    weights = np.zeros((new, old))
    for i in range(new):
        centre = (i + 0.5) * scale - 0.5
        for j in range(int(np.floor(centre - support)), int(np.ceil(centre + support)) + 1):
            weights[i, min(max(j, 0), old - 1)] += max(0.0, 1 - abs(j - centre) / support)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


@pytest.mark.parametrize("size", [(299, 299), (31, 600), (640, 480), (1, 1)])
def test_resizing_is_the_written_out_filter(pictures: Pictures, size: tuple[int, int]) -> None:
    image = decode_image(pictures["png"])
    width, height = size
    expected = np.einsum(
        "ih,hwc,jw->ijc", triangular(image.shape[0], height), image, triangular(image.shape[1], width), optimize=True
    )
    result = resize(image, width, height)
    assert result.shape == (height, width, 3)
    assert np.abs(result - expected).max() <= 0.501


def test_decoding_gives_rgb_turned_the_right_way_up(pictures: Pictures) -> None:
    assert decode_image(pictures["turned"]).shape == (640, 480, 3)
    assert decode_image(pictures["grey"]).shape == (400, 500, 3)
    assert decode_image(pictures["transparent"]).shape == (300, 500, 3)


def test_zeros_behind_an_image_do_no_harm(pictures: Pictures) -> None:
    padded = np.pad(pictures["jpeg"], (0, 1000))
    assert np.array_equal(decode_image(padded), decode_image(pictures["jpeg"]))


def test_cropping_takes_the_middle_and_normalising_follows(messages: Messages) -> None:
    image = np.arange(5 * 4 * 3, dtype=np.uint8).reshape(5, 4, 3)
    mean, std = np.array([1, 2, 3], np.float32), np.array([2, 4, 8], np.float32)
    result = crop_mirror_normalize(image, crop=(3, 2), mean=mean, std=std, layout="CHW", dtype=np.float32)
    assert result.dtype == np.float32
    assert np.array_equal(result, ((image[1:4, 1:3].astype(np.float32) - mean) / std).transpose(2, 0, 1))
    with messages.raises(ValueError):
        crop_mirror_normalize(image, crop=(6, 2), mean=mean, std=std, layout="HWC", dtype=np.float32)


def test_a_pipeline_runs_on_each_sample(definition: Any, pictures: Pictures) -> None:
    path = definition(PIPELINE.format(width=30, height=20, layout="HWC", crop=None))
    [outputs] = numpy_pipeline(path)({"IN": [pictures["png"], pictures["small"]]})
    assert [output.shape for output in outputs] == [(20, 30, 3)] * 2
    assert np.array_equal(outputs[0], resize(decode_image(pictures["png"]), 30, 20))
    assert importlib.util.find_spec("nvidia") is None or has_dali(), "the recording modules are gone again"


GOOD = PIPELINE.format(width=8, height=8, layout="HWC", crop=None)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("fn.resize(images, resize_x=8, resize_y=8)", "fn.rotate(images, angle=3)", "nvidia.dali.fn.rotate"),
        ("resize_y=8", "resize_y=8, interp_type=types.INTERP_CUBIC", "nvidia.dali.types.INTERP_CUBIC"),
        ("resize_y=8", 'resize_y=8, mode="not_larger"', "mode of fn.resize"),
        (", resize_y=8", "", "fn.resize: missing a required argument: 'resize_y'"),
        ('device="mixed"', 'device="tpu"', "'tpu' of fn.decoders.image"),
        ("types.RGB", "types.GRAY", "nvidia.dali.types.GRAY"),
        ('output_layout="HWC"', 'output_layout="NHWC"', "output_layout 'NHWC'"),
        ("types.FLOAT", "types.UINT8", "dtype UINT8 of fn.crop_mirror_normalize"),
        ("crop=None", "crop=(1, 2, 3)", "crop (1, 2, 3)"),
        ("mean=[0.0, 0.0, 0.0]", "mean=[0.0, 0.0]", "[0.0, 0.0] as mean"),
        ("crop=None", "crop=None, mirror=1", "mirror of fn.crop_mirror_normalize"),
        ("device_id=0", "device_id=0, enable_conditionals=True", "enable_conditionals of pipeline_def"),
        ("@autoserialize", "from nvidia.dali import math\n@autoserialize", "nvidia.dali.math"),
        ("@autoserialize", "import nvidia.dali.experimental.dynamic\n@autoserialize", "nvidia.dali.experimental"),
        ("return fn", "images = images * 2\n    return fn", "arithmetic"),
        ("return fn", "images = images.shape()\n    return fn", "DataNode.shape"),
    ],
    ids=[
        "operator",
        "interpolation",
        "argument of resize",
        "missing argument",
        "device",
        "output type",
        "layout",
        "data type",
        "crop",
        "mean",
        "argument of normalize",
        "argument of the pipeline",
        "module",
        "experimental module",
        "arithmetic",
        "attribute",
    ],
)
def test_what_it_does_not_know_is_rejected_by_name(
    messages: Messages, definition: Any, old: str, new: str, named: str
) -> None:
    assert old in GOOD
    with messages.raises(UnsupportedError) as rejected:
        numpy_pipeline(definition(GOOD.replace(old, new, 1)))
    assert named in str(rejected.value)
    assert is_lacking(str(rejected.value))  # DALI may run it


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="no function"),
        pytest.param(GOOD + GOOD.replace("def pipe", "def other"), id="two functions"),
        pytest.param("import no_such_module", id="import"),
        pytest.param("1 / 0", id="exception"),
        pytest.param(GOOD.replace("return fn", "images = 1 / 0\n    return fn"), id="exception in the pipeline"),
    ],
)
def test_a_definition_that_is_none_is_one_sentence(messages: Messages, definition: Any, text: str) -> None:
    with messages.raises(ValueError):
        numpy_pipeline(definition(text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def", "SyntaxError"),
        (
            GOOD.replace("@dali.pipeline_def(batch_size=3, num_threads=1, device_id=0)", ""),
            "Only `@pipeline_def` can be",
        ),
    ],
    ids=["Python", "DALI"],
)
def test_what_python_and_dali_reject_is_told_in_their_words(definition: Any, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        numpy_pipeline(definition(text))


def test_the_file_is_the_one_that_tritons_backend_takes(messages: Messages, tmp_path: Path) -> None:
    with messages.raises(ValueError):
        definition_file(tmp_path / "1", "")
    (tmp_path / "dali.py").touch()
    assert definition_file(tmp_path, "").name == "dali.py"
    (tmp_path / "own.py").touch()
    assert definition_file(tmp_path, "own.py").name == "own.py"
    (tmp_path / "model.dali").touch()
    with messages.raises(ValueError):
        definition_file(tmp_path, "")
