"""The run of a plan: which options, and what of its inputs and outputs disagrees with `config.pbtxt`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from build_program.engine_run import check_tensors, run_engine
from build_program.step import BuildError
from build_program.tensors import Tensor
from build_program.trtexec import Binding
from cdk_triton.artifacts.recipes.trtexec import trtexec_has_option, trtexec_versions

if TYPE_CHECKING:
    from golden_messages import Messages


class Recorded:
    """A work that records a command and fails if it has lines to fail with."""

    def __init__(self, *log: str) -> None:
        self.command: list[str] = []
        self._log = log

    def run(self, command: list[str], **_: object) -> list[str]:
        self.command = command
        if self._log:
            raise BuildError("the plan of tiny: loading failed", self._log)
        return []


def run(work: Any, tmp_path: Path, version: tuple[int, ...], profile: int | None = None) -> list[str]:
    tensor = Tensor("x:0", "TYPE_INT64", (2, 4), tmp_path / "input0.raw")
    shape = Tensor("size", "TYPE_INT32", (2,), tmp_path / "input1.raw", (7, 9))
    tensor.file.write_bytes(bytes(64))
    run_engine(
        work,
        "the plan of tiny",
        ["trtexec"],
        Path("/plans/model.plan"),
        version=version,
        inputs=[tensor, shape],
        directory=tmp_path,
        profile=profile,
    )
    command: list[str] = work.command
    return command


def test_the_plan_is_loaded_and_run_once_with_the_inputs(tmp_path: Path) -> None:
    assert run(Recorded(), tmp_path, (10, 13, 3, 9), profile=1) == [
        "trtexec",
        "--loadEngine=/plans/model.plan",
        "--useProfile=1",
        "--shapes=x:0:2x4,size:7x9",
        "--iterations=1",
        "--warmUp=0",
        "--duration=0",
        "--loadInputs=x:0:input0.raw",
        "--dumpRawBindingsToFile",
    ]


@pytest.mark.parametrize("version", trtexec_versions(), ids=lambda version: ".".join(map(str, version)))
def test_every_option_is_one_that_this_trtexec_has(tmp_path: Path, version: tuple[int, ...]) -> None:
    profile = 0 if version[0] >= 10 else None
    options = {argument.partition("=")[0] for argument in run(Recorded(), tmp_path, version, profile)[1:]}

    assert all(trtexec_has_option(option, version) for option in options)
    assert {"--dumpRawBindingsToFile", "--exportOutput"} & options
    assert ("--includeDataTransfers" in options) == (version >= (11,))


def test_a_size_that_does_not_fit_is_told_in_the_words_of_the_configuration(messages: Messages, tmp_path: Path) -> None:
    # samples/common/sampleUtils.cpp, loadFromFile
    said = (
        "[11/21/2026-16:00:00] [E] Uncaught exception detected: Unexpected file size for input file: input0.raw. Note: "
        "Input binding size is: 128 bytes but the file size is 64 bytes. Double check the size and datatype of the "
        "provided data."
    )

    with messages.raises(BuildError) as raised:
        run(Recorded(said), tmp_path, (10, 13, 3))

    assert raised.value.log == (said,)


EXPECTED = [{"name": "y", "data_type": "TYPE_FP32", "dims": [-1, 4]}]
FOUND = Binding("y", False, (2, 4), "fp32", "y.raw")


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (EXPECTED, [FOUND]),
        ([], [FOUND]),  # config.pbtxt leaves it to the server
        (EXPECTED, [FOUND, FOUND._replace(name="z")]),  # the server gives no more than config.pbtxt asks for
        (EXPECTED, [FOUND._replace(data_type=None)]),  # a trtexec that tells no types
        (EXPECTED, [FOUND._replace(dims=(2, -1))]),
    ],
)
def test_what_the_server_would_take_is_taken(expected: list[dict[str, Any]], found: list[Binding]) -> None:
    check_tensors("the plan of tiny", expected, found, side="output", complete=False)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param([FOUND._replace(name="z")], id="another name"),
        pytest.param([FOUND._replace(data_type="fp16")], id="another data type"),
        pytest.param([FOUND._replace(dims=(2, 5))], id="another size"),
        pytest.param([FOUND._replace(dims=(2, 4, 1))], id="another number of dimensions"),
        pytest.param([FOUND, FOUND._replace(name="z")], id="one more"),
    ],
)
def test_what_the_server_would_reject_fails_the_build(messages: Messages, found: list[Binding]) -> None:
    with messages.raises(BuildError):
        check_tensors("the plan of tiny", EXPECTED, found, side="input", complete=True)
