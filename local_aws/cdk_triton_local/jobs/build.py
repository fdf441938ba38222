"""Runs one build of CodeBuild, from the source to the artifacts, and keeps its state.

Sources: "Build specification reference for CodeBuild", "Build phase transitions" and "Environment variables in build
environments" in the CodeBuild user guide; Build, BuildPhase and PhaseContext in its API reference.
"""

from __future__ import annotations

import copy
import datetime
import shlex
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cdk_triton.errors import LocalError
from cdk_triton_local.jobs.buildspec import PHASES, Buildspec, BuildspecError, Phase, read_buildspec
from cdk_triton_local.jobs.context import LocalContext
from cdk_triton_local.jobs.folders import download_folder, join_key, upload_files
from cdk_triton_local.jobs.log import JobLog
from cdk_triton_local.jobs.machine import JobMachine
from cdk_triton_local.jobs.runner import JobEndedError, JobStoppedError, JobTimedOutError, Runner

__all__ = ["Build", "BuildRecord", "BuildRequest"]


@dataclass(frozen=True)
class BuildRequest:
    """The work of a build: the project with the overrides of StartBuild applied.

    Attributes:
        members: the members of `Build` in the API reference that follow from the request.
        artifacts: the destination of the build's artifacts (ProjectArtifacts).
        seconds: how long it may take.
        variables: environment variables of the project and of the request.
    """

    members: Mapping[str, Any]
    artifacts: Mapping[str, Any]
    machine: JobMachine
    seconds: float
    variables: Mapping[str, str]
    log_group: str
    log_stream: str


class BuildRecord:
    """A build as BatchGetBuilds describes it. Every method can be called from any thread.

    Args:
        members: the members of the description that do not change.
        now: returns the time.
    """

    def __init__(self, members: Mapping[str, Any], now: Callable[[], datetime.datetime]) -> None:
        self._now = now
        self._members: dict[str, Any] = {
            **copy.deepcopy(dict(members)),
            "startTime": self._now(),
            "buildStatus": "IN_PROGRESS",
            "buildComplete": False,
            "phases": [],
        }
        self._lock = threading.Lock()
        self.begin("SUBMITTED")

    def describe(self) -> dict[str, Any]:
        """The build as it is now."""
        with self._lock:
            return copy.deepcopy(self._members)

    def set(self, **members: Any) -> None:
        """Change members of the description."""
        with self._lock:
            self._members |= members

    def begin(self, phase: str) -> None:
        """Begin a phase. The previous one counts as succeeded, unless it ended in another way."""
        self.end("SUCCEEDED")
        with self._lock:
            self._members["phases"].append({"phaseType": phase, "startTime": self._now()})
            self._members["currentPhase"] = phase

    def end(self, status: str, code: str = "", message: str = "") -> None:
        """The current phase has ended; nothing happens if it has already."""
        with self._lock:
            if not self._members["phases"] or "phaseStatus" in self._members["phases"][-1]:
                return
            phase, now = self._members["phases"][-1], self._now()
            phase |= {
                "phaseStatus": status,
                "endTime": now,
                "durationInSeconds": round((now - phase["startTime"]).total_seconds()),
                "contexts": [{"statusCode": code, "message": message}],
            }

    def complete(self, status: str) -> None:
        """The build has ended."""
        self.begin("COMPLETED")
        self.set(buildStatus=status, buildComplete=True, endTime=self._now())


