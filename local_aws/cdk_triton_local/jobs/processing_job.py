"""Runs one SageMaker Processing job, from the inputs to the outputs, and keeps its state.

SageMaker puts inputs into the container's `/opt/ml/processing` and takes outputs from there. The job here runs without
a container: it has a directory, and `/opt/ml` in its entrypoint, arguments and environment leads into it.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import re
import shutil
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from cdk_triton.errors import LocalError
from cdk_triton_local.jobs.context import LocalContext
from cdk_triton_local.jobs.folders import download_folder, join_key, upload_files
from cdk_triton_local.jobs.log import JobLog
from cdk_triton_local.jobs.machine import JobMachine, processing_machine
from cdk_triton_local.jobs.runner import JobEndedError, Runner

__all__ = ["ROOT", "JobRecord", "ProcessingJob"]

ROOT = "/opt/ml"

UPLOAD_SECONDS = 1.0
"""How often outputs of mode `Continuous` are looked at; SageMaker does not document how often it does."""

_MESSAGE_LENGTH = 1024
"""Longest `ExitMessage` and `FailureReason` (DescribeProcessingJob)."""

_Stamp = tuple[int, int]


class JobRecord:
    """A job as DescribeProcessingJob returns it. Every method can be called from any thread.

    Args:
        members: its members.
        now: returns the time.
    """

    def __init__(self, members: Mapping[str, Any], now: Callable[[], datetime.datetime]) -> None:
        self._now = now
        self._members = {**members, "CreationTime": now(), "LastModifiedTime": now()}
        self._lock = threading.Lock()

    def describe(self) -> dict[str, Any]:
        """The job as it is now."""
        with self._lock:
            return copy.deepcopy(self._members)

    def set(self, **members: Any) -> None:
        """Change members of the description."""
        with self._lock:
            self._members |= {**members, "LastModifiedTime": self._now()}

    def begin_to_stop(self) -> bool:
        """Make the job `Stopping`; return whether it was in progress."""
        with self._lock:
            if self._members["ProcessingJobStatus"] != "InProgress":
                return False
            self._members |= {"ProcessingJobStatus": "Stopping", "LastModifiedTime": self._now()}
            return True


class _JobFailedError(Exception):
    """The message is the job's FailureReason."""


