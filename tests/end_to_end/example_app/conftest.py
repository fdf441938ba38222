"""A user's shell: the `cdk-triton` command, the pinned `cdk`, and a local AWS started as the README says."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import DEVNULL, PIPE
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import boto3
import numpy as np
import numpy.typing as npt
import pytest
from tests.docs.blocks import Block, of_kind
from tests.permissions.recorded_command import faults_in
from tokenizers import Tokenizer

from cdk_triton.client import TritonClient
from cdk_triton_local import process

CHECKOUT = Path(__file__).parents[3]
PATH = f"{CHECKOUT / 'node_modules/.bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"


@dataclass(frozen=True)
class Shell:
    """Runs commands in one directory, with the variables that `cdk-triton local up` printed."""

    directory: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    assembly: ClassVar = "synthesised"
    """The cloud assembly of the whole example app that the fixture `example_app` leaves: another takes ten seconds."""

    def run(self, *command: str, status: int = 0) -> str:
        """Standard output and error together of a command that must end with `status`."""
        # The CDK's validation of templates takes most of the time of a synthesis; tests/hosting has it.
        quiet = {"NODE_NO_WARNINGS": "1", "CDK_VALIDATION": "false", "CI": "true", "PATH": PATH}
        environment = {**os.environ, **self.variables, **quiet}
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == status, f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout}"
        return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)

    def cdk(self, *arguments: str, status: int = 0) -> str:
        return self.run("cdk", *arguments, "--no-notices", "--progress=events", status=status)

    def deploy(self, *stacks: str, status: int = 0) -> str:
        return self.cdk("deploy", *stacks, "--require-approval=never", status=status)

    def outputs(self, stack: str) -> dict[str, str]:
        (found,) = self.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in found["Outputs"]}

    def client(self, service: str) -> Any:
        return boto3.client(
            service,  # type: ignore[call-overload]  # the stubs know only names written out
            endpoint_url=self.variables["AWS_ENDPOINT_URL"],
            region_name=self.variables["AWS_REGION"],
            aws_access_key_id=self.variables["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.variables["AWS_SECRET_ACCESS_KEY"],
        )

    def ask(self, endpoint: str, output: str, inputs: dict[str, Any], **options: Any) -> npt.NDArray[Any]:
        answer = TritonClient(endpoint, runtime=self.client("sagemaker-runtime")).infer(inputs, **options)
        return np.asarray(answer[output])


@contextmanager
def local_aws(directory: Path, variables: Mapping[str, str] | None = None) -> Iterator[Shell]:
    """A shell in `directory` that is led to a bootstrapped local AWS there, which ends with this process.

    At its end, the calls of roles are judged by the policies of the deployed templates.

    Args:
        directory: where both work.
        variables: what the local AWS finds in its environment, besides what is in ours.
    """
    shell = Shell(directory)
    environment = {**os.environ, "PATH": PATH, **(variables or {})}
    calls = directory / "calls.json"
    command = [sys.executable, "-m", "tests.permissions.recorded_command", str(calls), "local", "up"]
    environment["PYTHONPATH"] = f"{CHECKOUT}:{environment.get('PYTHONPATH', '')}"
    running = process.start(command, environment=environment, directory=directory, output=PIPE, errors=DEVNULL)
    try:
        assert running.stdout is not None
        assert running.stdout.readline()  # the first of its variables: it answers
        lines = shell.run("cdk-triton", "local", "status").splitlines()
        exports = dict(shlex.split(line)[1].split("=", 1) for line in lines if line.startswith("export "))
        shell = Shell(directory, exports)
        with TemporaryDirectory() as empty:  # beside a cdk.json, the CLI would synthesise its app first
            replace(shell, directory=Path(empty)).cdk("bootstrap", "aws://123456789012/us-east-1")
        yield shell
    finally:
        running.stop()
        if running.stdout is not None:
            running.stdout.close()
    if faults := faults_in(calls):
        pytest.fail("\n".join(faults), pytrace=False)


def variables_of_the_page(checkout: Path) -> dict[str, str]:
    """The variables with which the page of TextGeneration starts the local AWS: its build asks no package index."""
    command, *_ = of_kind("end_to_end/example_app/test_text_generation.py")
    printed = Shell(checkout).run("bash", "-c", command.text.replace("cdk-triton local up --detach", "env"))
    return dict(line.split("=", 1) for line in printed.splitlines() if line.startswith(("PIP_NO_", "PIP_FIND_")))


@pytest.fixture(scope="session")
def example_app(model_assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """The example app's two ensembles, deployed."""
    directory = tmp_path_factory.mktemp("example_app")
    settings = json.loads((CHECKOUT / "cdk.json").read_text())
    settings["app"] = f"{sys.executable} {model_assets.parent / 'app.py'}"
    (directory / "cdk.json").write_text(json.dumps(settings))
    with local_aws(directory, variables_of_the_page(model_assets.parent)) as shell:
        shell.deploy("TritonArtifacts", "TwoEnsembles", f"--output={shell.assembly}")
        yield shell


@pytest.fixture(scope="module")
def deployed(example_app: Shell) -> Iterator[Callable[..., dict[str, str]]]:
    """Deploys a stack of the example app beside the two ensembles, and gives its outputs; it goes with the module."""
    stacks: set[str] = set()

    def deploy(stack: str, *options: str) -> dict[str, str]:
        stacks.add(stack)
        example_app.deploy(stack, "--exclusively", *(options or [f"--app={example_app.assembly}"]))
        return example_app.outputs(stack)

    yield deploy
    example_app.cdk("destroy", *stacks, "--exclusively", "--force", f"--app={example_app.assembly}")


@pytest.fixture
def run_call(example_app: Shell) -> Callable[[Block, Mapping[str, str]], list[str]]:
    """Runs the call that a system's page shows against its stack, and returns the lines that it prints."""

    def called(block: Block, outputs: Mapping[str, str]) -> list[str]:
        code = block.text
        for name, value in outputs.items():
            code = code.replace(f'"<{name}>"', f'"{value}"')
        return Shell(CHECKOUT, example_app.variables).run(sys.executable, "-c", code).splitlines()

    return called


@pytest.fixture
def run_commands(example_app: Shell) -> Callable[[Block], str]:
    """Runs the commands of a block against the local AWS that runs already, without their installation."""

    def run(block: Block) -> str:
        script = block.text.replace("local up --detach", "local status")
        lines = [line for line in script.splitlines() if not line.startswith(("cd ", "python model_assets/prepare.py"))]
        return example_app.run("bash", "-euc", "\n".join(lines))

    return run


@pytest.fixture(name="local_aws", scope="session")
def _local_aws() -> Callable[[Path], AbstractContextManager[Shell]]:
    return local_aws


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A shell in an empty directory, led nowhere."""
    return Shell(tmp_path)


@pytest.fixture
def tokens(model_assets: Path) -> dict[str, npt.NDArray[np.int32]]:
    """Two sentences as the networks take them whose cosine the model card of all-MiniLM-L6-v2 has: 0.7553."""
    tokenizer = Tokenizer.from_file(str(model_assets / "sentence_embedding/tokenizer/1/tokenizer.json"))
    tokenizer.enable_padding()
    encoded = tokenizer.encode_batch(["A man is eating food.", "A man is eating a piece of bread."])
    return {
        "token_ids": np.array([each.ids for each in encoded], dtype=np.int32),
        "attn_mask": np.array([each.attention_mask for each in encoded], dtype=np.int32),
    }
