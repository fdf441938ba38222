"""Triton's side of the generating model: requests become prompts, answers become tensors.

In a container whose inference type is `generate_stream`, the model is decoupled and sends its answers in parts.
Nothing is fetched: the weights, the tokenizer and the packages travel in the archive. Nothing is logged: a prompt is
its sender's, and the logs of an endpoint are read by others.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import triton_python_backend_utils as pb_utils
from generation import Answer, Generator

DEFAULT_MAX_TOKENS = 128
MOST_TOKENS = 512
MOST_STREAMS = 8
"""The answers that are streamed at the same time: each has a cache on the GPU of up to 100 MB. Others wait."""

STREAMS = os.environ.get("SAGEMAKER_TRITON_INFERENCE_TYPE") == "generate_stream"


class Task(NamedTuple):
    """One prompt, as token ids, and the longest answer in tokens."""

    prompt: list[int]
    max_tokens: int


class TritonPythonModel:
    """prompt, UTF-8 [1], and max_tokens [1] -> text, tokens and finish_reason, each [1]."""

    @staticmethod
    def auto_complete_config(config: pb_utils.ModelConfig) -> pb_utils.ModelConfig:
        """Completes config.pbtxt, which fits both kinds of containers, for one that streams."""
        if STREAMS:
            config.set_model_transaction_policy({"decoupled": True})
        return config

    def initialize(self, args: dict[str, str]) -> None:
        """Loads the network, onto the GPU of this instance if it has one."""
        gpu = int(args["model_instance_device_id"]) if args["model_instance_kind"] == "GPU" else None
        self._generator = Generator(Path(__file__).resolve().parent, gpu=gpu)
        self._streams = ThreadPoolExecutor(MOST_STREAMS)

    def execute(self, requests: list[pb_utils.InferenceRequest]) -> list[pb_utils.InferenceResponse] | None:
        """Answers the requests: all at once, or, if the model streams, each in parts from now on."""
        if not STREAMS:
            return self._answer(requests)
        for request in requests:
            self._streams.submit(self._stream, request.get_response_sender(), self._tasks(request))
        return None

    def finalize(self) -> None:
        """Ends the threads. The server calls this after the last answer of every stream."""
        self._streams.shutdown()

    def _answer(self, requests: list[pb_utils.InferenceRequest]) -> list[pb_utils.InferenceResponse]:
        """Generates for the prompts of all requests at once, and answers each request on its own."""
        batches = [self._tasks(request) for request in requests]
        tasks = [task for batch in batches if isinstance(batch, list) for task in batch]
        answers = iter(self._generator.generate([task.prompt for task in tasks], [task.max_tokens for task in tasks]))
        return [
            _tensors([next(answers) for _ in batch])
            if isinstance(batch, list)
            else pb_utils.InferenceResponse(error=batch)
            for batch in batches
        ]

    def _stream(self, sender: pb_utils.InferenceResponseSender, tasks: list[Task] | pb_utils.TritonError) -> None:
        """Sends the answer of a request in parts, until its caller leaves."""
        try:
            if isinstance(tasks, list) and len(tasks) != 1:
                tasks = _invalid(f"the request has {len(tasks)} prompts; send one prompt, whose answer is streamed")
            if not isinstance(tasks, list):
                sender.send(pb_utils.InferenceResponse(error=tasks))
                return
            if sender.is_cancelled():  # while the request waited for its turn
                return
            for part in self._generator.stream(*tasks[0]):
                if sender.is_cancelled():
                    return
                sender.send(_tensors([part]))
        except Exception as error:
            sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error))))
        finally:
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def _tasks(self, request: pb_utils.InferenceRequest) -> list[Task] | pb_utils.TritonError:
        """The tasks of a request, or an error for this request alone, which quotes no prompt: errors are logged."""
        encoded = pb_utils.get_input_tensor_by_name(request, "prompt").as_numpy().ravel()
        sent = pb_utils.get_input_tensor_by_name(request, "max_tokens")
        limits = [DEFAULT_MAX_TOKENS] * len(encoded) if sent is None else sent.as_numpy().ravel().tolist()
        tasks = []
        for number, (data, limit) in enumerate(zip(encoded, limits, strict=True), start=1):
            if not 1 <= limit <= MOST_TOKENS:
                return _invalid(f"max_tokens is {limit}; send a number from 1 to {MOST_TOKENS}")
            try:
                prompt = self._generator.prompt(data.decode("utf-8"))
            except UnicodeDecodeError as error:
                return _invalid(f"prompt {number} of {len(encoded)} is not UTF-8 (at byte {error.start}); send UTF-8")
            room = self._generator.positions - limit
            if len(prompt) > room:
                return _invalid(
                    f"prompt {number} of {len(encoded)} has {len(prompt)} tokens, but an answer of {limit} tokens "
                    f"leaves only {room}; shorten the prompt, or send a smaller max_tokens"
                )
            tasks.append(Task(prompt, limit))
        return tasks


def _invalid(message: str) -> pb_utils.TritonError:
    return pb_utils.TritonError(message, pb_utils.TritonError.INVALID_ARG)


def _tensors(answers: list[Answer]) -> pb_utils.InferenceResponse:
    texts = np.array([[answer.text.encode()] for answer in answers], dtype=np.object_)
    tokens = np.array([[answer.tokens] for answer in answers], dtype=np.int32)
    reasons = np.array([[answer.finish_reason.encode()] for answer in answers], dtype=np.object_)
    named = {"text": texts, "tokens": tokens, "finish_reason": reasons}
    return pb_utils.InferenceResponse([pb_utils.Tensor(name, value) for name, value in named.items()])
