"""The region that a deployment from this shell goes to, which is not always the one that boto3 takes."""

from __future__ import annotations

import os
from typing import Final

__all__ = ["deployment_region"]

_VARIABLES: Final = ("AWS_REGION", "AMAZON_REGION", "AWS_DEFAULT_REGION", "AMAZON_DEFAULT_REGION")
"""Variables that the `cdk` command reads before the profile, in this order (aws-cdk 2.1148.1, AwsCliCompatible.region).

boto3 reads the third alone: with AWS_REGION set, it would look at a region other than the one deployed to.
"""


def deployment_region() -> str | None:
    """The region that the environment names for the `cdk` command; None leaves it to the profile."""
    return next(filter(None, map(os.environ.get, _VARIABLES)), None)
