"""The services that run builds, behind one interface."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from ..clients import client
from ..failure import ArtifactError
from .builder import Job, JobService, Progress
from .codebuild import CodeBuildBuilder
from .processing import ProcessingBuilder

__all__ = ["Builders", "Job", "JobService", "Progress"]


class Builders:
    """The builders of this store, by kind; each is made at its first use.

    Args:
        settings: the content of the environment variable `BUILDERS`.
        bucket: the store's bucket.
        client: makes the boto3 client of a service.
    """

    def __init__(self, settings: Mapping[str, Any], bucket: str, client: Callable[[str], Any] = client) -> None:
        self._settings = settings
        self._bucket = bucket
        self._client = client

    @classmethod
    def of_environment(cls) -> Builders:
        """The builders of this function, from its environment variables `BUILDERS` and `STORE_BUCKET`."""
        return cls(json.loads(os.environ.get("BUILDERS") or "{}"), os.environ["STORE_BUCKET"])

    def __contains__(self, kind: str) -> bool:
        return self._settings.get(kind) is not None

    def __getitem__(self, kind: str) -> JobService:
        """The builder of a kind.

        Raises:
            ArtifactError: the store does not have this builder.
        """
        if kind not in self:
            raise ArtifactError(
                f"this artifact store has no builder {kind!r}; deploy the stack of the artifact store first, with the "
                "builder that the model's stack names"
            )
        settings = self._settings[kind]
        if kind == "codebuild":
            return CodeBuildBuilder(self._client("codebuild"), self._client("logs"), self._bucket, **settings)
        return ProcessingBuilder(
            self._client("sagemaker"), self._client("logs"), self._client("s3"), self._bucket, **settings
        )
