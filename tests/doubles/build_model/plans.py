"""The plans that the stacks deploy: two versions of one ensemble, two others, one that needs no build."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["ASSETS", "ENSEMBLES", "OTHER", "PLANS", "Published", "publish", "put_plan"]

ASSETS, OTHER = "the-assets", "a-bucket-of-the-user"
PREFIX = "fleets/fleet/25.09-a10g/"
ONNX = b"an ONNX file of the user"

ENSEMBLES = ("text-1", "text-2", "image-1", "audio-1")
PLANS: tuple[tuple[str, tuple[str, ...], bool, tuple[str, ...]], ...] = (
    ("codebuild", ("text-1",), False, ()),
    ("codebuild", ("text-1", "image-1"), True, ()),
    ("codebuild", ("image-1", "text-2", "plain-1"), True, ()),
    ("codebuild", ("text-1", "image-1", "audio-1"), False, ()),
    ("processing", ("text-1", "image-1"), False, ()),
    ("processing", ("text-2", "audio-1"), True, ()),
    ("codebuild", ("text-1", "plain-1"), False, ("text-1 a", "plain-1 a")),
    ("codebuild", ("text-1", "image-1"), True, ("text-1 b", "image-1 a")),
    ("processing", ("text-1", "text-2"), False, ("text-1 a", "text-2 a")),
)
"""Builder, ensembles, whether a fleet serves them, and the rehearsals: an ensemble and golden requests."""


class Buckets(Protocol):
    """What the CDK CLI and the user write to."""

    def put(self, bucket: str, key: str, body: bytes, /) -> object:
        """Write an object."""


@dataclass(frozen=True)
class Published:
    """A plan among the assets.

    Attributes:
        properties: of the custom resource.
        document: the plan.
    """

    properties: dict[str, str]
    document: dict[str, Any]

    @property
    def rehearsals(self) -> list[dict[str, Any]]:
        """The rehearsals."""
        return list(self.document["rehearsals"])

    @property
    def builds(self) -> list[dict[str, Any]]:
        """The commits that have to be built."""
        return [commit for commit in self.document["commits"] if commit["build"] is not None]


def publish(s3: Buckets, kind: str, names: tuple[str, ...], fleet: bool, rehearsals: tuple[str, ...] = ()) -> Published:
    """Put a plan and everything that it names among the assets, as the CDK CLI does."""
    sha256 = hashlib.sha256(ONNX).hexdigest()
    s3.put(ASSETS, "triton-program.pyz", b"the build program")
    s3.put(OTHER, "bert.onnx", ONNX)
    commits = [_commit(s3, name, sha256) for name in names]
    copies = [
        {
            "ensemble": name,
            "artifact_key": commit["artifact_key"],
            "archive": commit["archive"],
            "target": f"{PREFIX}{name}-{commit['artifact_key'][:10]}.tar.gz",
        }
        for name, commit in zip(names, commits, strict=True)
    ]
    document = {
        "schema": 2,
        "commits": commits,
        "fleet": {"name": "fleet", "index": f"{PREFIX}index.json", "copies": copies} if fleet else None,
        "builder": {
            "kind": kind,
            "timeout_minutes": 120,
            "platform": {"image": "sagemaker-tritonserver:25.09-py3", "gpu": "NVIDIA A10G"},
            "program": _input("triton-program.pyz", "program.pyz"),
            "instance_type": "ml.g5.2xlarge" if kind == "processing" else None,
            "volume_gb": 100 if kind == "processing" else None,
        },
        "rehearsals": [_rehearsal(s3, each) for each in rehearsals],
    }
    return put_plan(s3, document)


def put_plan(s3: Buckets, document: dict[str, Any]) -> Published:
    """Put a plan among the assets."""
    text = json.dumps(document).encode()
    digest = hashlib.sha256(text).hexdigest()
    s3.put(ASSETS, f"triton-plan-{digest}.json", text)
    return Published(
        {
            "PlanBucket": ASSETS,
            "PlanKey": f"triton-plan-{digest}.json",
            "PlanSha256": digest,
            "BuildImage": "763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:25.09-py3",
        },
        document,
    )


def _commit(s3: Buckets, name: str, sha256: str) -> dict[str, Any]:
    key = hashlib.sha256(name.encode()).hexdigest()
    repository = name.partition("-")[0]
    s3.put(ASSETS, f"triton-{key}.gz", f"{repository} {key[:6]} sources".encode())
    commit: dict[str, Any] = {
        "repository": repository,
        "artifact_key": key,
        "platform": "25.09-a10g",
        "archive": f"artifacts/{repository}/{key}/model.tar.gz",
        "manifest": f"artifacts/{repository}/{key}/manifest.json",
        "files": None,
        "metadata": {},
    }
    if repository == "plain":
        return commit | {"asset": f"triton-{key}.gz", "build": None}
    ensemble = {
        "repository": repository,
        "artifact_key": key,
        "sources": f"sources/{key}.tar.gz",
        "files": {},
        "inputs": [{"path": f"inputs/{sha256}", "sha256": sha256, "to": "bert/bert.onnx"}],
        "steps": [],
        "remove": [],
    }
    inputs = [
        _input(f"triton-{key}.gz", f"sources/{key}.tar.gz"),
        {**_input("bert.onnx", f"inputs/{sha256}"), "bucket": OTHER, "sha256": sha256},
    ]
    return commit | {"asset": None, "build": {"inputs": inputs, "ensemble": ensemble}}


def _rehearsal(s3: Buckets, name: str) -> dict[str, Any]:
    ensemble, _, requests = name.partition(" ")
    key = hashlib.sha256(name.encode()).hexdigest()
    golden = f"golden requests {requests}".encode()
    s3.put(ASSETS, f"triton-{key}.zip", golden)
    return {
        "repository": ensemble.partition("-")[0],
        "artifact_key": hashlib.sha256(ensemble.encode()).hexdigest(),
        "key": key,
        "image": "sagemaker-tritonserver:25.09-py3",
        "inputs": [_input(f"triton-{key}.zip", f"rehearsals/{key}.zip")],
        "golden": hashlib.sha256(golden).hexdigest(),
        "document": {"schema": 1, "mode": "single", "requests": []},
    }


def _input(key: str, path: str) -> dict[str, Any]:
    return {"bucket": None, "key": key, "version": None, "path": path, "sha256": None}
