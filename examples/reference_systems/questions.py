"""Questions that each reference system has to answer, and what a right answer is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from tokenizers import Tokenizer
from tritonclient.http import InferRequestedOutput

from cdk_triton.client import TritonClient
from examples.reference_systems.assets import ASSETS
from examples.reference_systems.pytorch_network import NETWORK

PHOTOGRAPHS = Path(__file__).resolve().parents[1] / "photographs"
SENTENCES = ("A man is eating food.", "A man is eating a piece of bread.")
COSINE = "cosine 0.7553"  # the model card of all-MiniLM-L6-v2
CAT, COFFEE = "Egyptian cat", "espresso"
CAPITAL, PARIS = "What is the capital of France?", "The capital of France is Paris."


@dataclass(frozen=True)
class Question:
    """A question to a stack.

    Attributes:
        stack: the stack's name.
        model: the output of the stack with the target model; None for a single-model endpoint.
        asked: what is asked, in words.
        inputs: the tensors of the request.
        outputs: the outputs to ask for; all if not given.
        told: makes words of the answer.
        right: the right answer in these words.
    """

    stack: str
    model: str | None
    asked: str
    inputs: Mapping[str, Any]
    told: Callable[[Any], str]
    right: str
    outputs: tuple[InferRequestedOutput, ...] | None = None

    def ask(self, runtime: Any, stack_outputs: Mapping[str, str], *, binary: bool) -> str:
        """The answer in words.

        Args:
            runtime: a client of boto3 for `sagemaker-runtime`.
            stack_outputs: the outputs of the stack.
            binary: whether request and answer are binary; JSON otherwise.
        """
        client = TritonClient(stack_outputs["EndpointName"], runtime=runtime)
        target = None if self.model is None else stack_outputs[self.model]
        return self.told(client.infer(self.inputs, outputs=self.outputs, target_model=target, binary=binary))


def questions() -> Iterator[Question]:
    """The questions to all systems, a stack after the other."""
    both = photographs("chelsea", "coffee")
    best = (InferRequestedOutput("OUTPUT", class_count=1),)
    yield Question(
        "ImageClassification",
        None,
        "a cat and a coffee, two files of unequal size",
        {"INPUT": both},
        lambda answer: ", ".join(text_of(each).split(":")[2] for each in answer["OUTPUT"].ravel()),
        f"{CAT}, {COFFEE}",
        outputs=best,
    )
    yield Question(
        "TwoEnsembles",
        "ImageModel",
        "a cat",
        {"INPUT": photographs("chelsea")},
        lambda answer: class_of(answer["OUTPUT"][0], "image_classification"),
        CAT,
    )
    texts = [[sentence] for sentence in SENTENCES]
    yield Question("TwoEnsembles", "TextModel", "two sentences", {"INPUT0": texts}, cosine("finaloutput"), COSINE)
    yield Question(
        "OnnxModels",
        "ImageModel",
        "a coffee, as numbers",
        {"input": pixels("coffee")},
        lambda answer: class_of(answer["probabilities"][0], "onnx_models/images"),
        COFFEE,
    )
    yield Question("OnnxModels", "TextModel", "two sentences, as tokens", tokens(*SENTENCES), cosine("output"), COSINE)
    for tenant in (1, 6):
        yield Question(
            "TensorRTTenants",
            f"Tenant{tenant}",
            f"two sentences to tenant {tenant}, as tokens",
            tokens(*SENTENCES),
            cosine("output"),
            COSINE,
        )
    yield Question(
        "TextGeneration",
        "TextModel",
        CAPITAL,
        {"prompt": [[CAPITAL]]},
        lambda answer: text_of(answer["text"].ravel()[0]),
        PARIS,
    )
    for name, told, right in (
        ("wine", lambda answer: f"cultivar {answer['output__0'][0].argmax()}", "cultivar 0"),
        ("cancer", lambda answer: f"malignant: {answer['output__0'][0][0]:.0%}", "malignant: 99%"),
        ("diabetes", lambda answer: f"progression {answer['output__0'][0]:.0f}", "progression 250"),
    ):
        yield Question(
            "TreeModels", f"{name.title()}Model", f"a row of {name}", {"input__0": unseen_row(name)}, told, right
        )
    if NETWORK.exists():
        yield Question(
            "PyTorchNetwork",
            None,
            "a point",
            {"input": np.array([[0.44, -0.67]], dtype=np.float32)},
            lambda answer: f"spiral {answer['probabilities'][0].argmax()}",
            "spiral 1",
        )


@dataclass(frozen=True)
class StreamedQuestion:
    """A question to a stack whose answer comes in parts.

    Attributes:
        stack: the stack's name.
        asked: the question.
        right: the right answer.
    """

    stack: str
    asked: str
    right: str

    def ask(self, runtime: Any, stack_outputs: Mapping[str, str]) -> tuple[str, float, float]:
        """The answer, and the seconds until its first and until its last part.

        Args:
            runtime: a client of boto3 for `sagemaker-runtime`.
            stack_outputs: the outputs of the stack.
        """
        start = time.perf_counter()
        parts = TritonClient(stack_outputs["EndpointName"], runtime=runtime).stream({"prompt": self.asked})
        text = b"".join(part["text"][0] for part in parts).decode()
        assert parts.first_result_seconds is not None
        return text, parts.first_result_seconds, time.perf_counter() - start


STREAMED = StreamedQuestion("TextStreaming", CAPITAL, PARIS)
"""The question to the system that streams."""


def photographs(*names: str) -> npt.NDArray[np.uint8]:
    """Image files as one tensor: the shorter ones are filled up with zeros."""
    files = [np.frombuffer((PHOTOGRAPHS / f"{name}.jpg").read_bytes(), dtype=np.uint8) for name in names]
    width = max(map(len, files))
    return np.stack([np.pad(file, (0, width - len(file))) for file in files])


def pixels(name: str) -> npt.NDArray[np.float32]:
    """A photograph as ResNet-50 takes it: BGR, less the mean of ImageNet, channels first."""
    with Image.open(PHOTOGRAPHS / f"{name}.jpg") as image:
        values = np.asarray(image.resize((224, 224), Image.Resampling.BILINEAR), dtype=np.float32)
    means = np.array([103.939, 116.779, 123.68], dtype=np.float32)
    found: npt.NDArray[np.float32] = (values[:, :, ::-1] - means).transpose(2, 0, 1)[np.newaxis]
    return found


def tokens(*sentences: str) -> dict[str, npt.NDArray[np.int32]]:
    """Sentences as token ids and mask, truncated to what the plan takes."""
    tokenizer = Tokenizer.from_file(str(ASSETS / "sentence_embedding/tokenizer/1/tokenizer.json"))
    tokenizer.enable_padding()
    tokenizer.enable_truncation(256)
    encoded = tokenizer.encode_batch(list(sentences))
    return {
        "token_ids": np.array([each.ids for each in encoded], dtype=np.int32),
        "attn_mask": np.array([each.attention_mask for each in encoded], dtype=np.int32),
    }


def unseen_row(tenant: str) -> npt.NDArray[np.float32]:
    """The features that the training of a tenant's tree model did not see."""
    request = json.loads((ASSETS / "tree_models" / tenant / "golden/row.json").read_text(encoding="utf-8"))
    return np.array([request["inputs"][0]["data"]], dtype=np.float32)


def class_of(probabilities: npt.NDArray[np.float32], repository: str) -> str:
    """The name of the likeliest class."""
    labels = (ASSETS / repository / "resnet50/labels.txt").read_text(encoding="utf-8").splitlines()
    return labels[int(probabilities.argmax())]


def cosine(output: str) -> Callable[[Any], str]:
    """Make a function that writes how close the two embeddings of an output are."""
    return lambda answer: f"cosine {answer[output][0] @ answer[output][1]:.4f}"


def text_of(value: bytes | str) -> str:
    """The text of an element of a BYTES tensor; JSON has texts, the binary form bytes."""
    return value.decode() if isinstance(value, bytes) else value
