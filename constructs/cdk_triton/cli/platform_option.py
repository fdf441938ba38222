"""Reads the option `--platform`, which is `RELEASE/INSTANCE`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from cdk_triton.sagemaker import ServingPlatform

__all__ = ["platform_of"]


def platform_of(text: str | None, image: str | None = None, *, takes_image: bool = False) -> ServingPlatform | None:
    """The platform that the options `--platform` and `--image` name; None without them.

    Args:
        text: the value of `--platform`.
        image: the value of `--image`.
        takes_image: whether the command has `--image`, so that its errors advise an image of your own.

    Raises:
        BadParameter: it does not have that form, or there is no such platform.
    """
    if text is None:
        if image is not None:
            raise typer.BadParameter(
                "--image needs the platform that serves the image: add --platform RELEASE/INSTANCE",
                param_hint="--image",
            )
        return None
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.sagemaker.images import OR_OWN_IMAGE

    release, instance_type = _parts(text)
    try:
        return ServingPlatform(release=release, instance_type=instance_type, image=image)
    except ConfigurationError as error:
        hint = "--platform" if image is None else ["--platform", "--image"]
        reason = str(error) if takes_image else str(error).removesuffix(OR_OWN_IMAGE)
        raise typer.BadParameter(reason, param_hint=hint) from error


def _parts(text: str) -> tuple[str, str]:
    """The release and the instance type."""
    from cdk_triton.sagemaker.platform import is_swapped

    release, _, instance_type = text.partition("/")
    if not (release and instance_type):
        raise typer.BadParameter(f"'{text}' is not RELEASE/INSTANCE, e.g. 26.05/ml.g5.xlarge", param_hint="--platform")
    if is_swapped(release, instance_type):
        raise typer.BadParameter(
            f"'{text}' has the instance type first: write RELEASE/INSTANCE: {instance_type}/{release}",
            param_hint="--platform",
        )
    return release, instance_type
