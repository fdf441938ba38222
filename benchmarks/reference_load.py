"""The five reference systems under load: 16 clients for 2 minutes, no wrong answer, and servers whose memory stays.

The `cdk` command deploys all of them onto a local AWS. Each client asks all systems, one question after the other, and
compares the answer with the one that the same question got alone. Every question has variants, so that an answer to
another request is another answer; the answer also names the target model that gave it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the examples are beside this directory

from _figures import progress, report
from _packed import WHEELS, prepare
from cdk_triton.client import TritonClient
from cdk_triton_local import LocalAws
from examples.local_run import CHECKOUT, Cdk, runtime
from examples.reference_systems.questions import Question, photographs, pixels, questions, tokens

CLIENTS = 16
WARM_UP = 60.0
"""Seconds until every process has the memory that it needs for its largest batch."""
EVERY = 15.0
GROWTH = 1.03

SENTENCES = (
    ("A man is eating food.", "A man is eating a piece of bread."),
    ("The girl is carrying a baby.", "A woman is playing violin."),
    ("Someone in a gorilla costume plays drums.", "A cheetah chases prey across a field."),
)
PROMPTS = (
    ("What is the capital of France?", 20),
    ("How many days has a week?", 5),
    ("Name three colours.", 40),
    ("Here is a list of words: " + "house river stone " * 100 + "What is the first one?", 10),
)
"""Prompts, a long one among them, and the longest answer of each in tokens: they share batches."""

TENANTS = 6


@dataclass(frozen=True)
class Asked:
    """A question in one form, and the answer that it got alone."""

    question: Question
    binary: bool
    right: str


def variants() -> list[Question]:
    """The questions of `make reference`, each with other inputs, too."""
    found: list[Question] = []
    asked = list(questions())
    (tenant,) = (each for each in asked if each.model == "Tenant1")
    others = [replace(tenant, model=f"Tenant{number}") for number in range(2, TENANTS + 1)]
    for each in [*(each for each in asked if each.model != f"Tenant{TENANTS}"), *others]:
        name = next(iter(each.inputs))
        choices: dict[str, list[dict[str, Any]]] = {
            "INPUT": [{"INPUT": photographs("chelsea")}, {"INPUT": photographs("coffee")}],
            "input": [{"input": pixels("chelsea")}, {"input": pixels("coffee")}],
            "INPUT0": [{"INPUT0": [[text] for text in pair]} for pair in SENTENCES],
            "token_ids": [tokens(*pair) for pair in SENTENCES],
            "prompt": [
                {"prompt": [[prompt]], "max_tokens": np.array([[limit]], np.int32)} for prompt, limit in PROMPTS
            ],
        }
        found += [each, *(replace(each, inputs=inputs) for inputs in choices.get(name, []))]
    return found


class Client(threading.Thread):
    """Asks until it is told to stop.

    Args:
        aws: the local AWS.
        outputs: the outputs of the stacks.
        asked: the questions with their answers.
        until: the time to stop at.
        seed: for the choice of questions.
    """

    def __init__(
        self, aws: LocalAws, outputs: Mapping[str, Mapping[str, str]], asked: Sequence[Asked], until: float, seed: int
    ) -> None:
        super().__init__(daemon=True)
        self._runtime = runtime(aws.environment())
        self._outputs, self._asked, self._until = outputs, asked, until
        self._random = random.Random(seed)
        self.answers = 0
        self.faults: Counter[str] = Counter()

    def run(self) -> None:
        """Ask."""
        while time.monotonic() < self._until:
            each = self._random.choice(self._asked)
            question, outputs = each.question, self._outputs[each.question.stack]
            target = None if question.model is None else outputs[question.model]
            try:
                answer = TritonClient(outputs["EndpointName"], runtime=self._runtime).infer(
                    question.inputs, outputs=question.outputs, target_model=target, binary=each.binary
                )
            except Exception as error:  # whatever it is, it is counted
                self.faults[f"{question.stack}: {type(error).__name__}: {error}"[:300]] += 1
                continue
            self.answers += 1
            if (told := question.told(answer)) != each.right:
                self.faults[f"{question.stack}: {told!r} in place of {each.right!r}"] += 1
            if target is not None and answer.infer_result.get_response()["model_name"] != target:
                self.faults[f"{question.stack}: the answer of another target model"] += 1


def memory() -> int:
    """Bytes that the servers and their models' processes have, with their share of what several of them map."""
    total = 0
    for process in psutil.Process().children(recursive=True):
        try:
            if "triton" in process.name():
                total += process.memory_full_info().pss
        except psutil.NoSuchProcess:
            continue
    return total


def measure(directory: Path, seconds: float) -> None:
    """Deploy, ask each question alone, then all at once, and report."""
    os.environ |= WHEELS
    os.chdir(CHECKOUT)
    with LocalAws(directory / "local") as aws:
        cdk = Cdk(aws, directory, output=sys.stderr)
        cdk("bootstrap")
        cdk("deploy", "--all", "--require-approval=never", f"--outputs-file={directory / 'outputs.json'}")
        outputs = json.loads((directory / "outputs.json").read_text())
        client = runtime(aws.environment())
        asked = [
            Asked(question, binary, question.ask(client, outputs[question.stack], binary=binary))
            for question in variants()
            for binary in (True, False)
        ]
        progress(f"reference_load: {CLIENTS} clients for {seconds:g} s, {len(asked)} different requests ...")
        until = time.monotonic() + seconds
        clients = [Client(aws, outputs, asked, until, seed) for seed in range(CLIENTS)]
        for each in clients:
            each.start()
        seen = []
        while time.monotonic() < until:
            time.sleep(min(EVERY, max(0.0, until - time.monotonic())))
            seen.append(memory())
        for each in clients:
            each.join()
    faults = sum((each.faults for each in clients), Counter[str]())
    for fault, count in faults.items():
        progress(f"reference_load: {count} x {fault}")
    answers = sum(each.answers for each in clients)
    progress(f"reference_load: {answers} answers; MB each {EVERY:g} s: {', '.join(f'{m / 1e6:.0f}' for m in seen)}")
    warm, full = seen[min(int(WARM_UP / EVERY), len(seen)) - 1], seen[-1]
    report("reference_load.faults", faults.total(), "errors and wrong answers", at_most=0)
    report("reference_load.memory", full / warm, f"times that after {WARM_UP:g} s", at_most=GROWTH)


def main(arguments: list[str]) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=120)
    options = parser.parse_args(arguments)
    prepare()
    with tempfile.TemporaryDirectory(prefix="cdk-triton-") as directory:
        measure(Path(directory), options.seconds)


if __name__ == "__main__":
    main(sys.argv[1:])
