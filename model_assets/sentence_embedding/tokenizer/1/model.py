"""Texts to token ids and attention masks, with the tokenizer that all-MiniLM-L6-v2 was trained with.

Nothing is fetched: `tokenizer.json` and the `tokenizers` package travel in this directory. Nothing is logged: a text
is its sender's, and the logs of an endpoint are read by others.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

HERE = Path(__file__).resolve().parent

# SageMaker's container has Python and numpy and no `tokenizers`. A packed Conda environment would bring a second Python
# along; the unpacked wheel is 12 MB, needs nothing else, and runs on any CPython from 3.10 (abi3).
sys.path.insert(0, str(HERE / "vendor"))

from tokenizers import Encoding, Tokenizer  # noqa: E402  (found through the line above)

# The model was trained on texts of at most 256 tokens (`sentence_bert_config.json` beside its weights) and its
# quality beyond is untested, although its position table has 512 rows. The `tokenizer.json` of the same release says
# 128 and is overruled.
MAX_TOKENS = 256


class TritonPythonModel:
    """INPUT0, text as UTF-8 [1] -> OUTPUT0, token ids [tokens], and OUTPUT1, 1 for a token and 0 for padding."""

    def initialize(self, args: dict[str, str]) -> None:
        """Reads the tokenizer; Triton calls this once, when the model is loaded."""
        self._tokenizer = Tokenizer.from_file(str(HERE / "tokenizer.json"))
        self._tokenizer.enable_truncation(max_length=MAX_TOKENS)
        # To the longest text at hand and no further: short texts should not pay for long ones that nobody sent.
        self._tokenizer.enable_padding(pad_id=self._tokenizer.token_to_id("[PAD]"))

    def execute(self, requests: list[pb_utils.InferenceRequest]) -> list[pb_utils.InferenceResponse]:
        """Tokenises the texts of all requests in one go, which uses every core, and answers each request on its own.

        All answers are padded to the same length, so the batcher of the next model can join them again.
        """
        batches = [_texts(request) for request in requests]
        good = [text for batch in batches if isinstance(batch, list) for text in batch]
        encodings = iter(self._tokenizer.encode_batch(good))
        return [
            _tensors([next(encodings) for _ in batch])
            if isinstance(batch, list)
            else pb_utils.InferenceResponse(error=batch)
            for batch in batches
        ]


def _texts(request: pb_utils.InferenceRequest) -> list[str] | pb_utils.TritonError:
    """The texts of a request, or an error for this request alone; it quotes no text, because errors are logged."""
    encoded = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy().ravel()
    texts = []
    for number, data in enumerate(encoded, start=1):
        try:
            texts.append(data.decode("utf-8"))
        except UnicodeDecodeError as error:
            return pb_utils.TritonError(
                f"text {number} of {len(encoded)} in INPUT0 is not UTF-8 (at byte {error.start}); send texts as UTF-8",
                pb_utils.TritonError.INVALID_ARG,
            )
    return texts


def _tensors(encodings: list[Encoding]) -> pb_utils.InferenceResponse:
    ids = np.array([encoding.ids for encoding in encodings], dtype=np.int32)
    mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int32)
    return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", ids), pb_utils.Tensor("OUTPUT1", mask)])
