"""The rules CT870 to CT878 about the file of a model: which one the backend takes, and what a recipe makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.dali_models.definitions import A, Case, pipeline

from cdk_triton import DaliPipeline, ModelRepository

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Change, Write

SERIALIZED = Path(__file__).with_name("model.dali").read_bytes()
"""What DALI 2.4 wrote for the inputs A (UINT8, 1 dimension) and B, and two outputs: (UINT8, 1) and (FP32, 2)."""

READER = Path(__file__).with_name("reader.dali").read_bytes()
"""What DALI 2.4 wrote for a pipeline that reads files itself, with one output."""

LAYOUT = Path(__file__).with_name("layout.dali").read_bytes()
"""What DALI 2.4 wrote for the input A (UINT8, layout HWC, no ndim) and one output."""

UNMARKED = pipeline(f"return {A}", decorators="@pipeline_def(batch_size=8)\n")
FITTING = Case("", inputs=("A UINT8 -1", "B FP16 4"), outputs=("FIRST UINT8 -1", "SECOND FP32 [2,2]"))
HELPER = "def decode(x, device='mixed'):\n    return fn.decoders.image(x, device=device)\n"
LONG = """
def decode(x, size):
    x = fn.decoders.image(x, device='mixed')
    x = fn.resize(x, size=size)
    return x
