"""The published form: one tokenizer call for each request, and 128 tokens for every text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from transformers import PreTrainedTokenizerFast


class TritonPythonModel:
    """INPUT0, text -> OUTPUT0, token ids, and OUTPUT1, attention mask."""

    def initialize(self, args: dict[str, str]) -> None:
        """Loads the tokenizer; the published one downloads it here."""
        file = Path(args["model_repository"]) / args["model_version"] / "tokenizer.json"
        self.tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(file), pad_token="[PAD]")

    def execute(self, requests: list[Any]) -> list[Any]:
        """Tokenises, one request after the other."""
        responses = []
        for request in requests:
            sentences = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
            texts = [text.decode("utf-8") for row in sentences for text in row]
            tokens = self.tokenizer(texts, padding="max_length", max_length=128)
            ids = np.array(tokens["input_ids"], dtype=np.int32)
            mask = np.array(tokens["attention_mask"], dtype=np.int32)
            tensors = [pb_utils.Tensor("OUTPUT0", ids), pb_utils.Tensor("OUTPUT1", mask)]
            responses.append(pb_utils.InferenceResponse(output_tensors=tensors))
        return responses
