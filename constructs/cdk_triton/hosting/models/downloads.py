"""Warns about Python models that download files while they load, in containers without a network."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from aws_cdk import Annotations
from constructs import IConstruct

from cdk_triton._wording import listed
from cdk_triton.artifacts.prepare import Prepared
from cdk_triton.python_models.reader.downloads import VARIABLES
from cdk_triton.triton import ContainerEnvironment
from cdk_triton.triton.findings import printable

__all__ = ["warn_about_downloads"]

DOWNLOAD_WARNING: Final = "cdk-triton:DownloadWithoutNetwork"


def warn_about_downloads(construct: IConstruct, settings: ContainerEnvironment, prepared: Iterable[Prepared]) -> None:
    """Attach a warning that names the calls.

    Args:
        construct: the model.
        settings: the settings of its containers.
        prepared: its repositories.
    """
    calls = sorted({call for each in prepared for call in each.downloads})
    if calls and not any(name.startswith(VARIABLES) for name in settings.variables):
        Annotations.of(construct).add_warning_v2(
            DOWNLOAD_WARNING,
            printable(
                f"with network_isolation=True, containers reach no network, but {listed(calls)} downloads while the "
                "model loads. Save the files into the model's version directory, and load them by their path"
            ),
        )