"""


def codes(repository: ModelRepository) -> list[str]:
    return [finding.code for finding in repository.check()]


@pytest.mark.parametrize(
    ("case", "found"),
    [
        (FITTING, []),
        (FITTING._replace(inputs=("A UINT8 -1", "C FP16 4")), ["CT874"]),
        (FITTING._replace(inputs=("A FP32 -1", "B FP16 4")), ["CT874"]),
        (FITTING._replace(outputs=("FIRST UINT8 -1", "SECOND FP32 4")), ["CT874"]),
        (FITTING._replace(inputs=("B FP16 4",)), ["CT875"]),
        (FITTING._replace(inputs=("A UINT8 -1",)), ["CT874"]),
        (FITTING._replace(inputs=(), outputs=()), []),
    ],
    ids=["it fits", "a name", "a type", "dimensions", "too few inputs", "an undeclared input", "none configured"],
)
def test_a_serialised_pipeline_is_compared(messages: Messages, write: Write, case: Case, found: list[str]) -> None:
    repository = write({"model/config.pbtxt": case.config, "model/1/model.dali": SERIALIZED}, base={})
    assert [code for code, _, _ in messages.of(repository.check())] == found


@pytest.mark.parametrize(("dims", "found"), [("[-1,-1,3]", []), ("-1", ["CT874"])], ids=["HWC", "another number"])
def test_a_layout_gives_the_number_of_dimensions(messages: Messages, write: Write, dims: str, found: list[str]) -> None:
    case = Case("", inputs=(f"A UINT8 {dims}",), outputs=())
    repository = write({"model/config.pbtxt": case.config, "model/1/model.dali": LAYOUT}, base={})
    assert [code for code, _, _ in messages.of(repository.check())] == found


@pytest.mark.parametrize(
    "content",
    [b"\n", SERIALIZED[:-7], SERIALIZED[:100], b"import os\n", SERIALIZED[2:]],
    ids=["a line", "cut at the end", "cut in an operator", "Python", "without a required field"],
)
def test_what_dali_cannot_deserialise(messages: Messages, write: Write, content: bytes) -> None:
    repository = write({"model/config.pbtxt": FITTING.config, "model/1/model.dali": content}, base={})
    assert [code for code, _, _ in messages.of(repository.check())] == ["CT870"]


def test_a_serialised_pipeline_without_inputs(messages: Messages, write: Write) -> None:
    config = FITTING._replace(inputs=(), outputs=("OUT UINT8 -1",)).config
    repository = write({"model/config.pbtxt": config, "model/1/model.dali": READER}, base={})
    assert messages.of(repository.check()) == [("CT877", "model/1/model.dali", "")]


def test_an_empty_file(messages: Messages, tmp_path: Path, write: Write) -> None:
    root = write({"model/config.pbtxt": FITTING.config, "model/1/model.dali": SERIALIZED}, base={}).root
    (root / "model" / "1" / "model.dali").write_bytes(b"")
    assert messages.of(ModelRepository.from_directory(root).check()) == [("CT870", "model/1/model.dali", "")]


@pytest.mark.parametrize(
    ("serialized", "definition", "found"),
    [
        (b"\n", pipeline(f"return {A}"), []),
        (b"\n", "import os", ["CT871"]),
        (SERIALIZED, pipeline(f"return {A}"), ["CT874", "CT875"]),
    ],
    ids=["the definition is served", "the definition fails", "the definition is not read"],
)
def test_the_backend_goes_on_to_the_definition(
    write: Write, serialized: bytes, definition: str, found: list[str]
) -> None:
    case = Case(definition, outputs=("OUT FP32 -1",))
    files: dict[str, Change] = {"model/config.pbtxt": case.config, "model/1/dali.py": case.text}
    files["model/1/model.dali"] = serialized
    assert sorted(set(codes(write(files, base={})))) == found


@pytest.mark.parametrize("serialize", [False, True])
@pytest.mark.parametrize(
    ("source", "found"),
    [
        (UNMARKED, []),
        (pipeline(f"return {A}"), []),
        ("import os", ["CT871"]),
        (UNMARKED + UNMARKED.replace("pipeline()", "second()"), ["CT871"]),
        (UNMARKED.replace("'A'", "'B'"), ["CT874"]),
        (UNMARKED.replace("return", "return image +"), ["CT873"]),
    ],
    ids=["unmarked", "marked", "no pipeline", "two pipelines", "another input", "an undefined name"],
)
def test_the_source_of_a_recipe(
    messages: Messages, write: Write, source: str, found: list[str], serialize: bool
) -> None:
    case = Case(source)
    written = write({"model/config.pbtxt": case.config, "model/pipeline.py": case.text}, base={})
    recipe = DaliPipeline("model", pipeline="pipeline.py", serialize=serialize)
    repository = ModelRepository.from_directory(written.root, recipes=[recipe])
    assert [code for code, _, _ in messages.of(repository.check())] == found


@pytest.mark.parametrize(
    ("name", "line", "found"),
    [
        ("helpers.py", "import helpers", ["CT873"]),
        ("helpers/text.py", "from helpers.text import clean", ["CT873"]),
        ("helpers.py", "try:\n    import helpers\nexcept ImportError:\n    pass", []),
        ("helpers.py", "import sys\nsys.path.append(__file__[:-7])\nimport helpers", []),
        ("other.py", "import helpers", []),
    ],
)
def test_modules_beside_a_definition(messages: Messages, write: Write, name: str, line: str, found: list[str]) -> None:
    case = Case(f"{line}\n" + pipeline(f"return {A}"))
    files = {"model/config.pbtxt": case.config, "model/1/dali.py": case.text, f"model/1/{name}": "clean = None"}
    assert [code for code, _, _ in messages.of(write(files, base={}).check())] == found


@pytest.mark.parametrize(
    ("split", "found"),
    [("", ["CT874"]), ('parameters { key: "split_along_outer_axis" value { string_value: "OUT" } }', [])],
    ids=["whole", "split"],
)
def test_split_outputs_have_other_dimensions(write: Write, split: str, found: list[str]) -> None:
    case = Case(pipeline(f"return {A}", decorators="@autoserialize\n@pipeline_def(batch_size=8, output_ndim=4)\n"))
    files = {"model/config.pbtxt": f"{case.config}\n{split}", "model/1/dali.py": case.text}
    assert codes(write(files, base={})) == found


@pytest.mark.parametrize(
    ("source", "kind", "found"),
    [
        (pipeline(f"return {A}.gpu()"), "KIND_CPU", ["CT874"]),
        (pipeline(f"return fn.decoders.image({A}, device='mixed')"), "KIND_CPU", ["CT874"]),
        (pipeline(f"return fn.decoders.image({A}, device='mixed')"), "KIND_GPU", []),
        (pipeline(f"return fn.decoders.image({A}, device='cpu')"), "KIND_CPU", []),
        (pipeline(f"return fn.decoders.image({A}, device=where)", arguments="where='mixed'"), "KIND_CPU", []),
        (pipeline(f"a = {A}", "unused = a.gpu()", "return a"), "KIND_CPU", []),
        (HELPER + pipeline(f"return decode({A})"), "KIND_CPU", ["CT874"]),
        (HELPER + pipeline(f"return decode({A}, 'cpu')"), "KIND_CPU", []),
        (LONG + pipeline(f"return decode({A}, 8)"), "KIND_CPU", ["CT874"]),
        (LONG.replace("'mixed'", "'mixed' if size else 'cpu'") + pipeline(f"return decode({A}, 8)"), "KIND_CPU", []),
        (
            HELPER.replace("(x, device='mixed')", "(x=None, /, device='mixed')") + pipeline(f"return decode({A})"),
            "KIND_CPU",
            ["CT874"],
        ),
    ],
    ids=[
        *("gpu()", "mixed", "on a GPU", "cpu", "an argument", "unused", "a helper", "a helper for the CPU"),
        *("a longer helper", "a helper that chooses", "an argument by position"),
    ],
)
def test_operators_of_the_gpu_on_the_cpu(
    messages: Messages, write: Write, source: str, kind: str, found: list[str]
) -> None:
    config = f"{Case('').config}\ninstance_group {{ kind: {kind} }}"
    files = {"model/config.pbtxt": config, "model/1/dali.py": Case(source).text}
    assert [code for code, _, _ in messages.of(write(files, base={}).check())] == found


@pytest.mark.parametrize(
    ("size", "dims", "found"),
    [
        ("max_batch_size: 0", "[ 3, 8, 8 ]", ["CT874"]),
        ("max_batch_size: 0", "[ -1, 3, 8, 8 ]", []),
        ("max_batch_size: 0", "[ 8, 8 ]", ["CT874"]),
        ("max_batch_size: 8", "[ 3, 8, 8 ]", []),
        ("", "[ 3, 8, 8 ]", []),
    ],
    ids=["no batch", "its dimension", "two too few", "a batch", "the batch of the pipeline"],
)
def test_a_model_without_batches(messages: Messages, write: Write, size: str, dims: str, found: list[str]) -> None:
    case = Case(
        pipeline(f"return {A}", decorators="@autoserialize\n@pipeline_def(batch_size=8, output_ndim=3)\n"),
        inputs=(),
        outputs=(f"OUT UINT8 {dims}",),
    )
    config = case.config.replace("max_batch_size: 8", size)
    files = {"model/config.pbtxt": config, "model/1/dali.py": case.text}
    findings = messages.of(write(files, base={}).check())
    assert [code for code, _, _ in findings if code == "CT874"] == found


def test_a_video_is_an_input(write: Write) -> None:
    """From the backend's example video_decode_remap."""
    case = Case(pipeline("return fn.resize(fn.experimental.inputs.video(name='A', sequence_length=5), size=8)"))
    repository = write({"model/config.pbtxt": case.config, "model/1/dali.py": case.text}, base={})
    assert codes(repository) == []
