"""CodeBuild of the local AWS: projects, and builds that really run.

moto has no UpdateProject, ignores overrides and lets every build succeed at the first poll, so this module replaces it.
Sources: the API reference of CodeBuild for members, errors and limits, and botocore's model of it for what a request
may hold.
"""

from __future__ import annotations

import copy
import threading
import uuid
from collections.abc import Mapping
from typing import Any

from botocore import xform_name

from cdk_triton_local.jobs.build import Build, BuildRecord, BuildRequest
from cdk_triton_local.jobs.context import LocalContext
from cdk_triton_local.jobs.machine import CODEBUILD_MACHINES
from cdk_triton_local.wire import JsonApi, JsonApiError

__all__ = ["OPERATIONS", "CodeBuild"]

OPERATIONS = (
    "BatchGetBuilds",
    "BatchGetProjects",
    "CreateProject",
    "DeleteProject",
    "ListBuildsForProject",
    "ListProjects",
    "StartBuild",
    "StopBuild",
    "UpdateProject",
)
"""The operations with an answer; every other operation is rejected by its name."""

TOKEN_SECONDS = 300.0
"""How long an idempotency token holds (StartBuild: "valid for 5 minutes")."""

_PAGE = 100
"""Most names or ids of one list (ListBuildsForProject, ListProjects)."""

_DEFAULTS = {"timeoutInMinutes": 60, "queuedTimeoutInMinutes": 480, "cache": {"type": "NO_CACHE"}}
_PROJECT = {
    "artifacts",
    "cache",
    "description",
    "encryptionKey",
    "environment",
    "logsConfig",
    "name",
    "queuedTimeoutInMinutes",
    "serviceRole",
    "source",
    "tags",
    "timeoutInMinutes",
    "vpcConfig",
}
_OVERRIDES: Mapping[str, tuple[str, ...]] = {
    "artifactsOverride": ("artifacts",),
    "buildspecOverride": ("source", "buildspec"),
    "computeTypeOverride": ("environment", "computeType"),
    "encryptionKeyOverride": ("encryptionKey",),
    "environmentTypeOverride": ("environment", "type"),
    "imageOverride": ("environment", "image"),
    "imagePullCredentialsTypeOverride": ("environment", "imagePullCredentialsType"),
    "logsConfigOverride": ("logsConfig",),
    "privilegedModeOverride": ("environment", "privilegedMode"),
    "queuedTimeoutInMinutesOverride": ("queuedTimeoutInMinutes",),
    "serviceRoleOverride": ("serviceRole",),
    "sourceLocationOverride": ("source", "location"),
    "sourceTypeOverride": ("source", "type"),
    "timeoutInMinutesOverride": ("timeoutInMinutes",),
}
"""The overrides of StartBuild and what of the project each replaces."""