class ProcessingJob:
    """Runs one job; `run` does it, in a thread of its own.

    Args:
        request: the request of CreateProcessingJob, after its checks.
        record: is kept up to date.
        context: the local AWS.
        group: the log group.
        stream: the log stream.
    """

    def __init__(
        self, request: Mapping[str, Any], record: JobRecord, context: LocalContext, group: str, stream: str
    ) -> None:
        self._request = request
        self._record = record
        self._context = context
        self._name: str = request["ProcessingJobName"]
        self._image: str = request["AppSpecification"]["ImageUri"]
        self._work: Path = context.directory / "processing" / self._name
        self._log = JobLog(
            context.client("logs"), group, stream, context.directory / "logs" / f"processing-{self._name}.log"
        )
        self._runner = Runner(float(request["StoppingCondition"]["MaxRuntimeInSeconds"]), self._log.output)
        self._uploaded: dict[Path, _Stamp] = {}

    def stop(self) -> None:
        """End the job, if it is still running."""
        self._runner.stop()

    def run(self) -> None:
        """Run the job to its end; a failure becomes its status."""
        self._context.log(f"processing job {self._name}: started")
        self._record.set(ProcessingStartTime=self._context.now())
        with ExitStack() as machine:
            self._run_and_record(machine)

    def _run_and_record(self, machine: ExitStack) -> None:
        """Run the job, and record its end before what `machine` has is left."""
        status, reason = "Completed", ""
        with self._log:
            try:
                self._run(machine)
            except JobEndedError:
                # Also when its time is up: "After the condition is met, the processing job is stopped".
                status = "Stopped"
            except _JobFailedError as failure:
                status, reason = "Failed", str(failure)
            except Exception as error:
                # Whatever goes wrong here is the service's fault, and must not leave the job InProgress.
                status, reason = "Failed", f"InternalServerError: {type(error).__name__}: {error}"
            finally:
                self._runner.close()
            message = self._exit_message()
            shutil.rmtree(self._work, ignore_errors=True)
        reasons = {"FailureReason": reason[:_MESSAGE_LENGTH]} if reason else {}
        reasons |= {"ExitMessage": message} if message else {}
        self._record.set(ProcessingJobStatus=status, ProcessingEndTime=self._context.now(), **reasons)
        self._context.log(f"processing job {self._name}: {status}{f': {reason}' if reason else ''}")

    def _run(self, machine: ExitStack) -> None:
        began = self._context.clock()
        while self._context.clock() - began < self._context.start_seconds("sagemaker"):
            self._runner.pause()
        machine.enter_context(self._context.working())
        self._introduce()
        for each in self._request.get("ProcessingInputs", []):
            self._download(each["S3Input"])
        outputs = [each["S3Output"] for each in self._request.get("ProcessingOutputConfig", {}).get("Outputs", [])]
        for output in outputs:
            self._local(output["LocalPath"]).mkdir(parents=True, exist_ok=True)
        self._local(f"{ROOT}/output").mkdir(parents=True, exist_ok=True)
        continuous = [output for output in outputs if output["S3UploadMode"] == "Continuous"]
        ended = threading.Event()
        uploader = threading.Thread(target=self._upload_until, args=(ended, continuous), daemon=True)
        uploader.start()
        try:
            status = self._command()
        finally:
            ended.set()
            uploader.join()
            # What is there when a job fails or is stopped is uploaded too in this mode.
            self._upload(continuous, settled=True)
        if status:
            raise _JobFailedError("AlgorithmError: See job logs for more information")
        self._upload([output for output in outputs if output["S3UploadMode"] == "EndOfJob"], settled=True)

    def _command(self) -> int:
        specification = self._request["AppSpecification"]
        command = [*specification["ContainerEntrypoint"], *specification.get("ContainerArguments", [])]
        extra = {
            **self._context.environment,
            **{name: self._mapped(value) for name, value in self._request.get("Environment", {}).items()},
        }
        environment = self._machine().environment(self._work, self._image, extra)
        try:
            return self._runner.run(
                [self._mapped(part) for part in command], environment=environment, directory=self._work
            )
        except LocalError as error:
            raise _JobFailedError(f"AlgorithmError: {error}") from error

    def _machine(self) -> JobMachine:
        return processing_machine(self._request["ProcessingResources"]["ClusterConfig"]["InstanceType"])

    def _introduce(self) -> None:
        self._log.line(
            "stand-in for SageMaker Processing: this job runs on this machine, not in "
            f"{self._image}; the job finds {self._machine().describe(self._image)}"
        )

    # ------------------------------------------------------------------------------ what goes in and out

    def _download(self, source: Mapping[str, Any]) -> None:
        bucket, _, prefix = source["S3Uri"].removeprefix("s3://").partition("/")
        target = self._local(source["LocalPath"])
        try:
            found = download_folder(
                self._context.client("s3"), bucket, join_key(prefix), target, self._runner.raise_if_ended
            )
        except LocalError as error:
            raise _JobFailedError(f"ClientError: {error}") from error
        if not found:
            raise _JobFailedError(f"ClientError: Failed to download data. There is no object below {source['S3Uri']}")

    def _upload_until(self, ended: threading.Event, outputs: list[Mapping[str, Any]]) -> None:
        seen: dict[Path, _Stamp] = {}
        while not ended.wait(UPLOAD_SECONDS):
            # What fails now (a file that is gone again, a missing bucket) is tried and reported again at the end.
            with contextlib.suppress(_JobFailedError, OSError):
                seen = self._upload(outputs, settled=False, seen=seen)

    def _upload(
        self, outputs: list[Mapping[str, Any]], *, settled: bool, seen: Mapping[Path, _Stamp] | None = None
    ) -> dict[Path, _Stamp]:
        """Upload the files that have changed since their last upload.

        Before the job has `settled`, upload only those that are the same as in `seen`. Return every file with its size
        and time, which is `seen` of the next call.
        """
        found: dict[Path, _Stamp] = {}
        for output in outputs:
            base = self._local(output["LocalPath"])
            stamps = {path: (stat.st_size, stat.st_mtime_ns) for path, stat in _files(base)}
            found |= stamps
            due = [
                path
                for path, stamp in stamps.items()
                if self._uploaded.get(path) != stamp and (settled or (seen or {}).get(path) == stamp)
            ]
            bucket, _, prefix = output["S3Uri"].removeprefix("s3://").partition("/")
            try:
                upload_files(self._context.client("s3"), base, due, bucket, join_key(prefix))
            except LocalError as error:
                raise _JobFailedError(f"ClientError: {error}") from error
            self._uploaded |= {path: stamps[path] for path in due}
        return found

    def _exit_message(self) -> str:
        file = self._local(f"{ROOT}/output/message")
        return file.read_text(encoding="utf-8", errors="replace")[:_MESSAGE_LENGTH] if file.is_file() else ""

    def _local(self, path: str) -> Path:
        return self._work / path.lstrip("/")

    def _mapped(self, text: str) -> str:
        return re.sub(rf"(?<![\w.-/]){ROOT}(?=/|$)", lambda _: str(self._local(ROOT)), text)


def _files(base: Path) -> list[tuple[Path, Any]]:
    found = []
    for path in sorted(base.rglob("*")):
        try:
            if path.is_file() and not path.is_symlink():
                found.append((path, path.stat()))
        except OSError:
            continue  # gone meanwhile
    return found