class _PhaseFailedError(Exception):
    """`code` is the status code of the phase's context."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Build:
    """Runs one build; `run` does it, in a thread of its own.

    Args:
        request: what to do.
        record: is kept up to date.
        context: the local AWS.
        work: a directory of the build's own, removed in the end.
    """

    def __init__(self, request: BuildRequest, record: BuildRecord, context: LocalContext, work: Path) -> None:
        self._request = request
        self._record = record
        self._context = context
        self._work = work
        self._source = work / "src"
        self._environment: dict[str, str] = {}
        self._succeeding = True
        self._status = "FAULT"
        self._id: str = request.members["id"]
        self._image: str = request.members["environment"]["image"]
        self._log = JobLog(
            context.client("logs"),
            request.log_group,
            request.log_stream,
            context.directory / "logs" / f"codebuild-{self._id.replace(':', '-')}.log",
        )
        self._runner = Runner(request.seconds, self._log.output)

    def stop(self) -> None:
        """End the build, if it is still running."""
        self._runner.stop()

    def run(self) -> None:
        """Run the build to its end; a failure becomes its status."""
        self._context.log(f"build {self._id}: started")
        with ExitStack() as machine:
            self._run(machine)
        self._context.log(f"build {self._id}: {self._status}")

    def _run(self, machine: ExitStack) -> None:
        """Run the build, and complete its record before what `machine` has is left."""
        with self._log:
            try:
                self._status = self._phases(machine)
            except JobEndedError as ended:
                self._status = "STOPPED" if isinstance(ended, JobStoppedError) else "TIMED_OUT"
                context = ("BUILD_TIMED_OUT", "Build has timed out. ") if self._status == "TIMED_OUT" else ("", "")
                self._end_phase(self._status, *context)
            except _PhaseFailedError as failure:
                self._status = "FAILED"
                self._end_phase("FAILED", failure.code, str(failure))
            except Exception as error:
                # Whatever goes wrong here is the service's fault, and must not leave the build IN_PROGRESS.
                self._end_phase("FAULT", "INTERNAL_SERVICE_ERROR", f"{type(error).__name__}: {error}")
            finally:
                self._runner.close()
                self._record.begin("FINALIZING")
                shutil.rmtree(self._work, ignore_errors=True)
        self._record.complete(self._status)

    def _phases(self, machine: ExitStack) -> str:
        self._record.begin("QUEUED")
        self._await_machine()
        machine.enter_context(self._context.working())
        self._record.begin("PROVISIONING")
        self._record.set(logs=_logs(self._context, self._request.log_group, self._request.log_stream))
        self._introduce()
        self._begin_phase("DOWNLOAD_SOURCE")
        self._download()
        spec = self._read_buildspec()
        self._environment = self._variables(spec)
        self._end_phase("SUCCEEDED")
        for name in PHASES:
            phase = spec.phases.get(name, Phase())
            self._begin_phase(name.upper())
            aborted = not self._run_phase(phase) and _aborts(name, phase)
            if aborted:
                return "FAILED"
        self._begin_phase("UPLOAD_ARTIFACTS")
        self._upload(spec)
        self._end_phase("SUCCEEDED")
        return "SUCCEEDED" if self._succeeding else "FAILED"

    def _await_machine(self) -> None:
        """Raise JobTimedOutError if the build has been queued for too long."""
        began, context = self._context.clock(), self._context
        limit = self._request.members["queuedTimeoutInMinutes"] * 60
        while (waited := context.clock() - began) < context.start_seconds("codebuild"):
            if waited > limit:
                raise JobTimedOutError
            self._runner.pause()

    # ------------------------------------------------------------------------------ the phases

    def _download(self) -> None:
        self._source.mkdir(parents=True)
        source = self._request.members["source"]
        if source["type"] == "NO_SOURCE":
            return
        bucket, _, prefix = source["location"].removeprefix("arn:aws:s3:::").partition("/")
        try:
            found = download_folder(
                self._context.client("s3"), bucket, prefix, self._source, self._runner.raise_if_ended
            )
        except LocalError as error:
            raise _PhaseFailedError("CLIENT_ERROR", str(error)) from error
        if not found:
            raise _PhaseFailedError("CLIENT_ERROR", f"NoSuchKey: there is no object below {source['location']}")

    def _read_buildspec(self) -> Buildspec:
        try:
            return read_buildspec(self._request.members["source"].get("buildspec", ""))
        except BuildspecError as error:
            raise _PhaseFailedError("YAML_FILE_ERROR", str(error)) from error

    def _run_phase(self, phase: Phase) -> bool:
        """Return whether all commands succeeded."""
        failure = self._run_until_failure(phase.commands)
        failure = self._run_until_failure(phase.finally_commands) or failure
        if failure is None:
            self._end_phase("SUCCEEDED")
            return True
        self._succeeding = False
        command, status = failure
        self._end_phase(
            "FAILED",
            "COMMAND_EXECUTION_ERROR",
            f"Error while executing command: {command}. Reason: exit status {status}",
        )
        return False

    def _run_until_failure(self, commands: Sequence[str]) -> tuple[str, int] | None:
        """Return the command that failed and its exit status, or None."""
        while commands:
            status, last = self._run_shell(commands)
            if status:
                return commands[last], status
            commands = commands[last + 1 :]  # `exit 0` ends a command, not the phase
        return None

    def _run_shell(self, commands: Sequence[str]) -> tuple[int, int]:
        """Return the exit status, and the number of the last command that ran."""
        script, state = self._work / "commands.sh", self._work / "state"
        script.write_text(_script(commands, state), encoding="utf-8")
        environment = {**self._environment, "CODEBUILD_BUILD_SUCCEEDING": "1" if self._succeeding else "0"}
        directory = Path(environment.get("PWD", str(self._source)))
        status = self._runner.run(["bash", script], environment=environment, directory=directory)
        last = len(commands) - 1
        if state.exists():
            number, _, variables = state.read_bytes().partition(b"\0")
            last = int(number)
            self._environment = _parsed(variables)
            state.unlink()
        return status, last

    def _upload(self, spec: Buildspec) -> None:
        artifacts = self._request.artifacts
        if artifacts.get("type", "NO_ARTIFACTS") == "NO_ARTIFACTS" or spec.artifacts is None:
            return
        name = (spec.artifacts.name if artifacts.get("overrideArtifactName") else None) or artifacts.get("name", "")
        build = self._id.partition(":")[2] if artifacts.get("namespaceType") == "BUILD_ID" else ""
        prefix = join_key(artifacts.get("path", ""), build, name)
        try:
            base, files = spec.artifacts.found(self._source)
            upload_files(
                self._context.client("s3"),
                base,
                files,
                artifacts["location"],
                prefix,
                checkpoint=self._runner.raise_if_ended,
            )
        except LocalError as error:
            raise _PhaseFailedError("CLIENT_ERROR", str(error)) from error
        self._say(f"Uploaded {len(files)} files to {artifacts['location']}/{prefix}")

    # ------------------------------------------------------------------------------ what it tells and gives

    def _introduce(self) -> None:
        image = self._image
        self._say(
            f"stand-in for CodeBuild: this build runs on this machine, not in {image}; the build finds "
            f"{self._request.machine.describe(image)}"
        )

    def _begin_phase(self, phase: str) -> None:
        self._record.begin(phase)
        self._say(f"Entering phase {phase}")

    def _end_phase(self, status: str, code: str = "", message: str = "") -> None:
        phase = self._record.describe()["currentPhase"]
        self._record.end(status, code, message)
        self._say(f"Phase complete: {phase} State: {status}")
        self._say(f"Phase context status code: {code} Message: {message}")

    def _say(self, text: str) -> None:
        self._log.line(f"[Container] {self._context.now():%Y/%m/%d %H:%M:%S.%f} {text}")

    def _variables(self, spec: Buildspec) -> dict[str, str]:
        """StartBuild's variables win over the project's, and those over the buildspec's."""
        members = self._record.describe()
        own = {
            "CI": "true",
            "CODEBUILD_BUILD_ARN": members["arn"],
            "CODEBUILD_BUILD_ID": members["id"],
            "CODEBUILD_BUILD_IMAGE": self._image,
            "CODEBUILD_BUILD_NUMBER": str(members["buildNumber"]),
            "CODEBUILD_INITIATOR": members["initiator"],
            "CODEBUILD_KMS_KEY_ID": members.get("encryptionKey", ""),
            "CODEBUILD_LOG_PATH": self._request.log_stream,
            "CODEBUILD_SOURCE_REPO_URL": members["source"].get("location", ""),
            "CODEBUILD_SRC_DIR": str(self._source),
            "CODEBUILD_START_TIME": str(int(members["startTime"].timestamp() * 1000)),
            "PWD": str(self._source),
        }
        extra = {**spec.variables, **self._request.variables, **own, **self._context.environment}
        return self._request.machine.environment(self._work, self._image, extra)


