"""The step that serialises a DALI pipeline, with the stand-in for DALI."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from build_program.dali import build
from build_program.step import BuildError
from build_program.work import BuildWork, Journal
from cdk_triton_local.triton.backends.dali_definition import definition_file, numpy_pipeline

if TYPE_CHECKING:
    from golden_messages import Messages


HEAD = """from __future__ import annotations
import nvidia.dali as dali
import nvidia.dali.fn as fn
from nvidia.dali.plugin.triton import autoserialize
"""
DEFINITION = """
@dali.pipeline_def(batch_size=4, num_threads=1, device_id=0)
def preprocess():
    return fn.decoders.image(fn.external_source(name="IN"), device="mixed")
"""

Make = Callable[..., BuildWork]


def pipeline(repository: Path, text: str, path: str = "preprocess/1/dali.py") -> Path:
    file = repository / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(HEAD + text)
    return repository


def step(
    *, source: str = "preprocess/1/dali.py", target: str | None = None, serialize: bool = False
) -> dict[str, object]:
    return {
        "name": "the DALI pipeline of preprocess",
        "source": source,
        "target": target,
        "serialize": serialize,
        "max_batch_size": 4,
        "inputs": [{"name": "IN", "data_type": "TYPE_UINT8", "dims": [-1]}],
        "outputs": [{"name": "OUT", "data_type": "TYPE_UINT8", "dims": [-1, -1, 3]}],
    }


pytestmark = pytest.mark.usefixtures("dali_stand_in")


def test_a_file_that_is_served_itself_is_tried_and_left_alone(
    make_work: Make, tmp_path: Path, journal: Journal
) -> None:
    work = make_work(pipeline(tmp_path, DEFINITION.replace("@dali", "@autoserialize\n@dali")))
    before = sorted(tmp_path.glob("preprocess/**/*"))
    assert build(step(), work) == {"outputs": [], "parity": None}
    assert sorted(tmp_path.glob("preprocess/**/*")) == before
    assert journal.stand_ins == ["nvidia.dali"]
    assert journal.warnings == []


def test_a_file_elsewhere_becomes_the_one_that_triton_serialises(make_work: Make, tmp_path: Path) -> None:
    work = make_work(pipeline(tmp_path, DEFINITION, "preprocess/pipeline.py"))
    report = build(step(source="preprocess/pipeline.py", target="preprocess/1/dali.py"), work)
    assert report["outputs"] == ["preprocess/1/dali.py"]
    served = (tmp_path / "preprocess/1/dali.py").read_text()
    assert served.startswith(HEAD + DEFINITION)
    assert numpy_pipeline(definition_file(tmp_path / "preprocess" / "1", ""))


def test_a_marked_file_elsewhere_is_copied_as_it_is(make_work: Make, tmp_path: Path) -> None:
    marked = DEFINITION.replace("@dali", "@autoserialize\n@dali")
    work = make_work(pipeline(tmp_path, marked, "preprocess/pipeline.py"))
    build(step(source="preprocess/pipeline.py", target="preprocess/1/dali.py"), work)
    assert (tmp_path / "preprocess/1/dali.py").read_text() == HEAD + marked


def test_a_serialised_pipeline_can_be_served_by_the_local_backend(make_work: Make, tmp_path: Path) -> None:
    work = make_work(pipeline(tmp_path, DEFINITION, "preprocess/pipeline.py"))
    target = "preprocess/1/model.dali"
    build(step(source="preprocess/pipeline.py", target=target, serialize=True), work)
    file = definition_file(tmp_path / "preprocess" / "1", "")
    assert file == tmp_path / target
    assert "stand-in for nvidia.dali" in file.read_text()
    assert numpy_pipeline(file)


def test_another_place_on_disk_gives_the_same_bytes(make_work: Make, tmp_path: Path) -> None:
    written = []
    for name in ("one", "two"):
        work = make_work(pipeline(tmp_path / name, DEFINITION, "preprocess/pipeline.py"))
        build(step(source="preprocess/pipeline.py", target="preprocess/1/model.dali", serialize=True), work)
        written.append((tmp_path / name / "preprocess/1/model.dali").read_bytes())
    assert written[0] == written[1]
    assert str(tmp_path).encode() not in written[0]


def test_bytes_that_differ_are_a_warning(messages: Messages, make_work: Make, tmp_path: Path, journal: Journal) -> None:
    # The stand-in keeps the source, so a definition that changes its own file is one whose bytes differ.
    changing = DEFINITION + "\nopen(__file__, 'a').write('# once more\\n')\n"
    work = make_work(pipeline(tmp_path, changing, "preprocess/pipeline.py"))
    build(step(source="preprocess/pipeline.py", target="preprocess/1/model.dali", serialize=True), work)
    (warning,) = journal.warnings
    messages.record("build.json", warning)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name="IN"', 'name="IN", ndim=1, dtype=dali.types.UINT8'),
        ("return fn", 'unused = fn.external_source(name="MASK")\n    return fn'),
        ("device_id=0", "device_id=0, output_ndim=3, output_dtype=[dali.types.UINT8]"),
    ],
    ids=["declared input", "unused source", "declared output"],
)
def test_a_pipeline_that_fits_config_pbtxt_passes(make_work: Make, tmp_path: Path, old: str, new: str) -> None:
    assert old in DEFINITION
    work = make_work(pipeline(tmp_path, DEFINITION.replace(old, new), "preprocess/pipeline.py"))
    build(step(source="preprocess/pipeline.py", target="preprocess/1/dali.py"), work)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name="IN"', 'name="IMG"'),
        ('name="IN"', "source=lambda index: [index]"),
        ("device_id=0", "device_id=0, output_dtype=dali.types.FLOAT"),
        ("device_id=0", "device_id=0, output_ndim=2"),
        ('device="mixed")', 'device="mixed"), fn.external_source(name="IN")'),
    ],
    ids=["input", "no name", "type", "dimensions", "outputs"],
)
def test_a_pipeline_that_does_not_fit_config_pbtxt_fails_in_the_build(
    messages: Messages, make_work: Make, tmp_path: Path, old: str, new: str
) -> None:
    assert old in DEFINITION
    work = make_work(pipeline(tmp_path, DEFINITION.replace(old, new), "preprocess/pipeline.py"))
    with messages.raises(BuildError):
        build(step(source="preprocess/pipeline.py", target="preprocess/1/model.dali", serialize=True), work)
    assert not (tmp_path / "preprocess/1/model.dali").exists()


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n",
        DEFINITION + DEFINITION.replace("def pre", "def other"),
        (DEFINITION + DEFINITION.replace("def pre", "def other")).replace("@dali", "@autoserialize\n@dali"),
        DEFINITION.replace("fn.decoders.image", "fn.decoders.audio"),
    ],
    ids=["none", "two", "two marked", "unknown operator"],
)
def test_a_file_without_exactly_one_good_pipeline_is_rejected(
    messages: Messages, make_work: Make, tmp_path: Path, text: str
) -> None:
    work = make_work(pipeline(tmp_path, text))
    with messages.raises(BuildError):
        build(step(target="preprocess/1/model.dali", serialize=True), work)
    assert not (tmp_path / "preprocess/1/model.dali").exists()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("raise ValueError('labels.txt is empty')\n", 0),
        (DEFINITION.replace("    return", "    raise ValueError('no labels')\n    return"), 3),
    ],
    ids=["while imported", "while defined"],
)
@pytest.mark.parametrize("serialize", [True, False])
def test_what_the_users_code_raises_is_said_with_its_line(
    messages: Messages, make_work: Make, tmp_path: Path, text: str, line: int, *, serialize: bool
) -> None:
    work = make_work(pipeline(tmp_path, text, "preprocess/pipeline.py"))
    target = "preprocess/1/model.dali" if serialize else "preprocess/1/dali.py"
    with messages.raises(BuildError) as raised:
        build(step(source="preprocess/pipeline.py", target=target, serialize=serialize), work)
    number = line + len(HEAD.splitlines()) + 1
    assert f"pipeline.py, line {number}" in raised.value.reason
    assert not any("driver" in each for each in raised.value.log)


def test_the_pipeline_does_not_see_credentials(
    make_work: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret")
    monkeypatch.setenv("CODEBUILD_AUTH_TOKEN", "very-secret")
    looking = "import os\nassert 'very-secret' not in os.environ.values(), 'it sees them'\n" + DEFINITION
    build(step(target="preprocess/1/model.dali", serialize=True), make_work(pipeline(tmp_path, looking)))
