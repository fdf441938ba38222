"""The reference systems, deployed onto this machine by the unmodified `cdk` CLI, asked, and taken down again.

`make reference` runs this module. It ends with status 1 if an answer is wrong.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from cdk_triton.errors import LocalError
from cdk_triton_local import LocalAws
from examples.local_run import Cdk, console, dali_line, on_local_aws, runtime, step
from examples.reference_systems.assets import WHEELS
from examples.reference_systems.questions import STREAMED, questions

Outputs = Mapping[str, Mapping[str, str]]


def reference(aws: LocalAws, work: Path) -> None:
    """Deploy, ask, and destroy.

    Raises:
        LocalError: a command failed, or an answer is wrong.
    """
    os.environ |= WHEELS
    cdk = Cdk(aws, work)
    step("cdk bootstrap: the bucket and the roles with which cdk deploys")
    cdk("bootstrap")
    step("cdk deploy --all: the store, and the systems")
    cdk("deploy", "--all", "--require-approval=never", f"--outputs-file={work / 'outputs.json'}")
    outputs: Outputs = json.loads((work / "outputs.json").read_text(encoding="utf-8"))
    step("Asking every system, in both forms")
    client = runtime(aws.environment())
    wrong = ask(client, outputs)
    step("Streaming an answer, token by token")
    wrong += ask_for_stream(client, outputs)
    tell_what_was_real(aws)
    step("cdk destroy --all")
    cdk("destroy", "--all", "--force")
    if wrong:
        raise LocalError(f"{wrong} answers are wrong; the table above has what was expected")


def ask(client: Any, outputs: Outputs) -> int:
    """Print a table of the answers; return how many of them are wrong.

    Each question is asked twice in each form. The first call of all loads the model, and its time is not shown.
    """
    table = table_of("stack", "asked", "answer", "binary", "JSON")
    wrong = 0
    for question in questions():
        answers, times = [], []
        for binary in (True, False):
            question.ask(client, outputs[question.stack], binary=binary)
            start = time.perf_counter()
            answers.append(question.ask(client, outputs[question.stack], binary=binary))
            times.append(milliseconds(time.perf_counter() - start))
        wrong += sum(answer != question.right for answer in answers)
        table.add_row(question.stack, question.asked, judged(question.right, *answers), *times)
    console.print(table)
    return wrong


def ask_for_stream(client: Any, outputs: Outputs) -> int:
    """Print how long the first and the last token of an answer took; return 1 if the answer is wrong, 0 if not.

    As in `ask`, the times are those of a second call.
    """
    for _ in range(2):
        text, first, last = STREAMED.ask(client, outputs[STREAMED.stack])
    table = table_of("stack", "asked", "answer", "first token", "last token")
    times = milliseconds(first), milliseconds(last)
    table.add_row(STREAMED.stack, STREAMED.asked, judged(STREAMED.right, text), *times)
    console.print(table)
    return int(text != STREAMED.right)


def table_of(*headings: str) -> Table:
    """An empty table."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def judged(right: str, *answers: str) -> str:
    """Answers as the tables show them: a wrong one is red, and the right one follows."""
    shown = escape(" and ".join(dict.fromkeys(answers)))
    return shown if set(answers) == {right} else f"[red]{shown}[/], and not {escape(right)}"


def milliseconds(seconds: float) -> str:
    """A time as the tables show it."""
    return f"{seconds * 1000:.0f} ms"


def tell_what_was_real(aws: LocalAws) -> None:
    """Print what was real, and what stood in for AWS, its GPU and the tools of the image."""
    console.print("\n[bold]Real[/]")
    console.print("  the cdk CLI, its cloud assembly, the handlers of the artifact store, the build program, boto3")
    console.print("  tritonserver 2.51 (release 24.10): SageMaker front end, ensembles, Python backend")
    console.print("  trained weights: ResNet-50, all-MiniLM-L6-v2, SmolLM2-135M-Instruct; their tokenizers")
    console.print("[bold]Stand-ins[/]")
    console.print("  AWS: a local CloudFormation, moto for the other services' state, a gateway for sagemaker-runtime")
    console.print("  GPU: `tensorrt`, `onnxruntime` and the generating model ran in ONNX Runtime on the CPU: no time "
                  "above is that of a GPU")  # fmt: skip
    console.print(f"  DALI: {dali_line()}")
    for repository, names in sorted(build_stand_ins(aws)):
        console.print(f"  in the build of {repository}, by its manifest: {', '.join(names)}")


def build_stand_ins(aws: LocalAws) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The repositories that were built, each with the stand-ins that its manifest names."""
    s3 = aws.client("s3")
    for bucket in s3.list_buckets()["Buckets"]:
        listed = s3.list_objects_v2(Bucket=bucket["Name"], Prefix="artifacts/").get("Contents", [])
        for key in (each["Key"] for each in listed if each["Key"].endswith("/manifest.json")):
            manifest = json.loads(s3.get_object(Bucket=bucket["Name"], Key=key)["Body"].read())
            if names := manifest.get("build", {}).get("stand_ins"):
                yield key.split("/")[1], tuple(names)


if __name__ == "__main__":
    sys.exit(on_local_aws("run", reference))