def _aborts(name: str, phase: Phase) -> bool:
    """Whether a build ends with this failed phase: by default all do but BUILD, after which POST_BUILD still runs.

    ("Build phase transitions"; `on-failure` in the reference of the build specification.) After POST_BUILD only the
    upload follows, and "the UPLOAD_ARTIFACTS phase is always attempted, even if the BUILD phase fails".
    """
    if phase.abort is not None:
        return phase.abort
    return name in ("install", "pre_build")


def _script(commands: Sequence[str], state: Path) -> str:
    """The script runs all commands in one shell until one fails, and writes its state to a file."""
    lines = [
        "unset OLDPWD",
        f'trap \'{{ printf "%s\\0" "$__at"; env -0; }} > {shlex.quote(str(state))}\' EXIT',
    ]
    for number, command in enumerate(commands):
        lines += [
            f"__at={number}",
            f"printf '[Container] %(%Y/%m/%d %H:%M:%S)T Running command %s\\n' -1 {shlex.quote(command)}",
            f"eval {shlex.quote(command)}",
            "__status=$?; [ $__status -eq 0 ] || exit $__status",
        ]
    return "\n".join([*lines, ""])


def _parsed(variables: bytes) -> dict[str, str]:
    pairs = (each.partition("=") for each in variables.decode(errors="surrogateescape").split("\0") if each)
    return {name: value for name, _, value in pairs if name not in ("_", "SHLVL")}


def _logs(context: LocalContext, group: str, stream: str) -> dict[str, Any]:
    def part(text: str) -> str:
        # The console wants it quoted twice, with $ in place of %.
        return quote(quote(text, safe=""), safe="").replace("%", "$")

    return {
        "groupName": group,
        "streamName": stream,
        "deepLink": f"https://console.aws.amazon.com/cloudwatch/home?region={context.region}#logsV2:log-groups/log-group/"
        f"{part(group)}/log-events/{part(stream)}",
        "cloudWatchLogsArn": context.arn("logs", f"log-group:{group}:log-stream:{stream}"),
        "cloudWatchLogs": {"status": "ENABLED", "groupName": group},
        "s3Logs": {"status": "DISABLED", "encryptionDisabled": False},
    }
