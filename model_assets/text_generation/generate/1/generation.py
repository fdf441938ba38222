"""Prompts to answers: SmolLM2 with ONNX Runtime, for a batch of prompts at once, or for one in parts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # ONNX Runtime's wheel reports usage to its maker otherwise

import onnxruntime

# The chat template of the weights. Its control tokens are set here alone: those in a prompt are plain text.
BEFORE = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    "<|im_start|>user\n"
)
AFTER = "<|im_end|>\n<|im_start|>assistant\n"
ENDS = ("<|im_end|>", "<|endoftext|>")


class Answer(NamedTuple):
    """An answer, or a part of one.

    Attributes:
        text: the answer, or the text that the part adds.
        tokens: the length of the answer, up to and with this part.
        finish_reason: "stop" if the model ended it, "length" if it was cut, and "" if another part follows.
    """

    text: str
    tokens: int
    finish_reason: str


class Generator:
    """The network and its tokenizer.

    Args:
        directory: it has `model.onnx` and `tokenizer.json`.
        gpu: the number of the GPU to work on; None for the CPU.

    Raises:
        RuntimeError: ONNX Runtime cannot use that GPU.
    """

    def __init__(self, directory: Path, *, gpu: int | None) -> None:
        self._session = _session(directory / "model.onnx", gpu)
        self._device = ("cpu", 0) if gpu is None else ("cuda", gpu)
        cache = self._session.get_inputs()[2:]
        self._past = [each.name for each in cache]
        self._present = [each.name for each in self._session.get_outputs()[1:]]
        self._groups, self._size = int(cache[0].shape[1]), int(cache[0].shape[3])
        self._tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self._before, self._after = (self._tokenizer.encode(text).ids for text in (BEFORE, AFTER))
        self._ends = {self._tokenizer.token_to_id(token) for token in ENDS}
        self._tokenizer.encode_special_tokens = True
        self.positions = int(self._session.get_modelmeta().custom_metadata_map["positions"])
        """The most tokens of a prompt and its answer together."""

    def prompt(self, text: str) -> list[int]:
        """The token ids of a user's text, in the chat template."""
        return [*self._before, *self._tokenizer.encode(text).ids, *self._after]

    def generate(self, prompts: Sequence[list[int]], max_tokens: Sequence[int]) -> list[Answer]:
        """The likeliest answer of each prompt; a prompt's answer is the same in every batch but for rounding.

        Args:
            prompts: as `prompt` gives them.
            max_tokens: the longest answer of each, at least 1.
        """
        written: list[list[int]] = [[] for _ in prompts]
        reasons = ["length"] * len(prompts)
        going = np.arange(len(prompts))  # the prompts without a whole answer, one in each row of the batch
        ids, mask = _padded(prompts)
        cache = self._empty_cache(len(prompts))
        while len(going):
            logits, cache = self._step(ids, mask, cache)
            chosen = logits.argmax(axis=1).astype(np.int32)
            goes_on = np.ones(len(going), bool)
            for row, (number, token) in enumerate(zip(going, chosen.tolist(), strict=True)):
                if token in self._ends:
                    reasons[number], goes_on[row] = "stop", False
                else:
                    written[number].append(token)
                    goes_on[row] = len(written[number]) < max_tokens[number]
            if not goes_on.all():  # a row that has its answer costs nothing any more
                going, chosen, mask = going[goes_on], chosen[goes_on], mask[goes_on]
                # Nor does the padding that it needed: with it, a shorter row would leave the network's positions.
                padding = int(mask.any(axis=0).argmax())
                mask = mask[:, padding:]
                cache = [self._on_device(each.numpy()[goes_on, :, padding:]) for each in cache]
            ids = chosen[:, np.newaxis]
            mask = np.pad(mask, ((0, 0), (0, 1)), constant_values=1)
        texts = self._tokenizer.decode_batch(written)
        return [Answer(*each) for each in zip(texts, map(len, written), reasons, strict=True)]

    def stream(self, prompt: list[int], max_tokens: int) -> Iterator[Answer]:
        """The likeliest answer of one prompt, a part after the other, each as soon as its text is known.

        Args:
            prompt: as `prompt` gives it.
            max_tokens: the longest answer, at least 1.
        """
        # A token may end in the middle of a character, whose text is then not known yet. `decode` omits control tokens.
        decoder = DecodeStream(skip_special_tokens=True)
        written: list[int] = []
        sent = 0
        ids, mask = _padded([prompt])
        cache = self._empty_cache(1)
        while len(written) < max_tokens:
            logits, cache = self._step(ids, mask, cache)
            token = int(logits.argmax())
            if token in self._ends:
                yield Answer(self._tokenizer.decode(written)[sent:], len(written), "stop")
                return
            written.append(token)
            text = decoder.step(self._tokenizer, token) or ""
            if text and len(written) < max_tokens:
                yield Answer(text, len(written), "")
                sent += len(text)
            ids, mask = np.array([[token]], np.int32), np.pad(mask, ((0, 0), (0, 1)), constant_values=1)
        yield Answer(self._tokenizer.decode(written)[sent:], len(written), "length")

    def _step(
        self, ids: npt.NDArray[np.int32], mask: npt.NDArray[np.int32], cache: list[onnxruntime.OrtValue]
    ) -> tuple[npt.NDArray[np.float32], list[onnxruntime.OrtValue]]:
        """The logits of each row's next token; keys and values stay on the GPU."""
        binding = self._session.io_binding()
        binding.bind_cpu_input("token_ids", np.ascontiguousarray(ids))
        binding.bind_cpu_input("attn_mask", np.ascontiguousarray(mask))
        for name, value in zip(self._past, cache, strict=True):
            binding.bind_ortvalue_input(name, value)
        binding.bind_output("logits", "cpu")
        for name in self._present:
            binding.bind_output(name, *self._device)
        self._session.run_with_iobinding(binding)
        logits, *grown = binding.get_outputs()
        return logits.numpy(), grown

    def _empty_cache(self, rows: int) -> list[onnxruntime.OrtValue]:
        empty = np.zeros((rows, self._groups, 0, self._size), np.float32)
        return [self._on_device(empty) for _ in self._past]

    def _on_device(self, value: npt.NDArray[np.float32]) -> onnxruntime.OrtValue:
        return onnxruntime.OrtValue.ortvalue_from_numpy(value, *self._device)


def _session(path: Path, gpu: int | None) -> onnxruntime.InferenceSession:
    provider = "CPUExecutionProvider" if gpu is None else "CUDAExecutionProvider"
    options = {} if gpu is None else {"device_id": str(gpu)}
    settings = onnxruntime.SessionOptions()
    # Between two steps its threads would otherwise wait in a loop, on processors that others need.
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(str(path), settings, providers=[provider], provider_options=[options])
    # ONNX Runtime takes the CPU when it cannot use CUDA, and every answer would be slow and nobody would know why.
    if provider not in session.get_providers():
        raise RuntimeError(f"ONNX Runtime cannot use CUDA on GPU {gpu}; its own message is in the log above")
    return session


def _padded(prompts: Sequence[list[int]]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Token ids and mask of a batch. Padding goes to the left, so that each row's last token is in the last column."""
    width = max(map(len, prompts), default=0)
    ids = np.zeros((len(prompts), width), np.int32)
    mask = np.zeros((len(prompts), width), np.int32)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = prompt
        mask[row, width - len(prompt) :] = 1
    return ids, mask
