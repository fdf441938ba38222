"""Both reference ensembles on one multi-model endpoint of the local Triton, archives and all, against references."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest
from botocore.exceptions import ClientError
from PIL import Image
from tritonclient.http import InferRequestedOutput

from cdk_triton.artifacts import write_archive
from cdk_triton.client import TritonClient
from cdk_triton.errors import ModelError
from cdk_triton_local.endpoints import Container, Endpoint, Invocation, Variant
from cdk_triton_local.triton import TritonHost
from cdk_triton_local.triton.backends.plan import stand_in_plan

if TYPE_CHECKING:
    from golden_messages import Messages


Embed = Callable[[list[str]], npt.NDArray[np.float64]]

TEXT, IMAGE = "text.tar.gz", "image.tar.gz"
FOOD = "A man is eating food."
BREAD = "A man is eating a piece of bread."
SECRET = "Rumpelstilzchen"
PHOTOGRAPHS = Path(__file__).parents[2] / "examples" / "photographs"


class Archives:
    """The one S3 call that the host makes, answered from a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def get_object(self, *, Bucket: str, Key: str) -> Mapping[str, Any]:  # noqa: N803 boto3's names
        return {"Body": (self._directory / Key).open("rb")}


class Runtime:
    """The one `sagemaker-runtime` call that the client makes, answered by the host without HTTP in between."""

    def __init__(self, host: TritonHost) -> None:
        self._host = host

    def invoke_endpoint(self, *, EndpointName: str, Body: bytes, ContentType: str, TargetModel: str) -> Any:  # noqa: N803
        headers = {"content-type": ContentType, "x-amzn-sagemaker-target-model": TargetModel}
        response = self._host.invoke(Invocation(EndpointName, headers, Body))
        answered = {name.lower(): value for name, value in response.headers.items()}
        if response.status != 200:
            error: Any = json.loads(response.body)
            error["Error"] = {"Code": answered["x-amzn-errortype"], "Message": error.get("Message", "")}
            raise ClientError(error, "InvokeEndpoint")
        return {"Body": io.BytesIO(response.body), "ContentType": answered["content-type"]}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host's directory, with its logs."""
    return tmp_path_factory.mktemp("host")


@pytest.fixture(scope="module")
def client(model_assets: Path, directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonClient]:
    bucket = tmp_path_factory.mktemp("bucket")
    (bucket / "fleet").mkdir()
    write_archive(with_plan(model_assets / "sentence_embedding", bucket), bucket / "fleet" / TEXT)
    write_archive(model_assets / "image_classification", bucket / "fleet" / IMAGE)
    container = Container(
        image="sagemaker-tritonserver:26.05-py3",
        mode="MultiModel",
        model_data_url="s3://bucket/fleet/",
        environment={"SAGEMAKER_MULTI_MODEL": "true", "SAGEMAKER_TRITON_LOG_VERBOSE": "true"},
    )
    host = TritonHost(lambda role: Archives(bucket), directory)
    try:
        host.deploy(Endpoint("references", "references", (Variant("AllTraffic", 1.0, "ml.g5.xlarge", container),)))
        yield TritonClient("references", runtime=Runtime(host))
    finally:
        host.close()


def with_plan(repository: Path, directory: Path) -> Path:
    """A copy of the text ensemble as a build on this machine leaves it: with a stand-in plan instead of the network."""
    built = Path(shutil.copytree(repository, directory / repository.name, ignore=shutil.ignore_patterns("*.onnx")))
    (built / "bert" / "1").mkdir()
    plan = stand_in_plan((repository / "bert" / "bert.onnx").read_bytes())
    (built / "bert" / "1" / "model.plan").write_bytes(plan)
    return built


def embeddings(client: TritonClient, texts: list[str]) -> npt.NDArray[np.float32]:
    answer = client.infer({"INPUT0": [[text] for text in texts]}, target_model=TEXT)
    found: npt.NDArray[np.float32] = answer["finaloutput"]
    return found


def classify(client: TritonClient, *images: bytes) -> npt.NDArray[np.float32]:
    """Sends the images in one request: the shorter files are filled up with zeros."""
    batch = np.zeros((len(images), max(map(len, images))), dtype=np.uint8)
    for row, image in zip(batch, images, strict=True):
        row[: len(image)] = np.frombuffer(image, dtype=np.uint8)
    probabilities: npt.NDArray[np.float32] = client.infer({"INPUT": batch}, target_model=IMAGE)["OUTPUT"]
    return probabilities


