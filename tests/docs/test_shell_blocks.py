"""The commands of the pages run, against one local AWS: first the tutorial from its first command on, then the others.

A block of another page runs in the project of the tutorial, which is deployed, or in a directory of its own with the
files that its page mentions.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
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

START = 'variables="$(cdk-triton local up --detach)" && eval "$variables" && cdk bootstrap\n'
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

CONSOLES = [block for block in of_kind(CONSOLE) if block.language == "console" and ROOT / block.page != TUTORIAL]
"""The commands with their output, except those of the tutorial, which run where they stand."""
ON_THE_STACK = [
    block
    for block in of_kind(SHELL)
    if any(block.page == page and block.text.startswith(word) for page, word in DEPLOYED)
]


def of_page(page: str) -> list[Block]:
    """Return the blocks of a page that this file runs and that the lists above do not have."""
    return [block for block in of_kind(SHELL) if block.page == page and block not in CONSOLES + ON_THE_STACK]


INIT = next(  # the one command of the installation that downloads nothing
    replace(block, text="cdk-triton init\n") for block in blocks_of(TUTORIAL) if "\ncdk-triton init\n" in block.text
)
*TUTORIAL_BLOCKS, TUTORIAL_DESTROY = of_page("docs/getting_started.md")
*FOR_AWS, AWS_DESTROY = of_page("docs/on_aws.md")
(EVAL,) = of_page("docs/local_aws.md")


def test_no_block_is_skipped() -> None:
    alone = [block for page in (*ALONE, "docs/notebook_model.md") for block in of_page(page)]
    run = [*TUTORIAL_BLOCKS, TUTORIAL_DESTROY, *FOR_AWS, AWS_DESTROY, *ON_THE_STACK, EVAL, *alone, *CONSOLES]
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


def command_and_output(block: Block) -> tuple[str, str]:
    parts = re.fullmatch(r"\$ ((?:[^\n]*\\\n)*[^\n]*)\n(.*)", block.text, re.DOTALL)
    assert parts is not None, "a console block begins with the command"
    return parts[1], parts[2]


@dataclass
class Tutorial:
    """The project of the tutorial.

    Attributes:
        shell: has run the tutorial up to its last block, which takes the project down.
        printed: block → what its command printed, for the blocks that show it.
    """

    shell: Shell
    printed: dict[Block, str] = field(default_factory=dict)

    def run(self, block: Block) -> None:
        if block.language == "console":
            command, _ = command_and_output(block)
            # `validate` ends with 1 where the page shows an error.
            self.printed[block] = self.shell.run(f"{with_outputs(self, command)} || test $? = 1")
        else:
            self.shell.run(block.text)


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tutorial]:
    directory = tmp_path_factory.mktemp("tutorial") / "my-endpoint"  # the stacks have its name
    directory.mkdir()
    running = Tutorial(Shell(directory))
    try:
        for block in (INIT, *TUTORIAL_BLOCKS):
            running.run(block)
        yield running
    finally:
        running.shell.run("cdk-triton local down || true")


@pytest.mark.parametrize("block", [block for block in TUTORIAL_BLOCKS if block.language == "console"], ids=str)
def test_the_tutorial_prints_what_it_shows(tutorial: Tutorial, block: Block) -> None:
    _, shown = command_and_output(block)
    assert is_shown(tutorial.printed[block].rstrip(), shown.rstrip()), tutorial.printed[block]


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


NAMES = {"TritonArtifacts": "MyEndpointArtifacts", "MyStack": "MyEndpoint", "cdk-triton local down": ""}


def with_outputs(tutorial: Tutorial, script: str) -> str:
    """The commands with the outputs of the stack instead of the names in the pages."""
    written = tutorial.shell.directory / "outputs.json"
    if not written.exists():
        return script
    outputs = json.loads(written.read_text())["MyEndpoint"]
    return script.replace("my-endpoint", outputs["EndpointName"]).replace("<TargetModel>", outputs["TargetModel"])


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
    directory = tmp_path / "texts"
    for name in ("bert", "tokenize/1"):
        (directory / "models" / name).mkdir(parents=True)
    for name in ("bert.onnx", "sentiment.onnx"):
        (directory / name).write_bytes(network)
    for name in ("tokens.py", "tokenizer.py"):
        (directory / name).write_text(tokens)
    (directory / "requirements.in").write_text("tqdm")
    return directory


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
    init, again, install, validate, deploy = of_page("docs/notebook_model.md")
    (typed,) = (block.text for block in blocks_of(NOTEBOOK) if block.text.startswith("data_type"))
    (compare,) = (block.text for block in blocks_of(NOTEBOOK) if "from cdk_triton" in block.text)
    shell = Shell(directory, tutorial.shell.variables)
    shell.run(init.text)
    assert again.text in (directory / "README.md").read_text()
    assert drawn_files(NOTEBOOK) == files_below(directory / "models")
    config = directory / "models" / "tokens" / "config.pbtxt"
    config.write_text(re.sub(r'(name: "TEXT"\n)[^}]*', rf"\g<1>{typed}", config.read_text(), count=1))
    shell.run(again.text)
    tokenizer = model_assets / "sentence_embedding" / "tokenizer" / "1" / "tokenizer.json"
    (directory / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    shell.run(install.text, packages)
    assert "no findings" in shell.run(validate.text)

    printed = shell.run(deploy.text.removeprefix(START))
    (endpoint,) = re.findall(r"Texts\.EndpointName = (\S+)", printed)
    encoding = Tokenizer.from_file(str(tokenizer))
    encoding.enable_padding()
    expected = [each.ids for each in encoding.encode_batch(["A man is eating food.", "This is awful."])]
    asked = compare.replace("<EndpointName>", endpoint).replace("expected", str(expected))
    (directory / "compare.py").write_text(asked)
    shell.run("python compare.py")


@pytest.mark.parametrize("block", CONSOLES, ids=str)
def test_a_command_prints_what_the_page_shows(tutorial: Tutorial, block: Block) -> None:
    command, shown = command_and_output(block)
    printed = tutorial.shell.run(with_outputs(tutorial, command))
    assert is_shown(printed.rstrip(), shown.rstrip()), printed


def test_the_tutorial_takes_everything_down(tutorial: Tutorial) -> None:
    assert TUTORIAL_DESTROY.text.startswith(AWS_DESTROY.text)  # so this runs the block of docs/on_aws.md, too
    tutorial.shell.run(TUTORIAL_DESTROY.text, SYNTHESISED)
    assert "no local AWS runs" in tutorial.shell.run("cdk-triton local status", status=1)
