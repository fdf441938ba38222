"""Checks the account of a deployment: region, credentials, the CDK's bootstrap, and the role that scales endpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004  botocore's: no connection could be made
    HTTPClientError,
    InvalidRegionError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
)

from cdk_triton.cli.back_to_aws import unset_line
from cdk_triton.cli.doctor.answers import Answer, State
from cdk_triton.cli.permissions import fix_of, is_denied
from cdk_triton.cli.region import deployment_region

__all__ = ["SCALING_ROLE", "Account", "bootstrap", "rejected_call", "scaling_role", "sign_in"]

SCALING_SERVICE: Final = "sagemaker.application-autoscaling.amazonaws.com"
SCALING_ROLE: Final = "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
"""Application Auto Scaling user guide, "Service-linked roles for Application Auto Scaling"."""

LEAST_BOOTSTRAP: Final = 6
"""The version that every stack requires (MIN_BOOTSTRAP_STACK_VERSION of aws-cdk-lib's DefaultStackSynthesizer)."""

DEFAULT_QUALIFIER: Final = "hnb659fds"
_QUALIFIER_KEY: Final = "@aws-cdk/core:bootstrapQualifier"

_SET_REGION: Final = "run: export AWS_REGION=us-east-1, or the region of the endpoint"

_LOCAL: Final = (
    'eval "$(cdk-triton local up --detach)", or, if the local AWS runs already, eval "$(cdk-triton local status)"'
)

_CONFIG = Config(retries={"mode": "standard", "max_attempts": 3}, connect_timeout=5, read_timeout=20)
_PATIENT = Config(retries={"mode": "standard", "max_attempts": 10}, connect_timeout=5, read_timeout=20)
"""Service Quotas answers a listing page by page, and throttles early."""


@dataclass(frozen=True)
class Account:
    """The account and region that a deployment from this shell goes to.

    Attributes:
        id: 12 digits.
        region: such as "us-east-1".
        session: the session of boto3.
    """

    id: str
    region: str
    session: boto3.Session
    _clients: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        """A client of a service."""
        if service not in self._clients:
            config = _PATIENT if service == "service-quotas" else _CONFIG
            self._clients[service] = self.session.client(service, config=config)  # type: ignore[call-overload]  # the stubs know only names written out
        return self._clients[service]


def sign_in() -> tuple[list[Answer], Account | None]:
    """Find out region and account, as the `cdk` command does.

    Returns:
        The answers about region and credentials, and the account if the credentials lead to one.
    """
    try:
        session = boto3.Session(region_name=deployment_region())
        region = session.region_name
    except BotoCoreError as error:
        return [_unusable_files(error)], None
    if region is None:
        found = "no region is set, so `cdk` would use the region of this EC2 instance, or us-east-1"
        nowhere = Answer(subject="region", state=State.ERROR, found=found, fix=_SET_REGION)
        return [nowhere, *_no_credentials(session)], None
    where = Answer(subject="region", state=State.OK, found=region)
    try:
        identity = session.client("sts", config=_CONFIG).get_caller_identity()
    except InvalidRegionError:
        found = f"{region!r} is not the name of a region"
        return [Answer(subject="region", state=State.ERROR, found=found, fix=_SET_REGION)], None
    except (BotoCoreError, ClientError) as error:
        return [where, _who_failed(error, session)], None
    arn = identity["Arn"]
    who = Answer(subject="credentials", state=State.OK, found=f"{arn}{_where_from(session)}")
    return [where, who], Account(identity["Account"], region, session)


def bootstrap(account: Account) -> Answer:
    """The CDK's own stack, which holds the bucket and roles of every deployment."""
    qualifier = _qualifier(Path("cdk.json"))
    place = f"aws://{account.id}/{account.region}"
    command = f"cdk bootstrap {place}"
    if qualifier != DEFAULT_QUALIFIER:
        command += f" --qualifier {qualifier}"
    name = f"/cdk-bootstrap/{qualifier}/version"
    try:
        version = int(account.client("ssm").get_parameter(Name=name)["Parameter"]["Value"])
    except ClientError as error:
        if _code(error) != "ParameterNotFound":
            raise
        return Answer(
            subject="bootstrap",
            state=State.ERROR,
            found=f"{place} is not bootstrapped: there is no SSM parameter {name}",
            fix=f"run: {command}",
        )
    if version < LEAST_BOOTSTRAP:
        return Answer(
            subject="bootstrap",
            state=State.ERROR,
            found=f"{place} has version {version}, but stacks need {LEAST_BOOTSTRAP} or later",
            fix=f"bootstrap again, with the options of the first bootstrap: {command}",
        )
    return Answer(subject="bootstrap", state=State.OK, found=f"version {version} in {place}")


def scaling_role(account: Account) -> Answer:
    """The service-linked role that changes the instance count of endpoints."""
    try:
        account.client("iam").get_role(RoleName=SCALING_ROLE)
    except ClientError as error:
        if _code(error) != "NoSuchEntity":
            raise
        return Answer(
            subject="service-linked role",
            state=State.WARNING,
            found=f"the account does not have {SCALING_ROLE} yet; AWS creates the role with the first scaled endpoint, "
            "if the deploying role has iam:CreateServiceLinkedRole",
            fix="if the deploying role lacks this permission, let an administrator create the service-linked role: aws "
            f"iam create-service-linked-role --aws-service-name {SCALING_SERVICE}",
        )
    return Answer(subject="service-linked role", state=State.OK, found=SCALING_ROLE)


def rejected_call(subject: str, error: BotoCoreError | ClientError) -> Answer:
    """The answer if AWS did not give one."""
    if isinstance(error, ClientError):
        fix = fix_of(error) or "run the command again in a few minutes"
        return Answer(
            subject=subject,
            state=State.UNKNOWN,
            found=f"AWS rejected {error.operation_name} ({_code(error)}): {_message(error)}",
            fix=f"{fix}, or let somebody who has it run this command" if is_denied(error) else fix,
        )
    return Answer(
        subject=subject,
        state=State.UNKNOWN,
        found=f"AWS gave no answer: {str(error).rstrip('.')}",
        fix="check the network and run the command again",
    )


def _unusable_files(error: BotoCoreError) -> Answer:
    if isinstance(error, ProfileNotFound):
        fix = "set AWS_PROFILE to one of `aws configure list-profiles`, or unset AWS_PROFILE"
    else:
        fix = "correct the file, or name another file with AWS_CONFIG_FILE or AWS_SHARED_CREDENTIALS_FILE"
    return Answer(subject="credentials", state=State.ERROR, found=str(error).rstrip("."), fix=fix)


def _no_credentials(session: boto3.Session) -> list[Answer]:
    """Without a region, STS cannot return whose credentials they are."""
    try:
        there = session.get_credentials() is not None
    except BotoCoreError as error:
        return [_who_failed(error, session)]
    return [] if there else [_who_failed(NoCredentialsError(), session)]


def _who_failed(error: BotoCoreError | ClientError, session: boto3.Session) -> Answer:
    again = "sign in (`aws sso login`, `aws configure`) or choose another profile with AWS_PROFILE"
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        found = "no credentials were found" if isinstance(error, NoCredentialsError) else str(error)
        fix = f"{again}; for a try on this machine: {_LOCAL}"
    elif isinstance(error, ClientError):
        found, fix = f"AWS rejected the credentials ({_code(error)}): {_message(error)}", again
    elif isinstance(error, ConnectionError | HTTPClientError):
        found = f"AWS cannot be reached: {str(error).rstrip('.')}"
        fix = "check the network, the region's name, and the proxy settings HTTPS_PROXY and NO_PROXY"
        if _is_local(session):
            fix = f"start the local AWS: {_LOCAL}; to go back to AWS, run: {unset_line()}"
    else:  # a token of single sign-on that has expired, a process that failed
        found, fix = str(error).rstrip("."), again
    return Answer(subject="credentials", state=State.ERROR, found=found, fix=fix)


def _is_local(session: boto3.Session) -> bool:
    host = urlsplit(session.client("sts", config=_CONFIG).meta.endpoint_url).hostname
    return host in ("127.0.0.1", "localhost")


def _where_from(session: boto3.Session) -> str:
    if _is_local(session):
        return ", of the local AWS"
    return "" if session.profile_name == "default" else f", of the profile {session.profile_name}"


def _qualifier(configuration: Path) -> str:
    """From the `cdk.json` of the app in the working directory, if it has one."""
    try:
        document = json.loads(configuration.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return DEFAULT_QUALIFIER
    context = document.get("context") if isinstance(document, Mapping) else None
    return str(context.get(_QUALIFIER_KEY, DEFAULT_QUALIFIER)) if isinstance(context, Mapping) else DEFAULT_QUALIFIER


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _message(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Message") or "no reason given").rstrip(".")
