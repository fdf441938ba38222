"""What jobs of both services have in common: a folder in, a folder out, and the build program between them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal, Protocol

__all__ = ["Folder", "Outcome", "Program", "ProgramDouble"]

Outcome = Literal["good", "failed", "unstarted", "missing", "corrupt", "cut"]
"""What becomes of a product: finished; a failure.json; one that says that it was not started; nothing; a report with
wrong hashes; an archive too short."""


class Folder(Protocol):
    """The store's bucket as a job sees it."""

    def get(self, key: str) -> bytes | None:
        """An object's content."""

    def put(self, key: str, body: bytes) -> None:
        """Write an object."""


class Program(Protocol):
    """What runs in a job."""

    def begin(self, build: str) -> None:
        """The job reads its input."""


class ProgramDouble:
    """A double of the build program: it checks what it is given, and writes what a test wants it to have built.

    Args:
        folder: the store's bucket.
        part_bytes: as in `artifacts.copying`.

    Attributes:
        outcomes: by key, those of rehearsals that share the name of a repository.
    """

    def __init__(self, folder: Folder, part_bytes: int) -> None:
        self._folder = folder
        self.part_bytes = part_bytes
        self.built: dict[str, list[bytes]] = {}
        self.rehearsed: list[str] = []
        self.outcomes: dict[str, Outcome] = {}
        self.incomplete: list[str] = []

    def begin(self, build: str) -> None:
        """Note every input that the plan names and that is not there."""
        names = ["program.pyz"]
        plan = self.plan(build)
        for rehearsal in plan["rehearsals"]:
            names += [rehearsal["golden"], *filter(None, [rehearsal["archive"]])]
        for ensemble in plan["ensembles"]:
            names += [ensemble["sources"], *(source["path"] for source in ensemble["inputs"])]
        self.incomplete += [
            f"{build}: {name}" for name in names if self._folder.get(f"staging/{build}/in/{name}") is None
        ]

    def plan(self, build: str) -> dict[str, Any]:
        """The build plan; one without ensembles where there is none."""
        text = self._folder.get(f"staging/{build}/in/plan.json")
        if text is None:
            self.incomplete.append(f"{build}: plan.json")
            return {"ensembles": [], "rehearsals": []}
        plan: dict[str, Any] = json.loads(text)
        return plan

    def members(self, build: str) -> dict[str, str]:
        """Each key to the name of its repository, or to `rehearsal of` it."""
        plan = self.plan(build)
        rehearsed = {each["key"]: f"rehearsal of {each['repository']}" for each in plan["rehearsals"]}
        return {each["artifact_key"]: each["repository"] for each in plan["ensembles"]} | rehearsed

    def finish(self, build: str, outcomes: Mapping[str, Outcome]) -> None:
        """Write the output; `outcomes` by the names of members, what is not named is good."""
        plan = self.plan(build)
        for ensemble in plan["ensembles"]:
            name = ensemble["repository"]
            self._write(build, ensemble["artifact_key"], name, outcomes.get(name, "good"))
        for rehearsal in plan["rehearsals"]:
            outcome = outcomes.get(f"rehearsal of {rehearsal['repository']}", "good")
            self._rehearse(build, rehearsal, self.outcomes.get(rehearsal["key"], outcome))

    def _rehearse(self, build: str, rehearsal: Mapping[str, Any], outcome: Outcome) -> None:
        out, path = f"staging/{build}/out/", rehearsal["archive"]
        archive = self._folder.get(
            f"{out}{rehearsal['artifact_key']}/model.tar.gz" if path is None else f"staging/{build}/in/{path}"
        )
        if outcome == "missing":
            return
        if outcome in ("failed", "unstarted") or archive is None:
            reason = "golden/one.json: the output 'scores' differs" if archive else "its archive was not built"
            failure = {"schema": 1, "repository": rehearsal["repository"], "reason": reason, "log": ["a line"]}
            failure |= {"started": False} if outcome == "unstarted" else {}
            self._folder.put(f"{out}{rehearsal['key']}/failure.json", json.dumps(failure).encode())
            return
        self.rehearsed.append(rehearsal["key"])
        sha256 = hashlib.sha256(archive if outcome == "good" else b"?").hexdigest()
        found = {"schema": 1, "archive": {"size": len(archive), "sha256": sha256}, "load_seconds": 2.5, "requests": []}
        text = json.dumps(found).encode()
        self._folder.put(f"{out}{rehearsal['key']}/pass.json", text if outcome != "cut" else text[:-9])

    def _write(self, build: str, key: str, repository: str, outcome: Outcome) -> None:
        out = f"staging/{build}/out/{key}/"
        if outcome == "missing":
            return
        if outcome == "failed":
            failure = {"schema": 1, "repository": repository, "reason": "trtexec failed", "log": ["a line", "the last"]}
            self._folder.put(f"{out}failure.json", json.dumps(failure).encode())
            return
        body = f"{repository} {key[:6]} built by {build}".encode()
        told = body + b"?" if outcome == "corrupt" else body
        if outcome == "good":
            self.built.setdefault(key, []).append(body)
        self._folder.put(f"{out}model.tar.gz", body[:-1] if outcome == "cut" else body)
        parts = [told[first : first + self.part_bytes] for first in range(0, len(body), self.part_bytes)]
        if outcome == "corrupt":
            parts = [part[::-1] for part in parts]
        report = {
            "schema": 1,
            "build": build,
            "repository": repository,
            "artifact_key": key,
            "archive": {
                "size": len(body),
                "sha256": hashlib.sha256(body).hexdigest(),
                "part_bytes": self.part_bytes,
                "parts": [hashlib.sha256(part).hexdigest() for part in parts],
            },
        }
        self._folder.put(f"{out}build.json", json.dumps(report).encode())
