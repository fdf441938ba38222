"""Reads what the account says: images, quotas, a price, and the error of an endpoint that does not exist."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
from botocore.exceptions import ClientError
from tools.verify.experiment import Experiment, Observation
from tools.verify.trial import Trial, error_of

from cdk_triton import ServingPlatform
from cdk_triton.cli.doctor.account import Account
from cdk_triton.cli.doctor.answers import State
from cdk_triton.cli.doctor.capacity import LAMBDA_QUOTA, image
from cdk_triton.cli.doctor.instances import ACROSS_ENDPOINTS
from cdk_triton.cli.doctor.quotas import CODEBUILD_GPU, endpoint_usage, processing_usage, quotas
from cdk_triton.cli.estimate.price import Price, of_api
from cdk_triton.sagemaker import accounts
from cdk_triton.sagemaker.images import image_releases

_INSTANCE_TYPE = "ml.g4dn.xlarge"
"""Of the oldest GPU that every release supports."""

_NAMES = {
    "sagemaker": [endpoint_usage(_INSTANCE_TYPE), processing_usage(_INSTANCE_TYPE), ACROSS_ENDPOINTS],
    "codebuild": [CODEBUILD_GPU],
    "lambda": [LAMBDA_QUOTA],
}
_KINDS = ("async", "inference component")


def _observe(trial: Trial) -> Iterator[Observation]:
    account = Account(trial.place.account, trial.place.region, boto3.Session())
    yield from _images(account)
    missing = [name for service, names in _NAMES.items() for name in set(names) - set(quotas(account, service, names))]
    yield Observation("quota_names", not missing, f"not listed: {', '.join(missing) or 'none'}")
    yield _quota_kinds(trial)
    price = of_api(_INSTANCE_TYPE, account.region)
    holds = None if trial.place.is_local else isinstance(price, Price)  # the local AWS has no prices
    yield Observation("price", holds, f"{_INSTANCE_TYPE}: {price}")
    code, message = error_of(
        trial.client("sagemaker-runtime").invoke_endpoint, EndpointName=f"{trial.prefix}-missing", Body=b"{}"
    )
    yield Observation("missing_endpoint", code == "ValidationError", f"{code}: {message}")


def _images(account: Account) -> Iterator[Observation]:
    """Every release that the tables have for this region, asked for as the doctor asks."""
    missing, denied = [], []
    releases = [each for each in image_releases() if account.region in accounts(each)]
    for release in releases:
        try:
            if image(account, ServingPlatform(release=release, instance_type=_INSTANCE_TYPE)).state is not State.OK:
                missing.append(release)
        except ClientError as error:
            denied.append(f"{release} ({error.response['Error']['Code']})")
    asked = f"{len(releases)} releases in {account.region}"
    yield Observation("images", None if denied else not missing, f"{asked}; missing: {', '.join(missing) or 'none'}")
    yield Observation("pulls", not denied, f"{asked}; denied: {', '.join(denied) or 'none'}")


def _quota_kinds(trial: Trial) -> Observation:
    pages = trial.client("service-quotas").get_paginator("list_aws_default_service_quotas")
    names = [each["QuotaName"] for page in pages.paginate(ServiceCode="sagemaker") for each in page["Quotas"]]
    found = [name for name in names if any(kind in name.lower() for kind in _KINDS)]
    return Observation("quota_kinds", not found, f"of {len(names)} quotas, with these words: {found[:5] or 'none'}")


EXPERIMENT = Experiment(
    parts=("images", "pulls", "quota_names", "quota_kinds", "price", "missing_endpoint"),
    minutes=3,
    dollars=0,
    spends="it only reads",
    observe=_observe,
)
