"""System 4: a generating model whose packages the deployment packs, deployed by the unmodified CLI and asked.

Two stacks serve it: one answers at once, the other streams.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.docs.blocks import of_kind

from cdk_triton.client import InferenceResult, ResultStream, TritonClient
from cdk_triton.errors import ModelError

# `example_app` starts as the first block does.
_, CALL, STREAM = of_kind("end_to_end/example_app/test_text_generation.py")
CAPITAL = "What is the capital of France?"
PARIS = "The capital of France is Paris."


@pytest.fixture(scope="module")
def outputs(deployed: Any) -> dict[str, str]:
    found: dict[str, str] = deployed("TextGeneration")
    return found


@pytest.fixture(scope="module")
def streaming(deployed: Any, outputs: dict[str, str]) -> dict[str, str]:
    """The outputs of the stack that streams, which is deployed after the other one."""
    found: dict[str, str] = deployed("TextStreaming")
    return found


def stream(example_app: Any, streaming: dict[str, str], prompt: Any, **inputs: Any) -> ResultStream:
    client = TritonClient(streaming["EndpointName"], runtime=example_app.client("sagemaker-runtime"))
    return client.stream({"prompt": prompt, **inputs})


def text_of(parts: Iterable[InferenceResult]) -> str:
    return b"".join(part["text"][0] for part in parts).decode()


def ask(
    example_app: Any, outputs: dict[str, str], *prompts: str, binary: bool = True, max_tokens: list[int] | None = None
) -> list[Any]:
    """The answers of one request, each with its number of tokens and why it ended."""
    inputs: dict[str, Any] = {"prompt": [[prompt] for prompt in prompts]}
    if max_tokens is not None:
        inputs["max_tokens"] = np.array(max_tokens, dtype=np.int32)[:, np.newaxis]
    client = TritonClient(outputs["EndpointName"], runtime=example_app.client("sagemaker-runtime"))
    answer = client.infer(inputs, target_model=outputs["TextModel"], binary=binary)
    columns = (answer["text"].ravel(), answer["tokens"].ravel(), answer["finish_reason"].ravel())
    return [(_text(text), int(tokens), _text(reason)) for text, tokens, reason in zip(*columns, strict=True)]


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
def test_it_answers_a_question(example_app: Any, outputs: dict[str, str], binary: bool) -> None:
    assert ask(example_app, outputs, CAPITAL, binary=binary) == [(PARIS, 7, "stop")]


def test_each_prompt_has_its_own_limit(example_app: Any, outputs: dict[str, str]) -> None:
    short, whole = ask(example_app, outputs, CAPITAL, CAPITAL, max_tokens=[3, 30])
    assert short == ("The capital of", 3, "length")
    assert whole == (PARIS, 7, "stop")


def test_requests_of_several_callers_get_their_own_answers(example_app: Any, outputs: dict[str, str]) -> None:
    questions = {CAPITAL: PARIS, "How many days has a week?": "The answer is 7. A week is 7 days."}
    with ThreadPoolExecutor(8) as callers:
        asked = [question for question in questions for _ in range(8)]
        answers = callers.map(lambda question: ask(example_app, outputs, question), asked)
        assert [answer[0][0] for answer in answers] == [questions[question] for question in asked]


@pytest.mark.parametrize(
    ("prompt", "max_tokens"),
    [
        pytest.param("x", [0], id="no tokens"),
        pytest.param("x", [513], id="too many tokens"),
        pytest.param("word " * 2000, None, id="a prompt that is too long"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(
    example_app: Any, outputs: dict[str, str], messages: Any, prompt: str, max_tokens: list[int] | None
) -> None:
    with pytest.raises(ModelError) as raised:
        ask(example_app, outputs, prompt, max_tokens=max_tokens)
    messages.record("model.py", raised.value.original_message)
    assert ask(example_app, outputs, CAPITAL)[0][0] == PARIS


@pytest.mark.usefixtures("streaming")
def test_the_manifest_says_for_which_python_it_was_packed(example_app: Any, outputs: dict[str, str]) -> None:
    s3 = example_app.client("s3")
    (bucket,) = (b["Name"] for b in s3.list_buckets()["Buckets"] if b["Name"].startswith("tritonartifacts-storebucket"))
    listed = s3.list_objects_v2(Bucket=bucket, Prefix="artifacts/text_generation/")["Contents"]
    # Both stacks serve the archive that the first of them has built.
    (key,) = (each["Key"] for each in listed if each["Key"].endswith("manifest.json"))
    manifest = json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
    assert "Python 3.12" in json.dumps(manifest)
    assert outputs["TextModel"].startswith("smollm2-")


def test_the_call_of_the_page_prints_its_own_answers(run_call: Any, outputs: dict[str, str]) -> None:
    assert run_call(CALL, outputs) == [PARIS, "length"]


def test_an_answer_is_streamed_token_by_token(example_app: Any, streaming: dict[str, str]) -> None:
    parts = list(stream(example_app, streaming, CAPITAL))
    assert b"|".join(part["text"][0] for part in parts) == b"The| capital| of| France| is| Paris|.|"
    assert [part["tokens"].item() for part in parts] == [1, 2, 3, 4, 5, 6, 7, 7]
    assert [part["finish_reason"][0] for part in parts] == [b""] * 7 + [b"stop"]


def test_a_streamed_answer_ends_at_its_limit(example_app: Any, streaming: dict[str, str]) -> None:
    *_, last = stream(example_app, streaming, CAPITAL, max_tokens=3)
    assert (last["text"][0], last["tokens"].item(), last["finish_reason"][0]) == (b" of", 3, b"length")


def test_more_callers_than_streams_all_get_their_answers(example_app: Any, streaming: dict[str, str]) -> None:
    with ThreadPoolExecutor(12) as callers:
        answers = callers.map(lambda _: text_of(stream(example_app, streaming, CAPITAL)), range(12))
        assert list(answers) == [PARIS] * 12


def test_a_caller_that_leaves_takes_no_place(example_app: Any, streaming: dict[str, str]) -> None:
    for _ in range(9):  # more than the model streams at the same time
        with stream(example_app, streaming, "Write a long story.", max_tokens=512) as story:
            assert next(story)["text"][0]
    assert text_of(stream(example_app, streaming, CAPITAL)) == PARIS


@pytest.mark.parametrize(
    ("prompt", "max_tokens"),
    [
        pytest.param("x", 0, id="no tokens"),
        pytest.param(["x", "y"], [1, 1], id="two prompts"),
    ],
)
def test_what_cannot_be_streamed_is_one_sentence(
    example_app: Any, streaming: dict[str, str], messages: Any, prompt: Any, max_tokens: Any
) -> None:
    with pytest.raises(ModelError) as raised:
        text_of(stream(example_app, streaming, prompt, max_tokens=max_tokens))
    messages.record("model.py", raised.value.original_message)
    assert text_of(stream(example_app, streaming, CAPITAL)) == PARIS


def test_the_stream_of_the_page_prints_its_own_answer(run_call: Any, streaming: dict[str, str]) -> None:
    assert run_call(STREAM, streaming) == [PARIS]
