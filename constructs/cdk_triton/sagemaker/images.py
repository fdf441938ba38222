"""SageMaker's own Triton images: which releases exist, in which region, in whose registry.

AWS publishes an image every two to six months, not one per NVIDIA release, and moved the images to another set of
accounts with release 23.12. The table is `data/images.json`, which names its sources and the day they were read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TypedDict

from cdk_triton._wording import did_you_mean, in_words
from cdk_triton.errors import ConfigurationError

__all__ = [
    "OR_OWN_IMAGE",
    "REPOSITORY",
    "accounts",
    "image_name",
    "image_release",
    "image_releases",
    "image_uri",
    "registry_accounts",
    "url_suffix",
]


class _Registry(TypedDict):
    name: str
    first_release: str
    last_release: str | None
    accounts: dict[str, str]
    served_from: dict[str, str]
    served_until: dict[str, str]


class _Table(TypedDict):
    releases: list[str]
    registries: list[_Registry]


REPOSITORY = "sagemaker-tritonserver"
"""The name of the repository in Amazon ECR, the same in every account."""

OR_OWN_IMAGE = ", or build an image of your own and give it by digest"
"""The end of an error about a platform without an image. A command that does not take an image removes it."""


@cache
def _table() -> _Table:
    table: _Table = json.loads(files(__package__).joinpath("data/images.json").read_text(encoding="utf-8"))
    return table


def image_releases() -> tuple[str, ...]:
    """The Triton releases for which SageMaker has an image, oldest first."""
    return tuple(_table()["releases"])


def image_name(release: str) -> str:
    """The image of a release without its registry, such as `sagemaker-tritonserver:25.09-py3`.

    Raises:
        ConfigurationError: SageMaker has no image of this release.
    """
    _require_image(release)
    return f"{REPOSITORY}:{release}-py3"


def image_release(uri: str) -> str | None:
    """The Triton release in the URI of an image, or None for an image that is not SageMaker's or has no such tag."""
    found = re.search(rf"/{REPOSITORY}:(\d\d\.\d\d)-", uri)
    return None if found is None else found[1]


def accounts(release: str) -> Mapping[str, str]:
    """The regions that offer the image of a release, each with the account that owns its registry.

    If the stack's region is an unresolved token, put this map into the template.

    Raises:
        ConfigurationError: SageMaker has no image of this release.
    """
    _require_image(release)
    # "YY.MM" sorts as text in order of time.
    registry = next(
        r for r in _table()["registries"] if r["first_release"] <= release <= (r["last_release"] or release)
    )
    return MappingProxyType(
        {
            region: account
            for region, account in registry["accounts"].items()
            if registry["served_from"].get(region, release) <= release <= registry["served_until"].get(region, release)
        }
    )


def registry_accounts(region: str) -> tuple[str, ...]:
    """The accounts that own the registries of any release in a region; empty if SageMaker has no images there."""
    found = (accounts(release).get(region) for release in image_releases())
    return tuple(dict.fromkeys(account for account in found if account is not None))


def image_uri(release: str, region: str) -> str:
    """The URI of SageMaker's image of a release in a region.

    Raises:
        ConfigurationError: SageMaker has no image of this release, or the table has no account for this region.
    """
    offered = accounts(release)
    if region not in offered:
        raise ConfigurationError(
            f"{_missing(release, region)}: use the region {in_words(offered)}, or give the serving platform an image "
            "of your own by digest"
        )
    return f"{offered[region]}.dkr.ecr.{region}.{url_suffix(region)}/{image_name(release)}"


def url_suffix(region: str) -> str:
    """The domain of AWS's registries in a region: `amazonaws.com`, or `amazonaws.com.cn` in China."""
    return "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"


def _missing(release: str, region: str) -> str:
    if region.startswith(("us-gov-", "us-iso")):  # AWS may have images there
        return f"cdk-triton has no source for an AWS account with SageMaker's Triton images in the region {region!r}"
    found = f"SageMaker has no image of Triton {release} in the region {region!r}"
    there = [other for other in image_releases() if region in accounts(other)]
    if not there:
        return found + did_you_mean(region, accounts(release))
    return found + (
        f", where the newest is {there[-1]}" if there[-1] < release else f", where the oldest is {there[0]}"
    )


def _require_image(release: str) -> None:
    releases = image_releases()
    if release in releases:
        return
    nearest = [*[r for r in releases if r < release][-1:], *[r for r in releases if r > release][:1]]
    raise ConfigurationError(
        f"SageMaker has no image of Triton {release!r}: use {in_words(nearest, 'or')}{OR_OWN_IMAGE}"
    )