class CodeBuild:
    """Answers CodeBuild's API and runs builds.

    Args:
        context: the local AWS.
    """

    def __init__(self, context: LocalContext) -> None:
        self._context = context
        self._clock = context.clock
        self._projects: dict[str, dict[str, Any]] = {}
        self._numbers: dict[str, int] = {}
        self._records: dict[str, BuildRecord] = {}
        self._tokens: dict[tuple[str, str], tuple[float, Mapping[str, Any], str]] = {}
        self._running: dict[str, tuple[Build, threading.Thread]] = {}
        self._closed = False
        self._lock = threading.RLock()
        answers = {name: getattr(self, f"_{xform_name(name)}") for name in OPERATIONS}
        self.api = JsonApi("codebuild", answers, "InvalidInputException")

    def close(self) -> None:
        """End every build, and accept no new one."""
        with self._lock:
            self._closed = True
            running = list(self._running.values())
        for build, _ in running:
            build.stop()
        for _, thread in running:
            thread.join()

    # ------------------------------------------------------------------------------ projects

    def _create_project(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            if request["name"] in self._projects:
                raise JsonApiError(
                    f"Project already exists: {self._arn(request['name'])}", "ResourceAlreadyExistsException"
                )
            self._projects[request["name"]] = project = self._checked(
                {**_DEFAULTS, **request, "created": self._context.now()}
            )
            return {"project": copy.deepcopy(project)}

    def _update_project(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            project = self._project(request["name"])
            self._projects[request["name"]] = changed = self._checked({**project, **request})
            return {"project": copy.deepcopy(changed)}

    def _checked(self, project: dict[str, Any]) -> dict[str, Any]:
        name = project["name"]
        own = {"arn", "badge", "created", "lastModified", "projectVisibility"}
        if foreign := sorted(set(project) - _PROJECT - own):
            raise JsonApiError(f"{foreign[0]} of a project is not modelled by the local AWS")
        _checked_machine(project)
        _log_group(project)
        return {
            **project,
            "arn": self._arn(name),
            "badge": {"badgeEnabled": False},
            "lastModified": self._context.now(),
            "projectVisibility": "PRIVATE",
        }

    def _delete_project(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self._projects.pop(request["name"].rpartition("/")[2], None)
            return {}

    def _batch_get_projects(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            names = {name: name.rpartition("/")[2] for name in request["names"]}
            found = [self._projects[name] for name in names.values() if name in self._projects]
            missing = [asked for asked, name in names.items() if name not in self._projects]
            return {"projects": copy.deepcopy(found), "projectsNotFound": missing}

    def _list_projects(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            names = sorted(self._projects, reverse=request.get("sortOrder") == "DESCENDING")
        return _page(names, request, "projects")

    def _project(self, name: str) -> dict[str, Any]:
        project = self._projects.get(name.rpartition("/")[2])
        if project is None:
            raise JsonApiError(f"Project cannot be found: {self._arn(name)}", "ResourceNotFoundException")
        return project

    def _arn(self, name: str) -> str:
        return self._context.arn("codebuild", f"project/{name}")

    # ------------------------------------------------------------------------------ builds

    def _start_build(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            project = self._project(request["projectName"])
            identifier = self._same_build(project["name"], request)
            return {
                "build": self._start(project, request) if identifier is None else self._records[identifier].describe()
            }

    def _same_build(self, project: str, request: Mapping[str, Any]) -> str | None:
        """The id of the build that an earlier request with the same token has started."""
        held = self._tokens.get((project, request.get("idempotencyToken", "")))
        if held is None or self._clock() - held[0] > TOKEN_SECONDS:
            return None
        if held[1] != request:
            raise JsonApiError(
                "Parameter mismatch: the idempotency token was used less than 5 minutes ago with other parameters"
            )
        return held[2]

    def _start(self, project: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
        if self._closed:
            raise JsonApiError("the local AWS is being stopped")
        wanted = _with_overrides(project, request)
        machine = _checked_machine(wanted)
        number = self._numbers[project["name"]] = self._numbers.get(project["name"], 0) + 1
        stream = str(uuid.uuid4())
        identifier = f"{project['name']}:{stream}"
        variables = {
            each["name"]: _plaintext(each)
            for each in (
                *project["environment"].get("environmentVariables", []),
                *request.get("environmentVariablesOverride", []),
            )
        }
        members = self._initial_members(wanted, identifier, number)
        record = BuildRecord(members, self._context.now)
        build_request = BuildRequest(
            members=members,
            artifacts=wanted["artifacts"],
            machine=machine,
            seconds=wanted["timeoutInMinutes"] * 60.0,
            variables=variables,
            log_group=_log_group(wanted) or f"/aws/codebuild/{project['name']}",
            log_stream="/".join(filter(None, (_log_stream(wanted), stream))),
        )
        context = self._context.with_role(wanted["serviceRole"])
        build = Build(build_request, record, context, context.directory / "builds" / stream)
        self._records[identifier] = record
        if token := request.get("idempotencyToken"):
            self._tokens[project["name"], token] = (self._clock(), copy.deepcopy(dict(request)), identifier)

        def run() -> None:
            build.run()
            with self._lock:
                self._running.pop(identifier, None)

        thread = threading.Thread(target=run, name=f"build-{identifier}", daemon=True)
        self._running[identifier] = (build, thread)
        begun = record.describe()
        thread.start()
        return begun

    def _initial_members(self, wanted: Mapping[str, Any], identifier: str, number: int) -> dict[str, Any]:
        artifacts = wanted["artifacts"]
        place = "/".join(
            part for each in ("location", "path", "name") if (part := str(artifacts.get(each, "")).strip("/"))
        )
        kept = ("cache", "encryptionKey", "environment", "queuedTimeoutInMinutes", "serviceRole", "source", "vpcConfig")
        return {
            **{name: wanted[name] for name in kept if name in wanted},
            "id": identifier,
            "arn": self._context.arn("codebuild", f"build/{identifier}"),
            "buildNumber": number,
            "projectName": wanted["name"],
            "timeoutInMinutes": wanted["timeoutInMinutes"],
            "initiator": "cdk-triton-local",
            "artifacts": {"location": f"arn:aws:s3:::{place}" if place else ""},
            "logs": {"deepLink": _no_log(self._context.region)},
        }

    def _stop_build(self, request: dict[str, Any]) -> dict[str, Any]:
        identifier = _identifier(request["id"])
        with self._lock:
            record = self._records.get(identifier)
            running = self._running.get(identifier)
        if record is None:
            raise JsonApiError(f"Build {request['id']} cannot be found", "ResourceNotFoundException")
        if running is not None:
            running[0].stop()
        return {"build": record.describe()}

    def _batch_get_builds(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            found = {asked: self._records.get(_identifier(asked)) for asked in request["ids"]}
        return {
            "builds": [record.describe() for record in found.values() if record is not None],
            "buildsNotFound": [asked for asked, record in found.items() if record is None],
        }

    def _list_builds_for_project(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            name = self._project(request["projectName"])["name"]
            own = [identifier for identifier in self._records if identifier.startswith(f"{name}:")]
        if request.get("sortOrder", "DESCENDING") == "DESCENDING":
            own.reverse()
        return _page(own, request, "ids")


def _with_overrides(project: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    known = {"projectName", "idempotencyToken", "environmentVariablesOverride", *_OVERRIDES}
    if foreign := sorted(set(request) - known):
        raise JsonApiError(f"{foreign[0]} of StartBuild is not modelled by the local AWS")
    wanted = copy.deepcopy(dict(project))
    for name, (*path, last) in _OVERRIDES.items():
        if name in request:
            place = wanted
            for step in path:
                place = place[step]
            place[last] = copy.deepcopy(request[name])
    return wanted


def _checked_machine(project: Mapping[str, Any]) -> Any:
    environment, source, artifacts = project["environment"], project["source"], project["artifacts"]
    kind = (environment["type"], environment["computeType"])
    if kind not in CODEBUILD_MACHINES or environment.get("fleet"):
        played = ", ".join(" ".join(each) for each in CODEBUILD_MACHINES)
        raise JsonApiError(f"environment {' '.join(kind)} is not modelled by the local AWS, which models {played}")
    for variable in environment.get("environmentVariables", []):
        _plaintext(variable)
    if source["type"] not in ("S3", "NO_SOURCE"):
        raise JsonApiError(
            f"sources of type {source['type']} are not modelled by the local AWS, which models S3 folders"
        )
    if source["type"] == "S3" and "/" not in source.get("location", ""):
        raise JsonApiError("Invalid project source: location must be a valid S3 source")
    if source["type"] == "S3" and not source["location"].endswith("/"):
        raise JsonApiError(
            f"the source {source['location']!r} is an archive, which is not modelled by the local AWS; give a "
            "folder, whose location ends with /"
        )
    if artifacts["type"] not in ("S3", "NO_ARTIFACTS") or artifacts.get("packaging", "NONE") != "NONE":
        raise JsonApiError(
            f"artifacts {artifacts['type']} {artifacts.get('packaging', '')} are not modelled by the local AWS, which "
            "models files in S3 (packaging NONE)"
        )
    if artifacts["type"] == "S3" and not artifacts.get("location"):
        raise JsonApiError("Invalid artifacts: location is required for artifacts of type S3")
    return CODEBUILD_MACHINES[kind]


def _plaintext(variable: Mapping[str, str]) -> str:
    if variable.get("type", "PLAINTEXT") != "PLAINTEXT":
        raise JsonApiError(
            f"the environment variable {variable['name']} is of type {variable['type']}, but the local AWS models "
            "only PLAINTEXT"
        )
    return variable["value"]


def _log_group(project: Mapping[str, Any]) -> str:
    logs = project.get("logsConfig", {})
    watched = logs.get("cloudWatchLogs", {"status": "ENABLED"})
    if watched["status"] != "ENABLED" or logs.get("s3Logs", {}).get("status", "DISABLED") != "DISABLED":
        raise JsonApiError("logs go to CloudWatch in the local AWS, neither to S3 nor to nowhere")
    return str(watched.get("groupName", ""))


def _log_stream(project: Mapping[str, Any]) -> str:
    return str(project.get("logsConfig", {}).get("cloudWatchLogs", {}).get("streamName", ""))


def _no_log(region: str) -> str:
    return f"https://console.aws.amazon.com/cloudwatch/home?region={region}#logsV2:log-groups/log-group/null/log-events/null"


def _identifier(identifier: str) -> str:
    """Requests may have an ARN instead of the id."""
    return identifier.partition(":build/")[2] or identifier


def _page(names: list[str], request: Mapping[str, Any], member: str) -> dict[str, Any]:
    first = int(request.get("nextToken", 0))
    more = {"nextToken": str(first + _PAGE)} if len(names) > first + _PAGE else {}
    return {member: names[first : first + _PAGE], **more}
