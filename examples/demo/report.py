"""The output of the demo: latency, embeddings, classes, and a list of the real parts."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.table import Table

from examples.demo.calls import Call, image_calls, text_calls
from examples.local_run import console, dali_line, runtime, step

SENTENCES = ("A man is eating food.", "A man is eating a piece of bread.")
PUBLISHED_COSINE = 0.7553  # the model card of all-MiniLM-L6-v2
ROOT = Path(__file__).resolve().parents[2]
LABELS = ROOT / "model_assets/image_classification/resnet50/labels.txt"
PHOTOGRAPH = ROOT / "examples/photographs/chelsea.jpg"
WARM_CALLS = 20


@dataclass(frozen=True)
class Report:
    """What the endpoint answered.

    Attributes:
        times: a row for each ensemble and form of a request.
        answers: ensemble and form → the answer.
    """

    times: Table
    answers: Mapping[tuple[str, str], npt.NDArray[Any]]

    def show(self) -> None:
        """Print it, with a list of what was real."""
        console.print(self.times)
        print_embeddings(self.answers["text", "binary"], self.answers["text", "JSON"])
        print_classes(self.answers["image", "binary"], self.answers["image", "JSON"])
        print_what_was_real()


def ask(environment: Mapping[str, str], outputs: Mapping[str, str]) -> Report:
    """Invoke both ensembles in both payload forms."""
    endpoint = outputs["EndpointName"]
    step(f"Invoking {endpoint} with boto3")
    client = runtime(environment)
    calls = {
        "text": text_calls(outputs["TextModel"], SENTENCES),
        "image": image_calls(outputs["ImageModel"], PHOTOGRAPH.read_bytes()),
    }
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading in ("ensemble", "target model", "request", "first call", f"median of {WARM_CALLS}"):
        table.add_column(heading, no_wrap=True)
    answers = {}
    for ensemble, forms in calls.items():
        for form, call in forms.items():
            console.print(f"  {ensemble}, {form} payload, {1 + WARM_CALLS} calls ...")
            first, answer = timed(call, client, endpoint)
            warm = [timed(call, client, endpoint)[0] for _ in range(WARM_CALLS)]
            milliseconds = f"{first:.0f} ms", f"{statistics.median(warm):.1f} ms"
            table.add_row(ensemble, call.target_model, f"{form}, {len(call.body) / 1000:.1f} kB", *milliseconds)
            answers[ensemble, form] = answer
    return Report(table, answers)


def ask_again(environment: Mapping[str, str], outputs: Mapping[str, str]) -> None:
    """Print that the text ensemble answers as before."""
    (call, _) = text_calls(outputs["TextModel"], SENTENCES).values()
    embeddings = call.send(runtime(environment), outputs["EndpointName"])
    console.print(f"  The endpoint goes on: {call.target_model} answers, cosine {embeddings[0] @ embeddings[1]:.4f}.")


def timed(call: Call, client: Any, endpoint: str) -> tuple[float, npt.NDArray[Any]]:
    """Milliseconds that the call took, and its answer."""
    start = time.perf_counter()
    answer = call.send(client, endpoint)
    return (time.perf_counter() - start) * 1000, answer


def print_embeddings(binary: npt.NDArray[Any], as_json: npt.NDArray[Any]) -> None:
    """The first values of each embedding, and the cosine of the two sentences."""
    console.print("\n[bold]text[/]  all-MiniLM-L6-v2, 384 values a sentence")
    for sentence, embedding in zip(SENTENCES, binary, strict=True):
        console.print(f"  {sentence:34} {'  '.join(f'{value:+.4f}' for value in embedding[:4])}  …")
    console.print(f"  cosine of the two: {binary[0] @ binary[1]:.4f} (published: {PUBLISHED_COSINE})")
    console.print(f"  binary and JSON answers differ by at most {np.abs(binary - as_json).max():.0e}")


def print_classes(binary: npt.NDArray[Any], as_json: npt.NDArray[Any]) -> None:
    """The five most likely classes."""
    labels = LABELS.read_text().splitlines()
    console.print("\n[bold]image[/]  ResNet-50, asked for a photograph of a cat")
    for index in np.argsort(binary[0])[:-6:-1]:
        console.print(f"  {binary[0][index]:.4f}  {labels[index]}")
    console.print(f"  binary and JSON answers differ by at most {np.abs(binary - as_json).max():.0e}")


def print_what_was_real() -> None:
    """A line for each part: whether it was real, or its stand-in."""
    console.print("\n[bold]Real[/]")
    console.print("  the cdk CLI, its cloud assembly, the handlers of the artifact store, the build program, boto3")
    console.print("  tritonserver 2.51 (release 24.10): SageMaker front end, ensembles, Python backend")
    console.print("  trained weights: all-MiniLM-L6-v2 with its tokenizer, ResNet-50")
    console.print("[bold]Stand-ins[/]")
    console.print("  AWS: a local CloudFormation, moto for the other services' state, a gateway for sagemaker-runtime")
    console.print("  trtexec: it checked its arguments and the network, and wrote a plan that only this machine serves")
    console.print(
        "  GPU: `tensorrt` and `onnxruntime` models ran in ONNX Runtime on the CPU: no latency here is that of a GPU"
    )
    console.print(f"  DALI: {dali_line()}")
