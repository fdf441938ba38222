"""Finds out whether a deployment of this app would change a deployed stack dangerously."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from botocore.exceptions import ClientError

from cdk_triton._wording import listed
from cdk_triton.cli.artifacts.assembly import read_templates
from cdk_triton.cli.doctor.account import Account
from cdk_triton.cli.doctor.answers import Answer, State
from cdk_triton.cli.doctor.changes import dangerous_changes
from cdk_triton.cli.doctor.templates import deployed_template, is_deployed

__all__ = ["SUBJECT", "updates"]

SUBJECT = "updates"


def updates(account: Account, app: Path) -> Iterator[Answer]:
    """Compare each stack of the app that is deployed with its new template; nested stacks are not compared.

    Args:
        account: the account that the app would be deployed to.
        app: the directory of the cloud assembly.

    Raises:
        ConfigurationError: a file of the cloud assembly cannot be read.
        ClientError: AWS rejects a call.
    """
    compared, sound = [], True
    for name, template in read_templates(app, account.id, account.region):
        old = deployed_template(account, name) if is_deployed(account, name) else None
        if old is None:
            continue
        compared.append(name)
        for change in dangerous_changes(old, template, partial(_exists, account)):
            sound = False
            yield Answer(subject=SUBJECT, state=change.state, found=f"stack {name}: {change.found}", fix=change.fix)
    if compared and sound:
        yield Answer(subject=SUBJECT, state=State.OK, found=f"{listed(sorted(compared))}: no dangerous change")


def _exists(account: Account, endpoint: str) -> bool:
    """SageMaker does not have an error code for a missing endpoint."""
    try:
        account.client("sagemaker").describe_endpoint(EndpointName=endpoint)
    except ClientError as error:
        if "Could not find" in str(error):
            return False
        raise
    return True
