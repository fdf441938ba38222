"""The commands of the pages run, against one local AWS: first the tutorial from its first file on, then the others.

A block of another page runs in the directory of the tutorial, whose stack is deployed, or in a directory of its own
with the files that its page mentions.
"""

from __future__ import annotations

import json
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
from tests.docs.blocks import CONSOLE, ROOT, SHELL, Block, blocks_of, is_shown, of_kind
from tokenizers import Tokenizer

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


DEPLOYED = (
    ("docs/builds.md", "cdk deploy TritonArtifacts"),
    ("docs/cli.md", "CDK_TRITON_NO_CACHE"),
    ("docs/client.md", "cat > request.json"),
    ("docs/getting_started.md", "python -c"),
    ("docs/install.md", "cdk diff --method=template"),
    ("docs/instance_pools.md", "cdk-triton"),
    ("docs/local_aws.md", "variables"),
    ("docs/own_image.md", "cdk-triton validate"),
    ("docs/troubleshooting.md", "cdk-triton"),
)
"""Page and beginning of the blocks that need a deployed stack."""


NOTEBOOK = ROOT / "docs" / "notebook_model.md"
ALONE = ("README.md", "docs/ensembles.md", "docs/install.md", "docs/recipes.md")
"""Pages whose commands run in a directory without a stack."""

CONSOLES = [block for block in of_kind(CONSOLE) if block.language == "console"]
ON_THE_STACK = [
    block
    for block in of_kind(SHELL)
    if any(block.page == page and block.text.startswith(word) for page, word in DEPLOYED)
]


def of_page(page: str) -> list[Block]:
    """Return the blocks of a page that this file runs and that the lists above do not have."""
    return [block for block in of_kind(SHELL) if block.page == page and block not in CONSOLES + ON_THE_STACK]


TUTORIAL_BLOCKS = of_page("docs/getting_started.md")
*FOR_AWS, AWS_DESTROY = of_page("docs/on_aws.md")
(EVAL,) = of_page("docs/local_aws.md")


def test_no_block_is_skipped() -> None:
    alone = [block for page in (*ALONE, "docs/notebook_model.md") for block in of_page(page)]
    run = [*TUTORIAL_BLOCKS, *FOR_AWS, AWS_DESTROY, *ON_THE_STACK, EVAL, *alone, *CONSOLES]
    assert sorted(map(str, run)) == sorted(map(str, of_kind(SHELL)))


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
        *self.before, self.change, self.destroy = TUTORIAL_BLOCKS

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


def drawn_files(page: Path) -> list[str]:
    """Return the names of the files in the tree of a page."""
    (tree,) = (block.text for block in blocks_of(page) if block.text.startswith("models/\n"))
    drawn = [re.sub(r"#.*", "", line).strip("│├└─ ") for line in tree.splitlines()]
    return sorted(name.rpartition("/")[2] for name in drawn if not name.endswith("/"))


def files_below(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.rglob("*") if path.is_file())


def test_the_tree_of_the_tutorial_is_what_its_commands_make(tutorial: Tutorial) -> None:
    assert drawn_files(TUTORIAL) == files_below(tutorial.shell.directory / "models")


def tolerant(script: str) -> str:
    """Return the commands with a doctor that may find faults of this machine, and then ends with 1."""
    return re.sub(r"^(cdk-triton doctor .*)$", r"\1 || test $? = 1", script, flags=re.MULTILINE)


def test_the_commands_for_aws_run_here(tutorial: Tutorial) -> None:
    printed = [tutorial.shell.run(tolerant(block.text), SYNTHESISED) for block in FOR_AWS]
    assert "ml.g5.xlarge" in printed[0]  # of the doctor, which may find a fault of this machine
    assert re.search(r"1\.0 +1\.0 +1\.50", printed[1])  # an hour of one instance


NAMES = {"TritonArtifacts": "Payments", "MyStack": "Payments", "cdk-triton local down": ""}


def with_outputs(tutorial: Tutorial, script: str) -> str:
    """The commands with the outputs of the stack instead of the names in the pages."""
    outputs = json.loads(tutorial.shell.run("cat outputs.json"))["Payments"]
    return script.replace("my-endpoint", outputs["EndpointName"]).replace("<FraudModel>", outputs["FraudModel"])


@pytest.mark.parametrize("block", ON_THE_STACK, ids=str)
def test_the_commands_run_on_the_deployed_stack(tutorial: Tutorial, block: Block) -> None:
    script = block.text.removeprefix(START)
    for name, here in NAMES.items():
        script = script.replace(name, here)
    tutorial.shell.run(tolerant(with_outputs(tutorial, script)), SYNTHESISED)


