"""The jobs that build and rehearse, as CodeBuild reports them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from examples.local_run import console

__all__ = ["Builds"]


class Builds:
    """The builds of CodeBuild, as `aws codebuild` would list them."""

    def __init__(self, client: Callable[[str], Any]) -> None:
        self._codebuild, self._s3 = client("codebuild"), client("s3")
        self._told: set[str] = set()

    def tell(self) -> None:
        """Print the jobs that were started since the last time."""
        (project,) = self._codebuild.list_projects()["projects"]
        ids = self._codebuild.list_builds_for_project(projectName=project)["ids"]
        new = [each for each in ids if each not in self._told]
        self._told |= set(new)
        if not new:
            console.print("  Jobs that were started: none.")
        for build in self._codebuild.batch_get_builds(ids=new)["builds"] if new else []:
            name = build["id"].rpartition(":")[2][:8]
            console.print(f"  Job {name} was started to {self._work(build)}; it ended with {build['buildStatus']}.")

    def _work(self, build: dict[str, Any]) -> str:
        bucket, _, folder = build["source"]["location"].partition("/")
        plan = json.loads(self._s3.get_object(Bucket=bucket, Key=f"{folder}plan.json")["Body"].read())
        parts = {
            verb: ", ".join(each["repository"] for each in plan[section])
            for verb, section in (("build", "ensembles"), ("rehearse", "rehearsals"))
        }
        return ", and to ".join(f"{verb} {names}" for verb, names in parts.items() if names)
