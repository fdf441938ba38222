"""AWS as the commands call it, and the one place where its errors become sentences."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import boto3
import botocore.session
from botocore.config import Config
from botocore.credentials import Credentials, RefreshableCredentials, create_assume_role_refresher
from botocore.exceptions import BotoCoreError, ClientError, EndpointConnectionError

from cdk_triton.cli.back_to_aws import unset_line
from cdk_triton.cli.permissions import fix_of
from cdk_triton.cli.region import deployment_region
from cdk_triton.errors import CdkTritonError, StoreError

__all__ = ["Aws", "code_of", "in_parallel", "is_loopback", "sentences"]

CONNECTIONS = 16
"""Calls in flight at once: a thousand manifests are read in seconds instead of minutes."""

_ATTEMPTS = 10
"""SageMaker's list and describe calls are throttled early; boto3 waits up to 20 s between attempts."""

_LOCAL_ATTEMPTS = 2
"""Nothing is throttled there, and one that has ended does not come back."""

_INVOCATION_SECONDS = 330
"""The store's handler may run for five minutes. A call that is cut off is repeated: polls are idempotent."""

_SUFFIXES = {"aws-cn": "amazonaws.com.cn"}

_OF_NO_USER = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
}
"""botocore's session variables (name in the file, variable, default, conversion) without profile and files."""

_In = TypeVar("_In")
_Out = TypeVar("_Out")


class Aws:
    """An account through boto3's usual settings (profile, variables), in the region that `cdk` deploys to.

    Args:
        variables: the variables of a local AWS, which replace these settings.
    """

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self._session = boto3.Session(region_name=deployment_region()) if variables is None else _led_by(variables)
        self._url = None if variables is None else variables.get("AWS_ENDPOINT_URL")
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()

    def client(self, service: str) -> Any:
        """A client of a service, made once; safe to use from several threads."""
        with self._lock:
            if service not in self._clients:
                url = self._url or os.environ.get("AWS_ENDPOINT_URL", "")
                config = Config(
                    retries={"mode": "standard", "max_attempts": _LOCAL_ATTEMPTS if is_loopback(url) else _ATTEMPTS},
                    max_pool_connections=CONNECTIONS,
                    read_timeout=_INVOCATION_SECONDS if service == "lambda" else 60,
                    proxies={} if self._url else None,
                )
                self._clients[service] = self._session.client(service, config=config, endpoint_url=self._url)  # type: ignore[call-overload]  # the stubs know only names written out
            return self._clients[service]

    def client_as(self, service: str, role: str, external_id: str | None) -> Any:
        """A client that acts as a role, and assumes it again before its credentials expire: uploads may take hours."""
        extra = {} if external_id is None else {"ExternalId": external_id}
        assumed = {"RoleArn": role, "RoleSessionName": "cdk-triton", **extra}
        assume = create_assume_role_refresher(self.client("sts"), assumed)
        credentials = RefreshableCredentials.create_from_metadata(assume(), assume, method="sts-assume-role")
        session = botocore.session.get_session()
        session.register_component("credential_provider", _Known(credentials))
        config = Config(max_pool_connections=CONNECTIONS)
        return session.create_client(service, region_name=self.region, config=config)

    def pages(self, service: str, operation: str, member: str, **arguments: Any) -> Iterator[Any]:
        """Every item of a listing, over all its pages. A failed page raises an error, never shortens the list."""
        for page in self.client(service).get_paginator(operation).paginate(**arguments):
            yield from page.get(member, [])

    def pseudo_parameters(self) -> Mapping[str, str]:
        """The values of CloudFormation for account, region, partition and domain."""
        region = self.region
        partition = self._session.get_partition_for_region(region)
        return {
            "AWS::AccountId": self.client("sts").get_caller_identity()["Account"],
            "AWS::Region": region,
            "AWS::Partition": partition,
            "AWS::URLSuffix": _SUFFIXES.get(partition, "amazonaws.com"),
        }

    @property
    def session(self) -> boto3.Session:
        """The session of all calls, for clients with another configuration."""
        return self._session

    @property
    def region(self) -> str:
        """The region of all calls."""
        return str(self.client("s3").meta.region_name)

    @property
    def is_local(self) -> bool:
        """Whether the calls of every service go to this machine; each service may have a URL of its own."""
        return all(
            is_loopback(self.client(each).meta.endpoint_url) for each in ("s3", "sagemaker", "sagemaker-runtime")
        )


def _led_by(variables: Mapping[str, str]) -> boto3.Session:
    """A session of a local AWS, whatever the environment of this process is."""
    return boto3.Session(
        botocore_session=botocore.session.Session(_OF_NO_USER),
        aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
        region_name=variables["AWS_REGION"],
    )


class _Known:
    """The provider of credentials for botocore, with existing credentials."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def load_credentials(self) -> Credentials:
        return self._credentials


def in_parallel(work: Callable[[_In], _Out], items: Iterable[_In]) -> list[_Out]:
    """The results in the order of the items; the first error is raised."""
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return list(pool.map(work, items))


def code_of(error: ClientError) -> str:
    """AWS's code of an error."""
    return str(error.response.get("Error", {}).get("Code", ""))


@contextmanager
def sentences(kind: type[CdkTritonError] = StoreError) -> Iterator[None]:
    """Turn what boto3 raises into a sentence that names the call and AWS's own reason.

    Args:
        kind: the error to raise.

    Raises:
        CdkTritonError: AWS rejected a call, or the call could not be sent. The error is of the class `kind`.
    """
    try:
        yield
    except ClientError as error:
        reason = error.response.get("Error", {}).get("Message") or "no reason given"
        raise kind(f"AWS rejected {error.operation_name} ({code_of(error)}): {reason}{_fix(error)}") from error
    except EndpointConnectionError as error:
        url = str(error.kwargs.get("endpoint_url", "")).rstrip("/")
        if not is_loopback(url):
            raise kind(_check(error)) from error
        raise kind(
            f"the local AWS at {url} does not answer; to start one, run: "
            f'eval "$(cdk-triton local up --detach)"; to go back to AWS, run: {unset_line()}'
        ) from error
    except BotoCoreError as error:
        raise kind(_check(error)) from error


def _check(error: BotoCoreError) -> str:
    return f"{str(error).rstrip('.')}; check the credentials, the region, the network and AWS_ENDPOINT_URL"


def is_loopback(url: str) -> bool:
    """Whether a URL leads to this machine."""
    return urlsplit(url).hostname in ("127.0.0.1", "localhost")


def _fix(error: ClientError) -> str:
    fix = fix_of(error)
    return "" if fix is None else f"; {fix}"
