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
from cdk_triton.cli.doctor.changes import Change, dangerous_changes
from cdk_triton.cli.doctor.names_in_use import Templates, moved_parameters, removed_exports
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
    new = dict(read_templates(app, account.id, account.region))
    found = {name: deployed_template(account, name) for name in new if is_deployed(account, name)}
    old = {name: template for name, template in found.items() if template is not None}
    sound = True
    for name, change in _changes(account, old, new):
        sound = False
        yield Answer(subject=SUBJECT, state=change.state, found=f"stack {name}: {change.found}", fix=change.fix)
    if old and sound:
        yield Answer(subject=SUBJECT, state=State.OK, found=f"{listed(sorted(old))}: no dangerous change")


def _changes(account: Account, old: Templates, new: Templates) -> Iterator[tuple[str, Change]]:
    for name in old:
        for change in dangerous_changes(old[name], new[name], partial(_exists, account)):
            yield name, change
    yield from moved_parameters(old, new)
    yield from removed_exports(old, new, partial(_importers, account))


def _importers(account: Account, export: str) -> list[str]:
    """CloudFormation does not have an error code for this: "Export 'X' is not imported by any stack."."""
    pages = account.client("cloudformation").get_paginator("list_imports").paginate(ExportName=export)
    try:
        return [name for page in pages for name in page["Imports"]]
    except ClientError as error:
        if "is not imported" in str(error):
            return []
        raise


def _exists(account: Account, endpoint: str) -> bool:
    """SageMaker does not have an error code for a missing endpoint."""
    try:
        account.client("sagemaker").describe_endpoint(EndpointName=endpoint)
    except ClientError as error:
        if "Could not find" in str(error):
            return False
        raise
    return True