def photo(seed: int, width: int, height: int, kind: str = "JPEG") -> bytes:
    """Colours on a coarse grid, blown up smoothly: not a photo, but as soft as one."""
    grid = np.random.default_rng(seed).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(grid).resize((width, height), Image.Resampling.BICUBIC).save(file, kind)
    return file.getvalue()


def triangle_weights(source: int, target: int) -> npt.NDArray[np.float64]:
    """How much each of `source` pixels counts for each of `target` pixels: linear interpolation with antialiasing."""
    scale = source / target
    centres = (np.arange(target) + 0.5) * scale - 0.5
    distances = np.abs(np.arange(-source, 2 * source)[None] - centres[:, None]) / max(scale, 1.0)
    weights = np.maximum(0.0, 1.0 - distances)
    folded = np.zeros((target, source))
    for column, pixel in enumerate(range(-source, 2 * source)):
        folded[:, min(max(pixel, 0), source - 1)] += weights[:, column]  # beyond the edge the last pixel goes on
    normalised: npt.NDArray[np.float64] = folded / folded.sum(axis=1, keepdims=True)
    return normalised


def preprocess(image: bytes) -> npt.NDArray[np.float32]:
    """What the DALI pipeline computes, by its documentation: decode, resize to 224x224, round, BGR less the means."""
    pixels = np.asarray(Image.open(io.BytesIO(image)).convert("RGB"), dtype=np.float64)
    rows, columns = triangle_weights(pixels.shape[0], 224), triangle_weights(pixels.shape[1], 224)
    resized = np.einsum("yh,hwc,xw->yxc", rows, pixels, columns, optimize=True)
    centred = np.rint(resized).clip(0, 255)[:, :, ::-1] - [103.939, 116.779, 123.68]
    scaled: npt.NDArray[np.float32] = centred.transpose(2, 0, 1).astype(np.float32)
    return scaled


@pytest.fixture(scope="module")
def expected(model_assets: Path) -> Callable[[bytes], npt.NDArray[np.float32]]:
    session = onnxruntime.InferenceSession(model_assets / "image_classification/resnet50/1/model.onnx")

    def probabilities(image: bytes) -> npt.NDArray[np.float32]:
        answer: npt.NDArray[np.float32] = session.run(None, {"input": preprocess(image)[None]})[0][0]
        return answer

    return probabilities


@pytest.mark.parametrize(
    "texts",
    [
        [FOOD],
        [FOOD, BREAD],
        ["Hi", "The quick brown fox jumps over the lazy dog. " * 8, "", "人は米を食べる 🍞"],
        ["water " * 1000, FOOD],
        [f"sentence number {i} " * (i + 1) for i in range(16)],
    ],
    ids=["one", "two", "padding and unicode", "truncation", "a full batch"],
)
def test_embeddings_equal_the_reference(client: TritonClient, embed: Embed, texts: list[str]) -> None:
    np.testing.assert_allclose(embeddings(client, texts), embed(texts), rtol=0, atol=1e-5)


def test_the_published_cosine_is_reproduced(client: TritonClient) -> None:
    food, bread = embeddings(client, [FOOD, BREAD])
    assert food @ bread == pytest.approx(0.7553, abs=5e-5)


def test_requests_that_are_batched_together_get_their_own_answers(client: TritonClient, embed: Embed) -> None:
    requests = [[f"request {i}: " + "word " * (i * 7 % 50)] * (1 + i % 3) for i in range(40)]
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda texts: embeddings(client, texts), requests))
    for texts, answer in zip(requests, answers, strict=True):
        np.testing.assert_allclose(answer, embed(texts), rtol=0, atol=1e-5)


def test_a_text_that_is_not_utf8_fails_its_own_request_and_is_not_quoted(
    messages: Messages, client: TritonClient, embed: Embed
) -> None:
    bad = np.array([[FOOD.encode()], [SECRET.encode("utf-16")]], dtype=np.object_)

    def send(i: int) -> npt.NDArray[np.float32] | str:
        if i % 4:
            return embeddings(client, [FOOD])
        with pytest.raises(ModelError) as error:
            client.infer({"INPUT0": bad}, target_model=TEXT)
        assert error.value.status == 400
        return error.value.original_message

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, range(16)))
    for i, answer in enumerate(answers):
        if isinstance(answer, str):
            messages.record("ModelError", answer)
        else:
            assert i % 4
            np.testing.assert_allclose(answer, embed([FOOD]), rtol=0, atol=1e-5)


