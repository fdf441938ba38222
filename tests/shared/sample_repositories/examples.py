"""Builds and checks the repositories of the examples in the documentation of rules."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from cdk_triton.checks.documentation import Example
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.sagemaker.images import image_releases
from cdk_triton.triton import ContainerEnvironment, Finding, ModelRepository
from sample_repositories.builds import is_built, recipes_of, without_files
from sample_repositories.files import content_of, model_files

__all__ = ["ExampleFindings", "UnpublishedPlatform", "findings_of_example", "platform_with"]

ExampleFindings = Callable[[Example], tuple[Finding, ...]]
"""Builds the repository of an example and checks it as its command line says."""


OWN_IMAGE = f"example.com/triton@sha256:{'0' * 64}"
"""What `$IMAGE` stands for in the command of an example: SageMaker has no image of its release."""


@pytest.fixture
def findings_of_example(tmp_path: Path) -> ExampleFindings:
    def check(example: Example) -> tuple[Finding, ...]:
        root = tmp_path / "repository"
        for name, content in {
            **_left_out(example.files),
            **{n: content_of(n, t) for n, t in example.files.items() if not is_built(n, t)},
        }.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            if match := re.fullmatch(rb"\((\d+) GB .*\)\n", content):  # with that many zeros, which take no space
                os.truncate(path, int(match[1]) * 1024**3)
        command = argparse.ArgumentParser(exit_on_error=False)
        command.add_argument("--mode", default="single")
        command.add_argument("--platform")
        command.add_argument("--image")
        command.add_argument("--default-model")
        command.add_argument("--additional-model", action="append", default=[])
        command.add_argument("--preflight", action="store_true")
        options = command.parse_args(example.arguments)
        release, _, instance_type = (options.platform or "").partition("/")
        image = OWN_IMAGE if options.image == "$IMAGE" else options.image
        platform = ServingPlatform(release=release, instance_type=instance_type, image=image) if release else None
        return ModelRepository.from_directory(root, recipes=recipes_of(example.files)).check(
            options.mode,
            platform,
            default_model=options.default_model,
            additional_models=options.additional_model,
            environment=eval(example.environment or "None", {"ContainerEnvironment": ContainerEnvironment}),
            preflight=options.preflight,
        )

    return check


def _left_out(files: Mapping[str, str]) -> dict[str, bytes]:
    """What an example leaves out because its rule is not about it: a model's version with its file."""
    return {
        f"{model}/1/{path}": content
        for model, config in without_files(files)
        for path, content in model_files(config).items()
    }


class UnpublishedPlatform(ServingPlatform):
    """Stands in for a platform whose release has no image yet: the real class rejects it."""

    def __post_init__(self) -> None:
        """Check nothing."""


def platform_with(release: str, instance_type: str = "ml.g5.2xlarge") -> ServingPlatform:
    """A platform with any release, published or not."""
    published = release in image_releases()
    return (ServingPlatform if published else UnpublishedPlatform)(release=release, instance_type=instance_type)
