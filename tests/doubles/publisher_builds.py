"""A publisher's machine in memory that also builds: the store's handler, and a CodeBuild whose jobs a test ends."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping
from typing import Any

from artifacts import Invocation, copying
from artifacts.builders import Builders
from artifacts.published_builds import build_batch
from artifacts.publishing import Publisher
from memory_aws import S3, Client, Clock, CodeBuild, Logs, ProgramDouble, Wire
from protocol.keys import ArchiveKeys
from protocol.plan import BuildInput, BuildMachine
from protocol.publication import UploadedRehearsal
from protocol.publisher import BuildingPublisher, DeclaredBuilds
from publisher_machine import (
    CALLER,
    FLEET,
    KEYS,
    PLATFORM,
    REQUESTS,
    STORE,
    Answer,
    Machine,
    Work,
    packed_keys,
)

__all__ = [
    "ASSETS",
    "BUILDS",
    "DECLARED",
    "DESCRIPTION",
    "INPUT",
    "RECIPES",
    "BuildingMachine",
    "built_keys",
    "rehearsal_key",
    "rehearsal_of",
]

ASSETS = "the-assets"
INPUT = b"an input of a recipe"
RECIPES: list[dict[str, Any]] = [
    {"parameters": {"recipe": "tensorrt_plan", "model": "text"}, "s3_files": []},
    {
        "parameters": {"recipe": "tensorrt_plan", "model": "text", "onnx": "it"},
        "s3_files": [{"bucket": "others", "key": "text.onnx", "sha256": hashlib.sha256(INPUT).hexdigest()}],
    },
]
BUILDERS = {"codebuild": {"project": "the-project", "log_group": "/builds"}, "processing": None}
MACHINE = BuildMachine(
    "codebuild",
    120,
    {"gpu": "NVIDIA A10G", "image": "image:25.09"},
    BuildInput(None, "triton-program.pyz", "program.pyz"),
)
DECLARED = DeclaredBuilds(PLATFORM, 1, MACHINE, 2, tuple(RECIPES), "ml.g5.xlarge")
DESCRIPTION = BuildingPublisher(FLEET, KEYS, DECLARED.text().decode()).text()
BUILDS = {
    "assets": ASSETS,
    "description": "triton-description.json",
    "sha256": hashlib.sha256(DESCRIPTION).hexdigest(),
    "image": "image:25.09",
}
"""What the definition of the machine hands on to the function that builds."""


def built_keys(sources: bytes, recipe: int = 0) -> ArchiveKeys:
    """The keys of an archive that is built from sources with the recipe of this number."""
    return packed_keys(sources, KEYS.with_recipes([RECIPES[recipe]["parameters"]], 1))


def rehearsal_of(repository: str, golden: str) -> UploadedRehearsal:
    """The rehearsal of a repository with the golden requests that have this SHA-256."""
    document = {"schema": 1, "repository": repository, "mode": "multi", "load_timeout_seconds": 60, "requests": []}
    return UploadedRehearsal(golden, {**document, "keep_answers": False})


def rehearsal_key(uploaded: UploadedRehearsal, artifact_key: str) -> str:
    """The key of a rehearsal for this publisher."""
    image = MACHINE.platform["image"]
    return uploaded.key(artifact_key=artifact_key, image=image, instance_type="ml.g5.xlarge", program=1)


class _StoreFolder:
    def __init__(self, s3: S3) -> None:
        self._s3 = s3

    def get(self, key: str) -> bytes | None:
        return self._s3.get(STORE, key)

    def put(self, key: str, body: bytes) -> None:
        self._s3.put(STORE, key, body)


class BuildingMachine(Machine):
    """A machine of a publisher with two recipes, of which the second has an input from S3.

    Attributes:
        max_builds: how many builds run at once.
        clock: of all services.
        codebuild: runs builds until a test ends them.
        program: what runs in a build.
    """

    def __init__(self, max_builds: int = 2) -> None:
        self.max_builds = max_builds
        self.clock = Clock()
        super().__init__(S3(self.clock))
        self.program = ProgramDouble(_StoreFolder(self.s3), copying.PART_BYTES)
        self.codebuild = CodeBuild("the-project", self.clock, self.program)
        self._tokens = itertools.count(1)
        self.s3.put(ASSETS, "triton-program.pyz", b"the build program")
        self.s3.put("others", "text.onnx", INPUT)
        self.s3.put(ASSETS, BUILDS["description"], DESCRIPTION)

    def now(self) -> float:
        """The time, in seconds since 1970."""
        return self.clock.now

    def publish_sources(self, publication: str, recipes: Mapping[str, int] | None = None, **sources: bytes) -> None:
        """Write a request that has each archive of sources built, and publishes it as the ensemble of its name.

        Args:
            publication: the id of the request.
            recipes: the number of the recipe, by name; 0 for the others.
            sources: the archives, by name.
        """
        items = []
        for name, archive in sources.items():
            recipe = (recipes or {}).get(name, 0)
            keys = built_keys(archive, recipe)
            self.s3.put(STORE, f"{REQUESTS}archives/{keys.artifact}.tar.gz", archive)
            build = json.dumps(self.build_of(name, archive, recipe)).encode()
            self.s3.put(STORE, f"{REQUESTS}{publication}/{keys.artifact}.json", build)
            keyed = {"source_key": keys.source, "artifact_key": keys.artifact}
            items.append({"ensemble": name, "action": "publish", "repository": name, "built": True, **keyed})
        self.upload(publication, items)

    def add_rehearsals(self, publication: str, golden: bytes, *names: str) -> None:
        """Have items of a request that was written before rehearsed, with these golden requests."""
        request = f"{REQUESTS}{publication}/request.json"
        document = json.loads(self.s3.get(STORE, request) or b"")
        sha256 = hashlib.sha256(golden).hexdigest()
        self.s3.put(STORE, f"{REQUESTS}archives/{sha256}.zip", golden)
        for item in document["items"]:
            if item["ensemble"] in names:
                uploaded = rehearsal_of(item["repository"], sha256)
                item["rehearsal"] = key = rehearsal_key(uploaded, item["artifact_key"])
                self.s3.put(STORE, f"{REQUESTS}{publication}/{key}.rehearsal.json", uploaded.text())
        self.s3.put(STORE, request, json.dumps(document).encode())

    def build_of(self, name: str, sources: bytes, recipe: int = 0) -> dict[str, Any]:
        """The build of an archive, as the command uploads it."""
        path = f"sources/{hashlib.sha256(sources).hexdigest()}.tar.gz"
        ensemble: dict[str, Any] = {
            "repository": name,
            "artifact_key": built_keys(sources, recipe).artifact,
            "sources": path,
            "inputs": [],
        }
        ensemble |= {"files": {}, "steps": [], "remove": []}
        return {"recipes": [recipe], "ensemble": ensemble}

    def build(self, prepared: Mapping[str, Any], batch: list[dict[str, Any]]) -> Work:
        """One call of the function that builds, with what the definition sends."""
        asked = {name: prepared[name] for name in ("publish", "execution", "started_at")}
        return self.build_of_event({"Publication": asked | {"batch": batch} | BUILDS})

    def build_of_event(self, event: Mapping[str, Any]) -> Work:
        """One call of the function that builds."""
        return lambda publisher: build_batch(event, self._invocation(publisher))

    def _invocation(self, publisher: Publisher) -> Invocation:
        wire = Wire(around=self._around)
        doubles = {"codebuild": self.codebuild, "logs": Logs(), "s3": self.s3}
        clients = {name: Client(name, double, wire) for name, double in doubles.items()}
        began = self.now()
        return Invocation(
            storage=publisher.storage,
            builders=Builders(BUILDERS, STORE, clients.__getitem__),
            remaining_millis=lambda: 300_000 - int((self.now() - began) * 1000),
            now=self.clock,
            token=lambda: f"{next(self._tokens):016x}",
        )

    def end_builds(self, *bad: str) -> None:
        """End every build that runs; those of the repositories `bad` fail."""
        for job, build in self.codebuild.live().items():
            self.program.finish(build, dict.fromkeys(bad, "failed"))
            self.codebuild.end(job, "FAILED" if bad else "SUCCEEDED")

    def tick(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.now += seconds

    def answer(self, publication: str, execution: str) -> Answer:
        """The answer of `prepare`, for a test that calls the function that builds by itself."""
        from artifacts.publication import Place

        place = Place(FLEET, PLATFORM, self.executions + execution)
        return self.attempt(place, lambda publisher: publisher.prepare(f"{CALLER}/{publication}", 2))
