"""The ONNX graph of all-MiniLM-L6-v2 against an independent reference in numpy."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest
from tokenizers import Tokenizer

Embed = Callable[[list[str]], npt.NDArray[np.float64]]

FOOD = "A man is eating food."
BREAD = "A man is eating a piece of bread."

BATCHES = {
    "one short text": [FOOD],
    "padding: one word beside a paragraph": ["Hi", "The quick brown fox jumps over the lazy dog. " * 8, FOOD],
    "truncation: 256 tokens of far more": ["water " * 1000, FOOD],
    "empty and blank": ["", "   ", FOOD],
    "unicode": [
        "Ein Mann ißt à la carte",
        "人は米を食べる",
        "🍞🥖 приве́т",
        "e\u0301 and é",
        "zero\u200bwidth",
        "\x00",
    ],
    "a word without end": ["x" * 5000],
    "sixteen texts": [f"sentence number {i} " * (i + 1) for i in range(16)],
}


@pytest.fixture(scope="module")
def session(model_assets: Path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(model_assets / "sentence_embedding/bert/bert.onnx")


@pytest.fixture(scope="module")
def run(session: onnxruntime.InferenceSession, model_assets: Path) -> Callable[[list[str]], npt.NDArray[np.float32]]:
    tokenizer = Tokenizer.from_file(str(model_assets / "sentence_embedding/tokenizer/1/tokenizer.json"))
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()

    def embed_with_graph(texts: list[str]) -> npt.NDArray[np.float32]:
        encodings = tokenizer.encode_batch(texts)
        ids = np.array([encoding.ids for encoding in encodings], dtype=np.int32)
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int32)
        embeddings: npt.NDArray[np.float32] = session.run(["output"], {"token_ids": ids, "attn_mask": mask})[0]
        return embeddings

    return embed_with_graph


@pytest.mark.parametrize("texts", BATCHES.values(), ids=BATCHES.keys())
def test_embeddings_equal_the_reference(
    run: Callable[[list[str]], npt.NDArray[np.float32]], embed: Embed, texts: list[str]
) -> None:
    embeddings = run(texts)
    assert embeddings.shape == (len(texts), 384)
    assert embeddings.dtype == np.float32
    np.testing.assert_allclose(embeddings, embed(texts), rtol=0, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, rtol=0, atol=1e-6)


def test_the_published_cosine_is_reproduced(run: Callable[[list[str]], npt.NDArray[np.float32]]) -> None:
    # https://www.sbert.net/docs/quickstart.html, as of sentence-transformers 2.x
    food, bread = run([FOOD, BREAD])
    assert food @ bread == pytest.approx(0.7553, abs=5e-5)


def test_what_stands_behind_the_mask_has_no_influence(session: onnxruntime.InferenceSession) -> None:
    ids = np.array([[101, 2158, 102, 0, 0], [101, 2158, 102, 7, 29000]], dtype=np.int32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 0, 0]], dtype=np.int32)
    first, second = session.run(None, {"token_ids": ids, "attn_mask": mask})[0]
    np.testing.assert_array_equal(first, second)


def test_a_text_without_any_token_gives_zeros_and_no_nan(session: onnxruntime.InferenceSession) -> None:
    nothing = np.zeros((1, 3), dtype=np.int32)
    (embedding,) = session.run(None, {"token_ids": nothing, "attn_mask": nothing})[0]
    np.testing.assert_array_equal(embedding, np.zeros(384))


def test_names_types_and_shapes_are_those_of_config_pbtxt(session: onnxruntime.InferenceSession) -> None:
    described = [(i.name, i.type, i.shape) for i in [*session.get_inputs(), *session.get_outputs()]]
    assert described == [
        ("token_ids", "tensor(int32)", ["batch", "tokens"]),
        ("attn_mask", "tensor(int32)", ["batch", "tokens"]),
        ("output", "tensor(float)", ["batch", 384]),
    ]