def test_more_texts_than_the_batch_size_are_rejected(client: TritonClient) -> None:
    with pytest.raises(ModelError, match="batch-size must be <= 16"):
        embeddings(client, [FOOD] * 17)


def test_tokenizers_is_the_vendored_one(client: TritonClient, directory: Path) -> None:
    embeddings(client, [FOOD])
    mapped = []  # what the servers' processes have mapped: files below the host's directory come from an archive
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):  # a process that has just ended
            mapped += [line for line in maps.read_text().splitlines() if str(directory) in line]
    assert any(line.endswith("/tokenizer/1/vendor/tokenizers/tokenizers.abi3.so") for line in mapped)


@pytest.mark.parametrize(
    "image",
    [photo(1, 640, 480), photo(2, 480, 640), photo(3, 1200, 900), photo(4, 120, 80), photo(5, 300, 500, "PNG")],
    ids=["landscape", "portrait", "large", "smaller than 224x224", "PNG"],
)
def test_probabilities_equal_the_reference(
    client: TritonClient, expected: Callable[[bytes], npt.NDArray[np.float32]], image: bytes
) -> None:
    (probabilities,) = classify(client, image)
    assert probabilities.sum() == pytest.approx(1, abs=1e-5)
    assert probabilities.argmax() == expected(image).argmax()
    np.testing.assert_allclose(probabilities, expected(image), rtol=0, atol=5e-3)  # DALI may differ by one grey level


def test_images_of_one_request_are_filled_up_to_the_same_length(client: TritonClient) -> None:
    images = [photo(1, 640, 480), photo(2, 480, 640), photo(4, 120, 80)]
    assert len({len(image) for image in images}) == 3
    alone = np.concatenate([classify(client, image) for image in images])
    np.testing.assert_allclose(classify(client, *images), alone, rtol=0, atol=1e-5)


def test_requests_with_images_of_any_length_are_answered_side_by_side(client: TritonClient) -> None:
    images = [photo(seed, 200 + 10 * seed, 300) for seed in range(8)]
    alone = [classify(client, image) for image in images]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda image: classify(client, image), images))
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-5)


def test_a_damaged_image_fails_its_own_request(client: TritonClient) -> None:
    with ThreadPoolExecutor(4) as pool:
        good = [pool.submit(classify, client, photo(1, 640, 480)) for _ in range(3)]
        damaged = pool.submit(classify, client, b"this is no image at all")
        assert all(future.result().shape == (1, 1000) for future in good)
        with pytest.raises(ModelError):
            damaged.result()


@pytest.mark.parametrize(("name", "label"), [("chelsea", "Egyptian cat"), ("coffee", "espresso")])
def test_a_photograph_gets_its_class_by_name(client: TritonClient, name: str, label: str) -> None:
    image = (PHOTOGRAPHS / f"{name}.jpg").read_bytes()
    (probabilities,) = classify(client, image)
    answer = client.infer(
        {"INPUT": np.frombuffer(image, dtype=np.uint8)[None]},
        outputs=[InferRequestedOutput("OUTPUT", class_count=5)],
        target_model=IMAGE,
    )
    top = [entry.decode().split(":") for entry in answer["OUTPUT"].ravel()]
    assert [int(index) for _, index, _ in top] == list(probabilities.argsort()[::-1][:5])
    assert top[0][2] == label
    assert float(top[0][0]) > 0.5


def test_photographs_of_unequal_size_are_classified_in_one_request(client: TritonClient) -> None:
    images = [(PHOTOGRAPHS / f"{name}.jpg").read_bytes() for name in ("chelsea", "coffee")]
    assert list(classify(client, *images).argmax(axis=1)) == [285, 967]  # Egyptian cat, espresso


def test_no_text_of_a_request_is_in_any_log_not_even_a_verbose_one(client: TritonClient, directory: Path) -> None:
    embeddings(client, [f"the name is {SECRET}", FOOD])
    with pytest.raises(ModelError):
        client.infer({"INPUT0": np.array([[SECRET.encode() + b" \xff"]], dtype=np.object_)}, target_model=TEXT)
    logs = list((directory / "logs").rglob("*.log"))
    said = b"".join(log.read_bytes() for log in logs)
    assert len(said) > 10_000  # the verbose log is on, and there
    assert SECRET.encode() not in said
    assert SECRET.lower().encode() not in said