def test_the_variables_of_a_local_aws_are_set(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    try:
        shell.run(EVAL.text)
        assert shell.variables["AWS_ENDPOINT_URL"].startswith("http://127.0.0.1:")
    finally:
        shell.run("cdk-triton local down")


GRAPH = """
<ir_version: 8, opset_import: ["" : 17]>
graph (int64[batch, tokens] input_ids, int64[batch, tokens] attention_mask) => (float[batch, tokens] logits)
{ logits = Cast<to = 1>(input_ids) }
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with the files that the blocks read."""
    network = onnx.parser.parse_model(GRAPH).SerializeToString()
    (tokens,) = (block.text for block in blocks_of(NOTEBOOK) if "TritonPythonModel" in block.text)
    for name in ("bert.onnx", "sentiment.onnx"):
        (tmp_path / name).write_bytes(network)
    for name in ("tokens.py", "tokenizer.py"):
        (tmp_path / name).write_text(tokens)
    (tmp_path / "models" / "bert").mkdir(parents=True)
    (tmp_path / "requirements.in").write_text("tqdm")
    return tmp_path


@pytest.fixture(scope="module")
def packages(model_assets: Path) -> dict[str, str]:
    """What leads pip and uv to the wheels of the reference systems instead of a package index."""
    wheels = str(model_assets / "wheels")
    return {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": wheels,
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": wheels,
        "UV_PYTHON_DOWNLOADS": "never",
    }


@pytest.mark.parametrize("page", ALONE)
def test_the_commands_of_a_page_run_in_a_directory(page: str, directory: Path, packages: dict[str, str]) -> None:
    shell = Shell(ROOT if page == "README.md" else directory)  # which only calls `make`, and `make` only prints
    for block in of_page(page):
        shell.run(block.text, packages)


def test_the_model_of_a_notebook_answers_as_in_the_notebook(
    tutorial: Tutorial, directory: Path, model_assets: Path, packages: dict[str, str]
) -> None:
    configure, again, install, validate, deploy = of_page("docs/notebook_model.md")
    (typed,) = (block.text for block in blocks_of(NOTEBOOK) if block.text.startswith("data_type"))
    app, compare = (block.text for block in blocks_of(NOTEBOOK) if "from cdk_triton" in block.text)
    shell = Shell(directory, tutorial.shell.variables)
    shell.run(configure.text)
    assert drawn_files(NOTEBOOK) == files_below(directory / "models")
    config = directory / "models" / "tokens" / "config.pbtxt"
    config.write_text(re.sub(r'(name: "TEXT"\n)[^}]*', rf"\g<1>{typed}", config.read_text(), count=1))
    shell.run(again.text)
    tokenizer = model_assets / "sentence_embedding" / "tokenizer" / "1" / "tokenizer.json"
    (directory / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    shell.run(install.text, packages)
    assert "no findings" in shell.run(validate.text)

    (directory / "app.py").write_text(app)
    (directory / "cdk.json").write_text((tutorial.shell.directory / "cdk.json").read_text())
    printed = shell.run(deploy.text.removeprefix(START))
    (endpoint,) = re.findall(r"Texts\.EndpointName = (\S+)", printed)
    encoding = Tokenizer.from_file(str(tokenizer))
    encoding.enable_padding()
    expected = [each.ids for each in encoding.encode_batch(["A man is eating food.", "This is awful."])]
    asked = compare.replace("<EndpointName>", endpoint).replace("expected", str(expected))
    (directory / "ask.py").write_text(asked)
    shell.run("python ask.py")


@pytest.mark.parametrize("block", CONSOLES, ids=str)
def test_a_command_prints_what_the_page_shows(tutorial: Tutorial, block: Block) -> None:
    parts = re.fullmatch(r"\$ ((?:[^\n]*\\\n)*[^\n]*\n)(.*)", block.text, re.DOTALL)
    assert parts is not None, "a console block begins with the command"
    command, shown = parts.groups()
    printed = tutorial.shell.run(with_outputs(tutorial, command))
    assert is_shown(printed.rstrip(), shown.rstrip()), printed


def test_a_change_of_the_tutorial_shows_in_the_answer(tutorial: Tutorial) -> None:
    tutorial.run(tutorial.change)
    assert "[[b'fine']\n [b'suspect']]" in tutorial.shell.run("python ask.py")


def test_the_tutorial_takes_everything_down(tutorial: Tutorial) -> None:
    assert tutorial.destroy.text.startswith(AWS_DESTROY.text)  # so this runs the block of docs/on_aws.md, too
    tutorial.shell.run(tutorial.destroy.text, SYNTHESISED)
    assert "no local AWS runs" in tutorial.shell.run("cdk-triton local status", status=1)
