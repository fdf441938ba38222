"""In a job, a model's code runs under an account that reaches neither the job's folders nor its processes."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from pwd import getpwnam

import pytest
from tests.gpu_build.rehearsal.rehearsing import asked, write_input

from build_program.log import Log
from build_program.rehearsal.document import document_of
from build_program.rehearsal.run import rehearse
from build_program.stop import BuildError, Stop

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the account")]

SERVE = """#!/bin/sh
echo "account $(id -un) groups $(id -G)"
for each in {inside}/request0 {output} {service}/env.sh /proc/{job}/environ; do
    if [ -r "$each" ]; then echo "read $each"; fi
done
touch {root}/opt/ml/model/written "$HOME/written" "$TMPDIR/written" && echo "wrote"
echo kept > {shared}
setsid sleep 4321 > /dev/null 2>&1 &
exit 3
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that every account can enter, unlike pytest's own."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def test_the_server_of_a_job_has_an_account_without_rights(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, output, root, service = (directory / name for name in ("in", "out", "root", "codebuild"))
    shared = Path("/dev/shm") / directory.name
    for each in (inside / "repository", output, root, service, directory / "bin"):
        each.mkdir(parents=True)
    (service / "env.sh").touch()
    monkeypatch.setattr("build_program.rehearsal.account._SERVICE", service)
    program = directory / "bin/serve"
    program.write_text(
        SERVE.format(inside=inside, output=output, service=service, job=os.getpid(), root=root, shared=shared)
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    document = document_of(write_input(inside, [(asked(), None)]), inside)
    stop, printed = Stop(time.monotonic() + 60), StringIO()
    found = rehearse(document, inside, output, root, Log(printed), stop, guarded=[inside, output])
    assert "ended with exit status 3" in found["reason"]
    name = found["differs"]["user"].partition(" ")[0]
    assert name in ("triton-server", "nobody")
    lines = [json.loads(line).get("text") for line in printed.getvalue().splitlines()]
    assert lines[:2] == [f"account {name} groups {getpwnam(name).pw_gid}", "wrote"]
    assert (inside.stat().st_mode & 0o777, output.stat().st_mode & 0o777) == (0o755, 0o755)
    assert not shared.exists()
    assert not list((root / "tmp").iterdir())
    assert not list(filter(is_left, Path("/proc").glob("[0-9]*")))


def test_a_job_without_root_is_refused(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    document = document_of(write_input(directory, [(asked(), None)]), directory)
    stop = Stop(time.monotonic() + 60)
    with pytest.raises(BuildError, match="runs the job as user 1000, who cannot keep the server out of the job's"):
        rehearse(document, directory, directory, directory, Log(StringIO()), stop, guarded=[directory])


def test_what_cannot_be_moved_leaves_the_place_free(directory: Path) -> None:
    document = document_of(write_input(directory, [(asked(), None)]), directory)
    root = Path(tempfile.mkdtemp(dir="/dev/shm"))  # another file system: the repository is copied
    try:
        (directory / "repository").mkdir()
        os.mkfifo(directory / "repository/pipe")
        found = rehearse(document, directory, directory, root, Log(StringIO()), Stop(time.monotonic() + 60))
        assert "cannot be moved to" in found["reason"]
        assert found["reason"].endswith("is a named pipe")
        assert not (root / "opt/ml/model").exists()
    finally:
        shutil.rmtree(root)


def is_left(process: Path) -> bool:
    """Whether a process is the one that the server has detached."""
    try:
        return (process / "cmdline").read_bytes() == b"sleep\x004321\0"
    except OSError:
        return False
