"""The program that confirms claims in an account, rehearsed on the local AWS by real deployments of its stacks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.verify import trial
from tools.verify.__main__ import clean, main
from tools.verify.claims import claims
from tools.verify.experiment import Observation, experiment, names
from tools.verify.report import report

from cdk_triton.errors import LocalError
from cdk_triton_local.aws import LocalAws

ROOT = Path(__file__).parents[2]
ACCOUNT = "123456789012"


@pytest.mark.slow
def test_every_experiment_decides_claims_of_the_list_and_every_claim_has_its_experiment() -> None:
    listed = [row.experiment for row in claims() if row.experiment]
    assert sorted(listed) == sorted(f"{name}/{part}" for name in names() for part in experiment(name).parts)


def test_temporary_files_of_the_cdk_and_of_its_app_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_: list[str], environment: dict[str, str]) -> None:
        tempfile.mkdtemp(dir=environment["TMPDIR"])

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(trial, "run", run)
    with trial.Trial("stack_updates", experiment("stack_updates"), trial.Place(ACCOUNT, "us-east-1", True)) as found:
        found.clean()

    assert not [*tmp_path.iterdir()]


def test_a_report_names_no_account_and_has_one_line_for_each_part() -> None:
    seen = "AccessDenied: User: arn:aws:sts::123456789012:assumed-role/verify\nis not authorized"
    observation = Observation("user_id", False, seen)

    text = report(trial.Place(ACCOUNT, "us-east-1", False), [("callers", observation)], claims())

    assert text.endswith(
        "| `callers/user_id` | **does not hold** | "
        "AccessDenied: User: arn:aws:sts::ACCOUNT:assumed-role/verify is not authorized |\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing"], "there is no experiment 'nothing'; there are readings, "),
        (
            ["callers", "--report", "none/report.md"],
            "none/report.md cannot be written; create the directory none first",
        ),
        (
            ["callers", "--report", "."],
            ". cannot be written, because it is a directory; name a file in it",
        ),
    ],
)
def test_unusable_arguments_are_refused_before_anything_is_deployed(
    arguments: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["verify", "run", *arguments, "--test-account", ACCOUNT])
    with pytest.raises(SystemExit) as raised:
        main()
    assert raised.value.code == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.slow
def test_cleaning_up_goes_on_after_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*_: object) -> None:
        raise LocalError("cdk destroy ended with status 1")

    monkeypatch.setattr(trial, "run", run)
    chosen = ("object_writes", "callers")
    assert clean(chosen, trial.Place(ACCOUNT, "us-east-1", True), trial.Interruptions()) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"{each}: failed: cdk destroy ended with status 1" for each in chosen
    ]


class Aws:
    """The local AWS after `cdk bootstrap`, and the program led to it."""

    def __init__(self, aws: LocalAws, temporary: Path) -> None:
        self._aws = aws
        self.temporary = temporary

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tools.verify", *arguments],
            cwd=ROOT,
            env={**self._aws.process_environment(), "TMPDIR": str(self.temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        process = self.start(*arguments)
        return process.wait(), process.communicate()[0]

    def stacks(self) -> list[str]:
        found = self._aws.client("cloudformation").describe_stacks()["Stacks"]
        return [each["StackName"] for each in found if each["StackName"].startswith("CdkTritonVerify")]


@pytest.fixture(name="aws", scope="module")
def _aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aws]:
    with LocalAws(tmp_path_factory.mktemp("aws")) as aws:
        cdk = ROOT / "node_modules" / ".bin" / "cdk"
        command = [str(cdk), "bootstrap", f"aws://{ACCOUNT}/us-east-1"]
        subprocess.run(command, cwd=aws.directory, env=aws.process_environment(), check=True, capture_output=True)
        yield Aws(aws, tmp_path_factory.mktemp("temporary"))


@pytest.mark.long
def test_credentials_of_another_account_are_refused(aws: Aws) -> None:
    status, shown = aws.run("run", "object_writes", "--test-account", "111122223333")
    assert status == 2
    assert shown.startswith(f"error: the credentials of this shell belong to the account {ACCOUNT}")


@pytest.mark.long
def test_an_experiment_deploys_observes_reports_and_leaves_nothing(aws: Aws, tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    aws.run("run", "object_writes", "--test-account", ACCOUNT, "--report", str(report))
    lines = report.read_text().splitlines()
    assert lines[0].startswith("Run on the local AWS: a rehearsal of the experiments, which confirms nothing")
    assert "| `object_writes/multipart_copy` | holds | a first copy: written;" in lines[4]
    assert not aws.stacks()
    assert not [*aws.temporary.iterdir()]


@pytest.mark.long
def test_ctrl_c_in_a_deployment_removes_what_is_there(aws: Aws) -> None:
    process = aws.start("run", "object_writes", "--test-account", ACCOUNT)
    assert process.stdout is not None
    for line in process.stdout:
        if "deploying..." in line:
            break
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    rest = process.communicate()[0]
    assert process.returncode == 130, rest
    assert "Interrupted. Cleaning up" in rest
    assert trial.prefix_of("object_writes") not in aws.stacks()
    assert not [*aws.temporary.iterdir()]
