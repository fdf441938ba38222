"""The registries of SageMaker's Triton images on the local AWS: BatchGetImage lists the images that exist.

It answers from this library's own table of releases and regions, so every release of the table exists. There is
nothing to pull: the local endpoints run the Triton of this machine.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from cdk_triton.sagemaker import REPOSITORY, accounts, image_releases
from cdk_triton_local.wire import JsonApi, JsonApiError, Reply

__all__ = ["TritonImages"]


class TritonImages:
    """Amazon ECR for SageMaker's accounts.

    Args:
        region: the region of the local AWS.
    """

    def __init__(self, region: str) -> None:
        self._tags: dict[str, set[str]] = {}  # by account
        for release in image_releases():
            offered = accounts(release)
            if region in offered:
                self._tags.setdefault(offered[region], set()).add(f"{release}-py3")
        self._api = JsonApi("ecr", {"BatchGetImage": self._batch_get_image}, "InvalidParameterException")

    def answer(self, body: bytes) -> Reply | None:
        """Answer BatchGetImage; None for any other registry."""
        try:
            registry = json.loads(body or b"{}").get("registryId")
        except (ValueError, AttributeError):
            return None
        return self._api.answer("BatchGetImage", body) if registry in self._tags else None

    def _batch_get_image(self, request: dict[str, Any]) -> dict[str, Any]:
        registry, repository = request["registryId"], request["repositoryName"]
        if repository != REPOSITORY:
            raise JsonApiError(
                f"The repository with name '{repository}' does not exist in the registry with id '{registry}'",
                "RepositoryNotFoundException",
            )
        answer: dict[str, list[Any]] = {"images": [], "failures": []}
        for image in request["imageIds"]:
            if image.get("imageTag") in self._tags[registry]:
                answer["images"].append(_image(registry, image["imageTag"]))
            else:
                failure = {"failureCode": "ImageNotFound", "failureReason": "Requested image not found"}
                answer["failures"].append({"imageId": image, **failure})
        return answer


def _image(registry: str, tag: str) -> dict[str, Any]:
    media_type = "application/vnd.docker.distribution.manifest.v2+json"
    manifest = json.dumps({"schemaVersion": 2, "mediaType": media_type, "layers": [], "annotations": {"tag": tag}})
    return {
        "registryId": registry,
        "repositoryName": REPOSITORY,
        "imageId": {"imageDigest": f"sha256:{hashlib.sha256(manifest.encode()).hexdigest()}", "imageTag": tag},
        "imageManifest": manifest,
        "imageManifestMediaType": media_type,
    }
