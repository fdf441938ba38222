"""The commands of the pages run, against one local AWS: first the tutorial from its first file on, then the others.

A block of another page runs in the directory of the tutorial, whose stack is deployed, or in a directory of its own
with the files that its page mentions.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx.parser
import pytest
from tests.docs.blocks import CONSOLE, ROOT, SHELL, Block, blocks_of, kind, of_kind

TUTORIAL = ROOT / "docs" / "getting_started.md"
PATH = os.pathsep.join((str(Path(sys.executable).parent), str(ROOT / "node_modules" / ".bin"), os.environ["PATH"]))
# Nobody is there to confirm. The CDK's validation of templates takes most of the time of a synthesis.
QUIET = {
    "CDK_FORCE": "true",
    "CDK_REQUIRE_APPROVAL": "never",
    "CDK_VALIDATION": "false",
    "CI": "true",
    "MAKEFLAGS": "--dry-run",
    "NODE_NO_WARNINGS": "1",
    "PATH": PATH,
}
SYNTHESISED = {"CDK_APP": "cdk.out"}
"""The app has not changed since `cdk deploy` has run it, which takes most of the time of each command."""

START = 'variables="$(cdk-triton local up --detach)" && eval "$variables" && cdk bootstrap && '
"""The tutorial has started the local AWS already."""


@dataclass
class Shell:
    """A shell in a directory, which keeps the variables that its commands set."""

    directory: Path
    variables: dict[str, str] = field(default_factory=dict)

    def run(self, script: str, more: Mapping[str, str] | None = None, *, status: int = 0) -> str:
        """Run commands, and return what they print; the last of them ends with `status`; `more` are variables."""
        with TemporaryDirectory() as scratch:
            kept = Path(scratch, "variables")
            printed = self._run(f"{script}\nenv -0 > '{kept}'", status, more or {})
            if kept.exists():
                pairs = (pair.partition("=")[::2] for pair in kept.read_text().split("\0"))
                self.variables = {name: value for name, value in pairs if name.startswith("AWS_")}
        return printed

    def _run(self, script: str, status: int, more: Mapping[str, str]) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.directory,
            env={**os.environ, **QUIET, **self.variables, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == status, f"{script} ended with {done.returncode}:\n{done.stdout}"
        return done.stdout


class Tutorial:
    """The blocks of the tutorial, and the shell that has run them."""

    def __init__(self, directory: Path) -> None:
        self.shell = Shell(directory)
        self.printed: list[str] = []
        blocks = [block for block in blocks_of(TUTORIAL) if kind(block) not in ("text", "not run")]
        changed = next(number for number, block in enumerate(blocks) if block.text.startswith("sed "))
        self.before, (self.change, self.destroy, *_) = blocks[:changed], blocks[changed:]

    def run(self, block: Block) -> str:
        """Run a block: commands, a file to save, or a program."""
        if block.language != "python":
            return self.shell.run(block.text)
        for words, name in {"onnx.save": "network.py", "App()": "app.py", "TritonClient": "ask.py"}.items():
            if words in block.text:
                (self.shell.directory / name).write_text(block.text, encoding="utf-8")
                return "" if name == "app.py" else self.shell.run(f"python {name}")
        raise AssertionError(block)


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tutorial]:
    running = Tutorial(tmp_path_factory.mktemp("payments"))
    try:
        for block in running.before:
            running.printed.append(running.run(block))
        yield running
    finally:
        running.shell.run("cdk-triton local down || true")


def test_the_tutorial_prints_what_it_shows(tutorial: Tutorial) -> None:
    printed = "".join(tutorial.printed)
    assert "no findings" in printed
    assert "[[b'fine']\n [b'fraud']]" in printed


def test_the_tree_of_the_tutorial_is_what_its_commands_make(tutorial: Tutorial) -> None:
    (tree,) = (block.text for block in blocks_of(TUTORIAL) if block.language == "text")
    drawn = [re.sub(r"#.*", "", line).strip("│├└─ ") for line in tree.splitlines()]
    found = sorted(path.name for path in (tutorial.shell.directory / "models").rglob("*") if path.is_file())
    assert sorted(name.rpartition("/")[2] for name in drawn if not name.endswith("/")) == found


def tolerant(script: str) -> str:
    """Return the commands with a doctor that may find faults of this machine, and then ends with 1."""
    return re.sub(r"^(cdk-triton doctor .*)$", r"\1 || test $? = 1", script, flags=re.MULTILINE)


def of_page(page: str) -> list[Block]:
    return [
        block
        for block in of_kind(SHELL)
        if block.page == page and block.language != "console" and block.text != "cdk destroy\n"
    ]


def test_the_commands_for_aws_run_here(tutorial: Tutorial) -> None:
    printed = [tutorial.shell.run(tolerant(block.text), SYNTHESISED) for block in of_page("docs/on_aws.md")]
    assert "ml.g5.xlarge" in printed[0]  # of the doctor, which may find a fault of this machine
    assert re.search(r"1\.0 +1\.0 +1\.50", printed[1])  # an hour of one instance


DEPLOYED = [
    ("docs/cli/artifacts.md", "cdk deploy TritonArtifacts"),
    ("docs/cli.md", "CDK_TRITON_NO_CACHE"),
    ("docs/instance_pools.md", "cdk-triton"),
    ("docs/getting_started.md", "python -c"),
    ("docs/local_aws.md", "variables"),
    ("docs/troubleshooting.md", "cdk-triton"),
    ("docs/upgrading.md", "cdk diff"),
]
"""Page and beginning of the blocks that need a deployed stack."""

NAMES = {"TritonArtifacts": "Payments", "MyStack": "Payments", "cdk-triton local down": ""}


def begins(block: Block, places: list[tuple[str, str]]) -> bool:
    return any(block.page == page and block.text.startswith(beginning) for page, beginning in places)


@pytest.mark.parametrize("block", [block for block in of_kind(SHELL) if begins(block, DEPLOYED)], ids=str)
def test_the_commands_run_on_the_deployed_stack(tutorial: Tutorial, block: Block) -> None:
    script = block.text.removeprefix(START)
    for name, here in NAMES.items():
        script = script.replace(name, here)
    tutorial.shell.run(tolerant(script), SYNTHESISED)


GRAPH = """
<ir_version: 8, opset_import: ["" : 17]>
graph (int64[batch, tokens] input_ids, int64[batch, tokens] attention_mask) => (float[batch, tokens] logits)
{ logits = Cast<to = 1>(input_ids) }
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with the files that the blocks read."""
    network = onnx.parser.parse_model(GRAPH).SerializeToString()
    (tokens,) = (b.text for b in blocks_of(ROOT / "docs" / "notebook_model.md") if "TritonPythonModel" in b.text)
    for name in ("bert.onnx", "sentiment.onnx"):
        (tmp_path / name).write_bytes(network)
    for name in ("tokens.py", "tokenizer.py"):
        (tmp_path / name).write_text(tokens)
    (tmp_path / "models" / "bert").mkdir(parents=True)
    return tmp_path


ALONE = ["README.md", "docs/cli/config.md", "docs/cli/init.md", "docs/notebook_model.md"]


@pytest.mark.parametrize("page", ALONE)
def test_the_commands_of_a_page_run_in_a_directory(page: str, directory: Path, tutorial: Tutorial) -> None:
    shell = Shell(ROOT if page == "README.md" else directory)  # which only calls `make`, and `make` only prints
    for block in of_page(page):
        if not begins(block, DEPLOYED) and not block.text.startswith((START, "eval")):
            shell.run(block.text)


@pytest.mark.parametrize("block", [block for block in of_kind(CONSOLE) if block.language == "console"], ids=str)
def test_a_command_prints_what_the_page_shows(tutorial: Tutorial, block: Block) -> None:
    parts = re.fullmatch(r"\$ ((?:[^\n]*\\\n)*[^\n]*\n)(.*)", block.text, re.DOTALL)
    assert parts is not None, "a console block begins with the command"
    command, shown = parts.groups()
    outputs = tutorial.shell.run("cat outputs.json")
    (endpoint,) = re.findall(r'"EndpointName": "(.*?)"', outputs)
    printed = tutorial.shell.run(command.replace("my-endpoint", endpoint))
    pattern = ".*".join(map(re.escape, shown.rstrip().split("…")))
    assert re.fullmatch(pattern, printed.rstrip(), re.DOTALL), printed


def test_a_change_of_the_tutorial_shows_in_the_answer(tutorial: Tutorial) -> None:
    tutorial.run(tutorial.change)
    assert "[[b'fine']\n [b'suspect']]" in tutorial.shell.run("python ask.py")


def test_the_tutorial_takes_everything_down(tutorial: Tutorial) -> None:
    tutorial.shell.run(tutorial.destroy.text, SYNTHESISED)
    assert "no local AWS runs" in tutorial.shell.run("cdk-triton local status", status=1)
