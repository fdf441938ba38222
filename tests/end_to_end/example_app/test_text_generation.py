"""System 4: a generating model whose packages the deployment packs, deployed by the unmodified CLI and asked."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.docs.blocks import of_kind

from cdk_triton.client import TritonClient
from cdk_triton.errors import ModelError

_, CALL = of_kind("end_to_end/example_app/test_text_generation.py")  # `example_app` starts as the first one does
STACK = "TextGeneration"
CAPITAL = "What is the capital of France?"
PARIS = "The capital of France is Paris."


@pytest.fixture(scope="module")
def outputs(deployed: Any) -> dict[str, str]:
    found: dict[str, str] = deployed(STACK)
    return found


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
    said = str(raised.value).partition("answered 400: ")[2].partition("; read more in the log of the endpoint")[0]
    messages.record("model.py", said)
    assert ask(example_app, outputs, CAPITAL)[0][0] == PARIS


def test_the_manifest_says_for_which_python_it_was_packed(example_app: Any, outputs: dict[str, str]) -> None:
    s3 = example_app.client("s3")
    (bucket,) = (b["Name"] for b in s3.list_buckets()["Buckets"] if b["Name"].startswith("tritonartifacts-storebucket"))
    listed = s3.list_objects_v2(Bucket=bucket, Prefix="artifacts/text_generation/")["Contents"]
    (key,) = (each["Key"] for each in listed if each["Key"].endswith("manifest.json"))
    manifest = json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
    assert "Python 3.12" in json.dumps(manifest)
    assert outputs["TextModel"].startswith("smollm2-")


def test_the_call_of_the_page_prints_its_own_answers(run_call: Any, outputs: dict[str, str]) -> None:
    assert run_call(CALL, outputs) == [PARIS, "length"]
