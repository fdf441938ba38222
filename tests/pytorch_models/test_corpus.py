"""Files that PyTorch itself wrote: sound ones have no finding, and the others have theirs."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from cdk_triton.pytorch_models.reader.file import TorchFile, torch_file
from cdk_triton.triton import ModelRepository

if TYPE_CHECKING:
    from golden_messages import Messages

FOLDER = Path(__file__).with_name("files")
"""What PyTorch wrote: see make_files.py."""


class Case(NamedTuple):
    """A file with a configuration.

    Attributes:
        file: the name in `files/`.
        config: the configuration, without the backend.
        found: the codes of the findings.
        platform: a serving platform, or "".
    """

    file: str
    config: str
    found: tuple[str, ...] = ()
    platform: str = "26.05/ml.g5.xlarge"


def tensors(*, given: str, returned: str = "OUTPUT__0", kind: str = "FP32") -> str:
    """Inputs and outputs, by their names with blanks between them."""
    sides = [("input", name) for name in given.split()] + [("output", name) for name in returned.split()]
    return "\n".join(f'{side} {{ name: "{name}" data_type: TYPE_{kind} dims: 4 }}' for side, name in sides)


TEXTS = """
input { name: "names" data_type: TYPE_STRING dims: -1 }
output { name: "lengths" data_type: TYPE_INT64 dims: -1 }
output { name: "texts" data_type: TYPE_STRING dims: -1 }
"""
START = 'control_input { name: "START__1" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }'
ON_CPU = "instance_group { kind: KIND_CPU }"

CASES = (
    # Sound.
    Case("traced.pt", tensors(given="mask x", returned="scores")),
    Case("traced.pt", tensors(given="first second", returned="scores")),
    Case("scripted.pt", tensors(given="INPUT__1 INPUT__0")),
    Case("frozen.pt", tensors(given="x mask"), platform=""),
    Case("function.pt", tensors(given="x y"), platform="23.06/ml.g4dn.xlarge"),
    Case("scripted.pt", f"max_batch_size: 8 {tensors(given='INPUT__0')} sequence_batching {{ {START} }}"),
    Case("dictionary.pt", tensors(given="a b more")),
    Case("texts.pt", TEXTS),
    Case("named.pt", tensors(given="x", returned="boxes scores")),
    Case("compiled.pt2", tensors(given="INPUT__0 INPUT__1") + ON_CPU),
    Case("compiled.pt2", tensors(given="ARGS[1] ARGS[0]", returned="RESULT") + ON_CPU),
    Case("compiled.pt2", tensors(given="any names", returned="y") + ON_CPU, platform="26.04/ml.g5.xlarge"),
    Case("nested.pt2", tensors(given="INPUT__0 INPUT__1 INPUT__2", returned="OUTPUT__0 RESULT[b][1]") + ON_CPU),
    Case("nested.pt2", tensors(given="ARGS[0] ARGS[1][k] KWARGSscale", returned="RESULT[a]") + ON_CPU),
    # Other files under the usual name.
    Case("weights.pt", tensors(given="x mask"), ("CT841",)),
    Case("module.pt", tensors(given="x mask"), ("CT841",)),
    Case("old.pt", tensors(given="x mask"), ("CT841",)),
    Case("exported.pt2", tensors(given="x y") + 'platform: "pytorch_libtorch"', ("CT841",)),
    Case("compiled.pt2", tensors(given="x y") + 'platform: "pytorch_libtorch"', ("CT841",)),
    Case("encoder.pt", tensors(given="x"), ("CT841",)),
    Case("exported.pt2", tensors(given="INPUT__0 INPUT__1"), ("CT860",)),
    Case("traced.pt", tensors(given="INPUT__0 INPUT__1") + 'platform: "torch_aoti"', ("CT860",)),
    Case("weights.pt", tensors(given="INPUT__0 INPUT__1") + 'platform: "torch_aoti"', ("CT860",)),
    Case("old.pt", tensors(given="INPUT__0 INPUT__1") + 'platform: "torch_aoti"', ("CT860",)),
    Case("keywords.pt2", tensors(given="INPUT__0") + ON_CPU, ("CT860",)),
    # Arguments and results that the backend does not take.
    Case("optional.pt", tensors(given="x"), ("CT842",)),
    Case("optional.pt", tensors(given="x mask scale"), ("CT842",)),
    Case("traced.pt", tensors(given="x"), ("CT843",)),
    Case("traced.pt", tensors(given="x mask more"), ("CT843",)),
    Case("scripted.pt", f"max_batch_size: 8 {tensors(given='a__0 b__2')} sequence_batching {{ {START} }}", ("CT843",)),
    Case("list_of_tensors.pt", tensors(given="images"), ("CT845", "CT844")),
    Case("texts.pt", tensors(given="names", kind="INT64"), ("CT844",)),
    Case("traced.pt", tensors(given="x mask", kind="STRING"), ("CT844", "CT844")),
    Case("outputs.pt", tensors(given="x", returned="y"), ("CT845",)),
    Case("number.pt", tensors(given="x"), ("CT845",)),
    Case("scripted.pt", tensors(given="x mask", returned="OUTPUT__0 OUTPUT__1"), ("CT846",)),
    Case("scripted.pt", tensors(given="x mask", returned="scores more"), ("CT846",)),
    # Names.
    Case("traced.pt", tensors(given="mask image"), ("CT847",)),
    Case("traced.pt", tensors(given="mask__0 x__1"), ("CT847", "CT847")),
    Case("traced.pt", tensors(given="INPUT__0 INPUT__0"), ("CT210", "CT848")),
    Case("traced.pt", tensors(given="INPUT__1 INPUT__2"), ("CT848",)),
    Case("scripted.pt", f"max_batch_size: 8 {tensors(given='INPUT__1')} sequence_batching {{ {START} }}", ("CT848",)),
    Case(
        "scripted.pt",
        f"max_batch_size: 8 {tensors(given='x')} sequence_batching {{ {START.replace('__1', '')} }}",
        ("CT849", "CT850"),
    ),
    Case("scripted.pt", f"max_batch_size: 8 {tensors(given='x')} sequence_batching {{ {START} }}", ("CT850",)),
    Case(
        "scripted.pt",
        f"max_batch_size: 8 {tensors(given='x')} sequence_batching {{ {START} }}",
        platform="23.06/ml.g4dn.xlarge",
    ),
    # Compiled models.
    Case("compiled.pt2", tensors(given="INPUT__0 INPUT__1"), ("CT865",)),
    Case("compiled.pt2", tensors(given="x y", returned="z") + ON_CPU, ("CT863", "CT863", "CT863")),
    Case("compiled.pt2", tensors(given="INPUT__0") + ON_CPU, ("CT863",)),
    Case("nested.pt2", tensors(given="INPUT__0 INPUT__1 KWARGS[scale]") + ON_CPU, ("CT863",)),
    Case("nested.pt2", tensors(given="INPUT__0 INPUT__1 INPUT__2") + ON_CPU, ("CT862",), "26.03/ml.g5.xlarge"),
    Case("compiled.pt2", f"max_batch_size: 4 {tensors(given='INPUT__0 INPUT__1')} {ON_CPU}", ("CT864",)),
    Case(
        "compiled.pt2",
        f"max_batch_size: 1 {tensors(given='INPUT__0 INPUT__1')} {ON_CPU} sequence_batching {{ }}",
        ("CT861",),
    ),
)


def repository(case: Case, directory: Path) -> ModelRepository:
    version = directory / "model" / "1"
    version.mkdir(parents=True)
    name = "model.pt2" if _is_compiled(case) else "model.pt"
    (version / name).write_bytes((FOLDER / case.file).read_bytes())
    platform = "" if "platform:" in case.config else f'platform: "{"torch_aoti" if _is_compiled(case) else ""}"'
    (directory / "model" / "config.pbtxt").write_text(f'backend: "pytorch"\n{platform}\n{case.config}')
    return ModelRepository.from_directory(directory)


def _is_compiled(case: Case) -> bool:
    return "torch_aoti" in case.config or (case.file.endswith(".pt2") and "platform:" not in case.config)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file} {' '.join(case.found) or 'sound'}")
def test_the_findings_of_a_file(messages: Messages, tmp_path: Path, case: Case) -> None:
    found = messages.of(repository(case, tmp_path).check(platform=case.platform or None))
    assert tuple(code for code, *_ in found) == case.found


@pytest.mark.parametrize("part", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("name", ["traced.pt", "weights.pt", "compiled.pt2"])
def test_a_file_that_is_cut_off(tmp_path: Path, name: str, part: float) -> None:
    case = Case(
        name, 'input { name: "x" data_type: TYPE_FP32 dims: 4 } output { name: "y" data_type: TYPE_FP32 dims: 4 }'
    )
    written = repository(case, tmp_path)
    (file,) = (written.root / "model" / "1").iterdir()
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * part)])
    found = ModelRepository.from_directory(written.root).check(platform="26.05/ml.g5.xlarge")
    assert "CT860" if name.endswith("2") else "CT841" in {each.code for each in found}


@pytest.mark.long
def test_todays_pytorch_writes_what_the_checks_read(tmp_path: Path) -> None:
    """The files are written again, and PyTorch judges which of them are TorchScript and which signatures they have."""
    if find_spec("torch") is None:
        pytest.skip("PyTorch is not installed: uv pip install torch")
    here = Path(__file__).parent
    subprocess.run([sys.executable, here / "make_files.py", tmp_path], check=True, capture_output=True)
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in FOLDER.iterdir()}
    done = subprocess.run(
        [sys.executable, here / "judge_files.py", tmp_path], check=True, capture_output=True, text=True
    )
    judged = dict(line.split("\t") for line in done.stdout.splitlines())
    for path in sorted(tmp_path.iterdir()):
        read, committed = torch_file(path), torch_file(FOLDER / path.name)
        assert isinstance(read, TorchFile)
        assert isinstance(committed, TorchFile)
        assert (read.kind, read.forward) == (committed.kind, committed.forward), path.name
        assert judged[path.name] == _said(read), path.name


def _said(read: TorchFile) -> str:
    """What judge_files.py says of such a file."""
    if read.kind == "compiled" or (read.kind == "torchscript" and not read.has_forward):
        return "compiled" if read.kind == "compiled" else "no forward"
    if read.forward is None:
        return "rejected"
    arguments = [f"{each.type} {each.name}" for each in read.forward.arguments]
    result = read.forward.result
    return f"({', '.join(arguments)}) -> {f'({result})' if result.name == 'Tuple' else result}"
