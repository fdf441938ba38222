"""Rehearsals in a job: the program as a job runs it, with the real server behind the stand-in for `serve`."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.gpu_build.conftest import archive_of, key_of
from tests.gpu_build.rehearsal.rehearsing import CONFIG, MODEL, answered, asked, write_input

if TYPE_CHECKING:
    from golden_messages import Messages

REPOSITORY = {
    "model/config.pbtxt": CONFIG.encode(),
    "model/1/model.py": MODEL.replace("INITIALIZE", "pass").replace("EXECUTE", "pass").encode(),
}


@pytest.fixture
def job(build: Any, tmp_path: Path) -> Any:
    """A job whose stand-in for `serve` finds models below a directory of its own."""
    root = tmp_path / "root"
    root.mkdir()
    build.environment["CDK_TRITON_STAND_IN_ROOT"] = str(root)
    build.plan["rehearsals"] = []
    return build


def add_rehearsal(job: Any, name: str, tmp_path: Path, expected: float = 2.0, archive: str | None = None) -> str:
    """Add a rehearsal with one golden request; returns its key."""
    key = key_of(f"rehearsal of {name}")
    folder = tmp_path / key
    folder.mkdir()
    document = write_input(folder, [(asked(1.0), answered(expected))], repository=name)
    (job.folder / "rehearsals").mkdir(exist_ok=True)
    with zipfile.ZipFile(job.folder / "rehearsals" / f"{key}.zip", "w") as golden:
        for body in folder.iterdir():
            golden.write(body, body.name)
    job.plan["rehearsals"].append(
        {
            "key": key,
            "repository": name,
            "artifact_key": key_of(name),
            "archive": archive,
            "golden": f"rehearsals/{key}.zip",
            "document": document,
        }
    )
    return key


def read(job: Any, key: str, name: str = "pass.json") -> dict[str, Any]:
    document: dict[str, Any] = json.loads((job.out / key / name).read_text())
    return document


@pytest.mark.slow
def test_archives_are_rehearsed_after_all_of_them_are_packed(job: Any, tmp_path: Path) -> None:
    committed = archive_of(REPOSITORY)
    (job.folder / "archives").mkdir()
    (job.folder / "archives/other.tar.gz").write_bytes(committed)
    built = job.add("search", REPOSITORY, steps=[], remove=[])
    keys = [add_rehearsal(job, "search", tmp_path), add_rehearsal(job, "other", tmp_path, 2.0, "archives/other.tar.gz")]
    job.add("last", REPOSITORY, steps=[], remove=[])

    code, log = job.run()

    assert code == 0, log
    first, second = (read(job, key) for key in keys)
    assert first["archive"]["sha256"] == job.report(built)["archive"]["sha256"]
    assert second["archive"] == {"size": len(committed), "sha256": hashlib.sha256(committed).hexdigest()}
    assert first["requests"][0]["reason"] is None
    assert "serve" in first["stand_ins"]
    events = [line["event"] for line in log if line["event"] in ("ensemble finished", "rehearsal started")]
    assert events == ["ensemble finished"] * 2 + ["rehearsal started"] * 2


@pytest.mark.slow
def test_a_wrong_answer_is_the_failure_of_its_rehearsal_alone(job: Any, tmp_path: Path, messages: Messages) -> None:
    built = job.add("search", REPOSITORY, steps=[], remove=[])
    wrong = add_rehearsal(job, "search", tmp_path, 3.0)

    code, _ = job.run()

    assert code == 1
    assert job.report(built)["archive"]["size"]
    assert not (job.out / wrong / "pass.json").exists()
    messages.record("a rehearsal in a job", read(job, wrong, "failure.json")["reason"])


@pytest.mark.slow
def test_what_cannot_be_rehearsed_is_a_sentence(job: Any, tmp_path: Path, messages: Messages) -> None:
    job.add("search", REPOSITORY, steps=[], remove=["missing"])
    not_built, damaged = add_rehearsal(job, "search", tmp_path), add_rehearsal(job, "other", tmp_path, 2.0, "other.gz")
    (job.folder / "other.gz").write_bytes(b"not an archive")
    golden = add_rehearsal(job, "third", tmp_path, 2.0, "third.gz")
    (job.folder / "third.gz").write_bytes(archive_of(REPOSITORY))
    (job.folder / "rehearsals" / f"{golden}.zip").write_bytes(b"not a ZIP file")

    code, _ = job.run()

    assert code == 1
    for key in (not_built, damaged, golden):
        messages.record("a rehearsal in a job", read(job, key, "failure.json")["reason"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "reason"),
    [("repository/model/1/model.py", "have other files than their document"), ("request0", "are allowed: keep the")],
    ids=["a file of the repository", "too large"],
)
def test_golden_requests_that_are_not_those_of_the_document(job: Any, tmp_path: Path, name: str, reason: str) -> None:
    key = add_rehearsal(job, "search", tmp_path, 2.0, "search.gz")
    (job.folder / "search.gz").write_bytes(archive_of(REPOSITORY))
    with zipfile.ZipFile(job.folder / "rehearsals" / f"{key}.zip", "w", zipfile.ZIP_DEFLATED) as golden:
        golden.writestr("expected0", b"")
        golden.writestr(name, bytes(100_000_001))

    code, _ = job.run()

    assert code == 1
    assert reason in read(job, key, "failure.json")["reason"]


@pytest.mark.slow
def test_a_document_that_leaves_its_folder(job: Any, tmp_path: Path) -> None:
    keys = [add_rehearsal(job, name, tmp_path, 2.0, "search.gz") for name in ("search", "other")]
    (job.folder / "search.gz").write_bytes(archive_of(REPOSITORY))
    job.plan["rehearsals"][0]["document"]["requests"][0]["body"] = "../repository/model/1/model.py"
    job.plan["rehearsals"][1]["document"]["mode"] = "triple"

    job.run()

    reasons = [read(job, key, "failure.json")["reason"] for key in keys]
    assert "'../repository/model/1/model.py' is not a relative path" in reasons[0]
    assert "its mode is 'triple'" in reasons[1]


@pytest.mark.slow
def test_one_that_hangs_leaves_time_to_the_others(job: Any, tmp_path: Path) -> None:
    hangs = {**REPOSITORY, "model/1/model.py": b"import time\ntime.sleep(600)\n"}
    (job.folder / "hangs.gz").write_bytes(archive_of(hangs))
    (job.folder / "works.gz").write_bytes(archive_of(REPOSITORY))
    keys = [add_rehearsal(job, name, tmp_path, 2.0, f"{name}.gz") for name in ("hangs", "works")]
    job.plan["deadline_seconds"] = 50

    job.run()

    failure = read(job, keys[0], "failure.json")
    assert failure["started"] is True
    assert "its share of the builder's timeout: make the models load" in failure["reason"]
    assert read(job, keys[1])["requests"][0]["reason"] is None


@pytest.mark.slow
def test_what_has_no_time_is_not_started(job: Any, tmp_path: Path) -> None:
    (job.folder / "search.gz").write_bytes(archive_of(REPOSITORY))
    key = add_rehearsal(job, "search", tmp_path, 2.0, "search.gz")
    job.plan["deadline_seconds"] = 9

    assert job.run()[0] == 1

    failure = read(job, key, "failure.json")
    assert failure["started"] is False
    assert failure["reason"] == "the builder's timeout left no time for this rehearsal: deploy again, or raise it"
