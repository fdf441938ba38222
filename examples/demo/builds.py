"""The builds of the build step, as CodeBuild reports them."""

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
        """Print the builds that were started since the last time."""
        (project,) = self._codebuild.list_projects()["projects"]
        ids = self._codebuild.list_builds_for_project(projectName=project)["ids"]
        new = [each for each in ids if each not in self._told]
        self._told |= set(new)
        if not new:
            console.print("  Builds that were started: none.")
        for build in self._codebuild.batch_get_builds(ids=new)["builds"] if new else []:
            names = ", ".join(self._ensembles(build))
            name = build["id"].rpartition(":")[2][:8]
            console.print(f"  Build {name} was started for {names}; it ended with {build['buildStatus']}.")

    def _ensembles(self, build: dict[str, Any]) -> list[str]:
        bucket, _, folder = build["source"]["location"].partition("/")
        plan = json.loads(self._s3.get_object(Bucket=bucket, Key=f"{folder}plan.json")["Body"].read())
        return [ensemble["repository"] for ensemble in plan["ensembles"]]
